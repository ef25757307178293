//! Simulated series: false alarms, changes found, and their places.

use super::*;
use crate::tests::{normal, uniform};
use linerate_wire::SplitMix64;
use proptest::prelude::*;

type Draw = fn(&mut SplitMix64) -> f64;

/// Noise of about 1 %, as a factor.
fn gaussian(r: &mut SplitMix64) -> f64 {
    (0.01 * normal(r)).exp()
}

fn student(degrees: usize, r: &mut SplitMix64) -> f64 {
    let z = normal(r);
    let squares: f64 = (0..degrees).map(|_| normal(r).powi(2)).sum();
    (0.01 * z / (squares / degrees as f64).sqrt()).exp()
}

fn heavy(r: &mut SplitMix64) -> f64 {
    student(2, r)
}

fn cauchy(r: &mut SplitMix64) -> f64 {
    student(1, r)
}

/// The two speeds of a virtual machine, the lower one with this share.
fn two_modes(share: f64, r: &mut SplitMix64) -> f64 {
    let mode = if uniform(r) < share { 7.0 } else { 11.7 };
    mode * gaussian(r)
}

fn half_and_half(r: &mut SplitMix64) -> f64 {
    two_modes(0.5, r)
}

fn mostly_fast(r: &mut SplitMix64) -> f64 {
    two_modes(0.2, r)
}

fn rarely_slow(r: &mut SplitMix64) -> f64 {
    two_modes(0.05, r)
}

const NOISES: [(&str, Draw); 6] = [
    ("normal", gaussian),
    ("t, 2 d.f.", heavy),
    ("Cauchy", cauchy),
    ("two modes 50:50", half_and_half),
    ("two modes 20:80", mostly_fast),
    ("two modes 5:95", rarely_slow),
];

fn points(values: impl IntoIterator<Item = f64>) -> Vec<Point> {
    values
        .into_iter()
        .map(|value| Point { value, error: 0.0 })
        .collect()
}

fn series(n: usize, draw: Draw, random: &mut SplitMix64) -> Vec<Point> {
    points((0..n).map(|_| draw(random)).collect::<Vec<f64>>())
}

/// Points whose neighbours are alike.
fn autoregressive(n: usize, rho: f64, random: &mut SplitMix64) -> Vec<Point> {
    let mut v = normal(random);
    let step = (1.0 - rho * rho).sqrt();
    let next = |_| {
        v = rho * v + step * normal(random);
        (0.01 * v).exp()
    };
    points((0..n).map(next).collect::<Vec<f64>>())
}

fn places(found: &Changes) -> Vec<usize> {
    found.changes.iter().map(|c| c.at).collect()
}

/// The share of such series that are cut.
fn alarms(count: u64, mut make: impl FnMut(&mut SplitMix64) -> Vec<Point>) -> f64 {
    let mut random = SplitMix64::new(count);
    let fired = (0..count)
        .filter(|i| !changes(&make(&mut random), *i).changes.is_empty())
        .count();
    fired as f64 / count as f64
}

/// The share of series with shifts at `at` that are found exactly there, and the share found there and nowhere else.
fn power(count: u64, n: usize, draw: Draw, at: &[usize], factor: f64) -> (f64, f64) {
    let mut random = SplitMix64::new(n as u64);
    let (mut there, mut only) = (0, 0);
    for seed in 0..count {
        let mut points = series(n, draw, &mut random);
        let within = |t: usize| at.iter().filter(|a| **a <= t).count() % 2 == 1;
        (0..n)
            .filter(|t| within(*t))
            .for_each(|t| points[t].value *= factor);
        let found = places(&changes(&points, seed));
        there += u32::from(at.iter().all(|a| found.contains(a)));
        only += u32::from(found == at);
    }
    (
        f64::from(there) / count as f64,
        f64::from(only) / count as f64,
    )
}

#[test]
fn series_without_a_change_are_rarely_cut() {
    // 100 series each: 5 % are 5; a true rate of 5 % would give more than 12 in two of a thousand cases.
    for (name, draw) in NOISES {
        for n in [10, 20] {
            let rate = alarms(100, |r| series(n, draw, r));
            assert!(rate <= 0.12, "{name}, n = {n}: {rate}");
        }
    }
}

#[test]
fn a_shift_of_five_percent_is_found_to_the_point() {
    for (n, at) in [(8, 4), (10, 5), (14, 10), (24, 4), (24, 20)] {
        let (there, only) = power(60, n, gaussian, &[at], 0.95);
        assert!(there >= 0.9 && only >= 0.85, "{at} of {n}: {there}, {only}");
    }
}

