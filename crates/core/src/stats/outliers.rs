//! Values far from the others: named, never dropped.

use super::median_sorted;
use serde::Serialize;

/// Iglewicz and Hoaglin's limit for the modified z-score.
const LIMIT: f64 = 3.5;

/// The farthest so many are named; all are counted.
const NAMED: usize = 20;

/// The values far from the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outliers {
    /// How many there are.
    pub count: usize,
    /// The score from which on a value is one.
    pub limit: f64,
    /// The farthest of them, in the order of the runs.
    pub farthest: Vec<Outlier>,
}

/// A value far from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlier {
    /// Its place in the order of the runs, from 1.
    pub point: usize,
    /// The value.
    pub value: f64,
    /// Its distance from the median in standard deviations, these estimated from the middle of the data; signed.
    pub score: f64,
}

/// The values whose modified z-score exceeds 3.5.
///
/// Iglewicz & Hoaglin, "How to Detect and Handle Outliers" (1993): 0.6745 (x - median) / MAD, MAD being the median
/// absolute deviation; where that is 0, (x - median) / (1.2533 x mean absolute deviation).
pub fn outliers(values: &[f64], sorted: &[f64]) -> Outliers {
    let none = Outliers { count: 0, limit: LIMIT, farthest: Vec::new() };
    let Some(median) = median_sorted(sorted).filter(|m| m.is_finite()) else { return none };
    let Some(deviation) = deviation(sorted, median) else { return none };
    let score = |v: f64| (v - median) / deviation;
    let mut found: Vec<Outlier> = values
        .iter()
        .enumerate()
        .map(|(i, v)| Outlier { point: i + 1, value: *v, score: score(*v) })
        .filter(|o| o.score.abs() > LIMIT)
        .collect();
    let count = found.len();
    found.sort_by(|a, b| b.score.abs().total_cmp(&a.score.abs()));
    found.truncate(NAMED);
    found.sort_by_key(|o| o.point);
    Outliers { count, limit: LIMIT, farthest: found }
}

/// The standard deviation as the middle of the data has it; `None` where it is 0.
fn deviation(sorted: &[f64], median: f64) -> Option<f64> {
    let mut distances: Vec<f64> = sorted.iter().map(|v| (v - median).abs()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let mad = median_sorted(&distances)?;
    if mad > 0.0 && mad.is_finite() {
        return Some(mad / 0.674_489_750_196_081_7);
    }
    let mean = distances.iter().filter(|d| d.is_finite()).sum::<f64>() / distances.len() as f64;
    (mean > 0.0).then_some(mean * (std::f64::consts::PI / 2.0).sqrt())
}
