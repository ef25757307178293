//! Means: their moments, Welch's test of two of them, the differences that it can show, and a test of two spreads.

use crate::distribution::{bisect, noncentral_t_upper, t_critical, t_two_sided};
use crate::median_sorted;
use serde::Serialize;

/// The chance of finding an existing difference, by convention (Cohen 1988).
pub const POWER: f64 = 0.8;

/// More trials than any campaign runs.
const MOST_TRIALS: f64 = 1e9;

/// Fewer values are not tested for their spread: distances from a median that is made of them come in equal pairs, which makes
/// false alarms of 4 sets in 100 at a level of 1 %.
const FEWEST: usize = 7;

/// Count, mean and standard deviation of finite values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1; `None` for one value.
    pub stddev: Option<f64>,
}

impl Moments {
    /// Of values in any order; `None` for an empty set or an infinite value.
    ///
    /// Two passes with the correction for the mean's rounding (Chan, Golub & LeVeque, "Algorithms for computing the sample
    /// variance", Am. Stat. 37, 1983), over values scaled by a power of two where their squares could overflow.
    pub fn of(values: &[f64]) -> Option<Moments> {
        let n = values.len();
        let largest = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let (least, most) = values
            .iter()
            .fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(*v), m.max(*v)));
        if n == 0 || !largest.is_finite() {
            return None;
        }
        if least == most {
            return Some(Moments {
                n,
                mean: least,
                stddev: (n > 1).then_some(0.0),
            });
        }
        let scale = scale_for(largest);
        let scaled = || values.iter().map(|v| v * scale);
        let mean = scaled().sum::<f64>() / n as f64;
        let (squares, rest) = scaled().fold((0.0, 0.0), |(s, r), v| {
            let d = v - mean;
            (s + d * d, r + d)
        });
        let variance = (squares - rest * rest / n as f64) / (n as f64 - 1.0);
        Some(Moments {
            n,
            mean: mean / scale,
            stddev: (n > 1).then(|| variance.max(0.0).sqrt() / scale),
        })
    }
}

/// 1, or a power of two that brings values of this size near 1.
fn scale_for(largest: f64) -> f64 {
    if (1e-100..1e100).contains(&largest) {
        return 1.0;
    }
    let exponent = largest.log2().floor().clamp(-1000.0, 1000.0);
    (-exponent).exp2()
}

/// The difference of two means, second minus first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Welch {
    /// Mean of the second set minus mean of the first, in the values' unit.
    pub difference: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Welch's statistic.
    pub t: f64,
    /// Degrees of freedom by Satterthwaite's approximation.
    pub df: f64,
    /// Two-sided p.
    pub p: f64,
}

/// Welch's t test and the interval of the difference at a confidence (0.95, say).
///
/// Welch, "The generalization of 'Student's' problem when several different population variances are involved", Biometrika 34
/// (1947); degrees of freedom of Satterthwaite (1946). Assumes independent values whose means are near normal. `None` if a set
/// has fewer than 2 values, neither varies, or the difference exceeds the range of f64.
pub fn welch(first: &Moments, second: &Moments, confidence: f64) -> Option<Welch> {
    let spread = StandardError::of(first, second)?;
    let difference = second.mean - first.mean;
    let t = difference / spread.error;
    let half = t_critical(1.0 - confidence, spread.df) * spread.error;
    let result = Welch {
        difference,
        low: difference - half,
        high: difference + half,
        t,
        df: spread.df,
        p: t_two_sided(t, spread.df),
    };
    [difference, result.low, result.high, t]
        .iter()
        .all(|v| v.is_finite())
        .then_some(result)
}

/// Standard error of a difference of means, with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardError {
    /// In the values' unit, above 0.
    pub error: f64,
    /// Welch-Satterthwaite degrees of freedom.
    pub df: f64,
}

impl StandardError {
    /// `None` where a set has fewer than 2 values or neither varies.
    pub fn of(first: &Moments, second: &Moments) -> Option<StandardError> {
        let part = |m: &Moments| Some(m.stddev? / (m.n as f64).sqrt());
        let (a, b) = (part(first)?, part(second)?);
        let error = a.hypot(b);
        // Shares of the variance, so that no square overflows.
        let (share_a, share_b) = ((a / error).powi(2), (b / error).powi(2));
        let df = 1.0
            / (share_a.powi(2) / (first.n as f64 - 1.0)
                + share_b.powi(2) / (second.n as f64 - 1.0));
        (error > 0.0 && error.is_finite() && df.is_finite()).then_some(StandardError { error, df })
    }
}

