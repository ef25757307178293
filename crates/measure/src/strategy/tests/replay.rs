//! A strategy depends only on its design and its trials: replayed from any prefix, it continues in the same way.

use super::*;
use crate::audit::{Evidence, audit};
use crate::counters::PortCounters;
use crate::record::{TrialRecord, VERSION};
use crate::strategy::Strategy;
use crate::trial::Rates;
use crate::trial::Timing;
use linerate_wire::SplitMix64;
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

fn record(number: u64, request: TrialRequest, began_ns: u64, rate: Option<f64>) -> TrialRecord {
    let port = |frames| PortCounters {
        frames,
        ..PortCounters::default()
    };
    let rates = rate.map(|r| Rates {
        offered: r,
        received: r,
        seconds: 0.25,
    });
    let evidence = Evidence {
        rates,
        generator: port(1000),
        receiver: port(1000),
        ..Evidence::default()
    };
    TrialRecord {
        version: VERSION,
        trial: number,
        block: request.block,
        slot: request.slot,
        asked_fps: request.load,
        began_ns,
        timing: Timing::slice(request.duration_ns),
        rates,
        loss_ratio: 0.0,
        generator: port(1000),
        receiver: port(1000),
        audit: audit(&evidence),
        ..TrialRecord::default()
    }
}

/// Runs a campaign and records it. Trials take irregular times, and one in ten is not valid.
fn recorded(design: Design, seed: u64) -> (Vec<TrialRecord>, Stopped, Box<dyn Strategy>) {
    let mut strategy = strategy(design);
    let mut random = SplitMix64::new(seed);
    let (mut elapsed, mut trials, mut seen) = (0, Vec::new(), Vec::new());
    loop {
        match strategy.next(&History {
            elapsed_ns: elapsed,
            trials: &seen,
        }) {
            Ok(request) => {
                let noise =
                    f64::from(random.below(1000)) * if request.slot % 2 == 0 { 1e-5 } else { 1e-3 };
                let rate = (random.below(10) > 0).then_some(1.0 + noise);
                let trial = record(trials.len() as u64, request, elapsed, rate);
                seen.push(Observed::from(&trial));
                strategy.observe(&seen[seen.len() - 1]);
                trials.push(trial);
            }
            Err(stopped) => return (trials, stopped, strategy),
        }
        elapsed += SECOND / 2 + u64::from(random.below(1_000_000_000));
    }
}

fn any_design() -> impl proptest::strategy::Strategy<Value = Design> {
    let places = prop::collection::vec(
        (
            0usize..3,
            prop::option::of(0usize..7),
            prop::bool::weighted(0.1),
        ),
        1..7,
    );
    let watched = prop::collection::vec((0usize..7, 0usize..7, any::<bool>()), 0..5);
    let stopping = (
        prop::option::of(0.001f64..0.2),
        1u32..60,
        prop::option::of(0u64..200),
    );
    (places, watched, stopping, any::<u64>(), 0usize..3).prop_map(
        |(places, watched, stopping, seed, order)| Design {
            slots: places
                .into_iter()
                .map(|(group, ceiling, skipped)| DesignSlot {
                    group,
                    ceiling,
                    load: Some(group as f64),
                    skipped,
                    ..DesignSlot::default()
                })
                .collect(),
            comparisons: watched
                .into_iter()
                .map(|(of, than, decides)| Comparison {
                    decides,
                    ..match order {
                        2 => level(of),
                        _ => pair(of, than),
                    }
                })
                .collect(),
            trials: Trials {
                order: [Order::Blocks, Order::Sequential, Order::Bisection][order],
                duration_ns: SECOND / 4,
                until: stopping.0,
                blocks: Some(stopping.1),
                budget_ns: stopping.2.map(|s| s * SECOND),
                ..Trials::default()
            },
            seed,
            link_speed: None,
        },
    )
}

