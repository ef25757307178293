//! Medians, their distribution-free intervals, ratios paired by block, and the seeded random numbers of a schedule.
//!
//! Below this module: the tests and estimates that [`analysis`] puts together.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod analysis;
pub mod anytime;
pub mod bisection;
pub mod bootstrap;
pub mod changepoint;
pub mod distribution;
pub mod effect;
pub mod histogram;
pub mod means;
pub mod ministat;
pub mod modes;
pub mod outliers;
pub mod rank;
pub mod screening;
mod select;
pub mod sequential;
pub mod trend;

use linerate_wire::SplitMix64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::function::gamma::ln_gamma;
use std::cmp::Ordering;

/// An estimate with its interval. By default it is that of nothing: 0 of no values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The median of values, or of their differences or ratios.
    pub median: f64,
    /// Lower end of the interval; `None` where the data are too few for the confidence asked.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Values that it rests on.
    pub n: usize,
}

impl Estimate {
    /// The median of `all` figures, whose k-th smallest (from 1) is `nth(k)`, with the interval from the `cut`-th smallest to the
    /// `cut`-th largest; no interval for a `cut` of 0, no median of nothing. The figures are made of `n` values.
    fn of(all: u64, cut: u64, n: usize, nth: impl Fn(u64) -> f64) -> Option<Estimate> {
        let median = match all {
            0 => return None,
            _ if all % 2 == 1 => nth(all / 2 + 1),
            _ => f64::midpoint(nth(all / 2), nth(all / 2 + 1)),
        };
        let [low, high] =
            [cut, all + 1 - cut.min(all)].map(|k| (1..=all).contains(&cut).then(|| nth(k)));
        Some(Estimate {
            median,
            low,
            high,
            n,
        })
    }

    /// The estimate under an increasing function.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Estimate {
        Estimate {
            median: f(self.median),
            low: self.low.map(&f),
            high: self.high.map(&f),
            ..self
        }
    }

    /// The reciprocal, of positive figures.
    #[must_use]
    pub fn inverse(self) -> Estimate {
        let turned = Estimate {
            low: self.high,
            high: self.low,
            ..self
        };
        turned.map(f64::recip)
    }

    /// On which side of a value the whole interval lies; `None` where it contains the value, or where there is no interval. Only then does
    /// a difference from this value have a sign.
    pub fn side_of(&self, value: f64) -> Option<Ordering> {
        match self.low.zip(self.high)? {
            (low, _) if low > value => Some(Ordering::Greater),
            (_, high) if high < value => Some(Ordering::Less),
            _ => None,
        }
    }

    /// Itself if f64 holds all of it.
    pub fn finite(self) -> Option<Estimate> {
        [Some(self.median), self.low, self.high]
            .into_iter()
            .flatten()
            .all(f64::is_finite)
            .then_some(self)
    }

    /// Width of the interval relative to the median; infinite without an interval.
    pub fn relative_width(&self) -> f64 {
        match (self.low, self.high) {
            (Some(low), Some(high)) if self.median != 0.0 => (high - low) / self.median.abs(),
            _ => f64::INFINITY,
        }
    }
}

/// Values in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The median of values in any order; `None` when empty. NaN must not be among them.
pub fn median(values: &[f64]) -> Option<f64> {
    median_sorted(&sorted(values.iter().copied()))
}

fn median_sorted(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
    }
}

/// The largest k with 1 - 2 P(X < k) >= `confidence` for X ~ Binomial(n, 1/2); 0 if no k fits.
fn binomial_half_cut(n: usize, confidence: f64) -> usize {
    let (least, shares) = sequential::binomial_half(n);
    (least + rank::Discrete(shares).cut(1.0 - confidence)).min(n / 2)
}

/// Natural logarithm of the number of ways to choose `k` of `n`; minus infinity for `k` above `n`, which has no way.
fn ln_choose(n: usize, k: usize) -> f64 {
    let ln_factorial = |n: usize| ln_gamma(n as f64 + 1.0);
    if k > n {
        f64::NEG_INFINITY
    } else {
        ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
    }
}

/// The median with a distribution-free interval of at least the given confidence (0.95, say).
///
/// The interval lies between two order statistics: the narrowest symmetric pair that encloses the median with that
/// confidence by the binomial distribution (Conover, "Practical Nonparametric Statistics", the sign test turned round). It
/// assumes independent values, and nothing of their distribution: two modes and outliers are fine. Fewer than 6 values cannot
/// give 95 %: then there is no interval.
///
/// `None` when there are no values.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Estimate> {
    interval_sorted(&sorted(values.iter().copied()), confidence)
}

/// [`median_interval`] of sorted values.
fn interval_sorted(sorted: &[f64], confidence: f64) -> Option<Estimate> {
    // Coverage of [x(k), x(n+1-k)] is 1 - 2 P(X < k).
    between(sorted, binomial_half_cut(sorted.len(), confidence))
}

/// The median of sorted values, from the `k`-th smallest to the `k`-th largest of them; no interval where `k` is 0.
fn between(sorted: &[f64], k: usize) -> Option<Estimate> {
    let n = sorted.len();
    Estimate::of(n as u64, k as u64, n, |k| sorted[k as usize - 1])
}

/// The median of the ratios `numerator / denominator`, paired by block, which removes a machine's slow drifts, because both were
/// measured within moments of each other. Pairs with a zero denominator are left out.
pub fn paired_ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<Estimate> {
    paired_ratio_between(pairs, |n| binomial_half_cut(n, confidence))
}

/// [`paired_ratio`] with the interval from the k-th smallest to the k-th largest ratio. `k` is a function of the number of
/// ratios; no interval if it gives 0.
pub fn paired_ratio_between(
    pairs: &[(f64, f64)],
    k: impl FnOnce(usize) -> usize,
) -> Option<Estimate> {
    let logs = sorted(
        pairs
            .iter()
            .filter(|(a, b)| *a > 0.0 && *b > 0.0)
            .map(|(a, b)| (a / b).ln()),
    );
    Some(between(&logs, k(logs.len()))?.map(f64::exp))
}

/// Lag-1 autocorrelation of values in run order, -1..=1; 0 for fewer than 3 or constant values.
pub fn autocorrelation(values: &[f64]) -> f64 {
    if values.len() < 3 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let shared: f64 = values
        .windows(2)
        .map(|w| (w[0] - mean) * (w[1] - mean))
        .sum();
    if variance > 0.0 {
        shared / variance
    } else {
        0.0
    }
}

/// Coefficient of variation: standard deviation (n-1) over mean; 0 for fewer than 2 values, or a mean of 0.
pub fn coefficient_of_variation(values: &[f64]) -> f64 {
    match means::Moments::of(values) {
        Some(means::Moments {
            mean,
            stddev: Some(stddev),
            ..
        }) if mean != 0.0 => stddev / mean.abs(),
        _ => 0.0,
    }
}

/// Shuffles in place (Fisher and Yates), reproducibly from the generator's state.
pub fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for i in (1..items.len()).rev() {
        items.swap(i, random.below(i as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests;
