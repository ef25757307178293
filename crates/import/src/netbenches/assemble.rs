//! Puts the files of one results folder together: give it every file, in any order, and take the folder's sets.

use super::config::Configs;
use super::info::Info;
use super::layout::{self, Kind, KnownSets, Place, file_name, raw_suffix, set_stem};
use super::logs::{Received, Sent};
use super::{
    Equilibrium, EquilibriumRun, FileProblem, PrintedThroughput, Published, ResultDirectory,
    Series, Set, equilibrium, folder, printed, tables,
};
use crate::conductor;
use linerate_hosts::pktgen::Command;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A results folder that is being read: its own files, and those of its RAW and PMC folders. Logs are kept by their paths.
#[derive(Debug, Default)]
pub struct Assembly {
    pub(super) path: String,
    place: Place,
    /// Whether samples are to be kept.
    keep_samples: bool,
    pub(super) received: BTreeMap<String, Received>,
    pub(super) sent: BTreeMap<String, Sent>,
    pub(super) infos: BTreeMap<String, Info>,
    searches: BTreeMap<String, (EquilibriumRun, Option<Command>)>,
    pub(super) medians: Vec<Published>,
    throughputs: Vec<Published>,
    printed: Vec<Set>,
    printed_throughputs: Vec<PrintedThroughput>,
    /// Files of tests of Conductor, by their names.
    tests: BTreeMap<String, Vec<u8>>,
    series: Vec<Series>,
    /// Paths of profiles up to `.pmc`: `PMC/bench.311848.1`.
    pub(super) profiles: BTreeSet<String>,
    problems: Vec<FileProblem>,
}

impl Assembly {
    /// A folder at `path`, relative to the one that is read (`.` for itself), about `place`.
    pub fn new(path: &str, place: Place, keep_samples: bool) -> Self {
        Assembly {
            path: path.into(),
            place,
            keep_samples,
            ..Assembly::default()
        }
    }

