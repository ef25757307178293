//! From the files of a results folder to sets of runs: which log belongs to which set, as which run.

use super::method::{Medians, ReceiverLog, kept_lines};
use super::{ImportedTrial, Run, layout};
use linerate_hosts::pktgen::steady::LEAST_POINTS;
use linerate_hosts::pktgen::steady::steady;
use linerate_hosts::pktgen::{Command, Log};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of a receiver's log that are kept.
#[derive(Debug, Clone)]
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
    /// Reads a log.
    pub fn read(bytes: &[u8]) -> Self {
        let read = ReceiverLog::read(bytes);
        let (points, medians) = read.archive();
        let steady = steady(&read.log.samples);
        let mut problems = problems(&read.log, bytes, points, medians.is_some(), steady.is_some());
        problems.extend(steady.and_then(|s| s.change).map(|change| change.to_string()));
        let trial = ImportedTrial {
            lines: kept_lines(read.log.newlines),
            samples: Some(points),
            sound: steady.map(|s| s.median),
            steady: steady.map(|s| (s.first, s.samples)),
            problems,
            ..ImportedTrial::default()
        };
        Received {
            medians,
            frame_length: read.log.frame_length(),
            command: read.log.command,
            run: Run { trial, log_samples: read.log.samples, ..Run::default() },
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
    } else if total == 0 {
        problems.push("no sample in it".into());
    } else if zeros == total {
        problems.push(format!("nothing arrived: all {total} samples are 0"));
    } else if zeros * 2 > total {
        problems.push(format!("next to nothing arrived: {zeros} of {total} samples are 0"));
    } else if points < LEAST_POINTS {
        problems.push(format!("cut off or too short: {total} samples"));
    }
    if !figure {
        problems.push(match points < LEAST_POINTS {
            true => format!("no figure: {points} usable samples, ministat needs 3"),
            false => "no figure: a field of its samples is no number".into(),
        });
    } else if !steady {
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
    pub problems: Vec<String>,
}

impl Sent {
    /// Takes the needed parts of a log.
    pub fn of(log: Log, bytes: &[u8]) -> Self {
        let mut problems = crashes(&log);
        let offered = steady(&log.samples).map(|s| s.median).or(log.summary.and_then(|s| s.pps));
        let offered = offered.filter(|pps| *pps > 0.0);
        if offered.is_none() {
            problems.push(if bytes.is_empty() { "empty" } else { "nothing sent: no rate in it" }.into());
        }
        Sent { offered, frame_length: log.frame_length(), command: log.command, problems }
    }
}

/// A log's set and run, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunName {
    /// The set as the `.info` file is called: `bench.<set>.info`; empty for `bench.info`.
    pub set: String,
    /// The run.
    pub number: Option<u32>,
}

/// The sets that are known to exist, which decide how names of logs are read.
#[derive(Debug, Clone, Default)]
pub struct KnownSets {
    /// Folder -> sets that have an `.info` there.
    pub infos: BTreeMap<String, BTreeSet<String>>,
}

impl KnownSets {
    /// Takes a log's name, without its ending, apart. `a.1` is run 1 of the set `a`, unless there is a set `a.1`.
    pub fn split(&self, folder: &str, stem: &str) -> RunName {
        let stem = set_stem(stem);
        let whole = || RunName { set: stem.into(), number: None };
        let (prefix, last) = stem.rsplit_once('.').unwrap_or(("", stem));
        let number =
            Some(last).filter(|l| !l.is_empty() && l.len() <= 9 && l.bytes().all(|b| b.is_ascii_digit()));
        let Some(number) = number.and_then(|n| n.parse().ok()) else { return whole() };
        let numbered = RunName { set: prefix.into(), number: Some(number) };
        if let Some(here) = self.infos.get(folder) {
            match (here.contains(prefix), here.contains(stem)) {
                (true, _) => return numbered,
                (false, true) => return whole(),
                (false, false) => {}
            }
        }
        let elsewhere = self.infos.values().any(|sets| sets.contains(stem));
        let plausible = number < if prefix.is_empty() { 100 } else { 1000 };
        if elsewhere || !plausible { whole() } else { numbered }
    }
}

/// The stem of `bench.<stem>.info` and its like: `bench.info` has none.
pub fn set_stem(name: &str) -> &str {
    match name.strip_prefix("bench") {
        Some("") => "",
        Some(rest) => rest.strip_prefix('.').unwrap_or(name),
        None => name,
    }
}

/// The `<x>` of a folder `RAW.<x>` that a path leads through.
pub fn raw_suffix(folder: &str) -> Option<&str> {
    let part = folder.rsplit('/').find(|part| layout::is_raw(part))?;
    part.strip_prefix("RAW.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(folder: &str, sets: &[&str]) -> KnownSets {
        KnownSets { infos: [(folder.to_string(), sets.iter().map(|s| s.to_string()).collect())].into() }
    }

    fn split(known: &KnownSets, folder: &str, stem: &str) -> (String, Option<u32>) {
        let name = known.split(folder, stem);
        (name.set, name.number)
    }

    #[test]
    fn names_of_runs() {
        let none = KnownSets::default();
        assert_eq!(split(&none, "r", "bench.forwarding.inet4.10"), ("forwarding.inet4".into(), Some(10)));
        assert_eq!(split(&none, "r", "bench.forwarding.inet4"), ("forwarding.inet4".into(), None));
        assert_eq!(split(&none, "r", "bench.1.1"), ("1".into(), Some(1)));
        assert_eq!(split(&none, "r", "bench.3"), (String::new(), Some(3)));
        assert_eq!(split(&none, "r", "bench.4096"), ("4096".into(), None));
        assert_eq!(split(&none, "r", "bench"), (String::new(), None));
        assert_eq!(split(&none, "r", "benchmark.1"), ("benchmark".into(), Some(1)));
    }

    #[test]
    fn infos_decide_what_is_a_number() {
        let raw = known("l/RAW", &["1024", "pf-stateful.64", ""]);
        assert_eq!(split(&raw, "l/RAW", "bench.1024.1"), ("1024".into(), Some(1)));
        assert_eq!(split(&raw, "l/RAW", "bench.pf-stateful.64"), ("pf-stateful.64".into(), None));
        assert_eq!(split(&raw, "l/RAW", "bench.pf-stateful.64.2"), ("pf-stateful.64".into(), Some(2)));
        assert_eq!(split(&raw, "l/RAW", "bench.7"), (String::new(), Some(7)));
        // A profiling run beside it.
        assert_eq!(split(&known("l/RAW", &["64"]), "l/PMC", "bench.64"), ("64".into(), None));
    }

    #[test]
    fn suffixes_of_raw_folders() {
        assert_eq!(raw_suffix("a/RAW.1rx"), Some("1rx"));
        assert_eq!((raw_suffix("a/RAW"), raw_suffix("a"), raw_suffix(".")), (None, None, None));
    }
}
