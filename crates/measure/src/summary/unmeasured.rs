//! Slots without a figure, or without a meaningful one.

use super::{dropped_share, losses_by_place};
use crate::record::{Campaign, LabKind, Row, Slot, Stopped, TrialRecord, Unmeasured};

/// All unmeasured slots, without the skipped ones.
pub(super) fn unmeasured(
    campaign: &Campaign,
    rows: &[Row],
    trials: &[TrialRecord],
    stopped: Stopped,
) -> Vec<Unmeasured> {
    let skipped = |slot: &Slot| campaign.planned.as_ref().is_some_and(|p| !p.lacking(slot.id).is_empty());
    let slots = campaign.slots.iter().filter(|s| s.imported.is_none() && !skipped(s));
    let of_slot = |slot: &Slot| {
        let why = why(campaign, slot, rows.get(slot.id)?, trials, stopped)?;
        Some(Unmeasured { slot: slot.id, name: slot.name.clone(), why })
    };
    slots.filter_map(of_slot).collect()
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
    // Whatever else the audit found follows from that.
    if dropped_share(campaign, &of_slot) >= 1.0 {
        return (!is_meant_to_drop(campaign, slot)).then(|| drops_all(campaign, slot, row, &of_slot));
    }
    let first = || of_slot.iter().find_map(|t| t.audit.failures().next()).unwrap_or_default();
    match (row.valid_trials, row.trials) {
        (0, 0) if cut_short => None,
        (0, 0) => Some("could not be measured: the time was over before its first trial".into()),
        (0, 1) => Some(format!("could not be measured: its only trial failed its audit ({})", first())),
        (0, n) => {
            Some(format!("could not be measured: all {n} trials failed their audit (the first: {})", first()))
        }
        _ if row.received.n == 0 => Some("could not be measured: no trial had a window".into()),
        _ => None,
    }
}

/// A DUT with a known answer drops on purpose.
fn is_meant_to_drop(campaign: &Campaign, slot: &Slot) -> bool {
    campaign.asked.lab == LabKind::Simulated || slot.known_answer
}

fn drops_all(campaign: &Campaign, slot: &Slot, row: &Row, trials: &[&TrialRecord]) -> String {
    let addresses = if slot.family == "IPv6" { "2001:2::/48" } else { "198.18.0.0/15" };
    let losses = losses_by_place(trials);
    let place = losses.first().map_or("", |loss| &loss.place);
    let between = match &campaign.planned {
        Some(_) => "{in} and {out}",
        None => "the DUT's two interfaces",
    };
    let drops =
        |rule: &str| rule.split_whitespace().any(|w| ["drop", "reject"].contains(&&*w.to_lowercase()));
    let by = row.rules.iter().find(|(rule, _)| drops(rule)).map(|(rule, _)| format!(" by `{rule}`"));
    let by = by.unwrap_or_else(|| format!(" ({place})"));
    format!("dropped every test frame{by}: its rules and settings must pass {addresses} between {between}")
}
