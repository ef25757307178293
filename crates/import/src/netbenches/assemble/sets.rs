//! The sets of a results folder.

use super::{Assembly, Filed};
use crate::netbenches::configs::Configs;
use crate::netbenches::info::Info;
use crate::netbenches::matching::{self, Found, Seeker};
use crate::netbenches::method::Medians;
use crate::netbenches::runs::{Received, Sent, raw_suffix, set_stem};
use crate::netbenches::{ImportedSlot, Published, Rule, Run, Set, agreement, facts, layout};
use linerate_hosts::pktgen::Command;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Generators' logs by folder and stem: those of one run.
type SentByRun = HashMap<(String, String), Vec<(String, Sent)>>;

/// The logs of a set.
#[derive(Debug, Default)]
struct Logs {
    folder: String,
    /// As in `bench.<name>.info`; empty for `bench.info`.
    name: String,
    /// In the order of their names, as `ls` gives them to the script.
    runs: Vec<(Option<u32>, Filed<Received>)>,
    profiling: bool,
    info: Option<Info>,
}

impl Logs {
    fn medians(&self, pick: impl Fn(Option<u32>) -> bool) -> Vec<Option<Medians>> {
        self.runs.iter().filter(|(number, _)| pick(*number)).map(|(_, f)| f.content.medians).collect()
    }
}

impl Assembly {
    /// All sets, those with logs and those with medians only, in the order of their names.
    pub(super) fn sets(mut self, group: &str, configs: &Configs) -> Vec<Set> {
        let logs = self.logs();
        let context = self.context();
        let medians = std::mem::take(&mut self.medians);
        let none = BTreeMap::new();
        let found = {
            let seekers: Vec<Seeker> = logs.iter().map(|l| seeker(l, group, &logs, &none)).collect();
            matching::find(&seekers, &medians)
        };
        let mut medians: Vec<Option<Published>> = medians.into_iter().map(Some).collect();
        let mut sets: Vec<Set> = Vec::new();
        for (logs, found) in logs.into_iter().zip(found) {
            let published = found.and_then(|f| medians[f.file].take());
            sets.push(context.set(logs, found, published));
        }
        for published in medians.into_iter().flatten() {
            let set = matching::stem(&published.file).to_string();
            let slot = ImportedSlot { set, published: Some(published), ..ImportedSlot::default() };
            sets.push(Set { slot, ..Set::default() });
        }
        for set in &mut sets {
            describe(set, group, configs);
        }
        sets.sort_by(|a, b| (a.directory(), &a.slot.set).cmp(&(b.directory(), &b.slot.set)));
        sets
    }

    /// Logs by set, with their `.info`.
    fn logs(&mut self) -> Vec<Logs> {
        let known = self.known();
        let mut received = std::mem::take(&mut self.received);
        received.sort_by(|a, b| a.path.cmp(&b.path));
        let mut by_set: BTreeMap<(String, String), Logs> = BTreeMap::new();
        for log in received {
            let name = known.split(&log.folder, &log.stem);
            let key = (log.folder.clone(), name.set.clone());
            let logs = by_set.entry(key).or_insert_with(|| Logs {
                profiling: log.folder.split('/').any(layout::is_profiling),
                folder: log.folder.clone(),
                name: name.set,
                ..Logs::default()
            });
            logs.runs.push((name.number, log));
        }
        for info in std::mem::take(&mut self.infos) {
            let key = (info.folder.clone(), set_stem(&info.stem).to_string());
            if let Some(logs) = by_set.get_mut(&key) {
                logs.info = Some(info.content);
            }
        }
        by_set.into_values().collect()
    }

    fn context(&mut self) -> Context {
        let mut sent = std::mem::take(&mut self.sent);
        sent.sort_by(|a, b| a.path.cmp(&b.path));
        let mut by_run = SentByRun::new();
        for log in sent {
            by_run.entry((log.folder, log.stem)).or_default().push(log.content);
        }
        Context { sent: by_run, profiles: std::mem::take(&mut self.profiles).into_iter().collect() }
    }
}

