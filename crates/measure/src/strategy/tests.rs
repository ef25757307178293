//! Tests of the strategies: order, bounds, groups, dropping.

use super::comparison::State;
use super::*;
use crate::experiment::{Comparison, Interest};
use linerate_stats::Estimate;

const SECOND: u64 = 1_000_000_000;

fn slot() -> DesignSlot {
    DesignSlot::default()
}

fn pair(of: usize, than: usize) -> Comparison {
    Comparison {
        of,
        than,
        why: Interest::Variants,
        decides: true,
    }
}

/// A level of a factor with its first.
fn level(of: usize) -> Comparison {
    Comparison {
        why: Interest::Levels(0),
        ..pair(of, 0)
    }
}

fn design(slots: usize, comparisons: Vec<Comparison>, trials: Trials, seed: u64) -> Design {
    let slots = vec![slot(); slots];
    Design {
        slots,
        comparisons,
        trials,
        seed,
        link_speed: None,
    }
}

fn blocks(most: u32) -> Trials {
    Trials {
        blocks: Some(most),
        ..Trials::default()
    }
}

fn at(elapsed_ns: u64) -> History<'static> {
    History {
        elapsed_ns,
        trials: &[],
    }
}

fn observed(request: TrialRequest, rate: Option<f64>) -> Observed {
    Observed {
        request,
        valid: rate.is_some(),
        received: rate,
        handled: rate,
        offered: rate,
        loss_ratio: 0.0,
        full: None,
    }
}

/// Runs it to its end, with a rate for each (block, slot), a second for each trial.
fn run(
    strategy: &mut dyn Strategy,
    mut rate: impl FnMut(u32, usize) -> Option<f64>,
) -> (Stopped, Vec<(u32, usize)>) {
    let (mut elapsed, mut trials) = (0, Vec::new());
    loop {
        match strategy.next(&at(elapsed)) {
            Ok(request) => {
                strategy.observe(&observed(request, rate(request.block, request.slot)));
                trials.push((request.block, request.slot));
            }
            Err(stopped) => return (stopped, trials),
        }
        elapsed += SECOND;
    }
}

fn received(blocks: &Blocks, of: usize, than: usize) -> Option<Estimate> {
    blocks.ratio(of, than, Figure::Received, &[])
}

#[test]
fn every_block_has_every_slot_once_and_orders_differ() {
    let mut it = Blocks::new(design(4, vec![], blocks(50), 1));
    let (stopped, trials) = run(&mut it, |_, _| Some(1.0));
    assert_eq!((stopped, trials.len()), (Stopped::Trials, 200));
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for (number, block) in trials.chunks(4).enumerate() {
        assert!(block.iter().all(|(b, _)| *b as usize == number));
        let order: Vec<usize> = block.iter().map(|(_, slot)| *slot).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
        orders.push(order);
    }
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 10, "{} orders", orders.len());
}

#[test]
fn stops_when_the_interval_is_narrow() {
    let stopping = Trials {
        until: Some(0.02),
        budget_ns: Some(400 * SECOND),
        ..Trials::default()
    };
    let mut it = Blocks::new(design(2, vec![pair(1, 0)], stopping, 3));
    let mut trials = 0;
    let (stopped, all) = run(&mut it, |_, slot| {
        trials += 1;
        Some(
            if slot == 0 { 10.0 } else { 7.0 }
                * (1.0 + 0.02 * ((trials * 7919) % 13) as f64 / 13.0),
        )
    });
    assert_eq!(stopped, Stopped::Precise);
    let (state, ratio) = it.watched().next().unwrap();
    assert!(state == State::Precise && ratio.unwrap().relative_width() < 0.02);
    assert!(
        it.widest().unwrap() < 0.02 && all.len() < 400,
        "{} trials",
        all.len()
    );
}

#[test]
fn stops_at_the_budget_and_ignores_invalid_trials() {
    let stopping = Trials {
        until: Some(0.02),
        budget_ns: Some(61 * SECOND),
        ..Trials::default()
    };
    let mut it = Blocks::new(design(2, vec![pair(1, 0)], stopping, 3));
    let (stopped, trials) = run(&mut it, |_, slot| (slot == 0).then_some(1.0));
    assert_eq!((stopped, trials.len()), (Stopped::Budget, 60));
    assert_eq!(it.widest(), Some(f64::INFINITY));
    assert_eq!(received(&it, 1, 0), None);
}

