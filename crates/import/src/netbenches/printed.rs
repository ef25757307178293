//! Output of tools that was kept as it was printed, as in the netperf collection: intervals of pkt-gen, tests of iperf and netperf,
//! rates one a line; as it was, or in the list of a conductor's steps.

mod throughput;
mod transcript;

use super::layout::{self, file_name};
use super::{ImportedSlot, ImportedTrial, PrintedThroughput, Run, Set};
use linerate_hosts::pktgen::{Reader, Sample};
use throughput::{number, rate, tests};
use transcript::Transcript;

/// The fewest intervals of a set.
const FEWEST: usize = 3;
/// A generator's intervals stand below one of these words.
const GENERATOR: [&str; 4] = ["source", "sender", "generator", "tx"];

/// The results in a file.
#[derive(Debug, Default)]
pub struct Results {
    /// Frames/s.
    pub sets: Vec<Set>,
    /// Bits, or figures without a unit.
    pub throughputs: Vec<PrintedThroughput>,
    /// Tests in it that cannot be used; or the reason why there is nothing.
    pub problems: Vec<String>,
}

/// The results in a file.
pub fn results(path: &str, bytes: &[u8]) -> Results {
    let transcript = Transcript::read(bytes);
    let name = name(path);
    let sets = pkt_gen(path, &name, &transcript);
    let (found, problems) = tests(&transcript);
    let mut results = Results {
        sets,
        problems,
        ..Results::default()
    };
    let of = |method: &str, unit: &str, values: Vec<(u64, f64)>| PrintedThroughput {
        name: name.clone(),
        file: path.into(),
        method: method.into(),
        unit: unit.into(),
        lines: values.iter().map(|(line, _)| *line).collect(),
        values: values.into_iter().map(|(_, value)| value).collect(),
        ..PrintedThroughput::default()
    };
    if !found.is_empty() {
        let mut methods: Vec<&str> = found.iter().map(|test| test.by).collect();
        methods.sort_unstable();
        methods.dedup();
        let values = found
            .iter()
            .map(|test| (test.line, test.bits / 1e6))
            .collect();
        let found = of(&methods.join(", or "), MBITS, values);
        results.throughputs.push(PrintedThroughput {
            whole: true,
            ..found
        });
    } else if results.sets.is_empty() {
        match rates(&transcript) {
            Some((MBITS, values)) => {
                results
                    .throughputs
                    .push(of("one printed rate", MBITS, values))
            }
            Some((_, values)) => results.throughputs.push(of(
                "one printed number; the file names no unit",
                "",
                values,
            )),
            None if results.problems.is_empty() => results.problems.push(nothing(bytes)),
            None => {}
        }
    }
    results
}

/// The unit of bit rates in records.
pub const MBITS: &str = "Mbit/s";

fn nothing(bytes: &[u8]) -> String {
    match bytes.trim_ascii().is_empty() {
        true => "empty",
        false => "no result in it: no intervals of pkt-gen, no test of iperf or netperf, no rates one a line",
    }
    .into()
}

/// The name of a file without its ending; of its test's folder where it is called as everybody's is.
fn name(path: &str) -> String {
    let file = file_name(path);
    let stem = [".txt", ".jsonl", ".json", ".log"]
        .iter()
        .find_map(|end| file.strip_suffix(end))
        .unwrap_or(file);
    match layout::test_folder(path) {
        Some(test) if matches!(stem, "output" | "out" | "result" | "results" | "conductor") => {
            test.into()
        }
        _ => stem.into(),
    }
}

/// Lines that are rates with their unit, or numbers without one, and nothing else.
fn rates(transcript: &Transcript) -> Option<(&'static str, Vec<(u64, f64)>)> {
    let lines = || {
        transcript
            .lines
            .iter()
            .filter(|(_, line)| !line.trim().is_empty())
    };
    lines().next()?;
    let with_unit = lines().map(|(at, line)| {
        let (value, of) = line.trim().split_once(' ')?;
        Some((*at, rate(value, of.trim())? / 1e6))
    });
    let plain = || lines().map(|(at, line)| Some((*at, number(line.trim())?)));
    let with_unit = with_unit
        .collect::<Option<_>>()
        .map(|values| (MBITS, values));
    with_unit.or_else(|| plain().collect::<Option<_>>().map(|values| ("", values)))
}