/// Files beside the receivers' logs.
struct Context {
    sent: SentByRun,
    profiles: BTreeSet<(String, String)>,
}

impl Context {
    fn set(&self, logs: Logs, found: Option<Found>, published: Option<Published>) -> Set {
        let rule = found.and_then(|f| f.agrees).map(|(_, rule)| rule);
        let all = logs.medians(|_| true);
        let by = rule.unwrap_or_else(|| {
            published.as_ref().map_or(Rule::Mean, |p| agreement::likelier(&all, &p.values))
        });
        let slot = ImportedSlot {
            set: super::shown_name(&logs.folder, &logs.name),
            profiling: logs.profiling,
            agrees: found.map(|f| f.agrees.is_some()),
            rule,
            facts: logs.info.as_ref().map(|i| i.facts.clone()).unwrap_or_default(),
            ..ImportedSlot::default()
        };
        let mut set = Set {
            slot,
            image: logs.info.as_ref().and_then(Info::image_revision).map(String::from),
            frame_length: self.frame_length(&logs),
            ..Set::default()
        };
        let slot = &mut set.slot;
        self.commands(slot, &logs);
        slot.disagreement = match (&published, slot.agrees) {
            (Some(published), Some(false)) => Some(self.disagreement(&logs, published, by)),
            _ => None,
        };
        if let (Some(found), Some(published)) = (found, &published) {
            slot.problems.extend(remarks(&logs, found, published));
        }
        let numbered = logs.runs.iter().any(|(number, _)| number.is_some());
        for (number, log) in logs.runs {
            let offered = self.offered(&log);
            let mut run = run(number, log, by, offered);
            if number.is_none() && numbered {
                run.trial.problems.push("no run number in its name: no part of the set's medians".into());
            }
            set.runs.push(run);
        }
        set.slot.published = published;
        set
    }

    fn sent_with(&self, log: &Filed<Received>) -> impl Iterator<Item = &(String, Sent)> {
        self.sent.get(&(log.folder.clone(), log.stem.clone())).into_iter().flatten()
    }

    /// Offered load of all generators together.
    fn offered(&self, log: &Filed<Received>) -> Option<f64> {
        self.sent_with(log).filter_map(|(_, sent)| sent.offered).reduce(|a, b| a + b)
    }

    fn frame_length(&self, logs: &Logs) -> Option<u64> {
        let sent =
            logs.runs.iter().flat_map(|(_, log)| self.sent_with(log)).find_map(|(_, s)| s.frame_length);
        sent.or_else(|| logs.runs.iter().find_map(|(_, log)| log.content.frame_length))
    }

    /// Facts of the command lines of the set's first run that has them.
    fn commands(&self, slot: &mut ImportedSlot, logs: &Logs) {
        let mut put = |end: &str, command: &Command| {
            for (name, value) in command.facts() {
                slot.facts.entry(format!("{end}.{name}")).or_insert(value);
            }
        };
        if let Some(command) = logs.runs.iter().find_map(|(_, log)| log.content.command.as_ref()) {
            put("receiver", command);
        }
        for (generator, sent) in logs.runs.iter().flat_map(|(_, log)| self.sent_with(log)) {
            if let Some(command) = sent.command.as_ref().filter(|c| !c.text.is_empty()) {
                put(&format!("sender{generator}"), command);
            }
        }
    }

    fn disagreement(&self, logs: &Logs, published: &Published, by: Rule) -> String {
        let names: Vec<String> = logs
            .runs
            .iter()
            .map(|(number, log)| match number {
                Some(number) => format!("run {number}"),
                None => log.stem.clone(),
            })
            .collect();
        let profiled =
            |log: &Filed<Received>| self.profiles.contains(&(log.folder.clone(), log.stem.clone()));
        let runs: Vec<agreement::Named> = logs
            .runs
            .iter()
            .zip(&names)
            .map(|((_, log), name)| agreement::Named {
                name,
                figure: log.content.medians.map(|m| m.by(by)),
                profiled: profiled(log),
            })
            .collect();
        agreement::difference(&runs, &published.values)
    }
}