    /// Takes a file that was read whole (or, of kinds that its name decides alone, not at all). Returns its actual kind.
    pub fn file(&mut self, path: &str, kind: Kind, bytes: &[u8]) -> &'static str {
        let mut name = kind.name();
        let problems = match kind {
            Kind::Sender | Kind::Unknown if equilibrium::is_log(bytes) => {
                name = "equilibrium log";
                let run = equilibrium::read(path, bytes);
                let problems = run.problems.clone();
                self.searches
                    .insert(path.into(), (run, equilibrium::command(bytes)));
                problems
            }
            Kind::Unknown if tables::is_numbers(bytes) => {
                return self.file(path, Kind::Medians, bytes);
            }
            Kind::Receiver => {
                let mut received = Received::read(path, bytes);
                if !self.keep_samples {
                    received.run.log_samples = Vec::new();
                }
                let problems = received.run.trial.problems.clone();
                self.received.insert(path.into(), received);
                problems
            }
            Kind::Sender => {
                let (sent, problems) = Sent::read(bytes);
                self.sent.insert(path.into(), sent);
                problems
            }
            Kind::Printed => {
                let results = printed::results(path, bytes);
                self.printed.extend(results.sets);
                self.printed_throughputs.extend(results.throughputs);
                results.problems
            }
            Kind::Conductor => {
                self.tests.insert(file_name(path).into(), bytes.to_vec());
                return name;
            }
            Kind::Info => {
                let info = Info::read(bytes);
                let problems = info.problems.clone();
                self.infos.insert(path.into(), info);
                problems
            }
            Kind::Medians | Kind::Equilibrium => {
                let published = tables::numbers(path, bytes);
                let problems = published.problems.clone();
                let files = if kind == Kind::Medians {
                    &mut self.medians
                } else {
                    &mut self.throughputs
                };
                files.push(published);
                problems
            }
            Kind::Series => {
                let series = tables::series(path, bytes);
                let problems = series.problems.clone();
                self.series.push(series);
                problems
            }
            Kind::Profile(_) | Kind::PmcLog => {
                let name = file_name(path);
                let ending = name.find(".pmc").map(|at| name.len() - at);
                self.profiles
                    .extend(ending.map(|ending| path[..path.len() - ending].to_string()));
                return kind.name();
            }
            _ => return name,
        };
        if !problems.is_empty() {
            self.problem(path, name, problems.join("; "));
        }
        name
    }

    /// A file that is broken.
    pub fn problem(&mut self, path: &str, kind: &'static str, reason: impl Into<String>) {
        self.problems.push(FileProblem {
            path: path.into(),
            kind,
            reason: reason.into(),
            set: None,
        });
    }

    /// Judges a file by its length and last byte: graphs end with a newline, or were cut when a buffer was full.
    pub fn end(&mut self, path: &str, kind: Kind, length: u64, last: Option<u8>) -> &'static str {
        match last {
            Some(b'\n') => {}
            None => self.problem(path, kind.name(), "empty"),
            Some(_) if length.is_multiple_of(4096) => {
                self.problem(path, kind.name(), "cut off in mid-line at a 4 KiB boundary");
            }
            Some(_) => self.problem(path, kind.name(), "cut off in mid-line"),
        }
        self.file(path, kind, &[])
    }

    /// The folder with its sets, and every problem of its files; `None` for an empty folder.
    pub fn finish(mut self, configs: &Configs) -> (Option<ResultDirectory>, Vec<FileProblem>) {
        self.describe_tests();
        let mut problems = std::mem::take(&mut self.problems);
        let known = self.known();
        let equilibria = self.equilibria(&known);
        let mut sets = self.sets(configs);
        let mut throughputs = std::mem::take(&mut self.printed_throughputs);
        let printed = !throughputs.is_empty() || !self.printed.is_empty();
        sets.append(&mut self.printed);
        attach(&mut problems, &known, &mut sets);
        for table in &mut self.series {
            if let Some(reason) = tables::without_runs(table, &sets, &equilibria) {
                let (path, kind) = (table.file.clone(), Kind::Series.name());
                problems.push(FileProblem {
                    path,
                    kind,
                    reason: reason.clone(),
                    set: None,
                });
                table.problems.push(reason);
            }
        }
        for problem in &problems {
            let of_file = throughputs
                .iter_mut()
                .filter(|found| found.file == problem.path);
            of_file.for_each(|found| found.problems.push(problem.reason.clone()));
        }
        problems.sort_by(|a, b| (&a.path, &a.reason).cmp(&(&b.path, &b.reason)));
        let nothing = sets.is_empty()
            && self.series.is_empty()
            && equilibria.is_empty()
            && throughputs.is_empty();
        let Assembly {
            path,
            place,
            series,
            ..
        } = self;
        let found = ResultDirectory {
            path,
            place,
            sets,
            series,
            equilibria,
            throughputs,
            printed,
        };
        ((!nothing).then_some(found), problems)
    }

    /// Reads the tests of Conductor whose output this may be: their trials, their load, and whether a profiler runs.
    fn describe_tests(&mut self) {
        let tests = std::mem::take(&mut self.tests);
        let mains = tests
            .iter()
            .filter(|(_, bytes)| memchr::memmem::find(bytes, b"[Test]").is_some());
        for (name, _) in mains {
            let path = match &*self.path {
                "." => name.clone(),
                folder => format!("{folder}/{name}"),
            };
            let file = |name: &str| {
                tests
                    .get(name.trim())
                    .cloned()
                    .ok_or_else(|| "there is none".to_string())
            };
            let test = match conductor::read(name, &conductor::Options::default(), file) {
                Ok(test) => test,
                Err(faults) => {
                    let first = faults.first().map_or(String::new(), ToString::to_string);
                    self.problem(&path, Kind::Conductor.name(), first);
                    continue;
                }
            };
            if self.printed.is_empty() && self.printed_throughputs.is_empty() {
                self.problem(
                    &path,
                    Kind::Conductor.name(),
                    "a test of Conductor without its output",
                );
            }
            let profiling = test
                .commands()
                .any(|(_, step)| step.command.contains("pmcstat"));
            let mut facts = BTreeMap::from([("trials".to_string(), test.trials.to_string())]);
            for (worker, step) in test.commands().filter(|(_, step)| is_load(&step.command)) {
                let known: &mut String = facts
                    .entry(format!("command on {}", worker.name))
                    .or_default();
                known.push_str(if known.is_empty() { "" } else { "; " });
                known.push_str(&step.command);
            }
            for slot in self.printed.iter_mut().map(|set| &mut set.slot) {
                slot.profiling |= profiling;
                slot.facts.extend(facts.clone());
            }
            for found in &mut self.printed_throughputs {
                found.profiling |= profiling;
                found.facts.extend(facts.clone());
            }
        }
    }

    pub(super) fn known(&self) -> KnownSets {
        let mut known = KnownSets::default();
        for path in self.infos.keys() {
            let set = set_stem(layout::stem(path)).to_string();
            known.0.entry(folder(path).into()).or_default().insert(set);
        }
        known
    }

    /// The searches for an equilibrium, by set, with the published values.
    fn equilibria(&mut self, known: &KnownSets) -> Vec<Equilibrium> {
        let mut all: BTreeMap<String, Equilibrium> = BTreeMap::new();
        for (path, (run, command)) in std::mem::take(&mut self.searches) {
            let (set, _) = known.split(folder(&path), layout::stem(&path));
            let found = all.entry(shown_name("", &set)).or_default();
            found.runs.push(run);
            for (name, value) in command.iter().flat_map(Command::facts) {
                found.facts.entry(format!("sender.{name}")).or_insert(value);
            }
        }
        for file in std::mem::take(&mut self.throughputs) {
            let found = all
                .entry(shown_name("", throughput_stem(&file.file)))
                .or_default();
            let max = file.file.ends_with(".max");
            *(if max {
                &mut found.published_max
            } else {
                &mut found.published
            }) = Some(file);
        }
        for (path, info) in &self.infos {
            if let Some(found) = all.get_mut(&shown_name("", set_stem(layout::stem(path)))) {
                found.facts.extend(info.facts.clone());
            }
        }
        let judged = all.into_iter().map(|(name, mut found)| {
            found.name = name;
            judge(&mut found);
            found
        });
        judged.collect()
    }
}

