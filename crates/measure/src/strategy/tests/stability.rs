//! Loads far below the rate, before a search.

use super::searches::{CEILING, design_of};
use super::*;
use crate::experiment::{Benchmark, Measure};
use crate::record::{Ended, Stability, Why};
use linerate_search::Irregular;
use linerate_wire::SplitMix64;

/// The DUT forwards this many frames/s.
const RATE: f64 = 4e5;

fn searching() -> Design {
    let mut design = design_of(1, Direction::Forward);
    design.trials.stability = true;
    design
}

/// Runs a strategy. `below`: the loss ratio of a trial of the DUT by its load, beside the loss above its rate; `None`: an invalid trial.
fn run_with(
    it: &mut dyn Strategy,
    mut below: impl FnMut(&TrialRequest) -> Option<f64>,
) -> Vec<TrialRequest> {
    let (mut elapsed, mut requests) = (0, Vec::new());
    while let Ok(request) = it.next(&at(elapsed)) {
        let load = request.load.unwrap_or(CEILING);
        let (rate, lost) = match request.slot {
            0 => (CEILING, Some(0.0)),
            _ => (RATE, below(&request)),
        };
        let received = lost.map(|lost| load.min(rate) * (1.0 - lost));
        it.observe(&Observed {
            loss_ratio: received.map_or(0.0, |received| 1.0 - received / load),
            offered: Some(load),
            ..observed(request, received)
        });
        requests.push(request);
        elapsed += SECOND;
        assert!(requests.len() < 2000);
    }
    requests
}

fn before(requests: &[TrialRequest]) -> Vec<f64> {
    let own = |request: &&TrialRequest| request.benchmark == Some(Benchmark::Stability);
    let own = requests.iter().filter(own);
    own.filter_map(|request| request.load).collect()
}

fn stability(it: &dyn Strategy) -> Stability {
    it.searches()[0].stability.clone().unwrap()
}

#[test]
fn a_stable_dut_costs_four_trials_and_the_search_stays_as_it_is() {
    let mut it = Searches::new(searching());
    let requests = run_with(&mut it, |_| Some(0.0));
    assert_eq!(
        before(&requests),
        [0.95 * CEILING, 0.01 * RATE, 0.1 * RATE, 0.5 * RATE]
    );
    let found = stability(&it);
    assert_eq!((found.rate, found.unstable()), (RATE, None));
    let counted = found
        .loads
        .iter()
        .map(|low| (low.share, low.trials, low.lossy));
    assert_eq!(
        counted.collect::<Vec<_>>(),
        [(0.01, 1, 0), (0.1, 1, 0), (0.5, 1, 0)]
    );
    let mut plain = Searches::new(design_of(1, Direction::Forward));
    let without = run_with(&mut plain, |_| Some(0.0));
    let numbered = |(block, request): (u32, TrialRequest)| TrialRequest { block, ..request };
    let rest = requests
        .into_iter()
        .filter(|request| request.benchmark.is_none());
    assert_eq!((0..).zip(rest).map(numbered).collect::<Vec<_>>(), without);
    assert_eq!(it.searches()[0].goals, plain.searches()[0].goals);
    assert_eq!(plain.searches()[0].stability, None);
}

#[test]
fn loss_at_every_load_refuses_ndr_and_gives_pdr() {
    let mut it = Searches::new(searching());
    let requests = run_with(&mut it, |_| Some(0.001));
    assert_eq!(before(&requests).len(), 1 + 3 * 6);
    let found = it.searches().remove(0);
    let low = found.unstable().unwrap();
    assert_eq!((low.share, low.trials, low.lossy), (0.01, 6, 6));
    assert!(
        low.loss
            .low
            .is_some_and(|least| (least - 0.001).abs() < 1e-9),
        "{low:?}"
    );
    let [ndr, pdr] = [0, 1].map(|goal| found.goals[goal].outcome);
    assert_eq!(
        (ndr.irregular, ndr.lower, ndr.upper),
        (Some(Irregular::Unstable), None, None)
    );
    assert_eq!((found.ended, pdr.irregular), (Some(Ended::Known), None));
    assert!(
        (pdr.conditional.unwrap() / RATE - 1.0).abs() < 0.01,
        "{pdr:?}"
    );
}

#[test]
fn without_another_goal_the_search_ends() {
    let mut design = searching();
    design.trials.goals.truncate(1);
    let mut it = Searches::new(design);
    let requests = run_with(&mut it, |_| Some(0.001));
    let found = it.searches().remove(0);
    assert_eq!((found.ended, found.loads.len()), (Some(Ended::Unstable), 0));
    assert_eq!(requests.len(), 23 + 1 + 3 * 6);
    assert!(found.stopped(Stopped::Precise).contains("unstable"));
}

/// A loss at half of its rate alone.
#[test]
fn loss_near_its_rate_is_found_there() {
    let mut it = Searches::new(searching());
    run_with(&mut it, |request| {
        Some(if request.load > Some(0.4 * RATE) {
            0.01
        } else {
            0.0
        })
    });
    assert_eq!(stability(&it).unstable().unwrap().share, 0.5);
}