/// The medians that a set looks for. The script takes `bench.<set>.*.receiver`: without the logs that have no number, and with
/// those of sets whose names continue this one's.
fn seeker<'a>(
    logs: &'a Logs,
    group: &'a str,
    all: &[Logs],
    none: &'a BTreeMap<String, String>,
) -> Seeker<'a> {
    let numbered = logs.medians(|number| number.is_some());
    let whole = logs.medians(|_| true);
    let mut candidates = Vec::new();
    if !numbered.is_empty() {
        candidates.push(numbered);
    }
    if candidates.first() != Some(&whole) {
        candidates.push(whole);
    }
    if let Some(swept) = swept(logs, all) {
        candidates.push(swept);
    }
    Seeker {
        folder: &logs.folder,
        group,
        name: &logs.name,
        suffix: raw_suffix(&logs.folder),
        profiling: logs.profiling,
        facts: logs.info.as_ref().map_or(none, |i| &i.facts),
        image_revision: logs.info.as_ref().and_then(Info::image_revision),
        candidates,
    }
}

/// The medians of all logs that the script's pattern takes, where other sets' are among them.
fn swept(logs: &Logs, all: &[Logs]) -> Option<Vec<Option<Medians>>> {
    let prefix = if logs.name.is_empty() { String::new() } else { format!("{}.", logs.name) };
    // Sorted by folder and name, so that names with this beginning stand together.
    let from = all.partition_point(|l| (l.folder.as_str(), l.name.as_str()) < (&logs.folder, &prefix));
    let others: Vec<&Logs> = all[from..]
        .iter()
        .take_while(|other| other.folder == logs.folder && other.name.starts_with(&prefix))
        .filter(|other| other.name != logs.name)
        .collect();
    if others.is_empty() {
        return None;
    }
    let mut runs: Vec<(&str, Option<Medians>)> = others
        .iter()
        .flat_map(|l| &l.runs)
        .chain(logs.runs.iter().filter(|(number, _)| number.is_some()))
        .map(|(_, log)| (log.path.as_str(), log.content.medians))
        .collect();
    runs.sort_by_key(|(path, _)| *path);
    Some(runs.into_iter().map(|(_, medians)| medians).collect())
}

/// Remarks about the way a set's medians were found.
fn remarks(logs: &Logs, found: Found, published: &Published) -> Vec<String> {
    let mut remarks = Vec::new();
    if found.by_value {
        remarks.push(format!(
            "its medians have another name, and were found by their numbers: {}",
            published.file
        ));
    }
    let own =
        logs.runs.iter().filter(|(number, log)| number.is_some() && log.content.medians.is_some()).count();
    if found.agrees.is_some() && published.values.len() > own.max(1) && own > 0 {
        remarks.push(
            "the published medians include logs of other sets, which the script's pattern takes as well"
                .into(),
        );
    }
    remarks
}

fn run(number: Option<u32>, log: Filed<Received>, by: Rule, offered: Option<f64>) -> Run {
    let Received { mut run, medians, .. } = log.content;
    let rule = match by {
        Rule::Mean => "mean of the two middle samples",
        Rule::Upper => "upper of the two middle samples",
    };
    run.trial.file = log.path;
    run.trial.number = number;
    run.trial.method = format!("median of the archive's lines, {rule}, 8 significant digits");
    run.median_pps = medians.map(|m| m.by(by));
    run.offered_pps = offered;
    run
}

/// Family and description.
fn describe(set: &mut Set, group: &str, configs: &Configs) {
    let slot = &mut set.slot;
    let parts: Vec<&str> = slot.set.split('.').collect();
    let named = parts.iter().find(|p| matches!(**p, "inet4" | "inet6")).map(|p| p.to_string());
    set.family = named.or_else(|| slot.facts.get("sender.family").cloned());
    let config = slot.facts.get(facts::CONFIG).map(String::as_str);
    let mut names: Vec<&str> = config.into_iter().chain([slot.set.as_str()]).collect();
    names.extend(&parts);
    if let Some(description) = configs.find(group, &names) {
        slot.description = description.clone();
    }
}
