//! Slots without a figure, or without a meaningful one.

use super::{dropped_share, losses_by_place};
use crate::record::{
    Benchmarked, Campaign, ConnectionTrial, Figures, LabKind, Maximum, NOTHING_PASSES, Row,
    Searched, Slot, Stopped, Tested, TrialRecord, UNSTABLE, Unmeasured, Why,
};
use linerate_search::Irregular;

/// All unmeasured slots, without the skipped ones, and without those that a bisection did not ask.
pub(super) fn unmeasured(
    campaign: &Campaign,
    rows: &[Row],
    trials: &[TrialRecord],
    stopped: Stopped,
    bisects: bool,
) -> Vec<Unmeasured> {
    let asked = |slot: &Slot| !bisects || trials.iter().any(|trial| trial.slot == slot.id);
    let skipped = |slot: &Slot| {
        campaign
            .planned
            .as_ref()
            .is_some_and(|p| !p.lacking(slot.id).is_empty())
    };
    let slots = campaign
        .slots
        .iter()
        .filter(|s| s.imported.is_none() && !skipped(s) && asked(s));
    let of_slot = |slot: &Slot| {
        let why = why(campaign, slot, rows.get(slot.id)?, trials, stopped)?;
        Some(Unmeasured {
            slot: slot.id,
            name: slot.name.clone(),
            why,
        })
    };
    slots.filter_map(of_slot).collect()
}

/// Goals without a rate, and tests without a result. Where the highest load loses nothing, a test lacks a result only if it has none of
/// any frames, and the DUT may be faster than the tester: one that carries the rate of its links needs no such test.
pub(super) fn without_result(
    campaign: &Campaign,
    searches: &[Searched],
    benchmarks: &[Benchmarked],
    stopped: Stopped,
) -> Vec<Unmeasured> {
    if matches!(stopped, Stopped::Interrupted | Stopped::Failed) {
        return Vec::new();
    }
    let lacking = |slot: usize, why: String| Unmeasured {
        slot,
        name: campaign.name_of(slot).into(),
        why,
    };
    if !benchmarks.is_empty() {
        let tests = benchmarks
            .iter()
            .flat_map(|of| of.tests.iter().map(|tested| (of.slot, tested)));
        let none = tests.filter(|(_, tested)| tested.figures == Figures::None);
        let lacking = |(slot, tested): (usize, &Tested)| {
            let figures = |of: &Benchmarked| {
                let own = of.tests.iter().find(|own| own.test == tested.test);
                own.is_some_and(|own| own.figures != Figures::None)
            };
            let is_line = |of: &Benchmarked| of.maximum.is_some_and(Maximum::is_line);
            let needs_none = || benchmarks.iter().any(|of| figures(of) || is_line(of));
            let why = tested
                .why
                .filter(|why| *why != Why::AtMaximum || !needs_none())?;
            Some(lacking(
                slot,
                format!(
                    "has no result for {}: {}",
                    tested.test.title(),
                    why.words(tested.test)
                ),
            ))
        };
        return none.filter_map(lacking).collect();
    }
    let goals = searches.iter().flat_map(|search| {
        let none = search
            .goals
            .iter()
            .filter(|goal| goal.outcome.lower.is_none());
        none.map(|goal| {
            let why = match goal.outcome.irregular {
                Some(Irregular::MinLoad) => "even the lowest load misses it",
                Some(Irregular::Unstable) => UNSTABLE,
                _ => search.stopped(stopped),
            };
            (
                search.slot,
                format!("has no rate for the goal {}: {why}", goal.name),
            )
        })
    });
    let curves = searches
        .iter()
        .filter(|search| search.goals.is_empty())
        .filter_map(|search| {
            let why = match search.loads.is_empty() {
                true => search.stopped(stopped),
                false => Some(NOTHING_PASSES).filter(|_| search.is_silent())?,
            };
            Some((search.slot, format!("has no loss curve: {why}")))
        });
    goals
        .chain(curves)
        .map(|(slot, why)| lacking(slot, why))
        .collect()
}

fn why(
    campaign: &Campaign,
    slot: &Slot,
    row: &Row,
    trials: &[TrialRecord],
    stopped: Stopped,
) -> Option<String> {
    let cut_short = matches!(stopped, Stopped::Interrupted | Stopped::Failed);
    let of_slot: Vec<&TrialRecord> = trials.iter().filter(|t| t.slot == slot.id).collect();
    let opened = || of_slot.iter().filter_map(|trial| trial.opened.as_deref());
    let is_renumbered = opened().any(ConnectionTrial::is_renumbered);
    // Whether they survive it is the question.
    let had_event = row.kept.as_ref().is_some_and(|kept| kept.event.is_some());
    // Whatever else the audit found follows from that.
    if !had_event && !is_renumbered && dropped_share(campaign, &of_slot) >= 1.0 {
        return (!is_meant_to_drop(campaign, slot))
            .then(|| drops_all(campaign, slot, row, &of_slot));
    }
    let first = || {
        of_slot
            .iter()
            .find_map(|t| t.audit.failures().next())
            .unwrap_or_default()
    };
    match (row.valid_trials, row.trials) {
        (0, 0) if cut_short => None,
        (0, 0) => Some("could not be measured: the time ran out before its first trial".into()),
        (0, 1) => Some(format!(
            "could not be measured: its only trial failed its audit ({})",
            first()
        )),
        (0, n) => Some(format!(
            "could not be measured: all {n} trials failed their audit (the first: {})",
            first()
        )),
        _ if row.received.n == 0 => Some("could not be measured: no trial had a window".into()),
        _ => None,
    }
}

/// A DUT with a known answer drops on purpose.
fn is_meant_to_drop(campaign: &Campaign, slot: &Slot) -> bool {
    campaign.asked.lab == LabKind::Simulated || slot.known_answer
}

fn drops_all(campaign: &Campaign, slot: &Slot, row: &Row, trials: &[&TrialRecord]) -> String {
    let addresses = if slot.family == "IPv6" {
        "2001:2::/48"
    } else {
        "198.18.0.0/15"
    };
    let losses = losses_by_place(trials);
    let place = losses.first().map_or("", |loss| &loss.place);
    let between = match &campaign.planned {
        Some(_) => "the inside and the outside interface",
        None => "the DUT's two interfaces",
    };
    let drops = |rule: &str| {
        rule.split_whitespace()
            .any(|w| ["drop", "reject"].contains(&&*w.to_lowercase()))
    };
    let by = row
        .rules
        .iter()
        .find(|(rule, _)| drops(rule))
        .map(|(rule, _)| format!(" by `{rule}`"));
    let resets: u64 = trials
        .iter()
        .filter_map(|t| t.opened.as_ref())
        .map(|opened| opened.resets)
        .sum();
    let answered = if resets > 0 {
        format!("; {resets} RST segments came instead")
    } else {
        String::new()
    };
    let by = by.unwrap_or_else(|| match place.starts_with("inside ") {
        true => format!(" {place}{answered}"),
        false => format!(" ({place}{answered})"),
    });
    if slot.connections().is_some() || slot.http.is_some() {
        return format!(
            "let no connection pass{by}: its rules and settings must let connections from {addresses} pass between {between}"
        );
    }
    format!(
        "dropped every test frame{by}: its rules and settings must let {addresses} pass between {between}"
    )
}
