//! The class of a load for a goal, and the result of a search (RFC 9971, appendices A and B).

use crate::goal::{Goal, PER_BILLION};
use crate::{Limits, Trial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The class of a load for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The load meets the goal.
    Lower,
    /// The load misses the goal.
    Upper,
    /// More trials could decide either way.
    Undecided,
}

/// Why a result is irregular: it lacks bounds within the goal's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Irregular {
    /// The highest load of the search meets the goal.
    MaxLoad,
    /// The lowest load of the search misses the goal.
    MinLoad,
    /// The search ended too early.
    Unfinished,
    /// The goal was not searched for: frames are lost far below the rate.
    Unstable,
}

/// The result of a search for one goal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The relevant lower bound, in frames/s: the highest lower bound below the upper bound.
    pub lower: Option<f64>,
    /// The relevant upper bound, in frames/s: the lowest upper bound.
    pub upper: Option<f64>,
    /// Conditional throughput, in frames/s: the lower bound less the loss there at the quantile 1 - E (RFC 9971, appendix B).
    pub conditional: Option<f64>,
    /// `None`: the result is regular.
    pub irregular: Option<Irregular>,
}

/// The class of a load by its trials, computed exactly.
pub fn class<'a>(goal: &Goal, trials: impl IntoIterator<Item = &'a Trial>) -> Class {
    Sums::of(goal, trials).class(goal)
}

/// Sums of effective durations of the trials at a load, in nanoseconds.
#[derive(Default)]
struct Sums {
    /// Full and shorter trials, within the goal's loss ratio (good) and above it (bad).
    full_low: i128,
    full_high: i128,
    short_low: i128,
    short_high: i128,
}

impl Sums {
    fn of<'a>(goal: &Goal, trials: impl IntoIterator<Item = &'a Trial>) -> Sums {
        let mut sums = Sums::default();
        for trial in trials {
            let sum = match (trial.duration_ns >= goal.final_ns, trial.loss > goal.loss) {
                (true, false) => &mut sums.full_low,
                (true, true) => &mut sums.full_high,
                (false, false) => &mut sums.short_low,
                (false, true) => &mut sums.short_high,
            };
            *sum += i128::from(trial.effective_ns);
        }
        sums
    }

    /// RFC 9971, appendix A, with every term multiplied by 1 - E in billionths, so that nothing is rounded.
    fn class(&self, goal: &Goal) -> Class {
        let (whole, e) = (i128::from(PER_BILLION), i128::from(goal.exceed));
        let rest = whole - e;
        let high = self.full_high * rest + (self.short_high * rest - self.short_low * e).max(0);
        let all = (self.full_low * rest + high).max(i128::from(goal.sum_ns) * rest);
        if (all - self.full_low * rest) * whole <= all * e {
            Class::Lower
        } else if high * whole > all * e {
            Class::Upper
        } else {
            Class::Undecided
        }
    }
}

/// The loss ratio at the quantile 1 - E of the full trials, weighted by time (RFC 9971, appendix B). Time that is missing from the
/// goal's sum counts as a full loss.
pub fn quantile_loss(goal: &Goal, trials: &[Trial]) -> f64 {
    let mut full: Vec<&Trial> = trials
        .iter()
        .filter(|trial| trial.duration_ns >= goal.final_ns)
        .collect();
    full.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    let whole = i128::from(PER_BILLION);
    let sum: i128 = full
        .iter()
        .map(|trial| i128::from(trial.effective_ns))
        .sum();
    let mut left = sum.max(i128::from(goal.sum_ns)) * (whole - i128::from(goal.exceed));
    for trial in full {
        left -= i128::from(trial.effective_ns) * whole;
        if left <= 0 {
            return trial.loss;
        }
    }
    1.0
}

/// The highest load of class `Lower` below the lowest of class `Upper`, and the latter. `loads` ascend.
pub(crate) fn bounds<K>(loads: impl IntoIterator<Item = (K, Class)>) -> (Option<K>, Option<K>) {
    let mut lower = None;
    for (load, class) in loads {
        match class {
            Class::Lower => lower = Some(load),
            Class::Upper => return (lower, Some(load)),
            Class::Undecided => {}
        }
    }
    (lower, None)
}

/// The result for a goal. It follows from the trials alone, whatever their order and the search that chose them.
pub fn outcome(goal: &Goal, limits: Limits, trials: &[Trial]) -> Outcome {
    let mut loads: BTreeMap<u64, Vec<Trial>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.load > 0.0) {
        // Positive floating-point numbers are in the order of their bits.
        loads.entry(trial.load.to_bits()).or_default().push(*trial);
    }
    let (lower, upper) = bounds(
        loads
            .iter()
            .map(|(load, trials)| (*load, class(goal, trials))),
    );
    let conditional =
        lower.map(|load| f64::from_bits(load) * (1.0 - quantile_loss(goal, &loads[&load])));
    let (lower, upper) = (lower.map(f64::from_bits), upper.map(f64::from_bits));
    let irregular = match (lower, upper) {
        // The grid of loads rounds.
        (Some(low), Some(high)) if (high - low) / high <= goal.width * (1.0 + 1e-9) => None,
        (Some(low), None) if low >= limits.max => Some(Irregular::MaxLoad),
        (None, Some(high)) if high <= limits.min => Some(Irregular::MinLoad),
        _ => Some(Irregular::Unfinished),
    };
    Outcome {
        lower,
        upper,
        conditional,
        irregular,
    }
}
