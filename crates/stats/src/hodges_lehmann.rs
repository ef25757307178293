//! The Hodges-Lehmann shift between two sets, with its distribution-free interval.

use super::distribution::normal_quantile;
use super::rank::mann_whitney_null;
use super::select;
use serde::Serialize;

/// For at most this number of pairs the interval comes from the exact distribution of U.
const EXACT_PAIRS: usize = 10_000;

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shift {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval; `None` with too few values for the confidence.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Whether the interval's ends come from an exact distribution rather than from the normal approximation.
    pub exact: bool,
}

impl Shift {
    /// The median of `all` figures, whose k-th smallest (from 1) is `nth(k)`, with the interval from the `cut`-th smallest to the
    /// `cut`-th largest; no interval for a `cut` of 0. `exact` says whether `cut` is exact.
    pub(super) fn of(all: u64, (cut, exact): (u64, bool), nth: impl Fn(u64) -> f64) -> Shift {
        let value = match all % 2 {
            1 => nth(all / 2 + 1),
            _ => f64::midpoint(nth(all / 2), nth(all / 2 + 1)),
        };
        let [low, high] = [cut, all + 1 - cut].map(|k| (cut > 0).then(|| nth(k)));
        Shift { value, low, high, exact }
    }

    /// The same under an increasing function.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Shift {
        Shift { value: f(self.value), low: self.low.map(&f), high: self.high.map(&f), ..self }
    }

    /// Itself if f64 holds all of it.
    pub fn finite(self) -> Option<Shift> {
        [Some(self.value), self.low, self.high].into_iter().flatten().all(f64::is_finite).then_some(self)
    }
}

/// The median of all differences `second - first`, of two sorted sets, with an interval of at least the confidence.
///
/// Hodges & Lehmann, "Estimates of location based on rank tests", Ann. Math. Statist. 34 (1963); the interval is the Mann-Whitney
/// test turned round (Lehmann, "Nonparametrics", 1975, 2.6): the differences that are k-th from either end, k from the
/// distribution of U. It assumes that the sets differ by a shift, and makes no assumption about their distribution; ties make it
/// wider than necessary. Time (n + m) log, memory n + m.
///
/// `None` if a set is empty, a value is infinite or the differences exceed the range of f64.
pub fn shift(first: &[f64], second: &[f64], confidence: f64) -> Option<Shift> {
    let pairs = first.len() as u64 * second.len() as u64;
    let ends = [first.first()?, first.last()?, second.first()?, second.last()?];
    let widest = [second[second.len() - 1] - first[0], second[0] - first[first.len() - 1]];
    if !ends.iter().all(|v| v.is_finite()) || !widest.iter().all(|v| v.is_finite()) {
        return None;
    }
    let cut = cut(first.len(), second.len(), 1.0 - confidence);
    Some(Shift::of(pairs, cut, |k| select::difference(first, second, k)))
}

/// Number of differences outside the interval at each end, plus 1; 0 without an interval. And whether it is exact.
fn cut(n: usize, m: usize, alpha: f64) -> (u64, bool) {
    if n.saturating_mul(m) <= EXACT_PAIRS {
        return (mann_whitney_null(n, m).cut(alpha) as u64, true);
    }
    let (n, m) = (n as f64, m as f64);
    let deviation = (n * m / 12.0 * (n + m + 1.0)).sqrt();
    let k = n * m / 2.0 + 0.5 + normal_quantile(alpha / 2.0) * deviation;
    (k.floor().max(0.0) as u64, false)
}

/// The median of all ratios `second / first`, of two sorted sets of positive values, with its interval: the shift of
/// the logarithms. `None` where a value is not above 0 or infinite, or f64 does not hold the ratios.
pub fn ratio(first: &[f64], second: &[f64], confidence: f64) -> Option<Shift> {
    let positive = |values: &[f64]| values.first().is_some_and(|v| *v > 0.0);
    if !positive(first) || !positive(second) {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    shift(&logs(first), &logs(second), confidence)?.map(f64::exp).finite()
}
