//! A results folder as linerate's records: slots are its sets, trials its runs.

use super::info::Info;
use super::layout::Place;
use super::{ImportedTrial, ResultDirectory, Run, Set, facts};
use linerate_measure::audit::{Audit, Check};
use linerate_measure::counters::PortCounters;
use linerate_measure::record::Mode;
use linerate_measure::record::{
    Asked, Campaign, HostFacts, Imported, LabKind, Roles, Slot, TrialRecord, VERSION,
};
use linerate_measure::trial::{Rates, Sample, Timing};
use std::collections::{BTreeMap, BTreeSet};

/// How an imported rate came about.
const METHOD: &str = "rates.received is the archive's figure: the median of the samples that are not 0, without the log's first 15 and last 10 lines. Nothing was audited: what was sent is known from the generator's log at best, drops are not counted.";

/// How a figure came about that a tool printed.
const METHOD_PRINTED: &str = "Each figure is as its tool printed it. Nothing was audited, and intervals of one run are not independent: they show how steady it was.";

/// No pkt-gen reports less often than once in a quarter of an hour: its stamps would be ambiguous.
const LONGEST_INTERVAL_US: u64 = 900_000_000;

/// The records of a folder, but for their summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// `campaign.json`.
    pub campaign: Campaign,
    /// `host.json`.
    pub host: HostFacts,
    /// `trials.jsonl`.
    pub trials: Vec<TrialRecord>,
}

/// Makes the records of a folder; `None` where it has no sets. `linerate` is the version of the program.
pub fn records(directory: ResultDirectory, linerate: &str) -> Option<Records> {
    if directory.sets.is_empty()
        && directory.equilibria.is_empty()
        && directory.throughputs.is_empty()
    {
        return None;
    }
    let (source, method) = if directory.printed {
        ("output of tools", METHOD_PRINTED)
    } else {
        ("netbenches", METHOD)
    };
    let host = host(&directory, linerate);
    let started = directory
        .sets
        .iter()
        .filter_map(|s| s.slot.facts.get(facts::START_UTC))
        .min();
    let started = started.cloned().unwrap_or_default();
    let flows = directory
        .sets
        .iter()
        .find_map(|s| s.slot.facts.get("sender.flows")?.parse().ok())
        .unwrap_or(0);
    let name = name(&directory);
    let mut slots: Vec<Slot> = Vec::with_capacity(directory.sets.len());
    let mut trials = Vec::new();
    let mut taken = BTreeSet::new();
    for (id, mut set) in directory.sets.into_iter().enumerate() {
        let runs = std::mem::take(&mut set.runs);
        for (block, run) in runs.into_iter().enumerate() {
            trials.push(trial(id, block, run, set.frame_length));
        }
        if trials.last().is_none_or(|t: &TrialRecord| t.slot != id) {
            trials.extend(published_trials(id, &set));
        }
        slots.push(slot(id, set, &mut taken));
    }
    // By block, as they would have been run: the first run of every set, then the second.
    trials.sort_by_key(|t| (t.block, t.slot));
    for (number, trial) in trials.iter_mut().enumerate() {
        trial.trial = number as u64;
    }
    let imported = Imported {
        source: source.into(),
        path: directory.path,
        method: method.into(),
        machine: directory.place.machine,
        card: directory.place.card,
        topic: directory.place.topic,
        label: directory.place.label,
        series: directory.series,
        equilibria: directory.equilibria,
        throughputs: directory.throughputs,
    };
    let campaign = Campaign {
        version: VERSION,
        linerate: linerate.into(),
        name,
        started,
        asked: asked(flows),
        roles: Roles::default(),
        slots,
        notes: Vec::new(),
        standing: BTreeMap::new(),
        planned: None,
        imported: Some(Box::new(imported)),
    };
    Some(Records {
        campaign,
        host,
        trials,
    })
}

