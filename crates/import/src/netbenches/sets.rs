//! The sets of a results folder: their logs, and which file of medians is theirs.
//!
//! Names decide where they can; where the archive's author has renamed files, the numbers do.

use super::assemble::{Assembly, shown_name};
use super::config::Configs;
use super::info::Info;
use super::layout::{self, file_name, raw_suffix, set_stem};
use super::logs::{Medians, Received, Sent, printed};
use super::{ImportedSlot, Published, Rule, Run, Set, facts, folder};
use linerate_hosts::pktgen::Command;
use linerate_stats::sorted;
use std::collections::BTreeMap;

/// The logs of a set.
#[derive(Debug, Default)]
struct Logs {
    folder: String,
    /// As in `bench.<name>.info`; empty for `bench.info`.
    name: String,
    /// In the order of their names, as `ls` gives them to the script.
    runs: Vec<Received>,
    profiling: bool,
    info: Info,
}

/// Figures of runs; failed runs have none.
type Figures = Vec<Option<Medians>>;

/// The medians found for a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    /// Index of the file of medians.
    file: usize,
    /// By which rule it agrees with the logs; `None` where it does not.
    agrees: Option<Rule>,
    /// Whether the match needed more than the file's name.
    by_value: bool,
}

impl Assembly {
    /// All sets, those with logs and those with medians only, in the order of their names.
    pub(super) fn sets(&mut self, configs: &Configs) -> Vec<Set> {
        let logs = self.logs();
        let files = std::mem::take(&mut self.medians);
        let candidates: Vec<Vec<Figures>> = logs.iter().map(|one| candidates(one, &logs)).collect();
        let found = find(&logs, &candidates, &self.path, &files);
        let mut files: Vec<Option<Published>> = files.into_iter().map(Some).collect();
        let with_logs = logs.into_iter().zip(found).map(|(logs, found)| {
            let published = found.and_then(|found| files[found.file].take());
            self.set(logs, found, published)
        });
        let mut sets: Vec<Set> = with_logs.collect();
        sets.extend(files.into_iter().flatten().map(|published| {
            let set = median_stem(&published.file).to_string();
            let slot = ImportedSlot {
                set,
                published: Some(published),
                ..ImportedSlot::default()
            };
            Set {
                slot,
                ..Set::default()
            }
        }));
        sets.iter_mut()
            .for_each(|set| describe(set, &self.path, configs));
        sets.sort_by(|a, b| (a.directory(), &a.slot.set).cmp(&(b.directory(), &b.slot.set)));
        sets
    }

    /// Logs by set, with their `.info`.
    fn logs(&mut self) -> Vec<Logs> {
        let known = self.known();
        let mut by_set: BTreeMap<(String, String), Logs> = BTreeMap::new();
        for (path, mut received) in std::mem::take(&mut self.received) {
            let folder = folder(&path).to_string();
            let (name, number) = known.split(&folder, layout::stem(&path));
            let logs = by_set
                .entry((folder.clone(), name.clone()))
                .or_insert_with(|| Logs {
                    profiling: folder.split('/').any(layout::is_profiling),
                    folder,
                    name,
                    ..Logs::default()
                });
            received.run.trial.number = number;
            logs.runs.push(received);
        }
        for (path, info) in std::mem::take(&mut self.infos) {
            let key = (
                folder(&path).to_string(),
                set_stem(layout::stem(&path)).to_string(),
            );
            if let Some(logs) = by_set.get_mut(&key) {
                logs.info = info;
            }
        }
        by_set.into_values().collect()
    }

    fn set(&self, logs: Logs, found: Option<Found>, published: Option<Published>) -> Set {
        let rule = found.and_then(|found| found.agrees);
        let by = rule.unwrap_or_else(|| {
            published
                .as_ref()
                .map_or(Rule::Mean, |p| likelier(&figures(&logs, false), &p.values))
        });
        let mut slot = ImportedSlot {
            set: shown_name(&logs.folder, &logs.name),
            profiling: logs.profiling,
            agrees: found.map(|found| found.agrees.is_some()),
            rule,
            facts: logs.info.facts.clone(),
            ..ImportedSlot::default()
        };
        self.commands(&mut slot, &logs);
        if let (Some(found), Some(published)) = (found, &published) {
            if found.agrees.is_none() {
                slot.disagreement = Some(self.disagreement(&logs, &published.values, by));
            }
            slot.problems.extend(remarks(&logs, found, published));
        }
        slot.published = published;
        let sent = logs
            .runs
            .iter()
            .flat_map(|log| self.sent_with(log))
            .find_map(|(_, s)| s.frame_length);
        let received = || logs.runs.iter().find_map(|log| log.frame_length);
        let frame_length = sent.or_else(received);
        let image = logs.info.image_revision().map(String::from);
        let numbered = logs.runs.iter().any(is_numbered);
        let runs = logs
            .runs
            .into_iter()
            .map(|log| self.run(log, by, numbered))
            .collect();
        Set {
            slot,
            image,
            frame_length,
            runs,
            family: None,
        }
    }

