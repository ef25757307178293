//! The smallest difference that a Welch test of this number of points could have shown, and the number of points for a smaller
//! one.

use super::distribution::{bisect, noncentral_t_upper, t_critical};
use super::moments::Moments;
use super::welch::StandardError;

/// The chance of finding an existing difference, by convention (Cohen 1988).
pub const POWER: f64 = 0.8;

/// More trials than any campaign runs.
const MOST_TRIALS: f64 = 1e9;

/// The smallest difference of means that sets of these counts and deviations show with the given power at the two-sided level
/// `alpha`, in the values' unit.
///
/// Power is that of the t test: the tail of the non-central t with Welch's degrees of freedom on the side of the difference
/// (Cohen, "Statistical Power Analysis", 1988; R's `power.t.test` for equal deviations). Exact for normal values of equal
/// deviation, a good approximation for others. `None` without a Welch test.
pub fn smallest_difference(first: &Moments, second: &Moments, alpha: f64, power: f64) -> Option<f64> {
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
    bisect(0.0, high, |shift| noncentral_t_upper(critical, df, shift) < power)
}

/// Values needed in each of two sets of these standard deviations to show a difference of means with the given power
/// at the two-sided level `alpha`. Not rounded, as R's `power.t.test` gives it; at least 2.
///
/// `None` where the difference is 0, neither set varies, or more than a billion would be needed.
pub fn trials_needed(difference: f64, deviations: (f64, f64), alpha: f64, power: f64) -> Option<f64> {
    let together = deviations.0.hypot(deviations.1);
    let effect = difference.abs() / together;
    if !effect.is_finite() || effect <= 0.0 {
        return None;
    }
    let (a, b) = ((deviations.0 / together).powi(2), (deviations.1 / together).powi(2));
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(trials_needed(0.5, (1.0, 1.0), 0.05, 0.8).unwrap().ceil(), 64.0);
        assert_eq!(trials_needed(-0.2, (1.0, 1.0), 0.05, 0.8).unwrap().ceil(), 394.0);
    }

    #[test]
    fn both_questions_are_each_others_inverse() {
        for n in [2, 3, 5, 12, 300, 1_000_000] {
            let m = Moments { n, mean: 10.0, stddev: Some(0.3) };
            let shown = smallest_difference(&m, &m, 0.05, 0.8).unwrap();
            let needed = trials_needed(shown * 1.000_001, (0.3, 0.3), 0.05, 0.8).unwrap();
            assert!((needed / n as f64 - 1.0).abs() < 1e-4, "{n} {shown} {needed}");
        }
    }

    #[test]
    fn no_answer_where_there_is_none() {
        assert_eq!(trials_needed(0.0, (1.0, 1.0), 0.05, 0.8), None);
        assert_eq!(trials_needed(1.0, (0.0, 0.0), 0.05, 0.8), None);
        assert_eq!(trials_needed(1e-9, (1.0, 1.0), 0.05, 0.8), None);
        assert_eq!(trials_needed(1e300, (1.0, 1.0), 0.05, 0.8), Some(2.0));
        let still = Moments { n: 5, mean: 1.0, stddev: Some(0.0) };
        assert_eq!(smallest_difference(&still, &still, 0.05, 0.8), None);
    }

    #[test]
    fn ranks_need_four_and_four() {
        assert_eq!([least_for_ranks(0.2), least_for_ranks(0.05), least_for_ranks(0.01)], [3, 4, 5]);
    }
}
