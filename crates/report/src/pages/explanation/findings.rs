//! Findings of several cells that say the same, and what a page says of each.

use crate::prelude::*;
use linerate_measure::experiment::System;
use linerate_measure::record::{Change, Explanation, Finding, Strength};

/// Cells whose evidence is told apart.
const MOST: usize = 6;

/// Whether a finding says the same as another.
pub(super) fn says(finding: &Finding, other: &Finding) -> bool {
    finding.cause == other.cause && finding.statement == other.statement
}

/// Findings that say the same of several slots are one entry, with the strongest of them and all these slots. A cause has a statement
/// of its own where it shows otherwise: frames that are dropped for want of a route, and by a rule.
pub(super) fn merged(explanations: &[Explanation]) -> Vec<(&Finding, Vec<usize>)> {
    let mut all: Vec<(&Finding, Vec<usize>)> = Vec::new();
    for explanation in explanations {
        for finding in &explanation.findings {
            match all.iter_mut().find(|(known, _)| says(known, finding)) {
                Some((known, slots)) => {
                    slots.push(explanation.slot);
                    let rank = |finding: &Finding| (finding.strength, finding.weight);
                    if rank(finding) > rank(known) {
                        *known = finding;
                    }
                }
                None => all.push((finding, vec![explanation.slot])),
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| {
        b.strength
            .cmp(&a.strength)
            .then(b.weight.total_cmp(&a.weight))
    });
    all
}

/// The slots of a finding, where it is not about all of them: `rules: `.
pub(super) fn names(campaign: &Campaign, explanations: &[Explanation], slots: &[usize]) -> String {
    let names: Vec<String> = slots
        .iter()
        .map(|slot| campaign.name_of(*slot).to_string())
        .collect();
    when(
        slots.len() != explanations.len(),
        format!("{}: ", listed(&names)),
    )
}

/// The changes for the DUT's system, and those of the tester; all where none is for it.
pub(super) fn changes<'a>(
    campaign: &Campaign,
    finding: &'a Finding,
) -> impl Iterator<Item = &'a Change> {
    let system = campaign
        .planned
        .as_ref()
        .map_or(System::Linux, |planned| planned.experiment.system);
    let system = system.to_string().to_lowercase();
    let fits = move |change: &&Change| {
        let name = change.system.to_lowercase();
        name.contains(&system) || ["linerate", "tester", "hypervisor"].contains(&name.as_str())
    };
    let any = finding.changes.iter().any(|change| fits(&change));
    finding
        .changes
        .iter()
        .filter(move |change| !any || fits(change))
}

pub(super) fn known(strength: Strength) -> &'static str {
    match strength {
        Strength::Observed => "observed",
        Strength::Inferred => "inferred",
        Strength::Possible => "possible",
    }
}

/// The evidence of a finding. Cells that have different evidence are named with theirs, the first few of them.
pub(super) fn evidence(
    campaign: &Campaign,
    explanations: &[Explanation],
    finding: &Finding,
    slots: &[usize],
) -> Vec<String> {
    let of_slots = explanations.iter().filter(|of| slots.contains(&of.slot));
    let each = together(of_slots.flat_map(|of| {
        let own = of.findings.iter().filter(|own| says(own, finding));
        own.map(|own| (&own.evidence, campaign.name_of(of.slot)))
    }));
    match &each[..] {
        [(evidence, _)] => evidence.to_vec(),
        several => {
            let of_cells = |(evidence, names): &(&Vec<String>, Vec<&str>)| {
                format!("{}: {}", names.join("; "), evidence.join("; "))
            };
            several.iter().take(MOST).map(of_cells).collect()
        }
    }
}