#[test]
fn a_level_of_a_few_points_is_found() {
    for length in [3, 4, 6] {
        let (there, only) = power(20, 50, gaussian, &[23, 23 + length], 0.9);
        assert!(there >= 0.9 && only >= 0.8, "{length}: {there}, {only}");
    }
}

#[test]
fn a_level_within_a_short_series_is_found() {
    for length in [3, 5, 8] {
        let (there, only) = power(40, 20, gaussian, &[8, 8 + length], 0.85);
        assert!(there >= 0.8 && only >= 0.75, "{length}: {there}, {only}");
    }
}

#[test]
fn a_single_point_is_no_level() {
    let mut random = SplitMix64::new(3);
    for n in [12, 30] {
        for at in [0, n / 2, n - 1] {
            let mut points = series(n, gaussian, &mut random);
            points[at].value *= 0.69;
            let found = changes(&points, 1);
            assert_eq!(places(&found), [0; 0], "{at} of {n}");
            assert!(
                (found.residuals[at] + 0.31).abs() < 0.04,
                "{}",
                found.residuals[at]
            );
        }
    }
}

#[test]
fn an_outlier_beside_a_change_goes_to_the_nearer_level() {
    // The first point after a breakage is worse still: the change is where it began.
    let mut random = SplitMix64::new(4);
    let found = (0..20).filter(|seed| {
        let mut points = series(40, gaussian, &mut random);
        points[20..26].iter_mut().for_each(|p| p.value *= 0.88);
        points[20].value *= 0.75;
        places(&changes(&points, *seed)) == [20, 26]
    });
    assert!(found.count() >= 18);
}

#[test]
fn a_doubtful_point_counts_for_less() {
    let mut random = SplitMix64::new(5);
    let mut points = series(20, gaussian, &mut random);
    points[8..11].iter_mut().for_each(|p| p.value *= 0.93);
    assert_eq!(places(&changes(&points, 1)), [8, 11]);
    points[8..11].iter_mut().for_each(|p| p.error = 0.06);
    assert_eq!(
        places(&changes(&points, 1)),
        [0; 0],
        "their own runs differ by as much"
    );
}

#[test]
fn levels_and_ratios_lie_in_their_intervals() {
    let mut random = SplitMix64::new(6);
    let (mut level, mut ratio, mut found) = (0, 0, 0);
    for seed in 0..200 {
        let mut points = series(30, gaussian, &mut random);
        points[20..].iter_mut().for_each(|p| p.value *= 0.9);
        let result = changes(&points, seed);
        if places(&result) != [20] {
            continue;
        }
        found += 1;
        let encloses = |i: &Estimate, truth: f64| {
            u32::from(i.low.unwrap() <= truth && truth <= i.high.unwrap())
        };
        level += encloses(&result.segments[0].level, 1.0);
        ratio += encloses(&result.changes[0].ratio, 0.9);
        assert!((result.changes[0].ratio.median - 0.9).abs() < 0.02 && result.changes[0].p <= 0.02);
    }
    assert!(found >= 180, "{found}");
    let share = |k: u32| f64::from(k) / f64::from(found);
    assert!(
        share(level) > 0.9 && share(ratio) > 0.9,
        "{} {}",
        share(level),
        share(ratio)
    );
}

#[test]
fn few_points_equal_points_and_none() {
    let flat = |n| points(vec![1_488_095.0; n]);
    assert_eq!(changes(&[], 1).segments, []);
    assert_eq!(
        (changes(&flat(1), 1).segments.len(), changes(&flat(1), 1).p),
        (1, None)
    );
    assert_eq!(changes(&flat(FEWEST - 1), 1).p, None);
    assert_eq!(places(&changes(&flat(30), 1)), [0; 0]);
    // A line rate that sinks by a negligible share.
    let slightly = points((0..30).map(|i| if i < 15 { 1_488_095.0 } else { 1_488_000.0 }));
    assert_eq!(places(&changes(&slightly, 1)), [0; 0]);
    let clearly = points((0..30).map(|i| if i < 15 { 1_488_095.0 } else { 1_450_000.0 }));
    assert_eq!(places(&changes(&clearly, 1)), [15]);
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let points = series(40, heavy, &mut SplitMix64::new(8));
    assert_eq!(changes(&points, 5), changes(&points, 5));
}

