//! Sizes of effects: Hodges and Lehmann's shift between two sets, ratios and centres, with their distribution-free intervals; Cliff's
//! delta; and p values of several comparisons together.

use crate::rank::{cut_of_means, cut_of_pairs, pairs};
use crate::{Estimate, select, sorted};
use serde::Serialize;

/// The median of all differences `second - first`, of two sorted sets, with an interval of at least the confidence.
///
/// Hodges & Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963); the interval is the Mann-Whitney
/// test turned round (Lehmann, "Nonparametrics", 1975, 2.6): the differences that are k-th from either end, k from the
/// distribution of U. It assumes that the sets differ by a shift, and makes no assumption about their distribution; ties make it
/// wider than necessary. Time (n + m) log, memory n + m.
///
/// `None` if a set is empty, a value is infinite or the differences exceed the range of f64.
pub fn shift(first: &[f64], second: &[f64], confidence: f64) -> Option<Estimate> {
    let pairs = first.len() as u64 * second.len() as u64;
    let ends = [
        first.first()?,
        first.last()?,
        second.first()?,
        second.last()?,
    ];
    let widest = [
        second[second.len() - 1] - first[0],
        second[0] - first[first.len() - 1],
    ];
    if !ends.iter().all(|v| v.is_finite()) || !widest.iter().all(|v| v.is_finite()) {
        return None;
    }
    let cut = cut_of_pairs(first.len(), second.len(), 1.0 - confidence);
    Estimate::of(pairs, cut, first.len() + second.len(), |k| {
        select::difference(first, second, k)
    })
}

/// The median of all ratios `second / first`, of two sorted sets of positive values, with its interval: the shift of
/// the logarithms. `None` where a value is not above 0 or infinite, or f64 does not hold the ratios.
pub fn ratio(first: &[f64], second: &[f64], confidence: f64) -> Option<Estimate> {
    let positive = |values: &[f64]| values.first().is_some_and(|v| *v > 0.0);
    if !positive(first) || !positive(second) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    shift(&logs(first), &logs(second), confidence)?
        .map(f64::exp)
        .finite()
}

/// The median of the means of all pairs of differences (each with itself too), with an interval of at least the confidence:
/// Hodges & Lehmann 1963, Tukey's interval (Lehmann, "Nonparametrics", 1975, 4.4 and 4.5).
///
/// Assumes independent differences, symmetric about their median. `None` without differences, or with an infinite one.
pub fn centre(differences: &[f64], confidence: f64) -> Option<Estimate> {
    let sorted = sorted(differences.iter().copied());
    let n = sorted.len();
    let sums = n as u64 * (n as u64 + 1) / 2;
    if n == 0 || !(2.0 * sorted[0]).is_finite() || !(2.0 * sorted[n - 1]).is_finite() {
        return None;
    }
    Estimate::of(sums, cut_of_means(n, 1.0 - confidence), n, |k| {
        select::walsh_sum(&sorted, k) / 2.0
    })
}

/// Cliff's delta with a word for its size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CliffsDelta {
    /// Share of pairs in which the second value is larger minus share in which it is smaller, -1..=1.
    pub delta: f64,
    /// How large that is.
    pub magnitude: Magnitude,
}

/// A word for an effect's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Magnitude {
    /// |delta| below 0.147.
    Negligible,
    /// |delta| below 0.33.
    Small,
    /// |delta| below 0.474.
    Medium,
    /// |delta| of 0.474 and more.
    Large,
}

impl Magnitude {
    /// Of a Cliff's delta, by the thresholds of Romano, Kromrey, Coraggio & Skowronek (Florida Association of
    /// Institutional Research, 2006): those that match Cohen's d of 0.2, 0.5 and 0.8 for normal values.
    pub fn of(delta: f64) -> Magnitude {
        match delta.abs() {
            d if d < 0.147 => Magnitude::Negligible,
            d if d < 0.33 => Magnitude::Small,
            d if d < 0.474 => Magnitude::Medium,
            _ => Magnitude::Large,
        }
    }

    /// `negligible`, `small`, `medium`, `large`.
    pub fn word(self) -> &'static str {
        match self {
            Magnitude::Negligible => "negligible",
            Magnitude::Small => "small",
            Magnitude::Medium => "medium",
            Magnitude::Large => "large",
        }
    }
}

/// Cliff's delta of two sorted sets; `None` where one is empty.
///
/// Cliff, "Dominance statistics", Psychol. Bull. 114 (1993): 2 U / (n m) - 1.
pub fn cliffs_delta(first: &[f64], second: &[f64]) -> Option<CliffsDelta> {
    let all = first.len() as u64 * second.len() as u64;
    if all == 0 {
        return None;
    }
    let delta = (pairs(first, second).doubled_u as f64 - all as f64) / all as f64;
    Some(CliffsDelta {
        delta,
        magnitude: Magnitude::of(delta),
    })
}

/// Holm's adjusted p values, in the order given: those at most alpha can all be claimed, and with probability 1 - alpha
/// none of them wrongly, however the tests depend on each other.
///
/// Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0f64;
    for (step, i) in order.into_iter().enumerate() {
        largest = largest.max(p[i] * (p.len() - step) as f64).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}