/// The smallest difference of means that sets of these counts and deviations show with the given power at the two-sided level
/// `alpha`, in the values' unit.
///
/// Power is that of the t test: the tail of the non-central t with Welch's degrees of freedom on the side of the difference
/// (Cohen, "Statistical Power Analysis", 1988; R's `power.t.test` for equal deviations). Exact for normal values of equal
/// deviation, a good approximation for others. `None` without a Welch test.
pub fn smallest_difference(
    first: &Moments,
    second: &Moments,
    alpha: f64,
    power: f64,
) -> Option<f64> {
    let spread = StandardError::of(first, second)?;
    let shown = spread.error * shift_for(power, alpha, spread.df);
    shown.is_finite().then_some(shown)
}

/// The non-centrality at which a two-sided t test at `alpha` has this power.
fn shift_for(power: f64, alpha: f64, df: f64) -> f64 {
    let critical = t_critical(alpha, df);
    let mut high = critical + 1.0;
    while noncentral_t_upper(critical, df, high) < power {
        high *= 2.0;
    }
    bisect(0.0, high, |shift| {
        noncentral_t_upper(critical, df, shift) < power
    })
}

/// Values needed in each of two sets of these standard deviations to show a difference of means with the given power
/// at the two-sided level `alpha`. Not rounded, as R's `power.t.test` gives it; at least 2.
///
/// `None` where the difference is 0, neither set varies, or more than a billion would be needed.
pub fn trials_needed(
    difference: f64,
    deviations: (f64, f64),
    alpha: f64,
    power: f64,
) -> Option<f64> {
    let together = deviations.0.hypot(deviations.1);
    let effect = difference.abs() / together;
    if !effect.is_finite() || effect <= 0.0 {
        return None;
    }
    let (a, b) = (
        (deviations.0 / together).powi(2),
        (deviations.1 / together).powi(2),
    );
    let shows = |n: f64| {
        let df = (n - 1.0) / (a * a + b * b);
        noncentral_t_upper(t_critical(alpha, df), df, effect * n.sqrt()) >= power
    };
    if shows(2.0) {
        return Some(2.0);
    }
    let mut high = 4.0;
    while !shows(high) {
        high *= 2.0;
        if high > MOST_TRIALS {
            return None;
        }
    }
    Some(bisect(high / 2.0, high, |n| !shows(n)))
}

/// The least count per set at which the Mann-Whitney test can give a p of at most `alpha` at all: the least n with
/// 2 / C(2n, n) <= alpha.
pub fn least_for_ranks(alpha: f64) -> usize {
    let mut ways = 1.0;
    let mut n = 0;
    while 2.0 / ways > alpha && n < 500 {
        n += 1;
        let k = n as f64;
        ways *= 2.0 * (2.0 * k - 1.0) / k;
    }
    n
}

/// Two-sided p of equal spreads, of sorted sets; `None` for fewer than 7 values in one, infinite ones, or where neither
/// varies.
///
/// Brown & Forsythe, "Robust tests for the equality of variances", J. Am. Stat. Assoc. 69 (1974): Student's pooled t
/// test of the distances from the medians. It holds its level for skewed and heavy-tailed values, where the F test of
/// two variances does not.
pub fn brown_forsythe(first: &[f64], second: &[f64]) -> Option<f64> {
    if first.len() < FEWEST || second.len() < FEWEST {
        return None;
    }
    let (a, b) = (distances(first)?, distances(second)?);
    let df = (a.n + b.n) as f64 - 2.0;
    let (na, nb) = (a.n as f64, b.n as f64);
    let pooled = (((na - 1.0) / df).sqrt() * a.stddev?).hypot(((nb - 1.0) / df).sqrt() * b.stddev?);
    let t = (a.mean - b.mean) / (pooled * (1.0 / na + 1.0 / nb).sqrt());
    (pooled > 0.0 && t.is_finite()).then(|| t_two_sided(t, df))
}