    /// The generators' logs of a run, each with which generator it is (`""`, `_2`, `_gen2`).
    fn sent_with(&self, log: &Received) -> impl Iterator<Item = (&str, &Sent)> {
        let start = format!("{}.sender", path_stem(log));
        let same_run = move |(path, sent)| {
            let (stem, generator) = layout::sender(file_name(path))?;
            (stem == layout::stem(&log.run.trial.file)).then_some((generator, sent))
        };
        let near = self
            .sent
            .range(start.clone()..)
            .take_while(move |(path, _)| path.starts_with(&start));
        near.map(|(path, sent)| (path.as_str(), sent))
            .filter_map(same_run)
    }

    /// Facts of the command lines of the set's first run that has them.
    fn commands(&self, slot: &mut ImportedSlot, logs: &Logs) {
        let mut put = |end: &str, command: &Command| {
            for (name, value) in command.facts() {
                slot.facts.entry(format!("{end}.{name}")).or_insert(value);
            }
        };
        if let Some(command) = logs.runs.iter().find_map(|log| log.command.as_ref()) {
            put("receiver", command);
        }
        for (generator, sent) in logs.runs.iter().flat_map(|log| self.sent_with(log)) {
            if let Some(command) = sent.command.as_ref().filter(|c| !c.text.is_empty()) {
                put(&format!("sender{generator}"), command);
            }
        }
    }

    fn disagreement(&self, logs: &Logs, published: &[f64], by: Rule) -> String {
        let named = |log: &Received| Named {
            name: match log.run.trial.number {
                Some(number) => format!("run {number}"),
                None => layout::stem(&log.run.trial.file).into(),
            },
            figure: log.medians.map(|m| m.by(by)),
            profiled: self.profiles.contains(path_stem(log)),
        };
        difference(&logs.runs.iter().map(named).collect::<Vec<_>>(), published)
    }

    fn run(&self, log: Received, by: Rule, numbered: bool) -> Run {
        // All generators together.
        let offered = self
            .sent_with(&log)
            .filter_map(|(_, sent)| sent.offered)
            .reduce(|a, b| a + b);
        let Received {
            mut run, medians, ..
        } = log;
        let rule = match by {
            Rule::Mean => "mean of the two middle samples",
            Rule::Upper => "upper of the two middle samples",
        };
        run.trial.method = format!("median of the archive's lines, {rule}, 8 significant digits");
        run.median_pps = medians.map(|m| m.by(by));
        run.offered_pps = offered;
        if run.trial.number.is_none() && numbered {
            run.trial
                .problems
                .push("no run number in its name: no part of the set's medians".into());
        }
        run
    }
}

/// The figures of a set's runs; of those that have a number only, if `numbered`.
fn figures(logs: &Logs, numbered: bool) -> Figures {
    let runs = logs.runs.iter().filter(|log| !numbered || is_numbered(log));
    runs.map(|log| log.medians).collect()
}

fn is_numbered(log: &Received) -> bool {
    log.run.trial.number.is_some()
}

/// A log's path without its ending, which the other logs of the run share.
fn path_stem(log: &Received) -> &str {
    let path = &log.run.trial.file;
    path.strip_suffix(".receiver").unwrap_or(path)
}

/// Lists of runs that the script may have taken for a set, the likeliest first. It takes `bench.<set>.*.receiver`: without the
/// logs that have no number, and with those of sets whose names continue this one's.
fn candidates(logs: &Logs, all: &[Logs]) -> Vec<Figures> {
    let mut candidates = vec![figures(logs, true), figures(logs, false)];
    candidates.dedup();
    candidates.retain(|figures| !figures.is_empty());
    candidates.extend(swept(logs, all));
    candidates
}

/// The figures of all logs that the script's pattern takes, where other sets' are among them.
fn swept(logs: &Logs, all: &[Logs]) -> Option<Figures> {
    let prefix = if logs.name.is_empty() {
        String::new()
    } else {
        format!("{}.", logs.name)
    };
    // Sorted by folder and name, so that names with this beginning stand together.
    let from =
        all.partition_point(|l| (l.folder.as_str(), l.name.as_str()) < (&logs.folder, &prefix));
    let with_prefix =
        |other: &&Logs| other.folder == logs.folder && other.name.starts_with(&prefix);
    let others = all[from..]
        .iter()
        .take_while(with_prefix)
        .filter(|other| other.name != logs.name);
    let mut runs: Vec<&Received> = others.flat_map(|other| &other.runs).collect();
    if runs.is_empty() {
        return None;
    }
    runs.extend(logs.runs.iter().filter(|log| is_numbered(log)));
    runs.sort_by_key(|log| &log.run.trial.file);
    Some(runs.into_iter().map(|log| log.medians).collect())
}