/// The folder that such records were made of, as far as time lines need it; `None` for other records.
pub fn directory(campaign: &Campaign, trials: &[TrialRecord]) -> Option<ResultDirectory> {
    let origin = campaign.imported.as_deref()?;
    let set = |slot: &Slot| {
        let own = slot.imported.as_deref()?;
        let run = |trial: &TrialRecord| {
            let (trial, rates) = (trial.imported.as_deref()?.clone(), trial.rates);
            Some(Run {
                trial,
                median_pps: rates.map(|rates| rates.received),
                ..Run::default()
            })
        };
        Some(Set {
            slot: own.clone(),
            image: Info {
                facts: own.facts.clone(),
                ..Info::default()
            }
            .image_revision()
            .map(String::from),
            family: (slot.family == "IPv6").then(|| "inet6".into()),
            frame_length: slot
                .lengths_fcs
                .first()
                .map(|length| u64::from(length.saturating_sub(4))),
            runs: trials
                .iter()
                .filter(|trial| trial.slot == slot.id)
                .filter_map(run)
                .collect(),
        })
    };
    let Imported {
        path,
        machine,
        card,
        topic,
        label,
        series,
        ..
    } = origin.clone();
    let place = Place {
        machine,
        card,
        topic,
        label,
    };
    let sets = campaign.slots.iter().filter_map(set).collect();
    Some(ResultDirectory {
        path,
        place,
        sets,
        series,
        ..ResultDirectory::default()
    })
}

/// `Xeon_E5-2650_8Cores Chelsio_T540-CR firewalls fbsd.2017`; the path where nothing of it is known.
fn name(directory: &ResultDirectory) -> String {
    let Place {
        machine,
        card,
        topic,
        label,
    } = &directory.place;
    let known: Vec<&str> = [machine, card, topic, label]
        .into_iter()
        .filter_map(|p| p.as_deref())
        .collect();
    if known.len() < 2 {
        directory.path.clone()
    } else {
        known.join(" ")
    }
}

/// Values that were not recorded are 0 or empty.
fn asked(flows: u64) -> Asked {
    Asked {
        command: vec!["linerate".into(), "import".into(), "netbenches".into()],
        mode: Mode::Threaded,
        lab: LabKind::Imported,
        guests: None,
        generator: "pkt-gen".into(),
        receiver: "pkt-gen".into(),
        flows,
        order: "unknown".into(),
        rate: "unknown".into(),
        timing: Timing::default(),
        batch: 0,
        seed: 0,
    }
}

fn host(directory: &ResultDirectory, linerate: &str) -> HostFacts {
    let unknown = || "unknown: not recorded by the archive".to_string();
    let searches = directory.equilibria.iter().map(|e| &e.facts);
    let all: Vec<_> = directory
        .sets
        .iter()
        .map(|s| &s.slot.facts)
        .chain(searches)
        .collect();
    let fact = |key: &str| all.iter().find_map(|facts| facts.get(key).cloned());
    let machine = directory.place.machine.clone().unwrap_or_default();
    HostFacts {
        version: VERSION,
        kernel: fact(facts::UNAME).unwrap_or_else(unknown),
        os: fact(facts::RELEASE).map_or_else(unknown, |release| format!("FreeBSD {release}")),
        machine: unknown(),
        cpus: cores(&machine).unwrap_or(0),
        cpu_model: machine,
        governor: unknown(),
        clock_source: unknown(),
        interfaces: directory
            .place
            .card
            .iter()
            .map(|card| ("card".into(), card.clone()))
            .collect(),
        versions: [("linerate".to_string(), linerate.to_string())].into(),
        ..HostFacts::default()
    }
}

/// `Xeon_E5-2650v4_2x12Cores` has 24.
fn cores(machine: &str) -> Option<u32> {
    let counted = machine.strip_suffix("Cores")?.rsplit('_').next()?;
    counted
        .split('x')
        .try_fold(1u32, |all, part| all.checked_mul(part.parse().ok()?))
}

fn slot(id: usize, set: Set, taken: &mut BTreeSet<(String, String)>) -> Slot {
    let family = match set.family.as_deref() {
        Some("inet6") => "IPv6",
        Some(_) => "IPv4",
        None => "",
    };
    let mut variant = without_family(&set.slot.set);
    if set.slot.profiling {
        variant += " (profiling)";
    }
    // The second of the same name keeps its family, which its title then has twice.
    if !taken.insert((variant.clone(), family.into())) {
        let numbered = (2..).map(|n| format!("{}#{n}", set.slot.set));
        let mut others = std::iter::once(set.slot.set.clone()).chain(numbered);
        variant = others
            .find(|name| taken.insert((name.clone(), family.into())))
            .unwrap_or_default();
    }
    let length = set
        .frame_length
        .and_then(|l| u16::try_from(l.saturating_add(4)).ok());
    let frame = length.map_or(String::new(), |l| l.to_string());
    let unit = if length.is_some() { " B" } else { "" };
    let parts = [variant.as_str(), family, &format!("{frame}{unit}")];
    let name = parts
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    Slot {
        id,
        name,
        variant,
        family: family.into(),
        transport: "UDP".into(),
        frame,
        lengths_fcs: length.into_iter().collect(),
        asked_fps: set
            .slot
            .facts
            .get("sender.rate_pps")
            .and_then(|r| r.parse().ok()),
        imported: Some(Box::new(set.slot)),
        ..Slot::default()
    }
}