fn distances(sorted: &[f64]) -> Option<Moments> {
    let median = median_sorted(sorted)?;
    Moments::of(
        &sorted
            .iter()
            .map(|v| (v - median).abs())
            .collect::<Vec<f64>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_survive_a_large_offset_and_extreme_sizes() {
        let values: Vec<f64> = [1.0, 2.0, 3.0, 4.0].iter().map(|v| v + 1e9).collect();
        let m = Moments::of(&values).unwrap();
        assert_eq!((m.mean, m.stddev), (1e9 + 2.5, Some((5.0f64 / 3.0).sqrt())));
        for size in [1e308, 1e-300] {
            let m = Moments::of(&[-size, size, size]).unwrap();
            assert!((m.mean / size - 1.0 / 3.0).abs() < 1e-12, "{m:?}");
            assert!(
                (m.stddev.unwrap() / size - (4.0f64 / 3.0).sqrt()).abs() < 1e-12,
                "{m:?}"
            );
        }
    }

    #[test]
    fn equal_values_have_no_spread_at_all() {
        assert_eq!(
            Moments::of(&[0.1; 7]),
            Some(Moments {
                n: 7,
                mean: 0.1,
                stddev: Some(0.0)
            })
        );
        assert_eq!(Moments::of(&[0.1]).unwrap().stddev, None);
        assert_eq!(Moments::of(&[]), None);
        assert_eq!(Moments::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn as_in_published_tables() {
        // R, help page of power.t.test: power = 0.90, delta = 1, sd = 1 gives n = 22.02110; its vignette-like default
        // of 0.80 gives 16.71477; n = 20, delta = 1, sd = 1 gives power = 0.8689528.
        let n = trials_needed(1.0, (1.0, 1.0), 0.05, 0.8).unwrap();
        assert!((n - 16.71477).abs() < 1e-4, "{n}");
        let n = trials_needed(1.0, (1.0, 1.0), 0.05, 0.9).unwrap();
        assert!((n - 22.02110).abs() < 1e-4, "{n}");
        let power = noncentral_t_upper(t_critical(0.05, 38.0), 38.0, 10.0f64.sqrt());
        assert!((power - 0.868_952_8).abs() < 1e-6, "{power}");
        // Cohen 1988, table 2.4.1: d = 0.5 needs 64, d = 0.2 needs 393 (a2 = 0.05, power 0.80).
        assert_eq!(
            trials_needed(0.5, (1.0, 1.0), 0.05, 0.8).unwrap().ceil(),
            64.0
        );
        assert_eq!(
            trials_needed(-0.2, (1.0, 1.0), 0.05, 0.8).unwrap().ceil(),
            394.0
        );
    }

    #[test]
    fn both_questions_are_each_others_inverse() {
        for n in [2, 3, 5, 12, 300, 1_000_000] {
            let m = Moments {
                n,
                mean: 10.0,
                stddev: Some(0.3),
            };
            let shown = smallest_difference(&m, &m, 0.05, 0.8).unwrap();
            let needed = trials_needed(shown * 1.000_001, (0.3, 0.3), 0.05, 0.8).unwrap();
            assert!(
                (needed / n as f64 - 1.0).abs() < 1e-4,
                "{n} {shown} {needed}"
            );
        }
    }

    #[test]
    fn no_answer_where_there_is_none() {
        assert_eq!(trials_needed(0.0, (1.0, 1.0), 0.05, 0.8), None);
        assert_eq!(trials_needed(1.0, (0.0, 0.0), 0.05, 0.8), None);
        assert_eq!(trials_needed(1e-9, (1.0, 1.0), 0.05, 0.8), None);
        assert_eq!(trials_needed(1e300, (1.0, 1.0), 0.05, 0.8), Some(2.0));
        let still = Moments {
            n: 5,
            mean: 1.0,
            stddev: Some(0.0),
        };
        assert_eq!(smallest_difference(&still, &still, 0.05, 0.8), None);
    }

    #[test]
    fn ranks_need_four_and_four() {
        assert_eq!(
            [
                least_for_ranks(0.2),
                least_for_ranks(0.05),
                least_for_ranks(0.01)
            ],
            [3, 4, 5]
        );
    }
}
