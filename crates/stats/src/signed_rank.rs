//! Wilcoxon's signed-rank test and the Hodges-Lehmann estimate of paired differences.

use super::distribution::{normal_quantile, normal_two_sided};
use super::hodges_lehmann::Shift;
use super::rank::{coin_sum_null, doubled_midranks, tie_sizes};
use super::{select, sorted};
use serde::Serialize;

/// Most differences for which the exact distribution is counted out.
const EXACT: usize = 100;

/// The outcome of a signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SignedRank {
    /// Sum of the ranks of the differences above 0.
    pub w: f64,
    /// Differences that are not 0: the others are left out.
    pub n: usize,
    /// Two-sided p.
    pub p: f64,
    /// Whether p comes from the exact distribution rather than from the normal approximation.
    pub exact: bool,
    /// The smallest possible p for this number of differences; 0 if p is approximate.
    pub smallest_p: f64,
}

/// Whether differences lie symmetrically about 0; `None` where none is other than 0.
///
/// Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bull. 1 (1945). Up to 100 differences: the exact
/// distribution over all signs, with ties too; more: the normal approximation with corrections for ties and continuity
/// (Lehmann, "Nonparametrics", 1975, 3.2). Assumes independent differences, symmetric about their median.
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    let kept: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let n = kept.len();
    if n == 0 {
        return None;
    }
    let sizes: Vec<f64> = kept.iter().map(|d| d.abs()).collect();
    let ranks = doubled_midranks(&sizes);
    let doubled: u64 = kept.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
    let w = doubled as f64 / 2.0;
    if n <= EXACT {
        let null = coin_sum_null(&ranks);
        let p = null.two_sided(doubled as usize);
        return Some(SignedRank { w, n, p, exact: true, smallest_p: null.smallest_p() });
    }
    Some(SignedRank { w, n, p: approximate(w, sizes), exact: false, smallest_p: 0.0 })
}

fn approximate(w: f64, sizes: Vec<f64>) -> f64 {
    let sizes = sorted(sizes);
    let n = sizes.len() as f64;
    let ties: f64 = tie_sizes(&sizes).map(|t| (t as f64).powi(3) - t as f64).sum();
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    let off = ((w - n * (n + 1.0) / 4.0).abs() - 0.5).max(0.0);
    normal_two_sided(off / variance.sqrt())
}

/// The median of the means of all pairs of differences (each with itself too), with an interval of at least the confidence:
/// Hodges & Lehmann 1963, Tukey's interval (Lehmann, "Nonparametrics", 1975, 4.4 and 4.5).
///
/// Assumes independent differences, symmetric about their median. `None` without differences, or with an infinite one.
pub fn centre(differences: &[f64], confidence: f64) -> Option<Shift> {
    let sorted = sorted(differences.iter().copied());
    let n = sorted.len();
    let sums = n as u64 * (n as u64 + 1) / 2;
    if n == 0 || !(2.0 * sorted[0]).is_finite() || !(2.0 * sorted[n - 1]).is_finite() {
        return None;
    }
    Some(Shift::of(sums, cut(n, 1.0 - confidence), |k| select::walsh_sum(&sorted, k) / 2.0))
}

fn cut(n: usize, alpha: f64) -> (u64, bool) {
    if n <= EXACT {
        let ranks: Vec<u64> = (1..=n as u64).collect();
        return (coin_sum_null(&ranks).cut(alpha) as u64, true);
    }
    let n = n as f64;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let k = n * (n + 1.0) / 4.0 + 0.5 + normal_quantile(alpha / 2.0) * deviation;
    (k.floor().max(0.0) as u64, false)
}
