//! Welch's t test: do two means differ, without assuming equal variances?

use super::distribution::{t_critical, t_two_sided};
use super::moments::Moments;
use serde::Serialize;

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
    [difference, result.low, result.high, t].iter().all(|v| v.is_finite()).then_some(result)
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
        let df = 1.0 / (share_a.powi(2) / (first.n as f64 - 1.0) + share_b.powi(2) / (second.n as f64 - 1.0));
        (error > 0.0 && error.is_finite() && df.is_finite()).then_some(StandardError { error, df })
    }
}
