//! Puts the files of one results folder together: give it every file, in any order, and take the folder's sets.

use super::configs::Configs;
use super::info::Info;
use super::layout::{self, Kind, Place};
use super::runs::{KnownSets, Received, Sent, raw_suffix, set_stem};
use super::{
    Equilibrium, EquilibriumRun, FileProblem, Published, ResultDirectory, Series, Set, equilibrium, tables,
};
use linerate_hosts::pktgen::{Command, Reader};
use std::collections::HashMap;

mod sets;

/// A log with its place.
#[derive(Debug)]
struct Filed<T> {
    path: String,
    folder: String,
    /// Name without its ending: `bench.forwarding.1`.
    stem: String,
    content: T,
}

/// A results folder that is being read: its own files, and those of its RAW and PMC folders.
#[derive(Debug, Default)]
pub struct Assembly {
    path: String,
    place: Place,
    /// Whether samples are to be kept.
    keep_samples: bool,
    received: Vec<Filed<Received>>,
    /// With which generator it is (`""`, `_2`, `_gen2`).
    sent: Vec<Filed<(String, Sent)>>,
    infos: Vec<Filed<Info>>,
    medians: Vec<Published>,
    throughputs: Vec<Published>,
    searches: Vec<Filed<(EquilibriumRun, Option<Command>)>>,
    series: Vec<Series>,
    /// Stems of profiles: `bench.311848.1.pmc`.
    profiles: Vec<(String, String)>,
    problems: Vec<FileProblem>,
}

impl Assembly {
    /// A folder at `path`, relative to the one that is read (`.` for itself), about `place`.
    pub fn new(path: &str, place: Place, keep_samples: bool) -> Self {
        Assembly { path: path.into(), place, keep_samples, ..Assembly::default() }
    }

