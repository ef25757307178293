//! Warnings about slots: their trials, their limits, and the frames that the DUT let through.

use super::machine::{self, Said};
use super::throughputs;
use crate::record::{
    Campaign, Connections, Direction, DirectionRow, Limit, Row, Slot, States, Summary, TrialRecord,
    Warning,
};
use linerate_stats::{autocorrelation, median};
use linerate_wire::units::counted;

/// Why the DUT may be faster where the tester alone has no valid trial.
const NOT_KNOWN: &str = "what the tester does alone is not known";

pub(super) fn warnings(
    campaign: &Campaign,
    trials: &[TrialRecord],
    summary: &Summary,
) -> Vec<Warning> {
    let mut out = Vec::new();
    for (row, slot) in summary.rows.iter().zip(&campaign.slots) {
        // Slots without a valid trial are reported as unmeasured; a search has trials beside those of its rate, and a bisection has as few as
        // decide.
        let searched = !summary.searches.is_empty() || summary.bisection.is_some();
        if row.valid_trials > 0 || slot.imported.is_some() || searched {
            let of_slot: Vec<&TrialRecord> = trials.iter().filter(|t| t.slot == slot.id).collect();
            let alone = row.ceiling.and_then(|of| summary.rows.get(of.than));
            let faster = match slot.no_ceiling {
                true => "the DUT lost no frame",
                false if !searched && alone.is_none_or(|alone| alone.received.n == 0) => NOT_KNOWN,
                false => super::maybe_faster(row, slot, campaign)
                    .unwrap_or("too close to what the tester can do without a DUT"),
            };
            let warnings = slot_warnings(row, slot, &of_slot, searched, faster).into_iter();
            out.extend(warnings.map(|(text, spoils)| Warning {
                slot: Some(slot.id),
                text,
                spoils,
            }));
        }
    }
    out.extend(throughputs::warnings(campaign, trials, &summary.benchmarks));
    out.extend(
        machine::warnings(campaign, trials).map(|(text, spoils)| Warning {
            slot: None,
            text,
            spoils,
        }),
    );
    out
}

/// `trials`: those of the slot. `searched`: a search chose them, whose result has bounds and no interval. `faster`: why the DUT may be
/// faster where the tester is the limit.
fn slot_warnings(
    row: &Row,
    slot: &Slot,
    trials: &[&TrialRecord],
    searched: bool,
    faster: &str,
) -> Vec<Said> {
    let mut out: Vec<Said> = Vec::new();
    let mut plain: Vec<String> = Vec::new();
    let (valid_trials, all) = (row.valid_trials, trials.len());
    let failed: Vec<&&TrialRecord> = trials.iter().filter(|t| !t.audit.valid).collect();
    if let Some(first) = failed.first() {
        let n = failed.len();
        plain.push(match slot.imported {
            Some(_) => {
                let why = first.audit.checks.first().map_or("", |c| &c.found);
                format!("{n} of {all} runs have no figure (the first: {why})")
            }
            None => {
                let why = first.audit.failures().next().unwrap_or_default();
                let trials = counted(all, "trial");
                match n {
                    1 => format!("1 of {trials} is invalid and does not count: {why}"),
                    _ => format!("{n} of {trials} are invalid and do not count. The first: {why}"),
                }
            }
        });
    }
    if row.limit == Limit::Noisy && !searched {
        plain.push(
            "its trials scatter too much to tell whether the DUT or the tester was the limit: run more of them (--budget), on a quieter machine"
                .into(),
        );
    }
    let maybe = row.limit == Limit::Tester || row.limit == Limit::Unknown && faster == NOT_KNOWN;
    if maybe && slot.imported.is_none() && !searched {
        plain.push(format!("{faster}; the DUT may be faster than this"));
    }
    if row.received.low.is_none() && valid_trials > 0 && slot.imported.is_none() && !searched {
        let are = if valid_trials == 1 { "is" } else { "are" };
        let few = counted(valid_trials, "valid trial");
        plain.push(format!(
            "{few} {are} too few for a 95 % interval (6 are needed)"
        ));
    }
    let valid = || trials.iter().filter(|t| t.audit.valid);
    let series: Vec<f64> = valid().filter_map(|t| Some(t.rates?.received)).collect();
    if series.len() >= 8 && autocorrelation(&series) > 0.5 && row.variation > 0.05 {
        plain.push(format!(
            "the rate drifted by {:.0} %{}",
            100.0 * row.variation,
            if searched {
                " during the campaign"
            } else {
                ": rely on changes, which compare trials of one block"
            }
        ));
    }
    out.extend(
        valid()
            .next_back()
            .zip(row.connections.filter(|_| slot.http.is_none()))
            .and_then(|(last, c)| few_new(c, last)),
    );
    out.extend(one_way_only(row, trials));
    plain.extend(silent_since(trials).or_else(|| grown_loss(trials).filter(|_| searched)));
    if row.duplicates > 0 {
        plain.push(format!(
            "{} arrived more than once",
            counted(row.duplicates as usize, "frame")
        ));
    }
    plain
        .into_iter()
        .map(|text| (text, None))
        .chain(out)
        .collect()
}

