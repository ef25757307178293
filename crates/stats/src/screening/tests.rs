use super::*;
use crate::effect::holm;
use crate::tests::normal;
use linerate_wire::SplitMix64;

fn changed(runs: &Runs, of: &[usize]) -> usize {
    runs.iter().filter(|run| of.iter().all(|j| run[*j])).count()
}

#[test]
fn designs_are_balanced_and_clear_of_interactions() {
    for factors in 1..=MOST {
        let runs = plackett_burman(factors);
        let n = runs.len();
        assert!(
            n <= 4 * (factors + 1) && n >= 8 || factors == 1,
            "{factors}: {n}"
        );
        assert!(runs[0].iter().all(|changed| !changed));
        for a in 0..factors {
            assert_eq!(changed(&runs, &[a]), n / 2, "{factors}");
            for b in a + 1..factors {
                assert_eq!(changed(&runs, &[a, b]), n / 4, "{factors}: {a} {b}");
                // No product of two columns correlates with a third.
                let sign = |run: &[bool], j: usize| if run[j] { 1 } else { -1 };
                let shared = |c: usize| {
                    runs.iter()
                        .map(|r| sign(r, a) * sign(r, b) * sign(r, c))
                        .sum::<i32>()
                };
                assert!(
                    (0..factors).all(|c| c == a || c == b || shared(c) == 0),
                    "{factors}: {a} {b}"
                );
            }
        }
    }
    assert_eq!(
        factorial(&[0, 1]),
        [[false, false], [true, false], [false, true], [true, true]]
    );
}

/// The yield of Box, Hunter & Hunter, "Statistics for Experimenters" (1978), section 10.2: the pilot plant. Temperature, concentration
/// and catalyst have effects of 23, -5 and 1.5 on the yield, temperature and catalyst together 10.
#[test]
fn effects_of_the_pilot_plant() {
    let yields = [60.0, 72.0, 54.0, 68.0, 52.0, 83.0, 45.0, 80.0f64];
    let found = effects(
        &factorial(&[0, 1, 2]),
        &[0, 1, 2],
        &yields.map(Some),
        &[(0, 2)],
    )
    .unwrap();
    let sizes: Vec<f64> = found.iter().map(|e| e.ratio.median.ln()).collect();
    // The book halves the joint effect of two changes beyond their own effects.
    for (size, book) in sizes.iter().zip([23.0, -5.0, 1.5, 20.0]) {
        assert!((size - book).abs() < 1e-9, "{sizes:?}");
    }
}

#[test]
fn a_run_without_trials_and_a_drift_change_no_effect() {
    let runs = screening(&[0, 1, 2]);
    let rates = |run: &Vec<bool>| -> Vec<Option<f64>> {
        let level = if run[1] { 300.0 } else { 100.0 };
        (1..7).map(|block| Some(level * f64::from(block))).collect()
    };
    let mut rates: Vec<_> = runs.iter().map(rates).collect();
    rates[5].clear();
    let levels = levels(&rates);
    assert_eq!(levels.iter().filter(|level| level.is_none()).count(), 1);
    let found = effects(&runs, &[0, 1, 2], &levels, &[]).unwrap();
    assert!(
        (found[1].ratio.median - 3.0).abs() < 1e-9 && (found[0].ratio.median - 1.0).abs() < 1e-9
    );
    assert_eq!(
        effects(&runs, &[0, 1, 2], &levels[..4], &[]),
        None,
        "as many terms as runs"
    );
}

/// Trials of a router whose frames take 1,000 ns and the sum of the costs of its settings. Blocks drift, each set-up is off by 2 %,
/// each trial by 15 %, and one in 20 by much.
fn measured(
    runs: &Runs,
    costs: &[f64],
    blocks: usize,
    random: &mut SplitMix64,
) -> Vec<Option<f64>> {
    let levels: Vec<f64> = runs.iter().map(|_| 1.0 + 0.02 * normal(random)).collect();
    let mut rates: Vec<Vec<Option<f64>>> = vec![Vec::new(); runs.len()];
    for _ in 0..blocks {
        let drift = (0.2 * normal(random)).exp();
        for (number, run) in runs.iter().enumerate() {
            let cost: f64 = run
                .iter()
                .zip(costs)
                .filter(|(on, _)| **on)
                .map(|(_, cost)| cost)
                .sum();
            let wild = if random.next_u64().is_multiple_of(20) {
                0.6
            } else {
                1.0
            };
            let rate = 1e9 / (1000.0 + cost)
                * levels[number]
                * drift
                * wild
                * (0.15 * normal(random)).exp();
            rates[number].push(Some(rate));
        }
    }
    super::levels(&rates)
}

