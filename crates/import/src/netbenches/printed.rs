//! Output of tools that was kept as it was printed, as in the netperf collection: intervals of pkt-gen, one after the other.

use super::layout::file_name;
use super::{ImportedSlot, ImportedTrial, Run, Set};
use linerate_hosts::pktgen::{Reader, Sample};

/// The fewest intervals of a set.
const FEWEST: usize = 3;

/// A set for each block of pkt-gen's samples, whose runs are the intervals; or the reason why there is none.
pub fn sets(path: &str, bytes: &[u8]) -> (Vec<Set>, Vec<String>) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    let log = reader.finish();
    // A block ends where something else was printed.
    let blocks = log.samples.chunk_by(|(line, _), (next, _)| next - line == 1);
    let blocks: Vec<&[(u64, Sample)]> = blocks.filter(|block| block.len() >= FEWEST).collect();
    let stem = file_name(path).trim_end_matches(".txt");
    let name = |at: usize| match blocks.len() {
        1 => stem.to_string(),
        _ => format!("{stem}, part {}", at + 1),
    };
    let set = |(at, block): (usize, &&[(u64, Sample)])| Set {
        slot: ImportedSlot { set: name(at), ..ImportedSlot::default() },
        runs: block.iter().filter(|(_, sample)| sample.pps > 0).map(|one| run(path, one)).collect(),
        ..Set::default()
    };
    let sets: Vec<Set> = blocks.iter().enumerate().map(set).collect();
    let problem = "no samples of pkt-gen: throughput of TCP connections and plain numbers are not read";
    let problems = if sets.is_empty() { vec![problem.to_string()] } else { Vec::new() };
    (sets, problems)
}

fn run(path: &str, (line, sample): &(u64, Sample)) -> Run {
    let trial = ImportedTrial {
        file: path.into(),
        lines: Some((*line, *line)),
        method: "one interval of pkt-gen".into(),
        samples: Some(1),
        ..ImportedTrial::default()
    };
    Run { trial, median_pps: Some(sample.pps as f64), ..Run::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_samples_is_a_set() {
        let line = |second: u32| {
            format!("{second}.500000 main_thread [1418] {} pps (1000 pkts in 1000990 usec)\n", 1000 + second)
        };
        let block: String = (100..105).map(line).collect();
        let (found, problems) =
            sets("T/Results/pkt-gen/a.txt", format!("Source\n\n{block}\n\n{block}").as_bytes());
        let names: Vec<&str> = found.iter().map(|set| set.slot.set.as_str()).collect();
        assert_eq!((names, problems), (vec!["a, part 1", "a, part 2"], vec![]));
        assert_eq!(found[1].runs[4].median_pps, Some(1104.0));
        assert_eq!(found[1].runs[0].trial.lines, Some((10, 10)));
        let (none, problems) = sets("T/Results/iperf3/a.txt", b"9.42\n9.41\n9.41\n\xff");
        assert!(none.is_empty() && problems.len() == 1);
    }
}
