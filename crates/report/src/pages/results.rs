//! Results of a campaign: the answer, the cells, the papers' tables, sweeps, and expectations.

mod answer;
mod audits;
mod benchmarks;
pub(super) mod bisection;
pub(crate) mod changes;
mod compared;
mod end_hosts;
mod figures;
mod filters;
mod first;
mod flood;
mod kept;
mod lab;
mod measured;
mod pictures;
mod profiles;
mod searches;
mod shown;
pub(super) mod stability;
mod tables;
mod telemetry;
mod trust;
mod versions;

pub use first::first;
pub use searches::stalls;
pub use shown::Shown;
pub(super) use shown::has_rate;
pub(crate) use tables::{JUDGEMENTS, decisive};

use super::{Records, explanation};
use crate::prelude::*;
use linerate_measure::record::Warning;
use linerate_standards::{CONDITIONALLY, Compliance};
use linerate_stats::ministat::{Dataset, MAX_SETS, Options, block};

/// Variants in the title of a page.
const MOST_NAMED: usize = 4;

/// The whole page. The caller has already said whether the campaign is simulated.
pub fn page(page: &mut Document, shown: &Shown<'_>) {
    let experiment = &shown.planned.experiment;
    match (&shown.planned.file, shown.is_whole()) {
        (None, true) if !shown.campaign.variants().is_empty() => {
            let variants = some(shown.campaign.variants(), MOST_NAMED, ", ");
            page.title = Some(format!("{}: {variants}", experiment.title));
        }
        (None, _) => {}
        (Some(_), false) => super::plan::question(page, experiment),
        (Some(_), true) => {
            page.title = Some(super::plan::titled(experiment));
            super::plan::asked(page, experiment);
        }
    }
    answer::missing(shown)
        .into_iter()
        .for_each(|text| page.warn(text));
    answer::skipped(page, shown);
    let Summary {
        benchmarks,
        searches,
        bisection,
        ..
    } = shown.summary;
    match (benchmarks.is_empty(), searches.is_empty(), bisection) {
        (false, ..) => benchmarks::benchmarks(page, shown),
        (_, false, _) => searches::searches(page, shown),
        (.., Some(found)) => bisection::section(page, shown, found),
        _ => {
            kept::sentences(shown)
                .into_iter()
                .for_each(|text| page.answer(text));
            answer::answer(page, shown);
            kept::section(page, shown);
            flood::section(page, shown);
            if shown.is_whole() && !shown.is_of_end_hosts() {
                first::top(page, shown);
            }
            pictures::cells(page, shown);
            tables::cells(page, shown);
        }
    }
    let rates = benchmarks.is_empty() && searches.is_empty() && bisection.is_none();
    if rates && !shown.is_whole() {
        details(page, shown);
    } else {
        tables::expectations(page, shown);
        if !rates {
            skipped(page, shown);
        }
    }
    page.warnings(warned(shown, 3));
    measured::measured(page, shown);
    if !shown.is_whole() {
        return;
    }
    if rates {
        details(page, shown);
    }
    pictures::loads(page, shown);
    pictures::cpus(page, shown);
    audits::audits(page, shown);
    conformance(page, shown);
    repeat(page, shown);
    audits::machine(page, shown.host);
    configurations(page, shown);
}

/// Figures behind the rates of the cells.
fn details(page: &mut Document, shown: &Shown<'_>) {
    if shown.is_of_end_hosts() {
        end_hosts::tcp(page, shown)
    } else {
        figures::load(page, shown)
    }
    versions::versions(page, shown);
    tables::papers(page, shown);
    pictures::series(page, shown);
    tables::series(page, shown);
    tables::speed_ups(page, shown);
    if !shown.is_whole() {
        tables::expectations(page, shown);
    }
    explanation::section(page, shown.campaign, shown.summary, shown.is_whole());
    explanation::balance::balance(
        page,
        shown.campaign,
        &shown.summary.explanations,
        shown.is_whole(),
    );
    pictures::queues(page, shown);
    profiles::profiles(page, shown);
    profiles::flames(page, shown);
    telemetry::telemetry(page, shown);
    figures::figures(page, shown);
    pictures::over_time(page, shown);
    ministat(page, shown);
    skipped(page, shown);
}

/// The cells that were not measured, with the reasons.
fn skips(shown: &Shown<'_>) -> Vec<String> {
    let skipped = shown.planned.skipped.iter();
    let skipped = together(skipped.map(|s| (&s.reasons, shown.name(s.cell))));
    skipped
        .iter()
        .map(|(why, names)| format!("{}: {}", names.join("; "), why.join("; ")))
        .collect()
}

fn skipped(page: &mut Document, shown: &Shown<'_>) {
    page.entries("Not measured", skips(shown));
}

