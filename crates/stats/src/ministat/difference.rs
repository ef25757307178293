//! Student's t test as ministat does it: against the first set, with one pooled variance.

use super::{Confidence, Era, Summary};
use serde::Serialize;

/// How a set differs from the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Whether the difference is larger than its error.
    pub proven: bool,
    /// Average of the set minus average of the reference.
    pub delta: f64,
    /// Half the width of the difference's interval.
    pub error: f64,
    /// The difference in percent of the reference's average.
    pub percent: f64,
    /// Half the width of that interval, in percent.
    pub percent_error: f64,
    /// The pooled standard deviation.
    pub pooled: f64,
}

/// Compares a set with the reference. Both should have at least 2 points.
pub fn difference(reference: &Summary, other: &Summary, confidence: Confidence, era: Era) -> Difference {
    let (n1, n2) = (reference.n as f64, other.n as f64);
    let freedom = reference.n + other.n - 2.min(reference.n + other.n);
    let t = confidence.t(freedom);
    let z = freedom as f64;
    let pooled = (((n1 - 1.0) * reference.variance + (n2 - 1.0) * other.variance) / z).sqrt();
    let error = t * (pooled * (1.0 / n1 + 1.0 / n2).sqrt());
    let delta = other.avg - reference.avg;
    let relative_error = if era >= Era::Fb11 {
        // Of the quotient of two averages, to first order.
        let ratio = other.avg * other.avg / (reference.avg * reference.avg);
        let squares = (n2 - 1.0) * other.variance + (n1 - 1.0) * reference.variance * ratio;
        t * (squares * (n1 + n2) / (n1 * n2 * z)).sqrt() * 100.0 / reference.avg
    } else {
        error * 100.0 / reference.avg
    };
    Difference {
        proven: delta.abs() > error,
        delta,
        error,
        percent: delta * 100.0 / reference.avg,
        percent_error: relative_error,
        pooled,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dataset;
    use super::*;

    /// A block of the FreeBSD forwarding archive (Xeon E5-2650v4, Chelsio T520, affinity: no-affinity and numa1), FreeBSD 11.
    #[test]
    fn a_published_difference_is_reproduced() {
        let set = |points: &[f64]| Dataset::new("", points.to_vec()).summary(Era::Fb11);
        let reference = set(&[9477860.0, 9573303.0, 9351036.0, 9571249.0, 9580847.0]);
        let other = set(&[10617361.0, 10670945.0, 10616020.0, 10584085.0, 10658458.0]);
        let found = difference(&reference, &other, Confidence::default(), Era::Fb11);
        assert!(found.proven);
        let figures = [found.delta, found.error, found.percent, found.percent_error, found.pooled];
        let text = figures.map(|f| super::super::format_g(f, 6));
        assert_eq!(text, ["1.11851e+06", "108191", "11.7604", "1.25701", "74182.7"]);
        let old = difference(&reference, &other, Confidence::default(), Era::Old);
        assert!((old.percent_error - 1.137_55).abs() < 1e-4, "{old:?}");
    }

    #[test]
    fn no_points_are_no_panic() {
        let none = Dataset::new("", vec![]).summary(Era::New);
        assert!(!difference(&none, &none, Confidence::default(), Era::New).proven);
    }
}
