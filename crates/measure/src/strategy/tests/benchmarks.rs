//! RFC 2544's tests as a strategy: their order, their loads, and the ends that they come to.

use super::*;
use crate::experiment::{Benchmark, Measure};
use crate::record::Why;
use Benchmark::*;

/// The tester alone passes this many frames/s.
const CEILING: f64 = 1e6;
const MINUTE: u64 = 60 * SECOND;

fn tests(tests: &[Benchmark], duration_ns: u64) -> Design {
    let trials = Trials {
        measure: Measure::Rfc2544,
        tests: tests.to_vec(),
        duration_ns,
        ..Trials::default()
    };
    let mut design = design(3, vec![], trials, 1);
    design.slots[0].tester = true;
    for (slot, length) in design.slots[1..].iter_mut().zip([64.0, 1518.0]) {
        (slot.ceiling, slot.len_fcs, slot.shortest) = (Some(0), length, length == 64.0);
    }
    design
}

/// A DUT with this forwarding rate in frames/s and this queue; `valid`: whether a trial of it is.
fn run(
    it: &mut Rfc2544,
    rate: f64,
    queue: u64,
    valid: impl Fn(&TrialRequest) -> bool,
) -> Vec<TrialRequest> {
    let mut requests = Vec::new();
    while let Ok(request) = it.next(&at(0)) {
        let offered = request.load.unwrap_or(CEILING);
        let passed = if request.slot == 0 {
            offered
        } else {
            offered.min(rate)
        };
        let takes = queue as f64 * offered / (offered - rate).max(1e-9);
        let loss_ratio = match request.shape {
            Shape::Burst { frames } => 0.5 * f64::from(frames as f64 > takes),
            _ => 1.0 - passed / offered,
        };
        let valid = request.slot == 0 || valid(&request);
        let (received, handled) = (valid.then_some(passed), valid.then_some(passed));
        // A tester that does not keep its load beside the busy DUT.
        let offered = Some(if valid {
            offered
        } else {
            offered.min(0.5 * CEILING)
        });
        it.observe(&Observed {
            request,
            valid,
            received,
            handled,
            offered,
            loss_ratio,
            full: None,
        });
        requests.push(request);
        assert!(requests.len() < 20_000, "it does not end");
    }
    requests
}

fn of(requests: &[TrialRequest], test: Benchmark, slot: usize) -> Vec<TrialRequest> {
    requests
        .iter()
        .copied()
        .filter(|r| r.slot == slot && r.benchmark == Some(test))
        .collect()
}

fn why(it: &Rfc2544, test: Benchmark, slot: usize) -> Option<Why> {
    it.benchmarks()
        .into_iter()
        .find(|b| b.test == test && b.slot == slot)
        .unwrap()
        .why
}

#[test]
fn tests_come_one_after_the_other_with_the_times_of_their_rfcs() {
    let mut it = Rfc2544::new(tests(
        &[
            Throughput,
            Latency,
            FrameLoss,
            BackToBack,
            Recovery,
            DelayVariation,
        ],
        MINUTE,
    ));
    let requests = run(&mut it, 6e5, 256, |_| true);
    let mut order: Vec<Option<Benchmark>> = requests.iter().map(|r| r.benchmark).collect();
    order.dedup();
    let expected = [
        Throughput,
        Latency,
        FrameLoss,
        BackToBack,
        Recovery,
        DelayVariation,
    ];
    assert_eq!(order[0], None, "the tester alone comes first");
    assert_eq!(order[1..], expected.map(Some));
    let throughput = it.searches()[0].throughput().unwrap();
    assert!((0.995 * 6e5..=6e5).contains(&throughput), "{throughput}");

    let latency = of(&requests, Latency, 1);
    assert_eq!(latency.len(), 20);
    assert!(
        latency
            .iter()
            .all(|r| r.duration_ns == 2 * MINUTE && r.load == Some(throughput))
    );
    assert_eq!(of(&requests, DelayVariation, 2).len(), 20);

    // 95, 85.5, 76, 66.5 and 57 % and a step of the tester's rate below, of which the last two pass.
    let loads: Vec<f64> = of(&requests, FrameLoss, 1)
        .iter()
        .filter_map(|r| r.load)
        .collect();
    assert_eq!(loads.len(), 6, "{loads:?}");
    assert!((loads[0] - 9.5e5).abs() < 1.0 && (loads[1] - 8.55e5).abs() < 1.0 && loads[4] < 6e5);

    let step = of(&requests, Recovery, 1)[0];
    let load = 1.1 * throughput;
    assert_eq!(step.load, Some(load));
    assert_eq!(
        (step.shape, step.duration_ns),
        (
            Shape::Step {
                after_ns: MINUTE,
                fps: 0.5 * load
            },
            2 * MINUTE
        )
    );
    assert!(
        [Throughput, Latency, FrameLoss, BackToBack, Recovery]
            .iter()
            .all(|test| why(&it, *test, 1).is_none())
    );
}