#[test]
fn a_long_series_is_cut_at_the_exact_point() {
    let mut random = SplitMix64::new(9);
    let mut points = series(20_000, gaussian, &mut random);
    points[7_123..].iter_mut().for_each(|p| p.value *= 0.95);
    points[15_001..].iter_mut().for_each(|p| p.value *= 1.1);
    let found = changes(&points, 1);
    assert_eq!((places(&found), found.thinned), (vec![7_123, 15_001], 10));
    assert!((found.changes[1].ratio.median - 1.1).abs() < 0.001);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_values_give_levels_that_cover_the_series(
        values in prop::collection::vec(prop_oneof![any::<f64>(), 0.0..2.0f64], 0..40),
        errors in prop::collection::vec(any::<f64>(), 40),
    ) {
        let points: Vec<Point> =
            values.iter().zip(&errors).map(|(value, error)| Point { value: *value, error: *error }).collect();
        let found = changes(&points, 1);
        let mut next = 0;
        for segment in &found.segments {
            prop_assert!(segment.start == next && segment.end > next);
            next = segment.end;
        }
        prop_assert_eq!(next, points.len());
        prop_assert_eq!(found.changes.len(), found.segments.len().saturating_sub(1));
        prop_assert_eq!(found.residuals.len(), points.len());
    }

    /// Every segmentation of a short series, compared with the program's.
    #[test]
    fn no_other_cuts_cost_less(values in prop::collection::vec(-3.0..3.0f64, 8..13), penalty in 3.0..12.0f64) {
        let errors = vec![0.0; values.len()];
        let mut partitioner = partition::Partitioner::new(&values, &errors, 0.3);
        let n = values.len();
        let chosen = partitioner.cut(penalty);
        let cost = |starts: &[usize]| -> f64 {
            let on = |(from, to)| partitioner.on_one_level(from, to);
            bounds(starts, n).map(on).sum::<f64>() + penalty * (starts.len() - 1) as f64
        };
        let found = cost(&chosen);
        for mask in 0u32..1 << (n - 5) {
            let cuts = (0..n - 5).filter(|i| mask >> i & 1 == 1).map(|i| i + 3);
            let starts: Vec<usize> = [0].into_iter().chain(cuts).collect();
            if bounds(&starts, n).any(|(from, to)| to - from < 2) {
                continue;
            }
            prop_assert!(found <= cost(&starts) + 1e-9, "{starts:?}");
        }
    }
}

/// Prints the tables of docs/history.md.
#[test]
#[ignore = "takes minutes: cargo test --release -p linerate-stats measured_rates -- --ignored --nocapture"]
fn measured_rates() {
    const SIZES: [usize; 8] = [8, 10, 14, 20, 30, 50, 100, 200];
    let count = |n: usize| if n > 50 { 400 } else { 2000 };
    println!("false alarms in percent; n = {SIZES:?}");
    for (name, draw) in NOISES {
        let rates = SIZES.map(|n| alarms(count(n), |r| series(n, draw, r)));
        println!("{name}: {:.1?}", rates.map(|r| 100.0 * r));
        assert!(rates.iter().all(|r| *r < 0.065), "{name}: {rates:?}");
    }
    for rho in [0.1, 0.3, 0.5] {
        let rates = SIZES.map(|n| alarms(count(n) / 2, |r| autoregressive(n, rho, r)));
        println!(
            "neighbours alike, rho = {rho}: {:.1?}",
            rates.map(|r| 100.0 * r)
        );
    }
    println!("found exactly there, and there only, in percent");
    for (name, draw, factor) in [
        ("5 %, normal", gaussian as Draw, 0.95),
        ("3 %, normal", gaussian, 0.97),
        ("5 %, t with 2 d.f.", heavy, 0.95),
        ("5 %, two modes 5:95", rarely_slow, 0.95),
    ] {
        for (n, at) in [
            (8, 4),
            (9, 4),
            (10, 5),
            (14, 4),
            (24, 4),
            (24, 20),
            (50, 25),
            (50, 46),
            (100, 90),
        ] {
            let (there, only) = power(500, n, draw, &[at], factor);
            println!(
                "{name}: {at} | {}: {:.1} {:.1}",
                n - at,
                100.0 * there,
                100.0 * only
            );
        }
    }
    for (n, at, length) in [
        (20, 8, 3),
        (20, 8, 5),
        (50, 23, 2),
        (50, 23, 3),
        (50, 23, 4),
        (50, 23, 6),
    ] {
        let (there, only) = power(500, n, gaussian, &[at, at + length], 0.9);
        println!(
            "10 % for {length} of {n} points: {:.1} {:.1}",
            100.0 * there,
            100.0 * only
        );
    }
}