/// Since when no frame came through, although some did before.
fn silent_since(trials: &[&TrialRecord]) -> Option<String> {
    let last = trials
        .iter()
        .rposition(|trial| trial.receiver.unique() > 0)?;
    let silent = &trials[last + 1..];
    (silent.len() >= 3).then(|| {
        format!(
            "no frame came through in the last {} trials, from second {:.0} of the campaign on: the DUT or a link went down",
            silent.len(),
            silent[0].began_ns as f64 / 1e9
        )
    })
}

/// Whether the last trials lost clearly larger shares than earlier ones at higher loads.
pub(super) fn grown_loss(trials: &[&TrialRecord]) -> Option<String> {
    const LAST: usize = 5;
    let valid = trials
        .iter()
        .filter(|trial| trial.audit.valid && trial.shape.is_constant());
    let valid: Vec<(f64, f64)> = valid
        .filter_map(|trial| Some((trial.asked_fps?, trial.loss_ratio)))
        .collect();
    let (before, last) = valid.split_at(valid.len().checked_sub(LAST)?);
    let more = |(load, loss): &(f64, f64)| {
        let higher = before.iter().filter(|(other, _)| 0.99 * other >= *load);
        let higher: Vec<f64> = higher.map(|(_, loss)| *loss).collect();
        higher.len() >= 3 && *loss > 1.5 * median(&higher).unwrap_or(1.0)
    };
    last.iter().all(more).then(|| {
        "the last trials lost larger shares than earlier trials at higher loads: the loss has grown with time"
            .into()
    })
}

/// The DUT passes frames in only one direction.
fn one_way_only(row: &Row, trials: &[&TrialRecord]) -> Option<Said> {
    let passes = |way: &DirectionRow| way.loss_ratio < 1.0;
    let none = row.directions.iter().find(|way| !passes(way))?.direction;
    row.directions.iter().find(|way| passes(way))?;
    let ways = trials
        .iter()
        .flat_map(|t| &t.directions)
        .filter(|way| way.direction == none);
    let most = ways
        .flat_map(|way| &way.losses)
        .max_by_key(|loss| loss.frames);
    let place = most.map_or(String::new(), |loss| format!(" ({})", loss.place));
    let end = if none == Direction::Reverse {
        "outside"
    } else {
        "inside"
    };
    let passed = format!("no frame came through in the {none} direction");
    let why = format!(
        "the DUT drops frames that open a connection from its {end}, or all frames from there; the rate is that of the other direction"
    );
    Some((format!("{passed}{place}: {why}"), Some(passed)))
}

/// With new states, frames that opened no connection: a trial has more frames than flows.
fn few_new(c: Connections, last: &TrialRecord) -> Option<Said> {
    let frames = last.receiver.unique();
    let share = c.tracked? as f64 / frames.max(1) as f64;
    (c.states == States::New && share < 0.95).then(|| {
        let few = format!(
            "only {:.1} % of the frames opened a connection",
            100.0 * share
        );
        let text = format!(
            "{few}: a trial has {frames} frames, so give it as many flows, in sequential order"
        );
        (text, Some(few))
    })
}
