//! False alarms: every test and warning on data that have nothing to warn of.

use super::*;
use crate::analysis::{Settings, WarningKind, analyse};
use crate::means::Moments;
use crate::means::brown_forsythe;
use crate::means::welch;
use crate::rank::mann_whitney;
use crate::rank::signed_rank;
use crate::trend::{mann_kendall, neighbours_alike, runs};

const SETS: usize = 1000;

/// Two sets, sorted as well.
struct Two {
    x: Vec<f64>,
    y: Vec<f64>,
    a: Vec<f64>,
    b: Vec<f64>,
}

/// A test with its name, its level, and the p values it gives.
type Test = (&'static str, f64, fn(&Two) -> Option<f64>);

const TESTS: [Test; 7] = [
    ("Mann-Whitney", 0.05, |s| {
        mann_whitney(&s.a, &s.b).map(|t| t.p)
    }),
    ("Welch", 0.05, |s| {
        Some(welch(&Moments::of(&s.x)?, &Moments::of(&s.y)?, 0.95)?.p)
    }),
    ("signed ranks", 0.05, |s| {
        let differences: Vec<f64> = s.x.iter().zip(&s.y).map(|(x, y)| x - y).collect();
        signed_rank(&differences).map(|t| t.p)
    }),
    ("Mann-Kendall", 0.01, |s| mann_kendall(&s.x).map(|t| t.p)),
    ("neighbours", 0.01, |s| neighbours_alike(&s.x)),
    ("runs", 0.01, |s| {
        runs(&s.x, median_sorted(&s.a)?).map(|r| r.p)
    }),
    ("Brown-Forsythe", 0.01, |s| brown_forsythe(&s.a, &s.b)),
];

#[test]
fn tests_keep_their_level() {
    let mut random = SplitMix64::new(31);
    for (shape_name, shape, _) in SHAPES {
        for n in [5, 10, 30, 120] {
            let sets = if n > 100 { SETS / 5 } else { SETS };
            let mut fired = [0; TESTS.len()];
            for _ in 0..sets {
                let (x, y) = (draw(n, shape, &mut random), draw(n, shape, &mut random));
                let two = Two {
                    a: sorted(x.clone()),
                    b: sorted(y.clone()),
                    x,
                    y,
                };
                for (count, (_, level, test)) in fired.iter_mut().zip(TESTS) {
                    *count += usize::from(test(&two).is_some_and(|p| p <= level));
                }
            }
            for (count, (name, level, _)) in fired.iter().zip(TESTS) {
                let rate = *count as f64 / sets as f64;
                // Four standard errors of the simulation.
                let most = level + 4.0 * (level * (1.0 - level) / sets as f64).sqrt();
                assert!(rate <= most, "{name}, {shape_name}, n = {n}: {rate}");
            }
        }
    }
}

#[test]
fn tests_see_what_they_are_for() {
    let mut random = SplitMix64::new(32);
    let two = |x: Vec<f64>, y: Vec<f64>| Two {
        a: sorted(x.clone()),
        b: sorted(y.clone()),
        x,
        y,
    };
    let shifted = |random: &mut SplitMix64| {
        two(
            draw(20, normal, random),
            draw(20, normal, random).iter().map(|v| v + 1.2).collect(),
        )
    };
    let drifting = |random: &mut SplitMix64| {
        let x: Vec<f64> = (0..20)
            .map(|i| normal(random) + f64::from(i) * 0.15)
            .collect();
        two(x, draw(20, normal, random))
    };
    let wandering = |random: &mut SplitMix64| {
        let mut state = 0.0;
        let step = |_| {
            state = 0.8 * state + normal(random);
            state
        };
        let x = (0..80).map(step).collect();
        two(x, vec![0.0])
    };
    let wider = |random: &mut SplitMix64| {
        two(
            draw(20, normal, random),
            draw(20, normal, random).iter().map(|v| v * 4.0).collect(),
        )
    };
    type Draw<'a> = &'a dyn Fn(&mut SplitMix64) -> Two;
    let seen: [(usize, Draw, f64); 7] = [
        (0, &shifted, 0.9),
        (1, &shifted, 0.9),
        (2, &shifted, 0.8),
        (3, &drifting, 0.65),
        (4, &wandering, 0.95),
        (5, &wandering, 0.8),
        (6, &wider, 0.9),
    ];
    for (test, make, least) in seen {
        let (name, level, p) = TESTS[test];
        let found = (0..200)
            .filter(|_| p(&make(&mut random)).is_some_and(|p| p <= level))
            .count();
        assert!(found as f64 >= 200.0 * least, "{name}: {found} of 200");
    }
}

#[test]
fn an_analysis_of_sound_data_has_little_to_warn_of() {
    let mut random = SplitMix64::new(33);
    let kinds = [
        WarningKind::TwoModes,
        WarningKind::Drift,
        WarningKind::Autocorrelation,
        WarningKind::Runs,
        WarningKind::UnequalVariances,
        WarningKind::Outliers,
        WarningKind::NoSpread,
        WarningKind::NotFinite,
    ];
    let sets = 60;
    let mut warned = 0;
    for _ in 0..sets {
        let (x, y) = (draw(10, normal, &mut random), draw(10, normal, &mut random));
        let analysis = analyse(&[("x", &x), ("y", &y)], &Settings::default());
        let all = analysis
            .sets
            .iter()
            .flat_map(|s| &s.warnings)
            .chain(&analysis.comparisons[0].warnings);
        warned += usize::from(all.filter(|w| kinds.contains(&w.kind)).count() > 0);
    }
    // Outliers in one of twenty sets, modes in one of sixty, the others in one of a hundred; two sets and a comparison.
    assert!(warned < 20, "{warned} of {sets}");
}