/// Whether a command sends or receives a load, or observes it.
fn is_load(command: &str) -> bool {
    ["iperf", "pkt-gen", "netperf", "pmcstat"]
        .iter()
        .any(|tool| command.contains(tool))
}

/// Adds the problems of files to their sets. Runs and tables already have theirs.
fn attach(problems: &mut [FileProblem], known: &KnownSets, sets: &mut [Set]) {
    let runs = sets
        .iter()
        .enumerate()
        .flat_map(|(i, s)| s.runs.iter().map(move |r| (&r.trial.file, i)));
    let runs: HashMap<String, usize> = runs.map(|(file, i)| (file.clone(), i)).collect();
    for problem in problems {
        if let Some(owner) = runs.get(&problem.path) {
            problem.set = Some(sets[*owner].slot.set.clone());
            continue;
        }
        let (folder, name) = (super::folder(&problem.path), file_name(&problem.path));
        let published = |set: &Set| {
            set.slot
                .published
                .as_ref()
                .is_some_and(|p| p.file == problem.path)
        };
        let wanted = shown_name(folder, &known.split(folder, log_stem(name)).0);
        let of_log = |set: &Set| name.starts_with("bench") && set.slot.set == wanted;
        let here = |set: &Set| {
            set.runs
                .iter()
                .any(|run| super::folder(&run.trial.file) == folder)
        };
        let owner = sets.iter().position(published);
        let owner = owner.or_else(|| sets.iter().position(|set| of_log(set) && here(set)));
        if let Some(owner) = owner.or_else(|| sets.iter().position(of_log)) {
            let slot = &mut sets[owner].slot;
            slot.problems.push(format!("{name}: {}", problem.reason));
            problem.set = Some(slot.set.clone());
        }
    }
}

/// A file's name without its ending: `bench.a.1` of `bench.a.1.sender_gen2`, `bench.a.1.pmc.graph`, `bench.a.1.graph`.
fn log_stem(name: &str) -> &str {
    let ends = [".graph", ".stack", ".folded"];
    let name = ends
        .iter()
        .find_map(|e| name.strip_suffix(e))
        .unwrap_or(layout::stem(name));
    name.strip_suffix(".pmc").unwrap_or(name)
}

/// A set's name: that of its `.info`, with the `<x>` of its folder `RAW.<x>`.
pub(super) fn shown_name(folder: &str, set: &str) -> String {
    let name = if set.is_empty() { "bench" } else { set };
    match raw_suffix(folder) {
        Some(suffix) => format!("{name}.{suffix}"),
        None => name.to_string(),
    }
}

/// `null.equilibrium.max` is of the set `null`.
fn throughput_stem(file: &str) -> &str {
    let name = file_name(file);
    let name = name.strip_suffix(".max").unwrap_or(name);
    name.strip_suffix(".equilibrium")
        .or_else(|| name.strip_suffix(".throughpt"))
        .unwrap_or(name)
}

/// Compares published estimates with the logs'. The script appended to an existing file, so older ones may stand first.
fn judge(set: &mut Equilibrium) {
    let estimates: Vec<f64> = set.runs.iter().filter_map(|r| r.estimate).collect();
    let Some(published) = set.published.as_ref().map(|p| &p.values) else {
        return;
    };
    if set.runs.is_empty() {
        return;
    }
    let agrees = published.ends_with(&estimates) && !estimates.is_empty();
    set.agrees = Some(agrees);
    let more = published.len().saturating_sub(estimates.len());
    let (values, logs) = (published.len(), set.runs.len());
    if agrees && more > 0 {
        set.problems.push(format!(
            "{values} values published of {logs} logs: the first {more} are of earlier runs"
        ));
    } else if !agrees {
        set.problems.push(format!(
            "{values} values published of {logs} logs do not end with the logs' estimates"
        ));
    }
}
