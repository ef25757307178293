//! Logs of pkt-gen, and the archive's own figure of a run, exactly as its script computes it.
//!
//! Of a receiver's log of L newlines the script keeps `head -n L-10 | tail -n L-25`, then the lines that match
//! `main_thread[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps`, then their fourth field between single blanks; ministat takes
//! the median and prints it with `%.8g`. So the script drops 15 and 10 lines, not samples, and also each sample of 0.

use super::{ImportedTrial, Rule, Run};
use linerate_hosts::pktgen::steady::{LEAST_POINTS, steady};
use linerate_hosts::pktgen::{Command, Line, Log, Reader};
use memchr::memmem::Finder;

/// The lines that enter the archive's figure: first and last, from 1.
///
/// FreeBSD's head refuses a count of 0 or less, and its tail takes a negative count for as many lines from the end: so a
/// log of 11 to 24 lines keeps its last 25-L of its first L-10 lines.
pub fn kept_lines(newlines: u64) -> Option<(u64, u64)> {
    let last = newlines.checked_sub(10).filter(|last| *last > 0)?;
    match newlines {
        25 => None,
        26.. => Some((16, last)),
        _ => Some(((last + 1).saturating_sub(25 - newlines).max(1), last)),
    }
}

/// Lines that match the script's expression but are not samples as pkt-gen writes them, with their values after `cut` and
/// ministat: NaN for one that is not a number, at which ministat ends without a result; `None` for one that it skips.
type Odd = Vec<(u64, Option<f64>)>;

/// The archive's figure of a run, by both rules, as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Medians {
    /// Mean of the two middle points.
    pub mean: f64,
    /// The upper of the two.
    pub upper: f64,
}

impl Medians {
    /// By one rule.
    pub fn by(&self, rule: Rule) -> f64 {
        match rule {
            Rule::Mean => self.mean,
            Rule::Upper => self.upper,
        }
    }
}

/// How many points enter the archive's median, and the median; `None` where ministat gives none.
fn archive(log: &Log, odd: &Odd) -> (usize, Option<Medians>) {
    let Some((first, last)) = kept_lines(log.newlines) else {
        return (0, None);
    };
    let kept = |line: &u64| (first..=last).contains(line);
    let is_odd = |line: &u64| odd.binary_search_by_key(line, |(odd, _)| *odd).is_ok();
    let samples = log
        .samples
        .iter()
        .filter(|(line, s)| kept(line) && s.pps > 0 && !is_odd(line));
    let samples = samples.map(|(_, s)| s.pps as f64);
    let numbers = odd
        .iter()
        .filter(|(line, _)| kept(line))
        .filter_map(|(_, number)| *number);
    let mut points: Vec<f64> = samples.chain(numbers).collect();
    let all = points.len();
    points.retain(|point| !point.is_nan());
    let sound = points.len() == all && all >= LEAST_POINTS;
    (points.len(), sound.then(|| medians(&mut points)))
}

/// Both medians of at least one point.
fn medians(points: &mut [f64]) -> Medians {
    let half = points.len() / 2;
    let even = points.len().is_multiple_of(2);
    let (below, upper, _) = points.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    let lower = if even {
        below.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    } else {
        upper
    };
    Medians {
        mean: printed((lower + upper) / 2.0),
        upper: printed(upper),
    }
}

/// The value that remains of a number printed by `%.8g`.
pub fn printed(value: f64) -> f64 {
    // Rust rounds a tie to even as C does.
    format!("{value:.7e}").parse().unwrap_or(value)
}

/// The fourth field of a line that matches the script's expression: NaN for one that is not a number, `None` within for one that
/// is empty or a comment.
#[cold]
fn fourth_field(line: &[u8], main_thread: &Finder<'_>) -> Option<Option<f64>> {
    main_thread
        .find_iter(line)
        .find(|at| matches_after(&line[at + 11..]))?;
    // `cut` prints a line without its delimiter whole.
    let field = match line.contains(&b' ') {
        true => line.split(|b| *b == b' ').nth(3).unwrap_or_default(),
        false => line,
    };
    let text = String::from_utf8_lossy(field);
    let word = text
        .split(['\t', ' '])
        .find(|w| !w.is_empty())
        .filter(|w| !w.starts_with('#'));
    Some(word.map(|word| {
        word.parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
            .unwrap_or(f64::NAN)
    }))
}

/// `[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps`.
fn matches_after(rest: &[u8]) -> bool {
    let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c);
    let [blank, b'[', rest @ ..] = rest else {
        return false;
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let [b']', second, b'1'..=b'9', tail @ ..] = &rest[digits..] else {
        return false;
    };
    digits > 0 && space(blank) && space(second) && memchr::memmem::find(tail, b"pps").is_some()
}

