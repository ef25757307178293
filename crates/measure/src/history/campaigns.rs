//! Points of a time line from recorded campaigns: one for each slot.

use super::revision::Place;
use super::{Figure, Key, Point, Relative, Timelines};
use crate::record::{Asked, Campaign, HostFacts, LabKind, Slot, TrialRecord};
use crate::summary::drops;
use std::collections::BTreeMap;

/// The fact with the DUT's loss ratio. If the rate changed together with it, the DUT drops frames; it is not slower.
pub const DROPPED: &str = "frames dropped by the DUT";

/// Adds every slot of a campaign. `source` is its folder.
pub fn add(
    timelines: &mut Timelines,
    source: &str,
    campaign: &Campaign,
    host: &HostFacts,
    trials: &[TrialRecord],
) {
    let facts = facts(campaign, host);
    let mut seen: BTreeMap<Key, usize> = BTreeMap::new();
    for slot in &campaign.slots {
        let Some(rate) = Figure::of_runs(&rates(trials, slot.id).into_values().collect::<Vec<f64>>()) else {
            continue;
        };
        let mut key = key(campaign, host, slot);
        // A variant may be compared with itself: its second slot is a time line of its own.
        let again = seen.entry(key.clone()).or_default();
        *again += 1;
        if *again > 1 {
            key.variant = format!("{} (slot {again} of it)", key.variant);
        }
        let valid: Vec<&TrialRecord> = trials.iter().filter(|t| t.slot == slot.id && t.audit.valid).collect();
        let mut facts = facts.clone();
        facts.insert(DROPPED.into(), format!("{:.0} %", 100.0 * drops::share(campaign, &valid)));
        let point = Point {
            place: Place::at_time(&campaign.started),
            rate,
            relative: relative(campaign, slot, trials),
            facts,
            source: source.into(),
        };
        timelines.add(key, point);
    }
}

/// Received frames/s of a slot's valid trials, by block.
fn rates(trials: &[TrialRecord], slot: usize) -> BTreeMap<u32, f64> {
    let of_slot = trials.iter().filter(|t| t.slot == slot && t.audit.valid);
    of_slot.filter_map(|t| Some((t.block, t.rates?.received))).collect()
}

/// The ratio to the tester alone; to the baseline where that is not known.
fn relative(campaign: &Campaign, slot: &Slot, trials: &[TrialRecord]) -> Option<Relative> {
    let reference = campaign.slots.iter().find(|s| Some(s.id) == slot.ceiling.or(slot.baseline))?;
    Some(Relative { to: reference.variant.clone(), figure: ratio(trials, slot.id, reference.id)? })
}

/// The rate of one slot relative to another's, paired by block: what remains when the machine's speed drifts.
fn ratio(trials: &[TrialRecord], slot: usize, ceiling: usize) -> Option<Figure> {
    let ceiling = rates(trials, ceiling);
    let pairs =
        rates(trials, slot).into_iter().filter_map(|(block, rate)| Some((rate, *ceiling.get(&block)?)));
    let ratios: Vec<f64> = pairs.filter(|(_, c)| *c > 0.0).map(|(rate, c)| rate / c).collect();
    Figure::of_runs(&ratios)
}

fn key(campaign: &Campaign, host: &HostFacts, slot: &Slot) -> Key {
    let asked = &campaign.asked;
    let simulated = asked.lab == LabKind::Simulated;
    let unit = if slot.lengths_fcs.len() == 1 { " B" } else { "" };
    Key {
        simulated,
        machine: if simulated { "SIMULATED".into() } else { machine(host) },
        card: format!("lab of {}, {}", asked.lab, asked.mode),
        topic: String::new(),
        variant: slot.variant.clone(),
        also: Vec::new(),
        family: slot.family.clone(),
        frame: format!("{}{unit}", slot.frame),
        load: load(asked, slot),
        series: String::new(),
    }
}

fn machine(host: &HostFacts) -> String {
    let model = if host.cpu_model.is_empty() { "unknown machine" } else { &host.cpu_model };
    let under = host.hypervisor.as_ref().map_or(String::new(), |h| format!(" under {h}"));
    format!("{model} x {}{under}", host.cpus)
}

/// What was sent, as far as it is not the usual: 2,000 flows of UDP at full speed.
fn load(asked: &Asked, slot: &Slot) -> String {
    let mut parts = Vec::new();
    if slot.transport != "UDP" {
        parts.push(slot.transport.clone());
    }
    if asked.flows != 2000 {
        parts.push(format!("{} flows", asked.flows));
    }
    if asked.order != "sequential" {
        parts.push(asked.order.clone());
    }
    if slot.asked_fps.is_some() {
        parts.push(format!("at {}", asked.rate));
    }
    if !slot.l4_checksum {
        parts.push("no checksum".into());
    }
    if !slot.signed {
        parts.push("unsigned".into());
    }
    parts.join(", ")
}

/// Everything recorded that might explain a change.
fn facts(campaign: &Campaign, host: &HostFacts) -> BTreeMap<String, String> {
    let asked = &campaign.asked;
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let roles = &campaign.roles;
    let mut facts: BTreeMap<String, String> = [
        ("kernel", host.kernel.clone()),
        ("operating system", host.os.clone()),
        ("governor", host.governor.clone()),
        ("clock source", host.clock_source.clone()),
        ("memory", host.memory.to_string()),
        ("linerate", campaign.linerate.clone()),
        ("batch", asked.batch.to_string()),
        ("generator", asked.generator.clone()),
        ("receiver", asked.receiver.clone()),
        ("generator CPUs", list(&roles.generator)),
        ("DUT CPUs", list(&roles.dut)),
        ("receiver CPUs", list(&roles.receiver)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value))
    .collect();
    let groups = [
        ("mitigation of", &host.mitigations),
        ("interface", &host.interfaces),
        ("version of", &host.versions),
        ("setting", &host.settings),
    ];
    for (group, values) in groups {
        facts.extend(values.iter().map(|(name, value)| (format!("{group} {name}"), value.clone())));
    }
    facts.retain(|_, value| !value.is_empty());
    facts
}
