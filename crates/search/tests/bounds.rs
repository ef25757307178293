//! Searches against systems that do as they like.

use linerate_search::{
    Bisection, Curve, Goal, GoalError, Irregular, Limits, Mlr, PER_BILLION, Search, Trial, outcome,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn goals(width: f64) -> [Goal; 2] {
    let goal = |loss| Goal {
        width,
        ..Goal::new(loss, PER_BILLION / 2, SECOND, 21 * SECOND)
    };
    [goal(0.0), goal(0.005)]
}

fn trials(search: &mut impl Search, most: usize, mut loss: impl FnMut(f64) -> f64) -> Vec<Trial> {
    let mut all = Vec::new();
    while let Some(request) = search.next().filter(|_| all.len() < most) {
        let duration_ns = request.duration_ns;
        let trial = Trial {
            load: request.load,
            duration_ns,
            effective_ns: duration_ns,
            loss: loss(request.load),
        };
        search.observe(trial);
        all.push(trial);
    }
    all
}

proptest! {
    /// Whatever a system loses, a search ends, stays within its limits, and asks for the same trial until it is observed.
    #[test]
    fn every_search_ends_within_its_limits(
        losses in prop::collection::vec(prop_oneof![Just(0.0), 0.0f64..1.0], 1..50),
        min in 1.0f64..1e4,
        factor in 1.001f64..1e5,
        width in 0.002f64..0.3,
    ) {
        let limits = Limits::new(min, min * factor).unwrap();
        let mut search = Mlr::new(&goals(width), limits).unwrap();
        let mut at = losses.iter().cycle();
        let all = trials(&mut search, 50_000, |_| *at.next().unwrap());
        prop_assert!(search.next().is_none(), "{} trials", all.len());
        prop_assert!(all.iter().all(|trial| (limits.min..=limits.max).contains(&trial.load)));
    }

    /// Every search finds the rate of a system that loses only the frames above its capacity.
    #[test]
    fn a_rate_is_found_whatever_the_range(min in 1.0f64..1e4, factor in 1.1f64..1e5, at in 0.01f64..0.99) {
        let limits = Limits::new(min, min * factor).unwrap();
        let capacity = min * factor.powf(at);
        let [goal, _] = goals(0.005);
        let mut search = Mlr::new(&[goal], limits).unwrap();
        let all = trials(&mut search, 10_000, |load| (1.0 - capacity / load).max(0.0));
        let found = outcome(&goal, limits, &all);
        prop_assert_eq!(found.irregular, None);
        let (low, high) = (found.lower.unwrap(), found.upper.unwrap());
        prop_assert!(low <= capacity && capacity < high && (high - low) / high <= 0.005 + 1e-9);
    }
}

#[test]
fn a_load_that_is_lossy_for_a_moment_is_tried_again() {
    let limits = Limits::new(1e3, 1e6).unwrap();
    let mut flaky = 0;
    let mut search = Bisection::new(limits, 0.0, 0.001, SECOND, 2).unwrap();
    trials(&mut search, 1000, |load| {
        flaky += 1;
        if load > 4e5 || flaky % 2 == 0 {
            0.1
        } else {
            0.0
        }
    });
    let (Some(low), Some(high)) = search.bounds().unwrap() else {
        panic!("{search:?}")
    };
    assert!(
        low <= 4e5 && 4e5 < high && (high - low) / high <= 0.001,
        "{low} {high}"
    );
}

#[test]
fn a_loss_curve_ends_after_two_successive_trials_without_loss() {
    let mut curve = Curve::new(1e6, 0.1, SECOND);
    let loads: Vec<f64> = trials(&mut curve, 100, |load| if load > 6.5e5 { 0.1 } else { 0.0 })
        .iter()
        .map(|t| t.load / 1e5)
        .collect();
    assert_eq!(
        loads
            .iter()
            .map(|load| load.round() as u32)
            .collect::<Vec<_>>(),
        [10, 9, 8, 7, 6, 5]
    );
    // A system that loses at every load is measured down to the last step.
    assert_eq!(
        trials(&mut Curve::new(1e6, 0.1, SECOND), 100, |_| 0.5).len(),
        10
    );
}

#[test]
fn impossible_goals_and_limits_are_refused() {
    let limits = Limits::new(1e3, 1e6).unwrap();
    let [goal, _] = goals(0.005);
    for (wrong, says) in [
        (Goal { loss: 1.0, ..goal }, "loss ratio 1"),
        (
            Goal {
                exceed: PER_BILLION,
                ..goal
            },
            "exceed ratio 1",
        ),
        (Goal { width: 0.0, ..goal }, "width 0"),
        (Goal { sum_ns: 0, ..goal }, "the sum lasts 0 s"),
        (
            Goal {
                initial_ns: 2 * SECOND,
                ..goal
            },
            "cannot be longer",
        ),
    ] {
        let error = Mlr::new(&[wrong], limits).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let longer = Goal {
        final_ns: 2 * SECOND,
        ..goal
    };
    assert!(matches!(
        Mlr::new(&[goal, longer], limits),
        Err(GoalError::Durations(..))
    ));
    assert!(matches!(
        Limits::new(2.0, 1.0),
        Err(GoalError::Limits { .. })
    ));
    assert!(matches!(
        Mlr::new(&[goal], Limits::new(0.5, 1e6).unwrap()),
        Err(GoalError::Frames { .. })
    ));
    assert!(matches!(Mlr::new(&[], limits), Err(GoalError::None)));
}

#[test]
fn a_search_that_ends_early_says_so() {
    let limits = Limits::new(1e3, 1e6).unwrap();
    let [goal, _] = goals(0.005);
    let all = trials(&mut Mlr::new(&[goal], limits).unwrap(), 5, |load| {
        (1.0 - 4e5 / load).max(0.0)
    });
    assert_eq!(
        outcome(&goal, limits, &all).irregular,
        Some(Irregular::Unfinished)
    );
}