#[test]
fn the_longest_burst_follows_from_the_queue_and_both_rates() {
    let mut design = tests(&[BackToBack], MINUTE);
    design.trials.repeats = Some(3);
    let mut it = Rfc2544::new(design);
    let requests = run(&mut it, 4.75e5, 256, |_| true);
    let found = it.benchmarks().remove(0);
    // Q R / (R - r) with R = 2 r.
    assert!(
        found.bursts.len() == 3
            && found
                .bursts
                .iter()
                .all(|frames| (509..=512).contains(frames)),
        "{found:?}"
    );
    assert_eq!(found.most, 1_900_000, "2 s at the reference rate");
    assert!(
        of(&requests, BackToBack, 1)
            .iter()
            .all(|r| r.load == Some(9.5e5)),
        "bursts of a virtual link are paced"
    );
}

#[test]
fn a_burst_near_the_limit_is_searched_again_with_a_higher_one() {
    let mut design = tests(&[BackToBack], MINUTE);
    design.trials.repeats = Some(1);
    let mut it = Rfc2544::new(design);
    run(&mut it, 4.75e5, 2_000_000, |_| true);
    let found = it.benchmarks().remove(0);
    assert!(
        found.bursts[0] > 3_900_000 && found.most == 7_600_000,
        "{found:?}"
    );
}

#[test]
fn a_dut_as_fast_as_the_tester_has_no_longest_burst_and_no_overload() {
    let mut it = Rfc2544::new(tests(&[Throughput, BackToBack, Recovery, Latency], SECOND));
    let requests = run(&mut it, 2e6, 256, |_| true);
    assert_eq!(
        (why(&it, BackToBack, 1), why(&it, Recovery, 1)),
        (Some(Why::AtMaximum), Some(Why::AtMaximum))
    );
    assert_eq!(of(&requests, Latency, 1).len(), 20);
}

#[test]
fn a_link_bounds_the_load() {
    let mut design = tests(&[FrameLoss], SECOND);
    design.link_speed = Some(1e8);
    design.slots[1].ceiling = None;
    design.slots[2].skipped = true;
    let mut it = Rfc2544::new(design);
    let requests = run(&mut it, 1e5, 256, |_| true);
    assert!(
        (requests[0].load.unwrap() - 148_809.5).abs() < 0.1,
        "{:?}",
        requests[0]
    );
    assert!((it.benchmarks()[0].line.unwrap() - 148_809.5).abs() < 0.1);
}

#[test]
fn a_dut_that_forwards_nothing_has_no_test_at_its_throughput() {
    let mut it = Rfc2544::new(tests(&[Throughput, Latency, FrameLoss], SECOND));
    let requests = run(&mut it, 0.0, 0, |_| true);
    assert_eq!(why(&it, Latency, 1), Some(Why::NoThroughput));
    assert_eq!(why(&it, Throughput, 1), Some(Why::NoThroughput));
    assert_eq!(of(&requests, FrameLoss, 1).len(), 10);
}

#[test]
fn a_tester_that_keeps_no_load_is_named_and_not_the_dut() {
    let mut it = Rfc2544::new(tests(&[Throughput, Latency], SECOND));
    run(&mut it, 1e5, 0, |r| r.load > Some(5e5));
    assert_eq!(
        (why(&it, Throughput, 1), why(&it, Latency, 1)),
        (Some(Why::Tester), Some(Why::Tester))
    );
}