/// The parts of a receiver's log that are kept.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// The run, without the parts that come from its set: its number, the rule of its median, and the offered load.
    pub run: Run,
    /// The archive's figure.
    pub medians: Option<Medians>,
    /// The command line.
    pub command: Option<Command>,
    /// Frame length without FCS.
    pub frame_length: Option<u64>,
}

impl Received {
    /// Reads a whole log; `file` is its path.
    pub fn read(file: &str, bytes: &[u8]) -> Self {
        let mut odd = Odd::new();
        let main_thread = Finder::new(b"main_thread");
        let mut see = |number: u64, line: &[u8], parsed: &Line<'_>| match parsed {
            // The rate of a sample is the fourth field.
            Line::Sample(_) => {}
            _ => odd.extend(fourth_field(line, &main_thread).map(|field| (number, field))),
        };
        let mut reader = Reader::new();
        reader.feed_with(bytes, &mut see);
        let log = reader.finish_with(&mut see);
        let (points, medians) = archive(&log, &odd);
        let steady = steady(&log.samples);
        let mut problems = problems(&log, bytes, points, medians.is_some(), steady.is_some());
        problems.extend(
            steady
                .and_then(|s| s.change)
                .map(|change| change.to_string()),
        );
        let trial = ImportedTrial {
            file: file.into(),
            lines: kept_lines(log.newlines),
            samples: Some(points),
            sound: steady.map(|s| s.median),
            steady: steady.map(|s| (s.first, s.samples)),
            problems,
            ..ImportedTrial::default()
        };
        Received {
            medians,
            frame_length: log.frame_length(),
            command: log.command,
            run: Run {
                trial,
                log_samples: log.samples,
                ..Run::default()
            },
        }
    }
}

/// Reasons why a receiver's log is not a good run.
fn problems(log: &Log, bytes: &[u8], points: usize, figure: bool, steady: bool) -> Vec<String> {
    let mut problems = crashes(log);
    let total = log.samples.len();
    let zeros = log.samples.iter().filter(|(_, s)| s.pps == 0).count();
    if bytes.is_empty() {
        problems.push("empty".into());
    } else if total == 0 && points > 0 {
        // The script asks for less than a sample: no time stamp of six digits, for example.
        problems.push(format!(
            "{points} lines have a rate for the archive's script, and none is a sample as pkt-gen prints it, \
             SSS.uuuuuu main_thread [line] N pps (N pkts in N usec): so no steady part is known"
        ));
    } else if total == 0 {
        problems.push("no sample in it".into());
    } else if zeros == total {
        problems.push(format!("nothing arrived: all {total} samples are 0"));
    } else if zeros * 2 > total {
        problems.push(format!(
            "next to nothing arrived: {zeros} of {total} samples are 0"
        ));
    } else if points < LEAST_POINTS {
        problems.push(format!("cut off or too short: {total} samples"));
    }
    if !figure {
        problems.push(match points < LEAST_POINTS {
            true => format!("no figure: {points} usable samples, ministat needs 3"),
            false => "no figure: a field of its samples is no number".into(),
        });
    } else if !steady && total > 0 {
        problems.push("no steady part".into());
    }
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        problems.push("cut off in mid-line".into());
    }
    problems
}

fn crashes(log: &Log) -> Vec<String> {
    log.crashes.iter().map(ToString::to_string).collect()
}

/// The parts of a generator's log that are kept.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The command line.
    pub command: Option<Command>,
    /// Offered load in frames/s: median of the steady part, or else the summary's.
    pub offered: Option<f64>,
    /// Frame length without FCS.
    pub frame_length: Option<u64>,
}

impl Sent {
    /// Reads a log. Returns its problems as well.
    pub fn read(bytes: &[u8]) -> (Self, Vec<String>) {
        let mut reader = Reader::new();
        reader.feed(bytes);
        let log = reader.finish();
        let mut problems = crashes(&log);
        let offered = steady(&log.samples)
            .map(|s| s.median)
            .or(log.summary.and_then(|s| s.pps));
        let offered = offered.filter(|pps| *pps > 0.0);
        if offered.is_none() {
            problems.push(
                if bytes.is_empty() {
                    "empty"
                } else {
                    "nothing sent: no rate in it"
                }
                .into(),
            );
        }
        (
            Sent {
                offered,
                frame_length: log.frame_length(),
                command: log.command,
            },
            problems,
        )
    }
}

#[cfg(test)]
mod tests;
