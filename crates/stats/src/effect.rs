//! Sizes of effects, and p values of several comparisons together.

use super::mann_whitney::pairs;
use serde::Serialize;

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
    Some(CliffsDelta { delta, magnitude: Magnitude::of(delta) })
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