#[test]
fn the_first_block_runs_whatever_the_budget() {
    let stopping = Trials {
        budget_ns: Some(0),
        ..Trials::default()
    };
    let (stopped, trials) = run(&mut Blocks::new(design(3, vec![], stopping, 3)), |_, _| {
        Some(1.0)
    });
    assert_eq!((stopped, trials.len()), (Stopped::Budget, 3));
}

#[test]
fn groups_stay_together_and_come_in_any_order() {
    let mut it = design(6, vec![], blocks(60), 7);
    for (number, slot) in it.slots.iter_mut().enumerate() {
        slot.group = number % 3;
    }
    let (_, trials) = run(&mut Blocks::new(it), |_, _| Some(1.0));
    let mut firsts = [0; 3];
    for block in trials.chunks(6) {
        let groups: Vec<usize> = block.iter().map(|(_, slot)| slot % 3).collect();
        assert!(groups.chunks(2).all(|g| g[0] == g[1]), "{groups:?}");
        firsts[groups[0]] += 1;
    }
    assert!(firsts.iter().all(|n| *n > 8), "{firsts:?}");
}

#[test]
fn what_is_known_takes_no_more_trials() {
    // Slot 0 is the ceiling of all, 1 the baseline, 2 steady, 3 noisy, 4 in no comparison.
    let stopping = Trials {
        until: Some(0.02),
        ..blocks(200)
    };
    let mut it = design(5, vec![pair(2, 1), pair(3, 1)], stopping, 5);
    it.slots[1..].iter_mut().for_each(|s| s.ceiling = Some(0));
    let mut it = Blocks::new(it);
    let mut noise = linerate_wire::SplitMix64::new(1);
    let (stopped, trials) = run(&mut it, |_, slot| {
        let noise = noise.below(1000) as f64 / 1000.0;
        Some(if slot == 3 {
            1.0 + noise
        } else {
            1.0 + noise / 1000.0
        })
    });
    let of = |slot| trials.iter().filter(|(_, s)| *s == slot).count();
    assert_eq!(stopped, Stopped::Trials);
    assert_eq!([of(0), of(1), of(3), of(4)], [200; 4]);
    assert!(of(2) < 100, "{}", of(2));
    let states: Vec<State> = it.watched().map(|(state, _)| state).collect();
    assert_eq!(states, [State::Precise, State::Open]);
}

#[test]
fn a_ceiling_goes_with_the_last_slot_that_needs_it() {
    let stopping = Trials {
        until: Some(0.02),
        ..blocks(100)
    };
    let mut it = design(6, vec![pair(2, 1), pair(5, 4)], stopping, 5);
    (it.slots[1].ceiling, it.slots[2].ceiling) = (Some(0), Some(0));
    (it.slots[4].ceiling, it.slots[5].ceiling) = (Some(3), Some(3));
    let mut noise = linerate_wire::SplitMix64::new(1);
    let (_, trials) = run(&mut Blocks::new(it), |_, slot| {
        Some(
            1.0 + if slot == 5 {
                noise.below(1000) as f64 / 1000.0
            } else {
                0.0
            },
        )
    });
    let of = |slot| trials.iter().filter(|(_, s)| *s == slot).count();
    assert!(of(0) < 60 && of(0) == of(1) && of(0) == of(2), "{}", of(0));
    assert_eq!([of(3), of(4), of(5)], [100; 3]);
}

#[test]
fn what_is_skipped_never_runs_and_decides_nothing() {
    let stopping = Trials {
        until: Some(0.02),
        ..blocks(40)
    };
    let mut it = design(3, vec![pair(1, 0), pair(2, 0)], stopping, 5);
    it.slots[2].skipped = true;
    let mut it = Blocks::new(it);
    let (stopped, trials) = run(&mut it, |_, _| Some(1.0));
    assert_eq!(stopped, Stopped::Precise);
    assert!(trials.iter().all(|(_, slot)| *slot != 2));
    assert_eq!(it.watched().last().unwrap().0, State::Nothing);
}

