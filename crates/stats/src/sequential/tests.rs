//! The bounds against textbook values, brute force, and the fixed-sample interval.

use super::*;
use crate::binomial_half_cut;
use proptest::prelude::*;

#[test]
fn a_single_look_at_the_end_is_the_fixed_sample_interval() {
    for n in 0..400 {
        assert_eq!(
            Boundary::default().look(n, 1.0),
            binomial_half_cut(n, 0.95),
            "n = {n}"
        );
    }
    assert_eq!(
        Boundary::default().look(1_000_000, 1.0),
        binomial_half_cut(1_000_000, 0.95)
    );
}

#[test]
fn what_may_be_spent_is_tabulated() {
    // Any table of the function for 0.025 on one side, t = 0.4 ... 1.
    for (t, one_side) in [(0.4, 0.00039), (0.6, 0.00381), (0.8, 0.01221), (1.0, 0.025)] {
        assert!(
            (spendable(t) / 2.0 / one_side - 1.0).abs() < 0.02,
            "{t}: {}",
            spendable(t)
        );
    }
    assert_eq!(spendable(0.0), 0.0);
}

/// With many values the walk is nearly Brownian, whose bounds are tabulated: five looks, alpha 0.05 two-sided, 4.877,
/// 3.357, 2.680, 2.290, 2.031 (Jennison & Turnbull, "Group Sequential Methods", 2000, chapter 7).
#[test]
fn bounds_of_five_looks_are_the_tabulated_ones() {
    let mut boundary = Boundary::default();
    let n = 200_000;
    for (look, z) in (1..).zip([4.877, 3.357, 2.680, 2.290, 2.031]) {
        let at = n * look / 5;
        let k = boundary.look(at, look as f64 / 5.0);
        let deviate = (at as f64 / 2.0 - k as f64) / (at as f64 / 4.0).sqrt();
        assert!(
            (deviate - z).abs() < 0.01,
            "look {look}: {deviate}, not {z}"
        );
    }
    assert!(boundary.spent() <= 0.05 && boundary.spent() > 0.049);
}

#[test]
fn with_few_values_there_is_no_interval() {
    let mut boundary = Boundary::default();
    assert_eq!(boundary.look(0, 0.125), 0);
    assert_eq!(boundary.look(3, 0.25), 0);
    assert_eq!(boundary.look(5, 1.0), 0);
    assert_eq!(boundary.look(6, 1.0), 1);
}

/// The probability of ever leaving the bounds, over all sequences of coins.
fn brute_force(looks: &[(usize, usize)], n: usize) -> f64 {
    let left = |coins: u32| {
        looks.iter().any(|(at, k)| {
            let below = (coins & ((1u32 << at) - 1)).count_ones() as usize;
            below < *k || at - below < *k
        })
    };
    (0..1u32 << n).filter(|coins| left(*coins)).count() as f64 / f64::from(1u32 << n)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn what_is_spent_is_the_probability_of_leaving(steps in prop::collection::vec((0usize..7, 0.01f64..0.4), 1..7)) {
        let (mut n, mut t, mut boundary, mut looks) = (0, 0.0, Boundary::default(), Vec::new());
        for (more, time) in steps {
            (n, t) = ((n + more).min(18), f64::min(t + time, 1.0));
            looks.push((n, boundary.look(n, t)));
            prop_assert!(boundary.spent() <= spendable(t) * (1.0 + 1e-9));
        }
        prop_assert!((brute_force(&looks, n) - boundary.spent()).abs() < 1e-12);
    }
}

/// How many order statistics apart the ends are after six looks, against a single look.
#[test]
fn six_looks_cost_four_percent_of_width() {
    let six = |n: usize| {
        (1..=6).fold(Boundary::default(), |mut b, look| {
            b.look(n * look / 6, look as f64 / 6.0);
            b
        })
    };
    let apart = |n: usize, k: usize| (n + 1 - 2 * k) as f64;
    let mut wider: Vec<f64> = (20..=300)
        .map(|n| apart(n, six(n).first) / apart(n, binomial_half_cut(n, 0.95)) - 1.0)
        .collect();
    wider.sort_unstable_by(f64::total_cmp);
    let mean = wider.iter().sum::<f64>() / wider.len() as f64;
    println!(
        "six looks, 20 to 300 values: {:.1} % wider, 0 to {:.1} %",
        100.0 * mean,
        100.0 * wider[280]
    );
    assert!((0.0..0.045).contains(&mean), "{mean}");
}
