//! Mann and Whitney's U test: does one set tend to larger values than the other?

use super::distribution::normal_two_sided;
use super::rank::{chosen_sum_null, doubled_midranks, mann_whitney_null};
use serde::Serialize;

/// Most pairs for which the distribution without ties is counted out: the normal approximation is off by less than 0.0005 beyond.
const EXACT_PAIRS: usize = 10_000;

/// Most additions for which the permutation distribution of tied values is counted out: some 30 ms.
const EXACT_STEPS: usize = 20_000_000;

/// The outcome of a Mann-Whitney test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MannWhitney {
    /// Pairs in which the second set's value is the larger one, ties counting one half.
    pub u: f64,
    /// Two-sided p.
    pub p: f64,
    /// Whether p comes from the exact distribution rather than from the normal approximation.
    pub exact: bool,
    /// The smallest p that values of these counts and with these ties could have; 0 where p is approximate.
    pub smallest_p: f64,
}

/// Counts of the pairs of two sets, by their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairs {
    /// Twice the pairs in which the second value is larger, plus those that tie.
    pub doubled_u: u64,
    /// The sum of t^3 - t over all groups of t equal values.
    pub ties: u128,
}

/// Compares each value of `first` with each of `second`, both sorted, in one pass.
pub fn pairs(first: &[f64], second: &[f64]) -> Pairs {
    let (mut i, mut j) = (0, 0);
    let mut found = Pairs { doubled_u: 0, ties: 0 };
    while i < first.len() || j < second.len() {
        let value = match (first.get(i), second.get(j)) {
            (Some(a), Some(b)) => a.min(*b),
            (Some(v), None) | (None, Some(v)) => *v,
            (None, None) => break,
        };
        let same = |values: &[f64]| values.iter().take_while(|v| **v == value).count();
        let (a, b) = (same(&first[i..]), same(&second[j..]));
        found.doubled_u += b as u64 * (2 * i + a) as u64;
        let t = (a + b) as u128;
        found.ties += t * t * t - t;
        (i, j) = (i + a, j + b);
    }
    found
}

/// The test, of two sorted sets; `None` where one is empty.
///
/// Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Ann.
/// Math. Statist. 18 (1947). Few values: the exact distribution, with ties that of all assignments of the values seen
/// to the two sets; p is twice the smaller tail. Many: the normal approximation with corrections for ties and
/// continuity (Lehmann, "Nonparametrics", 1975, 1.5). Assumes independent values; if the spreads differ much, a small
/// p does not prove that the medians do.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let found = pairs(first, second);
    let u = found.doubled_u as f64 / 2.0;
    let (n, m) = (first.len(), second.len());
    if found.ties == 0 && n.saturating_mul(m) <= EXACT_PAIRS {
        let null = mann_whitney_null(n, m);
        let p = null.two_sided((found.doubled_u / 2) as usize);
        return Some(MannWhitney { u, p, exact: true, smallest_p: null.smallest_p() });
    }
    let steps = (n + m).saturating_mul(n.min(m)).saturating_mul(n.saturating_mul(m).saturating_mul(2));
    if found.ties > 0 && steps <= EXACT_STEPS {
        let (p, smallest_p) = exact_with_ties(first, second);
        return Some(MannWhitney { u, p, exact: true, smallest_p });
    }
    Some(MannWhitney { u, p: approximate(u, n, m, found.ties), exact: false, smallest_p: 0.0 })
}

fn exact_with_ties(first: &[f64], second: &[f64]) -> (f64, f64) {
    let smaller = first.len().min(second.len());
    let both = if first.len() <= second.len() { [first, second] } else { [second, first] };
    let ranks = doubled_midranks(&both.concat());
    let (least, null) = chosen_sum_null(&ranks, smaller);
    let sum: u64 = ranks[..smaller].iter().sum();
    (null.two_sided((sum - least) as usize), null.smallest_p())
}

/// Two-sided p by the normal approximation.
pub(super) fn approximate(u: f64, n: usize, m: usize, ties: u128) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties as f64 / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let off = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    normal_two_sided(off / variance.sqrt())
}
