//! Figures that were published, and distributions counted out by hand.

use super::*;
use crate::analysis::{Settings, WarningKind, Words, paired};
use crate::distribution::t_two_sided;
use crate::effect::{Magnitude, centre, cliffs_delta, holm, ratio, shift};
use crate::means::{Moments, brown_forsythe, welch};
use crate::rank::{RankTest, mann_whitney, pairs, signed_rank, u_moments};
use crate::trend::{mann_kendall, neighbours_alike, runs};

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

/// Student's own data of 1908: hours of sleep gained by ten patients with either drug (`sleep` in R).
const SLEEP: [[f64; 10]; 2] = [
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
];

/// Ozone in New York in May and August 1973, days without a figure left out (`airquality` in R).
const OZONE: [[f64; 26]; 2] = [
    [
        41., 36., 12., 18., 28., 23., 19., 8., 7., 16., 11., 14., 18., 14., 34., 6., 30., 11., 1.,
        11., 4., 32., 23., 45., 115., 37.,
    ],
    [
        39., 9., 16., 78., 35., 66., 122., 89., 110., 44., 28., 65., 22., 59., 23., 31., 44., 21.,
        9., 45., 168., 73., 76., 118., 84., 85.,
    ],
];

/// Hollander & Wolfe, "Nonparametric Statistical Methods": permeability of the chorioamnion (table 4.1), depression
/// before and after a tranquilizer (table 3.1), lightness and quality of tuna (table 8.1). All are in R's help pages.
const PERMEABILITY: (&[f64], &[f64]) = (
    &[0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
    &[1.15, 0.88, 0.90, 0.74, 1.21],
);
#[expect(clippy::approx_constant, reason = "a measurement, not pi")]
const DEPRESSION: [[f64; 9]; 2] = [
    [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30],
    [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29],
];
const TUNA_QUALITY_BY_LIGHTNESS: [f64; 9] = [2.5, 4.0, 2.6, 3.6, 2.8, 3.1, 5.2, 5.0, 3.8];

#[test]
fn welch_on_students_sleep() {
    // R: t = -1.8608, df = 17.776, p-value = 0.07939, interval -3.3654832 0.2054832 (first minus second).
    let [a, b] = SLEEP.map(|s| Moments::of(&s).unwrap());
    let w = welch(&a, &b, 0.95).unwrap();
    close(w.t, 1.8608, 5e-5);
    close(w.df, 17.776, 5e-4);
    close(w.p, 0.07939, 5e-6);
    close(w.low, -0.2054832, 5e-8);
    close(w.high, 3.3654832, 5e-8);
    close(w.difference, 1.58, 1e-12);
}

#[test]
fn mann_whitney_in_hollander_and_wolfe() {
    let (x, y) = PERMEABILITY;
    let (x, y) = (sorted(x.to_vec()), sorted(y.to_vec()));
    let test = mann_whitney(&y, &x).unwrap();
    // R: W = 35, one-sided p = 0.1272.
    assert_eq!((test.statistic, test.exact), (35.0, true));
    close(test.p, 2.0 * 0.1272, 1e-4);
    // Examples 4.3 and 4.4: shift -0.305, 96 % interval (-0.76, 0.15).
    let s = shift(&x, &y, 0.95).unwrap();
    close(s.median, -0.305, 1e-12);
    close(s.low.unwrap(), -0.76, 1e-12);
    close(s.high.unwrap(), 0.15, 1e-12);
}

#[test]
fn mann_whitney_with_ties_on_ozone() {
    let [may, august] = OZONE.map(|m| sorted(m.to_vec()));
    // R, with ties and continuity corrected: W = 127.5, p-value = 0.0001208. The exact p was counted in whole numbers by
    // another program.
    let found = pairs(&august, &may);
    assert_eq!(found.doubled_u, 255);
    let approximate = RankTest::approximate(127.5, 52, u_moments(26, 26, found.ties)).p;
    close(approximate, 0.000_120_807_83, 1e-11);
    let test = mann_whitney(&august, &may).unwrap();
    assert!(test.exact);
    close(test.p, 6.108_735_188_803_72e-5, 1e-17);
    // scipy's Levene test about the medians.
    close(
        brown_forsythe(&may, &august).unwrap(),
        0.003_335_984_627_256_562,
        1e-9,
    );
}

#[test]
fn signed_ranks_in_hollander_and_wolfe() {
    let change: Vec<f64> = DEPRESSION[0]
        .iter()
        .zip(&DEPRESSION[1])
        .map(|(x, y)| y - x)
        .collect();
    let test = signed_rank(&change).unwrap();
    // R: V = 40 for x - y, of 45 in all; one-sided p = 0.01953.
    assert_eq!((test.statistic, test.n, test.exact), (5.0, 9, true));
    close(test.p, 0.039_062_5, 1e-12);
    // Examples 3.3 and 3.4: -0.46, 96.1 % interval (-0.786, -0.010).
    let s = centre(&change, 0.95).unwrap();
    close(s.median, -0.46, 1e-12);
    close(s.low.unwrap(), -0.786, 1e-12);
    close(s.high.unwrap(), -0.01, 1e-12);
}

#[test]
fn kendall_in_hollander_and_wolfe() {
    // R: T = 26, p-value = 0.1194, tau = 0.4444.
    let trend = mann_kendall(&TUNA_QUALITY_BY_LIGHTNESS).unwrap();
    close(trend.tau, 0.444_444, 1e-6);
    close(trend.p, 0.1194, 5e-5);
}

#[test]
fn holm_as_r_adjusts() {
    assert_eq!(holm(&[0.01, 0.02, 0.03, 0.04]), [0.04, 0.06, 0.06, 0.06]);
    assert_eq!(holm(&[0.9, 0.02, 0.5]), [1.0, 0.06, 1.0]);
    assert!(holm(&[]).is_empty());
}

#[test]
fn cliffs_delta_of_three_and_three() {
    // Of nine pairs six are larger, one ties, two are smaller.
    let d = cliffs_delta(&[1.0, 2.0, 3.0], &[1.5, 3.0, 4.0]).unwrap();
    close(d.delta, 4.0 / 9.0, 1e-12);
    assert_eq!(d.magnitude, Magnitude::Medium);
    assert_eq!(
        [0.146, -0.147, 0.33, -0.474]
            .map(Magnitude::of)
            .map(Magnitude::word),
        ["negligible", "small", "medium", "large"]
    );
    assert!(cliffs_delta(&[], &[1.0]).is_none());
}

#[test]
fn ratios_are_of_positive_values_only() {
    let r = ratio(&[1.0, 2.0, 4.0, 8.0], &[3.0, 6.0, 12.0, 24.0], 0.95).unwrap();
    close(r.median, 3.0, 1e-12);
    assert_eq!(ratio(&[0.0, 1.0], &[1.0, 2.0], 0.95), None);
    assert_eq!(ratio(&[1.0, f64::INFINITY], &[1.0, 2.0], 0.95), None);
    assert_eq!(shift(&[-1e308], &[1e308], 0.95), None);
}

/// All orders of the values, as often as each arises.
fn orders(values: &[f64]) -> Vec<Vec<f64>> {
    if values.is_empty() {
        return vec![Vec::new()];
    }
    (0..values.len())
        .flat_map(|i| {
            let mut rest = values.to_vec();
            let first = rest.remove(i);
            orders(&rest).into_iter().map(move |mut o| {
                o.push(first);
                o
            })
        })
        .collect()
}

/// A p must be the share of all orders that are as extreme, counted by the statistic that it belongs to: twice the
/// smaller tail, at most 1.
fn counted(all: &[Vec<f64>], statistic: impl Fn(&[f64]) -> f64, p: impl Fn(&[f64]) -> f64) {
    let values: Vec<f64> = all.iter().map(|o| statistic(o)).collect();
    let share = |test: &dyn Fn(f64) -> bool| {
        values.iter().filter(|v| test(**v)).count() as f64 / all.len() as f64
    };
    for (order, value) in all.iter().zip(&values).step_by(97) {
        let expected = 2.0 * share(&|v| v <= value + 1e-9).min(share(&|v| v >= value - 1e-9));
        close(p(order), expected.min(1.0), 1e-9);
    }
}

#[test]
fn exact_p_values_are_shares_of_all_orders() {
    for values in [
        [1., 2., 3., 4., 5., 6., 7.],
        [1., 1., 2., 3., 3., 3., 4.],
        [2., 2., 2., 2., 2., 2., 5.],
    ] {
        let all = orders(&values);
        counted(
            &all,
            |o| mann_kendall(o).unwrap().tau,
            |o| mann_kendall(o).unwrap().p,
        );
        let split =
            |o: &[f64]| mann_whitney(&sorted(o[..3].to_vec()), &sorted(o[3..].to_vec())).unwrap();
        counted(&all, |o| split(o).statistic, |o| split(o).p);
        if let Some(r) = runs(&all[0], 3.0) {
            assert!(r.count >= 2);
            counted(
                &all,
                |o| runs(o, 3.0).unwrap().count as f64,
                |o| runs(o, 3.0).unwrap().p,
            );
        }
    }
}

#[test]
fn exact_and_approximate_p_values_meet() {
    let mut random = SplitMix64::new(8);
    for _ in 0..20 {
        let (x, y) = (
            sorted(draw(90, normal, &mut random)),
            sorted(draw(110, normal, &mut random)),
        );
        let exact = mann_whitney(&x, &y).unwrap();
        let approximate = RankTest::approximate(exact.statistic, 200, u_moments(90, 110, 0)).p;
        assert!(
            exact.exact && (exact.p - approximate).abs() < 0.002,
            "{exact:?} {approximate}"
        );
        // 50 values are counted out, 51 are not: one more without rank among them changes little.
        let mut series = draw(50, normal, &mut random);
        let exact = mann_kendall(&series).unwrap().p;
        series.insert(25, 0.0);
        let approximate = mann_kendall(&series).unwrap().p;
        assert!((exact - approximate).abs() < 0.15, "{exact} {approximate}");
    }
}

#[test]
fn series_that_are_plainly_not_random() {
    let rising: Vec<f64> = (0..12).map(f64::from).collect();
    let trend = mann_kendall(&rising).unwrap();
    assert_eq!(trend.tau, 1.0);
    close(trend.p, 2.0 / 479_001_600.0, 1e-18);
    let long: Vec<f64> = (0..200).map(f64::from).collect();
    assert!(mann_kendall(&long).unwrap().p < 1e-15);
    assert!(neighbours_alike(&rising).unwrap() < 1e-4);
    let states: Vec<f64> = (0..40)
        .map(|i| if (i / 10) % 2 == 0 { 7.0 } else { 11.7 })
        .collect();
    assert!(runs(&states, 9.0).unwrap().p < 1e-7);
    let alternating: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
    assert!(
        runs(&alternating, 0.5).unwrap().p < 1e-9
            && neighbours_alike(&alternating).unwrap() > 0.999
    );
    assert_eq!(
        (mann_kendall(&[1.0; 9]), mann_kendall(&[1.0, 2.0])),
        (None, None)
    );
    assert_eq!(
        (neighbours_alike(&[1.0; 12]), neighbours_alike(&rising[..9])),
        (None, None)
    );
    assert_eq!(runs(&[1.0; 9], 1.0), None);
}

#[test]
fn the_level_of_student() {
    // Student's own table, 1908 and 1925: t of 2.262 at 9 degrees of freedom, 4.032 at 5 and 1 %.
    close(t_two_sided(2.262, 9.0), 0.05, 5e-5);
    close(t_two_sided(4.032, 5.0), 0.01, 5e-5);
}

#[test]
fn pairs_see_through_what_both_share() {
    let mut random = SplitMix64::new(11);
    // The machine doubles its speed half-way; one variant costs a tenth.
    let pairs: Vec<(f64, f64)> = (0..16)
        .map(|i| {
            let speed = if i < 8 { 5e6 } else { 10e6 };
            (
                0.9 * speed * (1.0 + 0.01 * normal(&mut random)),
                speed * (1.0 + 0.01 * normal(&mut random)),
            )
        })
        .collect();
    let settings = Settings {
        words: Words::RATES,
        ..Settings::default()
    };
    let found = paired(&pairs, &settings);
    let ratio = found.ratio.unwrap();
    assert!(
        ratio.high.unwrap() < 1.0 && (ratio.median - 0.904).abs() < 0.001,
        "{found:?}"
    );
    assert!(found.warnings.is_empty(), "{found:?}");
    let centre = found.hodges_lehmann.unwrap();
    assert!(
        (centre.median - 0.9).abs() < 0.01
            && centre.low.unwrap() < 0.9
            && centre.high.unwrap() > 0.9
    );
    assert!(found.wilcoxon.unwrap().p < 0.001);
    // A ratio that drifts causes a warning.
    let drifting: Vec<(f64, f64)> = (0..16).map(|i| (1.0 + 0.01 * f64::from(i), 1.0)).collect();
    let found = paired(&drifting, &settings);
    assert!(
        found.warnings.iter().any(|w| w.kind == WarningKind::Drift),
        "{found:?}"
    );
    // Pairs without a ratio are left out, with a warning.
    let found = paired(&[(1.0, 0.0), (f64::INFINITY, 1.0), (2.0, 1.0)], &settings);
    assert_eq!(
        (found.n, found.warnings[0].kind),
        (1, WarningKind::NotFinite)
    );
}
