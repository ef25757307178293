//! A set of points and ministat's figures for it.

use super::Era;
use crate::select::{key, value};
use serde::Serialize;

/// Points under a name, with the sums that ministat makes of them.
#[derive(Debug, Clone)]
pub struct Dataset {
    name: String,
    sorted: Vec<f64>,
    sum: f64,
    sum_squares: f64,
    /// Sum of the squares around the average, over the sorted points.
    squares_around: f64,
}

/// The figures of a set that ministat prints.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of points.
    pub n: usize,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The median; in [`Era::Old`], the upper middle point of an even count.
    pub median: f64,
    /// The arithmetic mean.
    pub avg: f64,
    /// Standard deviation, with n - 1.
    pub stddev: f64,
    /// Its square.
    pub variance: f64,
}

impl Dataset {
    /// A set of points, in the order in which they came: the sums of the one-pass eras depend on it in their last digits.
    pub fn new(name: impl Into<String>, points: Vec<f64>) -> Self {
        let (mut sum, mut sum_squares) = (0.0, 0.0);
        for &point in &points {
            sum += point;
            sum_squares += point * point;
        }
        let average = sum / points.len() as f64;
        let sorted = sorted(points);
        let squares_around = sorted.iter().fold(0.0, |sum, p| sum + (p - average) * (p - average));
        Dataset { name: name.into(), sorted, sum, sum_squares, squares_around }
    }

    /// Its name: a file's, usually.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its points, the smallest first.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// The figures that ministat of an era prints. Without points they are NaN; with one, its variance is.
    pub fn summary(&self, era: Era) -> Summary {
        let variance = self.variance(era);
        let n = self.sorted.len();
        Summary {
            n,
            min: self.sorted.first().copied().unwrap_or(f64::NAN),
            max: self.sorted.last().copied().unwrap_or(f64::NAN),
            median: self.median(era),
            avg: self.sum / n as f64,
            stddev: variance.sqrt(),
            variance,
        }
    }

    fn median(&self, era: Era) -> f64 {
        let (sorted, middle) = (&self.sorted, self.sorted.len() / 2);
        match sorted.get(middle) {
            None => f64::NAN,
            Some(upper) if sorted.len() % 2 == 1 || era < Era::Mid => *upper,
            Some(upper) => (sorted[middle - 1] + upper) / 2.0,
        }
    }

    fn variance(&self, era: Era) -> f64 {
        let n = self.sorted.len() as f64;
        let squares = match era >= Era::New {
            true => self.squares_around,
            false => self.sum_squares - self.sum * self.sum / n,
        };
        squares / (n - 1.0)
    }
}

/// Sorts as ministat does. Zeros of both signs are equal there and keep their order, which shows in the output.
fn sorted(mut points: Vec<f64>) -> Vec<f64> {
    if points.is_sorted() {
        return points;
    }
    if points.iter().any(|point| *point == 0.0 && point.is_sign_negative()) {
        points.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.total_cmp(b)));
        return points;
    }
    // Integers of the same order: they sort twice as fast. Both conversions stay in the memory of the points.
    let mut keys: Vec<i64> = points.into_iter().map(key).collect();
    keys.sort_unstable();
    keys.into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_eras_differ_in_median_and_variance() {
        let set = Dataset::new("a", vec![4.0, 1.0, 3.0, 10.0]);
        assert_eq!(set.summary(Era::Old).median, 4.0);
        for era in [Era::Mid, Era::Fb11, Era::New] {
            assert_eq!(set.summary(era).median, 3.5);
        }
        let new = set.summary(Era::New);
        assert_eq!((new.n, new.min, new.max, new.avg, new.variance), (4, 1.0, 10.0, 4.5, 15.0));
        assert_eq!(new.stddev, 15f64.sqrt());
        // One pass cancels: 2^53 + 1 has no place beside the squares.
        let far = Dataset::new("b", vec![1e9, 1e9 + 1.0, 1e9 + 2.0]);
        assert_eq!(far.summary(Era::New).variance, 1.0);
        assert_ne!(far.summary(Era::Fb11).variance, 1.0);
    }

    proptest! {
        #[test]
        fn points_are_sorted(points in proptest::collection::vec(any::<f64>(), 0..50)) {
            let mut expected = points.clone();
            expected.sort_by(f64::total_cmp);
            let in_order = Dataset::new("", expected.clone());
            prop_assert!(in_order.sorted().is_sorted() || expected.iter().any(|point| point.is_nan()));
            let found = Dataset::new("", points);
            prop_assert!(found.sorted().iter().zip(&expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan()));
            prop_assert_eq!(found.sorted().len(), expected.len());
        }
    }

    #[test]
    fn zeros_keep_their_order() {
        let first = |points: &[f64]| Dataset::new("", points.to_vec()).sorted()[0].to_bits();
        assert_eq!(first(&[1.0, 0.0, -0.0]), 0f64.to_bits());
        assert_eq!(first(&[1.0, -0.0, 0.0]), (-0f64).to_bits());
    }

    #[test]
    fn sets_with_hardly_any_points_have_no_figures_rather_than_a_panic() {
        assert!(Dataset::new("none", vec![]).summary(Era::New).median.is_nan());
        assert!(Dataset::new("one", vec![1.0]).summary(Era::New).variance.is_nan());
    }
}