/// A set for each block of pkt-gen's intervals, which are its runs. A generator's block is the offered load of the block behind it.
fn pkt_gen(path: &str, stem: &str, transcript: &Transcript) -> Vec<Set> {
    let mut reader = Reader::new();
    for (_, line) in &transcript.lines {
        reader.feed(line.as_bytes());
        reader.feed(b"\n");
    }
    let log = reader.finish();
    // A block ends where something else was printed.
    let blocks = log
        .samples
        .chunk_by(|(line, _), (next, _)| next - line == 1);
    let mut blocks: Vec<&[(u64, Sample)]> = blocks.filter(|block| block.len() >= FEWEST).collect();
    let place = |at: u64| transcript.lines.get((at as usize).wrapping_sub(1));
    let heading = |block: &[(u64, Sample)]| {
        let before = (block[0].0 as usize)
            .saturating_sub(1)
            .min(transcript.lines.len());
        let mut above = transcript.lines[..before]
            .iter()
            .rev()
            .map(|(_, line)| line.trim().trim_end_matches(':'));
        above
            .find(|line| !line.is_empty())
            .is_some_and(|line| GENERATOR.contains(&&*line.to_lowercase()))
    };
    let mut offered = None;
    if blocks.len() == 2 && heading(blocks[0]) {
        let rates: Vec<f64> = blocks
            .remove(0)
            .iter()
            .map(|(_, sample)| sample.pps as f64)
            .collect();
        offered = linerate_stats::median_interval(&rates, 0.95).map(|rate| rate.median);
    }
    let name = |at: usize| match blocks.len() {
        1 => stem.to_string(),
        _ => format!("{stem}, part {}", at + 1),
    };
    let run = |(line, sample): &(u64, Sample)| {
        let line = place(*line).map_or(*line, |(line, _)| *line);
        let trial = ImportedTrial {
            file: path.into(),
            lines: Some((line, line)),
            method: "one interval of pkt-gen".into(),
            samples: Some(1),
            ..ImportedTrial::default()
        };
        Run {
            trial,
            median_pps: Some(sample.pps as f64),
            offered_pps: offered,
            ..Run::default()
        }
    };
    let set = |(at, block): (usize, &&[(u64, Sample)])| Set {
        slot: ImportedSlot {
            set: name(at),
            ..ImportedSlot::default()
        },
        runs: block
            .iter()
            .filter(|(_, sample)| sample.pps > 0)
            .map(run)
            .collect(),
        ..Set::default()
    };
    blocks.iter().enumerate().map(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(from: u32, scale: u32) -> String {
        let line = |second: u32| {
            format!(
                "{second}.500000 main_thread [1418] {} pps (1000 pkts in 1000990 usec)\n",
                scale * (1000 + second)
            )
        };
        (from..from + 5).map(line).collect()
    }

    #[test]
    fn every_block_of_samples_is_a_set() {
        let block = block(100, 1);
        let found = results(
            "T/Results/pkt-gen/a.txt",
            format!("Notes\n\n{block}\n\n{block}").as_bytes(),
        );
        let names: Vec<&str> = found.sets.iter().map(|set| set.slot.set.as_str()).collect();
        assert_eq!(
            (names, found.problems),
            (vec!["a, part 1", "a, part 2"], vec![])
        );
        assert_eq!(found.sets[1].runs[4].median_pps, Some(1104.0));
        assert_eq!(found.sets[1].runs[0].trial.lines, Some((10, 10)));
    }

    #[test]
    fn a_generators_block_is_the_offered_load() {
        let text = format!("Source\n\n{}\n\n{}", block(100, 10), block(201, 1));
        let found = results("T/Results/pkt-gen/a.txt", text.as_bytes());
        assert_eq!((found.sets.len(), &*found.sets[0].slot.set), (1, "a"));
        let run = &found.sets[0].runs[0];
        assert_eq!(
            (run.median_pps, run.offered_pps, run.trial.lines),
            (Some(1201.0), Some(11_020.0), Some((10, 10)))
        );
    }

    #[test]
    fn rates_one_a_line_have_the_unit_that_is_printed() {
        let of = |text: &str| {
            let found = results("T/Tests/tunnel/output", text.as_bytes());
            (found.throughputs, found.problems)
        };
        let (rates, problems) = of("2.25 Gbits/sec\n\n900 Mbits/sec\n");
        assert_eq!(
            (&*rates[0].name, &*rates[0].unit, &rates[0].values[..]),
            ("tunnel", "Mbit/s", &[2250.0, 900.0][..])
        );
        assert_eq!((&rates[0].lines[..], problems), (&[1, 3][..], vec![]));
        let (plain, _) = of("9.42   \n9.41\n");
        assert_eq!(
            (&*plain[0].unit, &plain[0].values[..]),
            ("", &[9.42, 9.41][..])
        );
        assert_eq!(of("9.42\nnan\n").0, []);
        assert_eq!(of("9e307 Tbits/sec\n").0, []);
        assert_eq!(of(" \n").1, ["empty"]);
        assert!(of("PING 10.0.0.1\n\u{fffd}").1[0].contains("no result"));
    }

    proptest! {
        #[test]
        fn any_output_is_read(text in r#"(\PC|\n|[\[\]{}"b'0-9.: -]|\[SUM\]|0\.0-1\.0 sec|1 Gbits/sec|0 b'|\\|"output":|"end":){0,60}"#) {
            for path in ["T/Tests/a/output", "T/Results/b.json", "output"] {
                let found = results(path, text.as_bytes());
                for one in &found.throughputs {
                    prop_assert_eq!(one.values.len(), one.lines.len());
                    prop_assert!(one.values.iter().all(|value| value.is_finite()));
                }
            }
        }
    }
}