#[test]
fn one_after_the_other_shares_the_time_equally() {
    let stopping = Trials {
        budget_ns: Some(30 * SECOND),
        until: Some(0.5),
        ..Trials::default()
    };
    let mut sequential = Sequential::new(design(3, vec![pair(1, 0)], stopping, 1));
    let (stopped, trials) = run(&mut sequential, |_, _| Some(1.0));
    assert_eq!(stopped, Stopped::Budget);
    let expected: Vec<(u32, usize)> = (0..3)
        .flat_map(|slot| (0..10).map(move |trial| (trial, slot)))
        .collect();
    assert_eq!(trials, expected);
    let of = |&(block, slot)| {
        observed(
            TrialRequest {
                slot,
                block,
                load: None,
                duration_ns: 1,
                shape: Shape::Constant,
                benchmark: None,
            },
            Some(1.0),
        )
    };
    let all: Vec<Observed> = trials.iter().map(of).collect();
    let ratio = sequential.ratio(1, 0, Figure::Received, &all).unwrap();
    assert_eq!((ratio.n, ratio.low, ratio.high), (10, Some(1.0), Some(1.0)));
    let (stopped, trials) = run(
        &mut Sequential::new(design(3, vec![], blocks(4), 1)),
        |_, _| Some(1.0),
    );
    assert_eq!((stopped, trials.len()), (Stopped::Trials, 12));
}

#[test]
fn an_interval_waits_for_the_next_look() {
    let mut it = Blocks::new(design(2, vec![pair(1, 0)], blocks(60), 1));
    for _ in 0..2 * 33 {
        let request = it.next(&at(0)).unwrap();
        it.observe(&observed(request, Some(1.0)));
    }
    // Looks after 10, 20, 30 blocks; the third is the first with enough pairs for an interval.
    assert_eq!(received(&it, 1, 0).unwrap().n, 30);
    assert_eq!(received(&it, 0, 1).unwrap().n, 30);
    assert_eq!(received(&it, 1, 0).unwrap().low, Some(1.0));
}

#[test]
fn a_list_asks_for_its_trials_and_compares_all_of_them() {
    let request = |slot, block| TrialRequest {
        slot,
        block,
        load: Some(1e6),
        duration_ns: SECOND,
        shape: Shape::Constant,
        benchmark: None,
    };
    let wanted: Vec<TrialRequest> = (0..8)
        .flat_map(|block| [request(1, block), request(0, block)])
        .collect();
    let mut list = List::new(wanted.clone());
    let mut trials: Vec<Observed> = Vec::new();
    while let Ok(due) = list.next(&History {
        elapsed_ns: 0,
        trials: &trials,
    }) {
        trials.push(observed(due, Some(if due.slot == 0 { 4.0 } else { 2.0 })));
    }
    assert_eq!(trials.iter().map(|t| t.request).collect::<Vec<_>>(), wanted);
    let ratio = list.ratio(1, 0, Figure::Received, &trials).unwrap();
    assert_eq!((ratio.median, ratio.n, ratio.low), (0.5, 8, Some(0.5)));
    trials[3].received = None;
    assert_eq!(list.ratio(1, 0, Figure::Received, &trials).unwrap().n, 7);
}

mod benchmarks;
mod bisection;
mod error_rate;
mod replay;
mod searches;
mod stability;

#[test]
fn waits_and_questions_to_a_dut_are_no_part_of_the_budget() {
    use crate::record::{CollectorCost, TrialRecord};
    let cost = |name: &str, seconds: u64| CollectorCost {
        name: name.into(),
        took_ns: seconds * SECOND,
    };
    let trial = |waited: u64| TrialRecord {
        waited_ns: waited * SECOND,
        collectors: vec![cost("cpus", 5), cost(CONFIGURATION, 4)],
        ..TrialRecord::default()
    };
    assert_eq!(spent_ns(20 * SECOND, &[trial(1), trial(0)]), 11 * SECOND);
}
