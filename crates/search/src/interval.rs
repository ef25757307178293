//! The 95 % interval of the load where a goal begins to be missed.
//!
//! The bounds of MLRsearch rest on the trials at two loads. Where bad trials come by chance, another search ends at other bounds. This
//! interval assumes that bad trials are more frequent at higher loads. It covers the load above which the share of bad trials exceeds
//! the exceed ratio. A test martingale excludes a load: the likelihood ratio of the trials of neighbouring loads together, over a
//! mixture of other shares and of sets of neighbours. It is valid for any choice of trials and any end of the search (Ramdas et al.,
//! "Game-theoretic statistics and safe anytime-valid inference", Statistical Science 38(4), 2023).

use crate::{Goal, Trial};
use std::collections::BTreeMap;

/// Likelihood ratio that excludes a load at one side: 2.5 %.
const EXCLUDES: f64 = 40.0;
/// Number of shares of bad trials in the mixture, on each side of the exceed ratio.
const SHARES: u32 = 20;

/// Numbers of full trials at a load.
#[derive(Clone, Copy, Default)]
struct Full {
    bad: u32,
    good: u32,
}

/// The ends of the interval, in frames/s. `None`: no limit on that side; with the exceed ratio 0 on both, because a single trial
/// decides.
pub fn interval(goal: &Goal, trials: &[Trial]) -> [Option<f64>; 2] {
    let exceed = goal.exceed_ratio();
    let mut loads: BTreeMap<u64, Full> = BTreeMap::new();
    for trial in trials
        .iter()
        .filter(|trial| trial.load > 0.0 && trial.duration_ns >= goal.final_ns)
    {
        // Positive floating-point numbers are in the order of their bits.
        let full = loads.entry(trial.load.to_bits()).or_default();
        if trial.loss > goal.loss {
            full.bad += 1
        } else {
            full.good += 1
        }
    }
    if exceed == 0.0 {
        return [None, None];
    }
    let rising: Vec<(f64, Full)> = loads
        .into_iter()
        .map(|(load, full)| (f64::from_bits(load), full))
        .collect();
    let falling: Vec<(f64, Full)> = rising.iter().rev().copied().collect();
    let share = |number: u32| f64::from(number) / f64::from(SHARES + 1);
    let fewer: Vec<f64> = (1..=SHARES).map(|number| exceed * share(number)).collect();
    let more: Vec<f64> = (1..=SHARES)
        .map(|number| exceed + (1.0 - exceed) * share(number))
        .collect();
    [
        last_excluded(&rising, exceed, &fewer),
        last_excluded(&falling, exceed, &more),
    ]
}

/// The last load, in the order of `loads`, that its trials and those after it exclude.
fn last_excluded(loads: &[(f64, Full)], exceed: f64, shares: &[f64]) -> Option<f64> {
    let excluded = |from: &usize| {
        let (mut all, mut ratio) = (Full::default(), 0.0);
        for (number, (_, full)) in (1u32..).zip(&loads[*from..]) {
            all = Full {
                bad: all.bad + full.bad,
                good: all.good + full.good,
            };
            // The weights of all sets of neighbours add up to 1.
            ratio +=
                likelihood_ratio(all, exceed, shares) / (f64::from(number) * f64::from(number + 1));
        }
        ratio >= EXCLUDES
    };
    (0..loads.len()).rev().find(excluded).map(|at| loads[at].0)
}

/// The mean likelihood of these shares of bad trials, relative to that of the exceed ratio.
fn likelihood_ratio(trials: Full, exceed: f64, shares: &[f64]) -> f64 {
    let (bad, good) = (f64::from(trials.bad), f64::from(trials.good));
    let ratio = |share: &f64| {
        (bad * (share / exceed).ln() + good * ((1.0 - share) / (1.0 - exceed)).ln()).exp()
    };
    shares.iter().map(ratio).sum::<f64>() / shares.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::system::Rng;
    use crate::{Limits, Mlr, Search, outcome};

    const NDR: Goal = Goal {
        loss: 0.0,
        exceed: 500_000_000,
        width: 0.005,
        initial_ns: 100_000_000,
        final_ns: 100_000_000,
        sum_ns: 2_100_000_000,
        coarser: 2,
    };

    /// A search for a system that is bad with the probability `bad(load)`.
    fn searched(seed: u64, bad: impl Fn(f64) -> f64) -> Vec<Trial> {
        let (mut random, mut trials) = (Rng::new(seed), Vec::new());
        let mut search = Mlr::new(&[NDR], Limits { min: 1e3, max: 1e7 }).unwrap();
        while let Some(request) = search.next() {
            let unlucky = random.uniform() < bad(request.load);
            let (load, duration_ns) = (request.load, request.duration_ns);
            let trial = Trial {
                load,
                duration_ns,
                effective_ns: duration_ns,
                loss: if unlucky { 0.01 } else { 0.0 },
            };
            trials.push(trial);
            search.observe(trial);
            assert!(trials.len() < 10_000);
        }
        trials
    }

    #[test]
    fn a_sharp_limit_is_known_as_well_as_its_bounds() {
        let trials = searched(1, |load| if load > 1e6 { 1.0 } else { 0.0 });
        let [low, high] = interval(&NDR, &trials).map(Option::unwrap);
        let found = outcome(&NDR, Limits { min: 1e3, max: 1e7 }, &trials);
        assert_eq!((Some(low), Some(high)), (found.lower, found.upper));
    }

    /// The share of bad trials rises slowly with the load: bounds 0.5 % apart lie anywhere, and the interval shows it.
    #[test]
    fn chance_is_covered_where_bounds_are_not() {
        let bad = |load: f64| 1.0 / (1.0 + (5e5 / load).powi(3));
        let (mut between, mut covered) = (0, 0);
        for seed in 0..200 {
            let trials = searched(seed, bad);
            let found = outcome(&NDR, Limits { min: 1e3, max: 1e7 }, &trials);
            between +=
                u32::from(found.lower <= Some(5e5) && found.upper.is_some_and(|high| high >= 5e5));
            let [low, high] = interval(&NDR, &trials);
            covered +=
                u32::from(low.is_none_or(|low| low <= 5e5) && high.is_none_or(|high| high >= 5e5));
        }
        assert!(
            between < 100,
            "{between} of 200 pairs of bounds have the limit between them"
        );
        assert!(covered >= 190, "{covered} of 200 intervals cover the limit");
    }

    #[test]
    fn nothing_is_known_without_trials_or_of_a_single_trial() {
        assert_eq!(interval(&NDR, &[]), [None, None]);
        let trials = searched(1, |load| if load > 1e6 { 1.0 } else { 0.0 });
        assert_eq!(interval(&Goal { exceed: 0, ..NDR }, &trials), [None, None]);
    }
}