/// Finds each set's medians. A file belongs to one set at most. `group` is the folder of the results.
fn find(
    sets: &[Logs],
    candidates: &[Vec<Figures>],
    group: &str,
    files: &[Published],
) -> Vec<Option<Found>> {
    let mut found: Vec<Option<Found>> = vec![None; sets.len()];
    let mut taken = vec![false; files.len()];
    let index: BTreeMap<&str, usize> = files
        .iter()
        .enumerate()
        .map(|(i, f)| (f.file.as_str(), i))
        .collect();
    let agrees = |i: usize, file: usize| {
        candidates[i]
            .iter()
            .find_map(|runs| rule(runs, &files[file].values))
    };
    // A plain RAW folder has the first claim to a plain name.
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|i| (sets[*i].profiling, raw_suffix(&sets[*i].folder).is_some()));
    for i in order {
        let named = names(&sets[i], group)
            .into_iter()
            .filter_map(|name| index.get(name.as_str()).copied());
        let named = named.filter(|file| !taken[*file]);
        let named: Vec<Found> = named
            .map(|file| Found {
                file,
                agrees: agrees(i, file),
                by_value: false,
            })
            .collect();
        found[i] = named
            .iter()
            .find(|found| found.agrees.is_some())
            .or(named.first())
            .copied();
        if let Some(Found { file, .. }) = found[i] {
            taken[file] = true;
        }
    }
    // Medians under another name are those of a set if they are exactly its: seven digits of several runs do not agree by chance.
    for (i, found) in found
        .iter_mut()
        .enumerate()
        .filter(|(i, f)| f.is_none() && !sets[*i].profiling)
    {
        let free = (0..files.len()).filter(|file| !taken[*file] && files[*file].values.len() > 1);
        let mut matches = free.filter_map(|file| Some((file, agrees(i, file)?)));
        if let (Some((file, rule)), None) = (matches.next(), matches.next()) {
            taken[file] = true;
            *found = Some(Found {
                file,
                agrees: Some(rule),
                by_value: true,
            });
        }
    }
    found
}

/// Paths that the medians of a set may have, the likeliest first.
fn names(logs: &Logs, group: &str) -> Vec<String> {
    // `bench.info` becomes `bench.pps`.
    let name = if logs.name.is_empty() {
        "bench"
    } else {
        &logs.name
    };
    let mut names: Vec<String> = Vec::new();
    names.extend(raw_suffix(&logs.folder).map(|suffix| format!("{name}.{suffix}.pps")));
    names.extend([
        format!("{name}.pps"),
        format!("pps.{name}"),
        format!("none.{name}"),
        name.to_string(),
    ]);
    if let Some(config) = logs.info.facts.get(facts::CONFIG) {
        // The scripts of 2015 named the file by values of .info: `<revision>.<config>`, `none.<config>`.
        names.extend(
            logs.info
                .image_revision()
                .map(|revision| format!("{revision}.{config}")),
        );
        names.extend(["none.", "pps."].map(|prefix| format!("{prefix}{config}")));
    }
    let also_group = !logs.profiling && group != logs.folder;
    let folders = std::iter::once(logs.folder.as_str()).chain(also_group.then_some(group));
    let path = |folder: &str, name: &str| match folder {
        "." => name.to_string(),
        _ => format!("{folder}/{name}"),
    };
    folders
        .flat_map(|folder| names.iter().map(move |name| path(folder, name)))
        .collect()
}

/// The set's name that a file of medians has without logs: `a.pps`, `pps.a`, `none.a`, `a`.
fn median_stem(path: &str) -> &str {
    let name = file_name(path);
    let stem = name
        .strip_suffix(".pps")
        .or_else(|| name.strip_prefix("pps."));
    stem.or_else(|| name.strip_prefix("none.")).unwrap_or(name)
}

/// The rule by which the medians of the runs, without failed ones, are the published ones, in their order; `None` if neither rule
/// gives them. If both rules do, it is [`Rule::Mean`].
///
/// Published numbers are compared with the recomputed ones as printed by `%.8g`.
fn rule(runs: &[Option<Medians>], published: &[f64]) -> Option<Rule> {
    let by = |rule: &Rule| {
        let recomputed = runs.iter().flatten().map(|m| m.by(*rule));
        recomputed.eq(published.iter().copied().map(printed))
    };
    [Rule::Mean, Rule::Upper].into_iter().find(by)
}