/// The requirements of the standard that the campaign claims.
fn conformance(page: &mut Document, shown: &Shown<'_>) {
    let Records {
        campaign,
        host,
        trials,
        facts,
        summary,
        ..
    } = shown.records;
    let records = linerate_standards::Records {
        campaign,
        host,
        trials,
        facts,
        summary: Some(summary),
    };
    let Some(found) = linerate_standards::conformance(&records) else {
        return;
    };
    page.heading("Conformance");
    for claim in &found.claims {
        page.say(claim.to_string());
    }
    let mut all = found.claims.iter().map(|claim| claim.compliance);
    if all.any(|compliance| compliance == Compliance::Conditionally) {
        page.note(CONDITIONALLY);
    }
    page.folded("All requirements, each with its evidence", |page| {
        let mut all = super::conformance(&campaign.name, &found);
        all.blocks.remove(0);
        page.append(all);
    });
}

/// The configuration of the DUTs; those that differ in their traffic alone are configured alike.
fn configurations(page: &mut Document, shown: &Shown<'_>) {
    let mut known = Vec::new();
    page.folded("Configuration of the DUTs", |page| {
        for facts in shown.facts {
            let Some(found) = Configuration::recorded(facts) else { continue };
            if !known.contains(&found) {
                let mut of = super::facts("", &found);
                of.blocks.retain(
                    |block| !matches!(block, Block::Heading { text } if text.starts_with("Facts of")),
                );
                page.folded(shown.name(facts.slot), |page| page.append(of));
                known.push(found);
            }
        }
    });
}

/// The command line, and the plan that `linerate run` carries out again.
fn repeat(page: &mut Document, shown: &Shown<'_>) {
    page.heading("To repeat it");
    page.fact("begun", &shown.campaign.started);
    page.fact("linerate", &shown.campaign.linerate);
    page.code(&shown.campaign.asked.command.join(" "), Tone::Plain);
    if let Some(plan) = &shown.planned.source {
        page.folded("The plan, for `linerate run`", |page| {
            page.code(plan, Tone::Plain)
        });
    }
}

/// The trials of each cell as ministat(1) prints them, to copy.
fn ministat(page: &mut Document, shown: &Shown<'_>) {
    let slots = shown.measured_slots();
    let set = |row: &Row| {
        let trials = shown.valid(row.slot);
        let own = trials.filter(|trial| slots.iter().any(|slot| slot.id == trial.slot));
        let rates: Vec<f64> = own
            .filter_map(|trial| Some(trial.rates?.received.round()))
            .collect();
        (rates.len() >= 3).then(|| Dataset::new(shown.name(row.slot), rates))
    };
    let sets: Vec<Dataset> = shown.rows().filter_map(set).collect();
    ministat_blocks(page, "", &sets);
}

/// Rates as ministat(1) prints them, to copy; `family`: the IP version of their frames. A block has so many sets at most: where there are
/// more, the first one, which all others are compared with, begins each.
pub(super) fn ministat_blocks(page: &mut Document, family: &str, sets: &[Dataset]) {
    let Some((first, others)) = sets.split_first() else {
        return;
    };
    page.heading(format!("ministat: received frames/s {family}").trim_end());
    if sets.len() > MAX_SETS {
        page.note(format!(
            "ministat takes {MAX_SETS} sets at most, so these {} are in several blocks. Each compares with {}.",
            sets.len(),
            first.name()
        ));
    }
    for at in (0..others.len().max(1)).step_by(MAX_SETS - 1) {
        if at > 0 {
            page.gap();
        }
        let beside = others.iter().skip(at).take(MAX_SETS - 1);
        let of: Vec<Dataset> = [first].into_iter().chain(beside).cloned().collect();
        page.code(&block(&of, &Options::default()), Tone::Plain);
    }
}

/// Warnings. One that applies to several cells appears once, with the figures of the first, and with the names of so many cells at
/// most: those with a DUT first.
fn warned(shown: &Shown<'_>, most: usize) -> Vec<String> {
    let said = shown.summary.warnings.iter().map(|w| {
        let words: String = w.text.chars().filter(|c| !c.is_ascii_digit()).collect();
        ((w.slot.is_some(), words), w)
    });
    let told = together(said);
    let told = told.iter().map(|(_, said)| {
        let alone = |w: &&Warning| {
            w.slot
                .and_then(|slot| shown.slot(slot))
                .is_some_and(Slot::is_calibration)
        };
        let (alone, others): (Vec<&Warning>, Vec<&Warning>) = said.iter().copied().partition(alone);
        let said: Vec<&Warning> = others.into_iter().chain(alone).collect();
        let names = said.iter().filter_map(|w| Some(shown.name(w.slot?)));
        let names: Vec<String> = names.collect();
        let cells = match names.len().saturating_sub(most) {
            0 => "",
            1 => " cell",
            _ => " cells",
        };
        let who = when(
            !names.is_empty(),
            format!("{}{cells}: ", some(names, most, "; ")),
        );
        format!("{who}{}", said[0].text)
    });
    told.collect()
}

#[cfg(test)]
pub(super) mod tests;