#[test]
fn three_of_ten_settings_are_found_and_no_other() {
    let mut costs = [0.0; 10];
    (costs[1], costs[4], costs[8]) = (-200.0, 450.0, -120.0);
    let mut random = SplitMix64::new(14);
    let whole = (0..200).filter(|_| {
        let alone: Vec<usize> = (0..10).collect();
        let runs = screening(&alone);
        let screened = with_interactions(
            &runs,
            &alone,
            &measured(&runs, &costs, 16, &mut random),
            0.1,
        )
        .unwrap();
        let left: Vec<usize> = screened
            .iter()
            .filter(|e| e.of.1.is_none() && e.p < 0.1)
            .map(|e| e.of.0)
            .collect();
        let alone: Vec<usize> = (0..left.len()).collect();
        let runs: Runs = if left.len() <= 4 {
            let once = factorial(&alone);
            let times = (16 / once.len()).clamp(1, 4);
            (0..times).flat_map(|_| once.clone()).collect()
        } else {
            screening(&alone)
        };
        let costs: Vec<f64> = left.iter().map(|j| costs[*j]).collect();
        let confirmed = with_interactions(
            &runs,
            &alone,
            &measured(&runs, &costs, 30, &mut random),
            0.1,
        )
        .unwrap();
        let p: Vec<f64> = confirmed
            .iter()
            .filter(|e| e.of.1.is_none())
            .map(|e| e.p)
            .collect();
        let kept: Vec<usize> = left
            .iter()
            .zip(holm(&p))
            .filter(|(_, p)| *p < 0.05)
            .map(|(j, _)| *j)
            .collect();
        kept == [1, 4, 8]
    });
    let whole = whole.count();
    assert!(whole >= 185, "{whole} of 200 campaigns");
}

/// Levels of factors, of which each excludes the others: 3 of one, 2 of another, 5 of a third, and changes of their own.
const LEVELS: [usize; 13] = [0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 3, 4, 5];

#[test]
fn a_design_with_levels_makes_each_equally_often_and_none_with_another_of_its_factor() {
    for factor_of in [
        &LEVELS[..],
        &LEVELS[..3],
        &LEVELS[4..6],
        &[0; MOST],
        &[7, 3, 7],
    ] {
        let runs = screening(factor_of);
        assert!(
            runs.len() >= 2 * (factor_of.len() + 1) && runs.len() <= 64,
            "{}",
            runs.len()
        );
        assert!(runs[0].iter().all(|made| !made));
        for a in 0..factor_of.len() {
            for b in (0..factor_of.len()).filter(|b| *b != a) {
                let expected = if factor_of[a] == factor_of[b] {
                    assert_eq!(changed(&runs, &[a]), changed(&runs, &[b]));
                    0
                } else {
                    changed(&runs, &[a]) * changed(&runs, &[b]) / runs.len()
                };
                assert_eq!(changed(&runs, &[a, b]), expected, "{factor_of:?}: {a} {b}");
            }
        }
        let levels: Vec<Option<f64>> = (0..runs.len()).map(|n| Some(n as f64)).collect();
        assert!(
            effects(&runs, factor_of, &levels, &[]).is_some(),
            "{factor_of:?}"
        );
    }
    let three_by_two = [[false; 3], [true, false, false], [false, true, false]];
    assert_eq!(factorial(&[0, 0, 1])[..3], three_by_two);
    assert_eq!(factorial(&[0, 0, 1]).len(), combinations(&[0, 0, 1]));
}

#[test]
fn the_effect_of_a_level_is_that_against_the_factor_as_it_is() {
    let runs = screening(&LEVELS);
    let made = |of: usize, run: &[bool]| f64::from(u8::from(run[of]));
    // Two levels of one factor, a change, and what the second level and the change do beyond that.
    let level = |run: &Vec<bool>| {
        Some(
            0.1 * made(0, run) - 0.2 * made(1, run)
                + 0.3 * made(3, run)
                + 0.06 * made(1, run) * made(3, run),
        )
    };
    let levels: Vec<Option<f64>> = runs.iter().map(level).collect();
    let found = effects(&runs, &LEVELS, &levels, &[(1, 3)]).unwrap();
    let of = |at: usize| found[at].ratio.median.ln();
    // A mean over the change, made and not; one over the four levels of the other factor.
    let expected = [
        (0, 0.1),
        (1, -0.2 + 0.06 / 2.0),
        (2, 0.0),
        (3, 0.3 + 0.06 / 4.0),
        (13, 0.06),
    ];
    for (at, size) in expected {
        assert!((of(at) - size).abs() < 1e-9, "{at}: {}", of(at));
    }
}

/// Screenings of a factor of four levels, of which one helps, and of five changes that do nothing.
#[test]
fn levels_without_an_effect_are_rarely_taken_for_one() {
    let factor_of = [0, 0, 0, 0, 1, 2, 3, 4, 5];
    let runs = screening(&factor_of);
    let mut costs = [0.0; 9];
    costs[2] = -100.0;
    let mut random = SplitMix64::new(3);
    let (mut seen, mut others) = (0, 0);
    for _ in 0..200 {
        let rates = measured(&runs, &costs, 16, &mut random);
        for effect in with_interactions(&runs, &factor_of, &rates, 0.05).unwrap() {
            let clear = effect.of.1.is_none() && effect.p < 0.05;
            *(if effect.of.0 == 2 {
                &mut seen
            } else {
                &mut others
            }) += usize::from(clear);
        }
    }
    // 8 x 200 levels have no effect: 80 of them, at a p of 0.05.
    assert!(
        seen >= 150 && others <= 130,
        "{seen} of 200 seen, {others} of 1600 others"
    );
}
