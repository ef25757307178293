//! Intervals of levels and of their ratios: by drawing levels again from the residuals of the points.
//!
//! All levels of a series share their noise, so that a level of two points has an interval too. (The interval of order statistics
//! needs six points.)

use super::{Interval, median_sorted};
use crate::sorted;
use linerate_wire::SplitMix64;

/// Draws of each level.
const DRAWS: usize = 1999;

/// Most points drawn of a segment. For longer ones the spread is scaled: it goes with the root of their number.
const MOST_POINTS: usize = 200;

/// Deviations of drawn levels, by segment.
#[derive(Debug)]
pub struct Drawn {
    deviations: Vec<Vec<f64>>,
}

impl Drawn {
    /// Draws each segment's level from all residuals (logarithms).
    pub fn new(residuals: &[f64], bounds: &[(usize, usize)], seed: u64) -> Self {
        let mut random = SplitMix64::new(seed ^ 0x1e7e_15d0);
        // Levels follow their points, which makes the residuals too small: as with the n - 1 of a standard deviation.
        let points = residuals.len() as f64;
        let free = (points / (points - bounds.len() as f64).max(1.0)).sqrt();
        let mut segment = |(start, end): &(usize, usize)| {
            let points = (end - start).min(MOST_POINTS);
            let scale = free * (points as f64 / (end - start) as f64).sqrt();
            let mut sample = vec![0.0; points];
            let mut draw = |_| {
                sample.fill_with(|| residuals[random.below(residuals.len() as u32) as usize]);
                sample.sort_unstable_by(f64::total_cmp);
                median_sorted(&sample).unwrap_or(0.0) * scale
            };
            (0..DRAWS).map(&mut draw).collect::<Vec<f64>>()
        };
        Drawn { deviations: bounds.iter().map(&mut segment).collect() }
    }

    /// Segment `i`'s level, given as a logarithm.
    pub fn level(&self, i: usize, level: f64) -> Interval {
        interval(level, self.deviations[i].iter().copied())
    }

    /// The ratio of segments `i + 1` and `i`, given as a logarithm.
    pub fn ratio(&self, i: usize, ratio: f64) -> Interval {
        let pairs = self.deviations[i + 1].iter().zip(&self.deviations[i]);
        interval(ratio, pairs.map(|(after, before)| after - before))
    }
}

/// The percentile interval, which suits medians: it never leaves the values.
fn interval(logarithm: f64, errors: impl Iterator<Item = f64>) -> Interval {
    let errors = sorted(errors);
    let at = |share: f64| errors[(share * errors.len() as f64) as usize];
    Interval {
        value: logarithm.exp(),
        low: (logarithm + at(0.025)).exp(),
        high: (logarithm + at(0.975)).exp(),
    }
}