/// Every ratio of both figures, by the strategy.
fn ratios(strategy: &dyn Strategy, slots: usize, trials: &[TrialRecord]) -> Vec<Option<Estimate>> {
    let seen: Vec<Observed> = trials.iter().map(Observed::from).collect();
    let pairs = (0..slots * slots).map(|n| (n / slots, n % slots));
    let both = |(of, than)| {
        [Figure::Received, Figure::Handled].map(|figure| strategy.ratio(of, than, figure, &seen))
    };
    pairs.flat_map(both).collect()
}

#[test]
fn a_record_gives_the_state_that_the_campaign_ended_with() {
    let stopping = Trials {
        until: Some(0.02),
        budget_ns: Some(300 * SECOND),
        ..Trials::default()
    };
    let it = design(4, vec![pair(2, 0), pair(1, 0), pair(3, 0)], stopping, 9);
    let (trials, stopped, original) = recorded(it.clone(), 1);
    assert_eq!(stopped, Stopped::Budget);
    let (mut replayed, _) = replay(it, &trials).unwrap();
    replayed.finish(stopped);
    assert_eq!(
        ratios(&*replayed, 4, &trials),
        ratios(&*original, 4, &trials)
    );
    assert_eq!(replayed.progress(), original.progress());
    // Slot 2 is known sooner, and the time goes to the others.
    let of = |slot| trials.iter().filter(|t| t.slot == slot).count();
    assert!(
        of(2) + 10 < of(3) && of(3) == of(1),
        "{} {} {}",
        of(1),
        of(2),
        of(3)
    );
}

#[test]
fn records_of_another_order_are_named() {
    let it = design(3, vec![pair(2, 0)], blocks(6), 9);
    let (mut trials, ..) = recorded(it.clone(), 1);
    trials.swap(7, 8);
    let request = |trial: &TrialRecord| Observed::from(trial).request;
    let mismatch = replay(it.clone(), &trials).err().unwrap();
    let due = Ok(request(&trials[8]));
    assert_eq!(
        mismatch,
        Mismatch {
            trial: 8,
            recorded: request(&trials[7]),
            due
        }
    );
    trials.swap(7, 8);
    trials[4].asked_fps = Some(5.0);
    let mismatch = replay(it.clone(), &trials).err().unwrap();
    assert_eq!((mismatch.trial, mismatch.recorded.load), (4, Some(5.0)));
    trials[4].asked_fps = None;
    trials.push(record(
        99,
        TrialRequest {
            block: 6,
            ..request(&trials[0])
        },
        0,
        None,
    ));
    let mismatch = replay(it, &trials).err().unwrap();
    assert!(
        mismatch
            .to_string()
            .ends_with("none, since the campaign was over"),
        "{mismatch}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_replay_of_any_prefix_goes_on_in_the_same_way(it in any_design(), seed in any::<u64>(), cut in 0.0f64..1.0) {
        let (trials, stopped, original) = recorded(it.clone(), seed);
        let cut = (cut * trials.len() as f64) as usize;
        let (mut strategy, mut seen) = replay(it.clone(), &trials[..cut]).unwrap();
        for trial in &trials[cut..] {
            let due = strategy.next(&History { elapsed_ns: trial.began_ns, trials: &seen });
            seen.push(Observed::from(trial));
            prop_assert_eq!(due, Ok(seen[seen.len() - 1].request));
            strategy.observe(&seen[seen.len() - 1]);
        }
        strategy.finish(stopped);
        let slots = it.slots.len();
        prop_assert_eq!(ratios(&*strategy, slots, &trials), ratios(&*original, slots, &trials));
        prop_assert_eq!(strategy.progress(), original.progress());
        prop_assert_eq!(strategy.bisection(), original.bisection());
        let most = it.trials.blocks.unwrap();
        prop_assert!(trials.iter().all(|t| t.block < most && !it.slots[t.slot].skipped));
    }
}
