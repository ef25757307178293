//! Points of a time line from recorded campaigns: one for each slot.

use super::revision::Place;
use super::{Figure, Key, Point, Relative, Timelines};
use crate::compare::{Rates, searched};
use crate::record::{
    Asked, Campaign, Guests, HostFacts, LabKind, Searched, Slot, Summary, TrialRecord,
};
use linerate_wire::units::counted;
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
    summary: Option<&Summary>,
) {
    let facts = facts(campaign, host);
    if campaign.is_searched() {
        add_searched(
            timelines,
            (source, campaign, host),
            &searched(campaign, trials, summary),
            &facts,
        );
    }
    let rates = |slot: &Slot| Rates::of_slot(slot.variant.clone(), slot.id, campaign, trials);
    let mut seen: BTreeMap<Key, usize> = BTreeMap::new();
    for slot in &campaign.slots {
        let measured = rates(slot);
        let Some(rate) = Figure::of_runs(&measured.values) else {
            continue;
        };
        let mut key = key(campaign, host, slot);
        // A variant may be compared with itself: its second slot is a time line of its own.
        let again = seen.entry(key.clone()).or_default();
        *again += 1;
        if *again > 1 {
            key.variant = format!("{} (slot {again} of it)", key.variant);
        }
        let mut facts = facts.clone();
        facts.insert(DROPPED.into(), format!("{:.0} %", 100.0 * measured.dropped));
        // Relative to the tester alone, or to the baseline, which removes the drift of the machine's speed.
        let reference = slot
            .ceiling
            .or(slot.baseline)
            .and_then(|id| campaign.slots.get(id))
            .map(rates);
        let relative = reference.and_then(|reference| {
            let figure = Figure::of_runs(&measured.as_share_of(&reference).values)?;
            Some(Relative {
                to: reference.name,
                figure,
            })
        });
        let place = Place::at_time(&campaign.started);
        timelines.add(
            key,
            Point {
                place,
                rate,
                relative,
                facts,
                source: source.into(),
            },
        );
    }
}

/// Adds the results of searches, for each goal: the trials have many loads, so their rates are no result.
fn add_searched(
    timelines: &mut Timelines,
    (source, campaign, host): (&str, &Campaign, &HostFacts),
    searches: &[Searched],
    facts: &BTreeMap<String, String>,
) {
    for search in searches {
        let Some(slot) = campaign.slots.get(search.slot) else {
            continue;
        };
        for goal in &search.goals {
            let Some(value) = goal.outcome.lower else {
                continue;
            };
            let mut key = key(campaign, host, slot);
            let parts = [key.load, campaign.sought(goal)];
            key.load = parts
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(", ");
            let rate = Figure {
                value,
                error: 0.0,
                runs: 1,
            };
            timelines.add(
                key,
                Point {
                    place: Place::at_time(&campaign.started),
                    rate,
                    relative: None,
                    facts: facts.clone(),
                    source: source.into(),
                },
            );
        }
    }
}

/// The machine of emulated guests.
pub const EMULATED: &str = "EMULATED";

/// The time line that a slot's results belong to.
pub fn key(campaign: &Campaign, host: &HostFacts, slot: &Slot) -> Key {
    let asked = &campaign.asked;
    let emulated = asked.guests == Some(Guests::Emulated);
    let simulated = asked.lab == LabKind::Simulated || emulated;
    let unit = if slot.lengths_fcs.len() == 1 {
        " B"
    } else {
        ""
    };
    Key {
        simulated,
        machine: if emulated {
            EMULATED.into()
        } else if simulated {
            "SIMULATED".into()
        } else {
            machine(host)
        },
        card: format!("lab of {}, {}", asked.lab, asked.mode),
        variant: slot.variant.clone(),
        family: slot.family.clone(),
        frame: format!("{}{unit}", slot.frame),
        load: load(asked, slot),
        tester: slot.is_calibration(),
        ..Key::default()
    }
}

fn machine(host: &HostFacts) -> String {
    let model = if host.cpu_model.is_empty() {
        "unknown machine"
    } else {
        &host.cpu_model
    };
    let under = host
        .hypervisor
        .as_ref()
        .map_or(String::new(), |h| format!(" under {h}"));
    format!("{model} x {}{under}", host.cpus)
}

/// The load, as far as it differs from the default: 2,000 flows of UDP at full speed.
fn load(asked: &Asked, slot: &Slot) -> String {
    let parts = [
        (slot.transport != "UDP", slot.transport.clone()),
        (asked.flows != 2000, counted(asked.flows as usize, "flow")),
        (asked.order != "sequential", asked.order.clone()),
        (slot.asked_fps.is_some(), format!("at {}", asked.rate)),
        (!slot.l4_checksum, "no checksum".into()),
        (!slot.signed, "unsigned".into()),
    ];
    let unusual = parts.into_iter().filter(|(unusual, _)| *unusual);
    unusual.map(|(_, text)| text).collect::<Vec<_>>().join(", ")
}

/// Everything recorded of a campaign that might explain a change.
pub fn facts(campaign: &Campaign, host: &HostFacts) -> BTreeMap<String, String> {
    let asked = &campaign.asked;
    let list = |cpus: &[u32]| {
        cpus.iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
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
        facts.extend(
            values
                .iter()
                .map(|(name, value)| (format!("{group} {name}"), value.clone())),
        );
    }
    facts.retain(|_, value| !value.is_empty());
    facts
}
