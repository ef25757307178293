//! Properties that hold for any data: invariances, and hostile values.

use super::*;
use crate::analysis::{Comparison, Settings, Words, analyse, paired};
use crate::means::Moments;
use crate::means::welch;
use crate::rank::mann_whitney;

fn values() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![3 => 0.5..20.0f64, 1 => (1i32..12).prop_map(f64::from)];
    prop::collection::vec(value, 2..25)
}

/// Unusual values, NaN excepted.
fn hostile() -> impl Strategy<Value = Vec<f64>> {
    let special = prop::sample::select(vec![
        0.0,
        -0.0,
        1e308,
        -1e308,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        5e-324,
        1.0,
        1e-300,
    ]);
    let any = any::<f64>().prop_filter("NaN is the reader's to refuse", |v| !v.is_nan());
    prop::collection::vec(prop_oneof![special, any], 0..14)
}

fn comparison(x: &[f64], y: &[f64]) -> Comparison {
    analyse(&[("x", x), ("y", y)], &Settings::default())
        .comparisons
        .remove(0)
}

fn near(a: f64, b: f64, size: f64) -> bool {
    (a - b).abs() <= 1e-9 * size.max(a.abs()).max(b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn swapping_the_sets_turns_the_sign(x in values(), y in values()) {
        let (there, back) = (comparison(&x, &y), comparison(&y, &x));
        prop_assert_eq!(there.shown, back.shown);
        let (a, b) = (there.mann_whitney.unwrap(), back.mann_whitney.unwrap());
        prop_assert!(near(a.p, b.p, 1.0) && a.statistic + b.statistic == (x.len() * y.len()) as f64);
        let (s, t) = (there.shift.unwrap(), back.shift.unwrap());
        prop_assert!(near(s.median, -t.median, 20.0));
        prop_assert!(s.low.is_none() || near(s.low.unwrap(), -t.high.unwrap(), 20.0));
        prop_assert!(near(there.ratio.unwrap().median * back.ratio.unwrap().median, 1.0, 1.0));
        prop_assert!(near(there.cliffs_delta.unwrap().delta, -back.cliffs_delta.unwrap().delta, 1.0));
        if let (Some(w), Some(v)) = (there.welch, back.welch) {
            prop_assert!(near(w.t, -v.t, 1.0) && near(w.p, v.p, 1.0) && near(w.low, -v.high, 20.0));
        }
    }

    #[test]
    fn the_unit_does_not_matter(x in values(), y in values(), exponent in -3i32..7) {
        let unit = 10f64.powi(exponent);
        let scale = |v: &[f64]| v.iter().map(|v| v * unit).collect::<Vec<f64>>();
        let (plain, scaled) = (comparison(&x, &y), comparison(&scale(&x), &scale(&y)));
        prop_assert_eq!(plain.mann_whitney.unwrap().statistic, scaled.mann_whitney.unwrap().statistic);
        prop_assert!(near(plain.shift.unwrap().median * unit, scaled.shift.unwrap().median, 20.0 * unit));
        prop_assert!(near(plain.ratio.unwrap().median, scaled.ratio.unwrap().median, 1.0));
        let reaches =
            |c: Comparison| [c.reach_of_ranks, c.reach_of_means].map(|r| r.and_then(|r| r.smallest_percent));
        for (p, s) in reaches(plain).into_iter().zip(reaches(scaled)) {
            prop_assert!(near(p.unwrap_or(0.0), s.unwrap_or(0.0), 1.0));
        }
    }

    #[test]
    fn a_shift_of_one_set_is_found(x in values(), by in -100i32..100) {
        let by = f64::from(by);
        let y: Vec<f64> = x.iter().map(|v| v + by).collect();
        let shift = comparison(&x, &y).shift.unwrap();
        prop_assert!(near(shift.median, by, 120.0), "{:?}", shift);
        prop_assert!(shift.low.is_none_or(|l| l <= by + 1e-9) && shift.high.is_none_or(|h| h >= by - 1e-9));
    }

    #[test]
    fn the_order_of_runs_changes_no_figure(x in values(), y in values(), seed: u64) {
        let mut other = x.clone();
        shuffle(&mut other, &mut SplitMix64::new(seed));
        let (a, b) = (comparison(&x, &y), comparison(&other, &y));
        prop_assert_eq!((a.mann_whitney, a.shift, a.ratio), (b.mann_whitney, b.shift, b.ratio));
    }

    #[test]
    fn p_values_are_probabilities_and_intervals_enclose(x in values(), y in values()) {
        let (a, b) = (sorted(x.clone()), sorted(y.clone()));
        let test = mann_whitney(&a, &b).unwrap();
        prop_assert!((0.0..=1.0).contains(&test.p) && test.smallest_p <= test.p * (1.0 + 1e-9), "{:?}", test);
        if let Some(w) = welch(&Moments::of(&x).unwrap(), &Moments::of(&y).unwrap(), 0.95) {
            prop_assert!((0.0..=1.0).contains(&w.p) && w.low <= w.difference && w.difference <= w.high);
            // The test and the interval agree.
            prop_assert_eq!(w.p < 0.05, w.low > 0.0 || w.high < 0.0);
        }
        let s = effect::shift(&a, &b, 0.95).unwrap();
        prop_assert!(s.low.is_none_or(|l| l <= s.median) && s.high.is_none_or(|h| s.median <= h));
    }

    #[test]
    fn nothing_is_too_odd(x in hostile(), y in hostile(), z in hostile()) {
        let settings = Settings { words: Words::RATES, show_percent: Some(0.1), ..Settings::default() };
        let analysis = analyse(&[("x", &x), ("y", &y), ("z", &z)], &settings);
        let json = serde_json::to_string(&analysis).unwrap();
        prop_assert!(!json.contains("NaN") && !json.contains("inf,"));
        for set in &analysis.sets {
            let figures = [set.min, set.max, set.mean, set.stddev];
            prop_assert!([set.median, set.median_bootstrap].into_iter().flatten().all(|m| m.finite().is_some()));
            prop_assert!(figures.into_iter().flatten().all(f64::is_finite), "{:?}", set);
        }
        for c in &analysis.comparisons {
            prop_assert!(!c.verdict.contains("NaN") && !c.verdict.contains("inf "), "{}", c.verdict);
            let shifts = [c.shift, c.shift_percent, c.ratio].into_iter().flatten();
            for s in shifts {
                prop_assert!(s.median.is_finite(), "{:?}", c);
                prop_assert!(s.low.is_none_or(f64::is_finite) && s.high.is_none_or(f64::is_finite), "{:?}", c);
            }
        }
        let pairs: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
        let compared = paired(&pairs, &settings);
        prop_assert!(!serde_json::to_string(&compared).unwrap().contains("NaN"));
    }
}