#[test]
fn a_few_disturbed_trials_name_no_dut_unstable() {
    let mut seen = 0;
    let mut it = Searches::new(searching());
    run_with(&mut it, |request| {
        seen += u32::from(request.benchmark.is_some());
        // After the first, five of each six trials.
        Some(if request.benchmark.is_some() && seen % 6 != 0 {
            0.001
        } else {
            0.0
        })
    });
    let found = stability(&it);
    assert!(
        found.unstable().is_none() && found.loads.iter().any(|low| low.lossy >= 4),
        "{found:?}"
    );
    assert!(it.searches()[0].goals[0].outcome.lower.is_some());
}

/// The machine disturbs half of all trials at random: at most one load in 64 may be misjudged.
#[test]
fn chance_names_few_duts_unstable() {
    let unstable = |seed: u64| {
        let mut random = SplitMix64::new(seed);
        let mut it = Searches::new(searching());
        run_with(&mut it, |request| {
            let disturbed = request.benchmark.is_some() && random.below(2) == 0;
            Some(if disturbed { 0.001 } else { 0.0 })
        });
        stability(&it).unstable().is_some()
    };
    let named = (0..300).filter(|seed| unstable(*seed)).count();
    assert!(named <= 27, "{named} of 300, where 14 are expected");
}

#[test]
fn where_the_machine_disturbs_most_trials_loss_says_nothing() {
    let mut it = Searches::new(searching());
    for _ in 0..23 {
        let request = it.next(&at(0)).unwrap();
        it.observe(&Observed {
            loss_ratio: 1e-4,
            ..observed(request, Some(CEILING))
        });
    }
    run_with(&mut it, |_| Some(0.001));
    let found = stability(&it);
    assert_eq!((found.loads[0].lossy, found.unstable()), (6, None));
}

#[test]
fn loads_whose_trials_fail_are_left_out() {
    let low = |request: &TrialRequest| request.load <= Some(0.1 * RATE);
    let fails = |request: &TrialRequest| request.benchmark.is_some() && low(request);
    let mut it = Searches::new(searching());
    let requests = run_with(&mut it, |request| (!fails(request)).then_some(0.0));
    assert_eq!(before(&requests).len(), 1 + 3 + 3 + 1);
    let found = stability(&it);
    assert_eq!(
        found.loads.iter().map(|low| low.share).collect::<Vec<_>>(),
        [0.5]
    );
    assert_eq!(it.searches()[0].ended, Some(Ended::Known));
}

/// The tester that is slower beside the DUT is found before the search.
#[test]
fn the_highest_load_is_one_that_the_tester_keeps() {
    let mut it = Searches::new(searching());
    let fast = |request: &TrialRequest| request.load > Some(0.6 * CEILING);
    let mut requests = Vec::new();
    while let Ok(request) = it.next(&at(0)) {
        let load = request.load.unwrap_or(CEILING);
        let ok = request.slot == 0 || !fast(&request);
        let rate = if request.slot == 0 { CEILING } else { RATE };
        it.observe(&Observed {
            loss_ratio: (1.0 - rate / load).max(0.0),
            offered: Some(load.min(0.6 * CEILING)),
            ..observed(request, ok.then_some(load.min(rate)))
        });
        requests.push(request);
    }
    assert_eq!(it.searches()[0].limits.max, 0.95 * 0.6 * CEILING);
    assert_eq!(before(&requests).len(), 3 + 1 + 3);
    assert_eq!(it.searches()[0].ended, Some(Ended::Known));
}

#[test]
fn tests_that_need_a_throughput_are_refused() {
    let mut design = searching();
    design.trials.measure = Measure::Rfc2544;
    design.trials.tests = vec![
        Benchmark::Throughput,
        Benchmark::Latency,
        Benchmark::FrameLoss,
    ];
    design.trials.duration_ns = 60 * SECOND;
    design.trials.budget_ns = None;
    let mut it = Rfc2544::new(design.clone());
    let requests = run_with(&mut it, |_| Some(0.001));
    let of = |test| {
        requests
            .iter()
            .filter(move |request| request.benchmark == Some(test))
    };
    assert!(of(Benchmark::Stability).all(|request| request.duration_ns == SECOND));
    assert_eq!(
        of(Benchmark::Throughput).count() + of(Benchmark::Latency).count(),
        0
    );
    assert!(of(Benchmark::FrameLoss).count() > 5);
    let whys: Vec<Option<Why>> = it.benchmarks().iter().map(|benched| benched.why).collect();
    assert_eq!(whys, [Some(Why::Unstable), Some(Why::Unstable), None]);
    // A stable DUT is tested as without these trials.
    let tested = |design: Design| {
        let requests = run_with(&mut Rfc2544::new(design), |_| Some(0.0)).into_iter();
        let own = requests.filter(|request| request.benchmark != Some(Benchmark::Stability));
        own.map(|request| TrialRequest {
            block: 0,
            ..request
        })
        .collect::<Vec<_>>()
    };
    let mut plain = design.clone();
    plain.trials.stability = false;
    assert_eq!(tested(design), tested(plain));
}

/// In each direction.
#[test]
fn shares_are_those_of_each_direction() {
    let mut design = design_of(1, Direction::Both);
    design.trials.stability = true;
    let mut it = Searches::new(design);
    let requests = run_with(&mut it, |_| Some(0.0));
    assert_eq!(before(&requests)[1], 0.01 * RATE / 2.0);
}
