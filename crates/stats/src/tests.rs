//! Tests of the statistics: here the order statistics, in the modules published figures and simulations.

use super::*;
use proptest::prelude::*;

mod alarms;
mod coverage;
mod known;
mod properties;

/// At least 0, below 1.
pub fn uniform(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A standard normal deviate.
pub fn normal(random: &mut SplitMix64) -> f64 {
    let length = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
    length * (std::f64::consts::TAU * uniform(random)).cos()
}

/// Draws a value of some distribution.
pub type Shape = fn(&mut SplitMix64) -> f64;

/// A normal, a skewed and a heavy-tailed distribution with their medians.
pub const SHAPES: [(&str, Shape, f64); 3] = [
    ("normal", normal, 0.0),
    ("lognormal", |random| normal(random).exp(), 1.0),
    ("Cauchy", |random| normal(random) / normal(random), 0.0),
];

/// So many values of a shape.
pub fn draw(n: usize, shape: Shape, random: &mut SplitMix64) -> Vec<f64> {
    (0..n).map(|_| shape(random)).collect()
}

/// Values in ascending order.
pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[test]
fn known_interval_for_ten_values() {
    // n = 10: [x2, x9] covers 97.85 %, [x3, x8] only 89.06 %.
    let values: Vec<f64> = (1..=10).map(f64::from).collect();
    let e = median_interval(&values, 0.95).unwrap();
    assert_eq!((e.median, e.low, e.high), (5.5, Some(2.0), Some(9.0)));
}

#[test]
fn five_values_are_too_few() {
    let e = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
    assert_eq!((e.low, e.high), (None, None));
    assert_eq!(e.relative_width(), f64::INFINITY);
    assert!(median_interval(&[], 0.95).is_none());
}

#[test]
fn the_interval_covers_the_median_as_often_as_it_says() {
    let mut random = SplitMix64::new(7);
    for n in [6, 8, 15, 40, 101] {
        let covered = (0..2000)
            .filter(|_| {
                // A skewed distribution whose median is 1.
                let values: Vec<f64> = (0..n).map(|_| normal(&mut random).exp()).collect();
                let e = median_interval(&values, 0.95).unwrap();
                e.low.unwrap() <= 1.0 && 1.0 <= e.high.unwrap()
            })
            .count();
        assert!(covered >= 1880, "n = {n}: {covered} of 2000");
        assert!(
            n < 40 || covered <= 1960,
            "n = {n}: {covered} of 2000 is too cautious"
        );
    }
}

#[test]
fn pairing_removes_a_drift_that_both_share() {
    let mut random = SplitMix64::new(1);
    let pairs: Vec<(f64, f64)> = (0..60)
        .map(|i| {
            let drift = if (i / 7) % 2 == 0 { 11.7 } else { 7.0 };
            (drift * 0.75 * (1.0 + 0.02 * normal(&mut random)), drift)
        })
        .collect();
    let e = paired_ratio(&pairs, 0.95).unwrap();
    assert!(
        (e.median - 0.75).abs() < 0.01 && e.relative_width() < 0.03,
        "{e:?}"
    );
}

proptest! {
    #[test]
    fn interval_encloses_the_median(values in prop::collection::vec(-1e9f64..1e9, 6..60)) {
        let e = median_interval(&values, 0.95).unwrap();
        prop_assert!(e.low.unwrap() <= e.median && e.median <= e.high.unwrap());
    }

    #[test]
    fn shuffling_keeps_everything(seed: u64, n in 0usize..50) {
        let mut items: Vec<usize> = (0..n).collect();
        shuffle(&mut items, &mut SplitMix64::new(seed));
        items.sort_unstable();
        prop_assert_eq!(items, (0..n).collect::<Vec<_>>());
    }
}

#[test]
fn autocorrelation_sees_a_trend() {
    let trend: Vec<f64> = (0..50).map(f64::from).collect();
    assert!(autocorrelation(&trend) > 0.9);
    assert_eq!(autocorrelation(&[1.0, 1.0, 1.0]), 0.0);
}
