//! Why the figures of a campaign can be trusted, or not.

use super::{Shown, has_rate};
use crate::prelude::*;

/// The machine, the trials, and the tester, in one line.
pub(super) fn trust(shown: &Shown<'_>) -> String {
    let summary = shown.summary;
    let mut spoils: Vec<&str> = summary
        .warnings
        .iter()
        .filter_map(|w| w.spoils.as_deref())
        .collect();
    spoils.dedup();
    let machine = match (shown.campaign.asked.lab, spoils.first()) {
        (LabKind::Simulated, _) => "simulated".to_string(),
        (_, None) => shown
            .summary
            .rows
            .iter()
            .find_map(|row| row.unsteady)
            .map_or("quiet".into(), |ends| {
                let [low, high] = ends.map(|rate| rate_of(shown.campaign, rate));
                format!("unsteady: the tester alone moved between {low} and {high}")
            }),
        (_, Some(why)) if why.starts_with("other programs") && !summary.programs.is_empty() => {
            let names = summary
                .programs
                .iter()
                .map(|p| p.name.as_str())
                .joined(", ");
            format!("disturbed: {why} ({names})")
        }
        (_, Some(why)) => format!("disturbed: {why}"),
    };
    let count = |of: fn(&Row) -> usize| summary.rows.iter().map(of).sum::<usize>();
    let (valid, all) = (count(|row| row.valid_trials), count(|row| row.trials));
    // In searches and tests, trials are to lose frames.
    let of_rates = summary.searches.is_empty() && summary.benchmarks.is_empty();
    let trials = of_rates.then(|| {
        format!(
            "{} of {} valid",
            grouped(valid as u64),
            counted(all, "trial")
        )
    });
    let of_tester = of_rates && shown.campaign.asked.lab != LabKind::Simulated;
    // Of two rates that were asked for, neither says how fast something is.
    let measured = |row: &&Row| {
        let slot = shown.slot(row.slot);
        of_tester && slot.is_some_and(|slot| !slot.is_paced(shown.campaign.asked.mode))
    };
    let tester = shown.with_dut().filter(measured).find_map(|row| {
        let ceiling = shown.row(row.ceiling?.than).filter(|row| has_rate(row))?;
        let times = ceiling.received.median / row.received.median;
        times
            .is_finite()
            .then(|| format!("tester {times:.1} times as fast without DUT"))
    });
    [Some(machine), trials, tester]
        .into_iter()
        .flatten()
        .joined("; ")
}