#[test]
fn a_tester_that_fails_ends_a_test_and_no_other() {
    let mut it = Rfc2544::new(tests(&[Throughput, Latency, Recovery], SECOND));
    let requests = run(&mut it, 6e5, 256, |r| r.benchmark != Some(Latency));
    assert_eq!(
        (of(&requests, Latency, 1).len(), why(&it, Latency, 1)),
        (3, Some(Why::Tester))
    );
    assert_eq!(
        (of(&requests, Recovery, 1).len(), why(&it, Recovery, 1)),
        (5, None)
    );
}

#[test]
fn a_loss_curve_begins_at_the_load_that_the_tester_keeps() {
    let mut it = Rfc2544::new(tests(&[FrameLoss], SECOND));
    let requests = run(&mut it, 6e5, 256, |r| r.load < Some(0.5 * CEILING));
    let loads: Vec<f64> = of(&requests, FrameLoss, 1)
        .iter()
        .filter_map(|r| r.load)
        .collect();
    assert_eq!(loads[3], 0.95 * 0.5 * CEILING);
    assert_eq!(why(&it, FrameLoss, 1), None);
}

#[test]
fn a_reset_is_of_the_shortest_frames_and_needs_an_event() {
    let mut design = tests(&[Reset], MINUTE);
    let mut without = Rfc2544::new(design.clone());
    run(&mut without, 6e5, 256, |_| true);
    assert_eq!(without.benchmarks().len(), 1);
    assert_eq!(why(&without, Reset, 1), Some(Why::NoEvent));
    design.slots[1].event = true;
    let requests = run(&mut Rfc2544::new(design), 6e5, 256, |_| true);
    let reset = of(&requests, Reset, 1)[0];
    assert_eq!(
        (reset.shape, reset.duration_ns),
        (
            Shape::Event {
                after_ns: 15 * SECOND
            },
            75 * SECOND
        )
    );
    assert!(of(&requests, Reset, 2).is_empty());
}

#[test]
fn a_load_below_one_frame_a_trial_is_refused() {
    let mut design = tests(&[FrameLoss], SECOND);
    (design.trials.min_fps, design.trials.max_fps) = (Some(1.0), Some(2.0));
    let mut it = Rfc2544::new(design);
    run(&mut it, 0.0, 0, |_| true);
    assert_eq!(why(&it, FrameLoss, 1), Some(Why::NoFrame));
}

#[test]
fn the_time_of_all_tests_is_known_in_advance() {
    let took = |request: &TrialRequest| request.duration_ns + 11 * SECOND;
    let all = estimate(tests(&[Throughput, Latency], MINUTE), &[], took);
    let of = |test| *all.iter().find(|known| known.test == test).unwrap();
    assert_eq!(
        (of(Some(Latency)).trials, of(Some(Latency)).ns),
        (40, 40 * 131 * SECOND)
    );
    // By the notes of the reference: seven trials of 1 to 60 s for each size.
    assert!((10..20).contains(&of(Some(Throughput)).trials), "{all:?}");
    assert_eq!(of(None).trials, 23);
}

/// After each of its trials, and whichever way the frames go.
#[test]
fn the_time_left_is_that_of_the_trials_to_come() {
    let took = |request: &TrialRequest| request.duration_ns + 11 * SECOND;
    for direction in [Direction::Forward, Direction::Both] {
        let mut design = tests(&[Throughput, Latency], MINUTE);
        design
            .slots
            .iter_mut()
            .for_each(|slot| slot.direction = direction);
        let ways = direction.ways().len() as f64;
        let mut it = Rfc2544::new(design.clone());
        let (mut past, mut left) = (Vec::new(), Vec::new());
        while let Ok(request) = it.next(&at(0)) {
            left.push(
                estimate(design.clone(), &past, took)
                    .iter()
                    .map(|test| test.ns)
                    .sum::<u64>(),
            );
            let offered = request.load.unwrap_or(CEILING / ways);
            let received = if request.slot == 0 {
                offered
            } else {
                offered.min(4e5)
            };
            let trial = Observed {
                loss_ratio: 1.0 - received / offered,
                offered: Some(ways * offered),
                ..observed(request, Some(ways * received))
            };
            it.observe(&trial);
            past.push(trial);
        }
        // Once both DUTs have shown their rates, the estimate is exact.
        let shows =
            |slot| move |trial: &Observed| trial.request.slot == slot && trial.loss_ratio > 0.0;
        let known = [1, 2]
            .map(|slot| past.iter().position(shows(slot)).unwrap() + 1)
            .into_iter()
            .max()
            .unwrap();
        let mut to_come = 0;
        for (trial, left) in past.iter().zip(&left).skip(known).rev() {
            to_come += took(&trial.request);
            assert_eq!(to_come, *left, "{direction:?}: {}", trial.request);
        }
        assert!(
            past.len() > known + 20,
            "{direction:?}: {known} of {}",
            past.len()
        );
    }
}