    /// Takes a file that was read whole (or not at all, depending on [`Kind::reading`]). Returns its actual kind.
    pub fn file(&mut self, path: &str, kind: Kind, bytes: &[u8]) -> &'static str {
        let (folder, name) = (super::folder(path).to_string(), path.rsplit('/').next().unwrap_or(path));
        match kind {
            Kind::Receiver => {
                let mut received = Received::read(bytes);
                if !self.keep_samples {
                    received.run.log_samples = Vec::new();
                }
                let stem = name.strip_suffix(".receiver").unwrap_or(name).to_string();
                self.received.push(Filed { path: path.into(), folder, stem, content: received });
            }
            Kind::Sender if equilibrium::is_log(bytes) => return self.search(path, bytes),
            Kind::Sender => {
                let (stem, generator) = layout::sender(name).unwrap_or((name, ""));
                let mut reader = Reader::new();
                reader.feed(bytes);
                let sent = Sent::of(reader.finish(), bytes);
                let content = (generator.to_string(), sent);
                self.sent.push(Filed { path: path.into(), folder, stem: stem.into(), content });
            }
            Kind::Info => {
                let stem = name.strip_suffix(".info").unwrap_or(name).to_string();
                self.infos.push(Filed { path: path.into(), folder, stem, content: Info::read(bytes) });
            }
            Kind::Medians => self.medians.push(tables::numbers(path, bytes)),
            Kind::Equilibrium => self.throughputs.push(tables::numbers(path, bytes)),
            Kind::Series => self.series.push(tables::series(path, bytes)),
            Kind::Unknown if equilibrium::is_log(bytes) => return self.search(path, bytes),
            Kind::Unknown if tables::is_numbers(bytes) => {
                self.medians.push(tables::numbers(path, bytes));
                return Kind::Medians.name();
            }
            Kind::Profile(_) | Kind::PmcLog => self.profile(folder, name),
            _ => {}
        }
        kind.name()
    }

    fn search(&mut self, path: &str, bytes: &[u8]) -> &'static str {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = layout::sender(name).map_or(name, |(stem, _)| stem);
        let content = (equilibrium::read(path, bytes), equilibrium::command(bytes));
        let folder = super::folder(path).to_string();
        self.searches.push(Filed { path: path.into(), folder, stem: stem.into(), content });
        "equilibrium log"
    }

    fn profile(&mut self, folder: String, name: &str) {
        if let Some((stem, _)) = name.split_once(".pmc") {
            self.profiles.push((folder, stem.into()));
        }
    }

    /// A file that is broken.
    pub fn problem(&mut self, path: &str, kind: &'static str, reason: impl Into<String>) {
        self.problems.push(FileProblem { path: path.into(), kind, reason: reason.into(), set: None });
    }

    /// Judges a file by its length and last byte: graphs end with a newline, or were cut when a buffer was full.
    pub fn end(&mut self, path: &str, kind: Kind, length: u64, last: Option<u8>) {
        let reason = match last {
            Some(b'\n') => None,
            None => Some("empty"),
            Some(_) if length.is_multiple_of(4096) => Some("cut off in mid-line at a 4 KiB boundary"),
            Some(_) => Some("cut off in mid-line"),
        };
        if let Some(reason) = reason {
            self.problem(path, kind.name(), reason);
        }
        self.file(path, kind, &[]);
    }

    /// The folder with its sets, and every problem of its files; `None` for an empty folder.
    pub fn finish(mut self, configs: &Configs) -> (Option<ResultDirectory>, Vec<FileProblem>) {
        self.tell_problems();
        let known = self.known();
        let equilibria = self.equilibria();
        let mut directory = ResultDirectory {
            path: std::mem::take(&mut self.path),
            place: std::mem::take(&mut self.place),
            sets: Vec::new(),
            series: std::mem::take(&mut self.series),
            equilibria,
        };
        let mut problems = std::mem::take(&mut self.problems);
        directory.sets = self.sets(&directory.path, configs);
        attach(&mut problems, &known, &mut directory.sets);
        problems.sort_by(|a, b| (&a.path, &a.reason).cmp(&(&b.path, &b.reason)));
        let nothing =
            directory.sets.is_empty() && directory.series.is_empty() && directory.equilibria.is_empty();
        ((!nothing).then_some(directory), problems)
    }

    /// Faults that the parsers found, as problems of files.
    fn tell_problems(&mut self) {
        let mut told: Vec<FileProblem> = Vec::new();
        let mut tell = |path: &str, kind: &'static str, reasons: &[String]| {
            if !reasons.is_empty() {
                let reason = reasons.join("; ");
                told.push(FileProblem { path: path.into(), kind, reason, set: None });
            }
        };
        self.received.iter().for_each(|f| tell(&f.path, "receiver", &f.content.run.trial.problems));
        self.sent.iter().for_each(|f| tell(&f.path, "sender", &f.content.1.problems));
        self.infos.iter().for_each(|f| tell(&f.path, "info", &f.content.problems));
        self.searches.iter().for_each(|f| tell(&f.path, "equilibrium log", &f.content.0.problems));
        self.medians.iter().for_each(|p| tell(&p.file, "medians", &p.problems));
        self.throughputs.iter().for_each(|p| tell(&p.file, "equilibrium", &p.problems));
        self.series.iter().for_each(|s| tell(&s.file, "series", &s.problems));
        self.problems.extend(told);
    }

    fn known(&self) -> KnownSets {
        let mut known = KnownSets::default();
        let infos = self.infos.iter().map(|f| (&f.folder, &f.stem));
        for (folder, stem) in infos {
            known.infos.entry(folder.clone()).or_default().insert(set_stem(stem).into());
        }
        known
    }

    /// The searches for an equilibrium, by set, with the published values.
    fn equilibria(&mut self) -> Vec<Equilibrium> {
        let known = self.known();
        let mut all: Vec<Equilibrium> = Vec::new();
        let mut at = |name: &str| {
            let name = if name.is_empty() { "bench" } else { name };
            match all.iter().position(|e| e.name == name) {
                Some(at) => at,
                None => {
                    all.push(Equilibrium { name: name.into(), ..Equilibrium::default() });
                    all.len() - 1
                }
            }
        };
        let mut searches = std::mem::take(&mut self.searches);
        searches.sort_by(|a, b| a.path.cmp(&b.path));
        let owners: Vec<usize> = searches.iter().map(|s| at(&known.split(&s.folder, &s.stem).set)).collect();
        let throughputs = std::mem::take(&mut self.throughputs);
        let published: Vec<(usize, Published)> =
            throughputs.into_iter().map(|p| (at(throughput_stem(&p.file)), p)).collect();
        for (owner, search) in owners.into_iter().zip(searches) {
            let (run, command) = search.content;
            all[owner].runs.push(run);
            for (name, value) in command.iter().flat_map(Command::facts) {
                all[owner].facts.entry(format!("sender.{name}")).or_insert(value);
            }
        }
        for info in &self.infos {
            let name = shown_name("", set_stem(&info.stem));
            if let Some(set) = all.iter_mut().find(|e| e.name == name) {
                set.facts.extend(info.content.facts.clone());
            }
        }
        for (owner, file) in published {
            let slot = if file.file.ends_with(".max") {
                &mut all[owner].published_max
            } else {
                &mut all[owner].published
            };
            *slot = Some(file);
        }
        all.iter_mut().for_each(judge);
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

/// Adds the problems of files to their sets. Runs and tables already have theirs.
fn attach(problems: &mut [FileProblem], known: &KnownSets, sets: &mut [Set]) {
    let runs: HashMap<String, usize> = sets
        .iter()
        .enumerate()
        .flat_map(|(i, s)| s.runs.iter().map(move |r| (r.trial.file.clone(), i)))
        .collect();
    for problem in problems {
        let (folder, name) = (super::folder(&problem.path), problem.path.rsplit('/').next().unwrap_or(""));
        if let Some(owner) = runs.get(&problem.path) {
            problem.set = Some(sets[*owner].slot.set.clone());
            continue;
        }
        let published = |s: &Set| s.slot.published.as_ref().is_some_and(|p| p.file == problem.path);
        let wanted = shown_name(folder, &known.split(folder, stem_of(name)).set);
        let here =
            |s: &Set| s.slot.set == wanted && s.runs.iter().any(|r| super::folder(&r.trial.file) == folder);
        let owner = sets.iter().position(published).or_else(|| {
            let of_log = name.starts_with("bench");
            sets.iter()
                .position(here)
                .or_else(|| sets.iter().position(|s| s.slot.set == wanted))
                .filter(|_| of_log)
        });
        if let Some(owner) = owner {
            let slot = &mut sets[owner].slot;
            slot.problems.push(format!("{name}: {}", problem.reason));
            problem.set = Some(slot.set.clone());
        }
    }
}

/// A file's name without its ending: `bench.a.1` of `bench.a.1.sender_gen2`, `bench.a.1.pmc.graph`, `bench.a.1.graph`.
fn stem_of(name: &str) -> &str {
    let name = layout::sender(name).map_or(name, |(stem, _)| stem);
    let ends = [".info", ".receiver", ".graph", ".stack", ".folded"];
    let name = ends.iter().find_map(|e| name.strip_suffix(e)).unwrap_or(name);
    name.strip_suffix(".pmc").unwrap_or(name)
}

/// A set's name: that of its `.info`, with the `<x>` of its folder `RAW.<x>`.
fn shown_name(folder: &str, set: &str) -> String {
    let name = if set.is_empty() { "bench" } else { set };
    match raw_suffix(folder) {
        Some(suffix) => format!("{name}.{suffix}"),
        None => name.to_string(),
    }
}

/// `null.equilibrium.max` is of the set `null`.
fn throughput_stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.strip_suffix(".max").unwrap_or(name);
    name.strip_suffix(".equilibrium").or_else(|| name.strip_suffix(".throughpt")).unwrap_or(name)
}

/// Compares published estimates with the logs'. The script appended to an existing file, so older ones may stand first.
fn judge(set: &mut Equilibrium) {
    let estimates: Vec<f64> = set.runs.iter().filter_map(|r| r.estimate).collect();
    let Some(published) = set.published.as_ref().map(|p| &p.values) else { return };
    if set.runs.is_empty() {
        return;
    }
    let agrees = published.ends_with(&estimates) && !estimates.is_empty();
    set.agrees = Some(agrees);
    let more = published.len().saturating_sub(estimates.len());
    let (values, logs) = (published.len(), set.runs.len());
    if agrees && more > 0 {
        set.problems
            .push(format!("{values} values published of {logs} logs: the first {more} are of earlier runs"));
    } else if !agrees {
        set.problems
            .push(format!("{values} values published of {logs} logs do not end with the logs' estimates"));
    }
}