/// The rule that explains more published values, if neither explains all.
fn likelier(runs: &[Option<Medians>], published: &[f64]) -> Rule {
    let explained = |rule: Rule| {
        let recomputed: Vec<f64> = runs.iter().flatten().map(|m| m.by(rule)).collect();
        published.iter().filter(|p| recomputed.contains(p)).count()
    };
    if explained(Rule::Upper) > explained(Rule::Mean) {
        Rule::Upper
    } else {
        Rule::Mean
    }
}

/// A run as a disagreement names it.
#[derive(Debug, Clone)]
struct Named {
    /// `run 3`, or the log's name where it has no number.
    name: String,
    /// Recomputed figure of the run.
    figure: Option<f64>,
    /// Whether the log may be that of a later profiling run of the same name.
    profiled: bool,
}

/// The difference between recomputed and published medians, in words.
fn difference(runs: &[Named], published: &[f64]) -> String {
    let known: Vec<(&Named, f64)> = runs
        .iter()
        .filter_map(|run| Some((run, run.figure?)))
        .collect();
    let values: Vec<f64> = known.iter().map(|(_, figure)| *figure).collect();
    if let Some(dropped) = missing(&values, published) {
        let dropped = dropped
            .iter()
            .map(|i| format!("{} ({})", known[*i].0.name, values[*i]));
        return format!("dropped by hand: {}", listed(dropped));
    }
    if let Some(extra) = missing(published, &values) {
        return format!(
            "published without a log: {}",
            listed(extra.iter().map(|i| published[*i].to_string()))
        );
    }
    if sorted(values.iter().copied()) == sorted(published.iter().copied()) {
        return "the same medians in another order".into();
    }
    let (n, of) = (published.len(), values.len());
    if n != of {
        return format!("{n} medians published, {of} recomputed, and they differ");
    }
    let changed = known
        .iter()
        .zip(published)
        .filter(|((_, figure), value)| figure != *value);
    listed(changed.map(|((run, figure), value)| {
        let Named { name, profiled, .. } = run;
        let percent = 100.0 * (figure / value - 1.0);
        let why = if *profiled {
            "; its log was overwritten by a later profiling run"
        } else {
            ""
        };
        format!("{name}: the log gives {figure}, published is {value} ({percent:+.2} %){why}")
    }))
}

/// Which of `all` are left out in `part`, if `part` is `all` without some; `None` if it is not, or nothing is left out.
fn missing(all: &[f64], part: &[f64]) -> Option<Vec<usize>> {
    let mut rest = part.iter().peekable();
    let left_out: Vec<usize> = (0..all.len())
        .filter(|i| rest.next_if(|p| **p == all[*i]).is_none())
        .collect();
    // An empty list does not show which runs were dropped.
    (rest.peek().is_none() && !left_out.is_empty() && !part.is_empty()).then_some(left_out)
}

/// A few of many.
fn listed(parts: impl Iterator<Item = String>) -> String {
    const FEW: usize = 5;
    let parts: Vec<String> = parts.collect();
    let shown = parts[..parts.len().min(FEW)].join(", ");
    if parts.len() > FEW {
        format!("{shown} and {} more", parts.len() - FEW)
    } else {
        shown
    }
}

/// Remarks about the way a set's medians were found.
fn remarks(logs: &Logs, found: Found, published: &Published) -> Vec<String> {
    let mut remarks = Vec::new();
    if found.by_value {
        let file = &published.file;
        remarks.push(format!(
            "its medians have another name, and were found by their numbers: {file}"
        ));
    }
    let own = figures(logs, true).iter().flatten().count();
    if found.agrees.is_some() && published.values.len() > own.max(1) && own > 0 {
        let what = "the published medians include logs of other sets, which the script's pattern takes as well";
        remarks.push(what.into());
    }
    remarks
}

/// Family and description.
fn describe(set: &mut Set, group: &str, configs: &Configs) {
    let slot = &mut set.slot;
    let parts: Vec<&str> = slot.set.split('.').collect();
    let named = parts
        .iter()
        .find(|p| matches!(**p, "inet4" | "inet6"))
        .map(|p| p.to_string());
    set.family = named.or_else(|| slot.facts.get("sender.family").cloned());
    let config = slot.facts.get(facts::CONFIG).map(String::as_str);
    let names: Vec<&str> = config
        .into_iter()
        .chain([slot.set.as_str()])
        .chain(parts)
        .collect();
    if let Some(description) = configs.find(group, &names) {
        slot.description = description.clone();
    }
}

#[cfg(test)]
mod tests;