#[test]
fn a_budget_ends_the_tests_and_says_so() {
    let mut design = tests(&[Throughput, Latency], SECOND);
    design.trials.budget_ns = Some(SECOND);
    let mut it = Rfc2544::new(design);
    assert_eq!(it.next(&at(2 * SECOND)), Err(Stopped::Budget));
    it.finish(Stopped::Budget);
    assert_eq!(why(&it, Latency, 1), Some(Why::Unfinished));
}

#[test]
fn an_interrupted_search_is_unfinished_whatever_it_knows_already() {
    let whole = run(
        &mut Rfc2544::new(tests(&[Throughput], MINUTE)),
        6e5,
        256,
        |_| true,
    );
    for trials in [1, whole.len() / 2, whole.len() - 1] {
        let mut it = Rfc2544::new(tests(&[Throughput], MINUTE));
        for request in &whole[..trials] {
            assert_eq!(it.next(&at(0)), Ok(*request));
            let offered = request.load.unwrap_or(CEILING);
            let passed = if request.slot == 0 {
                offered
            } else {
                offered.min(6e5)
            };
            let (received, loss_ratio) = (Some(passed), 1.0 - passed / offered);
            let offered = Some(offered);
            it.observe(&Observed {
                request: *request,
                valid: true,
                received,
                handled: received,
                offered,
                loss_ratio,
                full: None,
            });
        }
        it.finish(Stopped::Interrupted);
        assert_eq!(
            why(&it, Throughput, 2),
            Some(Why::Unfinished),
            "after {trials} of {}",
            whole.len()
        );
    }
}

/// The DUT forwards nothing after its first trials.
#[test]
fn a_dut_that_falls_silent_ends_each_test_at_once() {
    let whole = run(
        &mut Rfc2544::new(tests(&[Throughput, Latency], MINUTE)),
        6e5,
        256,
        |_| true,
    );
    let of_dut = whole.iter().filter(|r| r.slot != 0).count();
    let throughputs = of(&whole, Throughput, 1).len() + of(&whole, Throughput, 2).len();
    for (passes, throughput, latencies) in [(6, Some(Why::Silent), 0), (throughputs + 4, None, 5)] {
        assert!(passes < of_dut);
        let mut it = Rfc2544::new(tests(&[Throughput, Latency], MINUTE));
        let (mut made, mut all) = (0, Vec::new());
        while let Ok(request) = it.next(&at(0)) {
            made += usize::from(request.slot != 0);
            let offered = request.load.unwrap_or(CEILING);
            let passed = match request.slot {
                0 => offered,
                _ if made > passes => 0.0,
                _ => offered.min(6e5),
            };
            let (received, loss_ratio) = (Some(passed), 1.0 - passed / offered);
            all.push(request);
            let offered = Some(offered);
            it.observe(&Observed {
                request,
                valid: true,
                received,
                handled: received,
                offered,
                loss_ratio,
                full: None,
            });
        }
        assert_eq!(
            (why(&it, Throughput, 1), why(&it, Latency, 1)),
            (throughput, Some(Why::Silent))
        );
        assert_eq!(
            of(&all, Latency, 1).len(),
            latencies,
            "after {passes} trials of the DUT"
        );
    }
}
