//! Intervals have their nominal coverage, in simulations.

use super::*;
use crate::bootstrap::median_bca;
use crate::effect::centre;
use crate::effect::{ratio, shift};

fn share(hits: usize, of: usize) -> f64 {
    hits as f64 / of as f64
}

#[test]
fn the_bootstrap_covers_the_median() {
    let mut random = SplitMix64::new(21);
    for (name, shape, median) in SHAPES {
        for (n, least) in [(5, 0.91), (10, 0.91), (30, 0.925), (101, 0.925)] {
            let sets = 1500;
            let covered = (0..sets)
                .filter(|seed| {
                    let set = sorted(draw(n, shape, &mut random));
                    let b = median_bca(&set, 0.95, 800, *seed as u64).unwrap();
                    b.low.unwrap() <= median && median <= b.high.unwrap()
                })
                .count();
            let found = share(covered, sets);
            assert!((least..0.97).contains(&found), "{name}, n = {n}: {found}");
        }
    }
}

#[test]
fn shifts_and_ratios_cover_the_truth() {
    let mut random = SplitMix64::new(22);
    for (name, shape, _) in SHAPES {
        for (n, m) in [(4, 4), (5, 8), (10, 10), (30, 30), (110, 110)] {
            let sets = if n > 100 { 400 } else { 1500 };
            let (mut shifts, mut ratios, mut centres) = (0, 0, 0);
            for _ in 0..sets {
                let (x, y) = (draw(n, shape, &mut random), draw(m, shape, &mut random));
                let covers = |s: Option<Estimate>, truth: f64| {
                    let s = s.unwrap();
                    s.low.is_none_or(|l| l <= truth) && s.high.is_none_or(|h| truth <= h)
                };
                let moved = sorted(y.iter().map(|v| v + 3.0).collect());
                shifts += usize::from(covers(shift(&sorted(x.clone()), &moved, 0.95), 3.0));
                let positive = |v: &[f64], by: f64| {
                    sorted(
                        v.iter()
                            .map(|v| by * v.clamp(-300.0, 300.0).exp())
                            .collect(),
                    )
                };
                ratios += usize::from(covers(
                    ratio(&positive(&x, 1.0), &positive(&y, 2.0), 0.95),
                    2.0,
                ));
                let differences: Vec<f64> = x.iter().zip(&y).map(|(x, y)| y - x + 5.0).collect();
                centres += usize::from(covers(centre(&differences, 0.95), 5.0));
            }
            for (what, hits) in [("shift", shifts), ("ratio", ratios), ("centre", centres)] {
                let found = share(hits, sets);
                assert!(found > 0.925, "{what}, {name}, {n} and {m}: {found}");
                assert!(
                    n < 10 || found < 0.975,
                    "{what}, {name}, {n} and {m}: {found} is too cautious"
                );
            }
        }
    }
}

#[test]
fn a_replicate_is_distributed_as_the_median_of_a_resample() {
    // Efron 1982, 10.4: of odd n, P(median* <= x(k)) = P(Binomial(n, k/n) > n/2). Here 7 values and k = 2: 0.0987.
    let values: Vec<f64> = (1..=7).map(f64::from).collect();
    let binomial = |p: f64| -> f64 {
        let choose = [35.0, 21.0, 7.0, 1.0];
        choose
            .iter()
            .enumerate()
            .map(|(i, c)| c * p.powi(4 + i as i32) * (1.0 - p).powi(3 - i as i32))
            .sum()
    };
    let (replicates, seeds) = (4000, 10);
    let below = |n: usize, limit: f64, values: &[f64]| {
        let found: usize = (0..seeds)
            .map(|seed| {
                bootstrap::medians(&values[..n], replicates, seed)
                    .iter()
                    .filter(|v| **v <= limit)
                    .count()
            })
            .sum();
        share(found, replicates * seeds as usize)
    };
    for k in 1..=6 {
        let found = below(7, f64::from(k), &values);
        assert!(
            (found - binomial(f64::from(k) / 7.0)).abs() < 0.01,
            "k = {k}: {found}"
        );
    }
    // Of even n, by resampling in earnest.
    let mut random = SplitMix64::new(4);
    let resampled: Vec<f64> = (0..40_000)
        .map(|_| sorted((0..6).map(|_| values[random.below(6) as usize]).collect()))
        .map(|set| (set[2] + set[3]) / 2.0)
        .collect();
    for limit in [1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0] {
        let expected = share(
            resampled.iter().filter(|v| **v <= limit).count(),
            resampled.len(),
        );
        let found = below(6, limit, &values);
        assert!(
            (found - expected).abs() < 0.012,
            "up to {limit}: {found}, by resampling {expected}"
        );
    }
}

#[test]
fn degenerate_sets_have_sound_intervals_or_none() {
    assert_eq!(median_bca(&[1.0, 2.0, 3.0, 4.0], 0.95, 100, 1), None);
    assert_eq!(
        median_bca(&[1.0, 2.0, 3.0, 4.0, f64::INFINITY], 0.95, 100, 1),
        None
    );
    let equal = median_bca(&[7.0; 9], 0.95, 1000, 1).unwrap();
    assert_eq!((equal.low, equal.high), (Some(7.0), Some(7.0)));
    let mostly = median_bca(&[1.0, 7.0, 7.0, 7.0, 7.0, 7.0, 9.0], 0.95, 1000, 1).unwrap();
    assert!(
        mostly.low <= Some(7.0) && Some(7.0) <= mostly.high,
        "{mostly:?}"
    );
    let huge = median_bca(&[-1e308, -1e308, 0.0, 1e308, 1e308], 0.95, 1000, 1).unwrap();
    assert!(huge.low.is_some() && huge.finite().is_some(), "{huge:?}");
    // Reproducible from the seed, and the seed matters little.
    let values: Vec<f64> = (0..40).map(|i| f64::from(i * i)).collect();
    let (a, b) = (
        median_bca(&values, 0.95, 10_000, 1),
        median_bca(&values, 0.95, 10_000, 1),
    );
    assert_eq!(a, b);
}