/// `364729.forwarding.inet4` is `364729.forwarding`; `inet4` alone stays.
fn without_family(name: &str) -> String {
    let parts: Vec<&str> = name
        .split('.')
        .filter(|p| !matches!(*p, "inet4" | "inet6"))
        .collect();
    if parts.is_empty() {
        name.to_string()
    } else {
        parts.join(".")
    }
}

fn trial(slot: usize, block: usize, run: Run, length: Option<u64>) -> TrialRecord {
    let samples = counters(&run);
    let received = samples.last().map_or(0, |s| s.received);
    let interval_us = run
        .log_samples
        .first()
        .map_or(0, |(_, s)| s.interval_us.min(LONGEST_INTERVAL_US));
    let seconds = run.trial.samples.unwrap_or(0) as f64 * interval_us as f64 / 1e6;
    let offered = run.offered_pps;
    let rates = run.median_pps.map(|received| Rates {
        offered: offered.unwrap_or(0.0),
        received,
        seconds,
    });
    let loss_ratio = match (rates, offered) {
        (Some(rates), Some(offered)) if offered > 0.0 => 1.0 - rates.received / offered,
        _ => 0.0,
    };
    TrialRecord {
        version: VERSION,
        block: block as u32,
        slot,
        timing: Timing {
            run_ns: (seconds * 1e9) as u64,
            interval_ns: interval_us.saturating_mul(1000),
            ..Timing::default()
        },
        rates,
        loss_ratio,
        receiver: PortCounters {
            frames: received,
            bytes: received.saturating_mul(length.unwrap_or(0)),
            ..PortCounters::default()
        },
        audit: not_audited(rates.is_some(), &run.trial.problems),
        samples,
        imported: Some(Box::new(run.trial)),
        ..TrialRecord::default()
    }
}

/// pkt-gen reports frames by interval; records hold counters.
fn counters(run: &Run) -> Vec<Sample> {
    let Some((_, first)) = run.log_samples.first() else {
        return Vec::new();
    };
    let began = first.time_us.saturating_sub(first.interval_us);
    let mut received: u64 = 0;
    let counted = run.log_samples.iter().map(|(_, sample)| {
        received = received.saturating_add(sample.packets);
        Sample {
            t_ns: sample.time_us.saturating_sub(began).saturating_mul(1000),
            sent: 0,
            received,
        }
    });
    counted.collect()
}

/// Medians without a log.
fn published_trials(slot: usize, set: &Set) -> Vec<TrialRecord> {
    let Some(published) = &set.slot.published else {
        return Vec::new();
    };
    let of = |(block, value): (usize, &f64)| {
        let (file, method) = (
            published.file.clone(),
            "published median; its log is not there".into(),
        );
        let imported = ImportedTrial {
            file,
            method,
            ..ImportedTrial::default()
        };
        trial(
            slot,
            block,
            Run {
                trial: imported,
                median_pps: Some(*value),
                ..Run::default()
            },
            None,
        )
    };
    published.values.iter().enumerate().map(of).collect()
}

fn not_audited(has_figure: bool, problems: &[String]) -> Audit {
    let found = match (has_figure, problems) {
        (true, []) => "imported: not audited by linerate".into(),
        (true, problems) => format!("imported: not audited by linerate; {}", problems.join("; ")),
        (false, problems) => problems.join("; "),
    };
    let check = Check {
        name: "a figure could be imported".into(),
        ok: has_figure,
        found,
    };
    Audit {
        valid: has_figure,
        unlocated: 0,
        checks: vec![check],
    }
}

#[cfg(test)]
mod tests;
