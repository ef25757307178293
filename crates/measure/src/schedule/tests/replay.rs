//! A schedule is what its design and its trials say: replayed from any prefix, it goes on in the same way.

use super::*;
use crate::audit::{Evidence, audit};
use crate::counters::PortCounters;
use crate::record::{TrialRecord, VERSION};
use crate::trial::Rates;
use linerate_plan::timing::Timing;
use linerate_wire::SplitMix64;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn record(number: u64, (block, slot): (u32, usize), began_ns: u64, rate: Option<f64>) -> TrialRecord {
    let port = |frames| PortCounters { frames, ..PortCounters::default() };
    let rates = rate.map(|r| Rates { offered: r, received: r, seconds: 0.25 });
    let evidence = Evidence { rates, generator: port(1000), receiver: port(1000), ..Evidence::default() };
    TrialRecord {
        version: VERSION,
        trial: number,
        block,
        slot,
        began_ns,
        timing: Timing::slice(250_000_000),
        rates,
        loss_ratio: 0.0,
        generator: port(1000),
        receiver: port(1000),
        losses: vec![],
        dut: BTreeMap::new(),
        cpus: vec![],
        audit: audit(&evidence),
        samples: vec![],
        connections: None,
        collected: vec![],
        rules: Vec::new(),
        skew_ns: None,
        took_ns: 0,
        reboots: 0,
        imported: None,
    }
}

/// Runs a campaign and records it. Trials take irregular times, and one in ten is not valid.
fn recorded(design: Design, seed: u64) -> (Vec<TrialRecord>, Stopped, Schedule) {
    let mut schedule = Schedule::new(design);
    let mut random = SplitMix64::new(seed);
    let (mut elapsed, mut trials) = (0, Vec::new());
    loop {
        match schedule.next(elapsed) {
            Ok((block, slot)) => {
                let noise = f64::from(random.below(1000)) * if slot % 2 == 0 { 1e-5 } else { 1e-3 };
                let rate = (random.below(10) > 0).then_some(1.0 + noise);
                schedule.observe(block, slot, rate);
                trials.push(record(trials.len() as u64, (block, slot), elapsed, rate));
            }
            Err(stopped) => return (trials, stopped, schedule),
        }
        elapsed += SECOND / 2 + u64::from(random.below(1_000_000_000));
    }
}

fn any_design() -> impl Strategy<Value = Design> {
    let places =
        prop::collection::vec((0usize..3, prop::option::of(0usize..7), prop::bool::weighted(0.1)), 1..7);
    let watched = prop::collection::vec((0usize..7, 0usize..7, any::<bool>()), 0..5);
    let stopping = (prop::option::of(0.001f64..0.2), 1u32..60, prop::option::of(0u64..200));
    (places, watched, stopping, any::<u64>(), any::<bool>()).prop_map(
        |(places, watched, stopping, seed, blocks)| Design {
            slots: places
                .into_iter()
                .map(|(group, ceiling, skipped)| Place { group, ceiling, skipped })
                .collect(),
            watched: watched.into_iter().map(|(of, than, decides)| Watched { of, than, decides }).collect(),
            order: if blocks { Order::Blocks } else { Order::Sequential },
            stopping: Stopping {
                relative_width: stopping.0,
                most_blocks: Some(stopping.1),
                budget_ns: stopping.2.map(|s| s * SECOND),
            },
            seed,
        },
    )
}

fn known(schedule: &Schedule) -> Vec<Known> {
    schedule.watched().collect()
}

#[test]
fn a_record_gives_the_state_that_the_campaign_ended_with() {
    let stopping = Stopping { relative_width: Some(0.02), budget_ns: Some(300 * SECOND), most_blocks: None };
    let it = design(4, vec![pair(2, 0), pair(1, 0), pair(3, 0)], stopping, 9);
    let (trials, stopped, original) = recorded(it.clone(), 1);
    assert_eq!(stopped, Stopped::Budget);
    let mut replayed = Schedule::replay(it, &trials).unwrap();
    replayed.finish(stopped);
    assert_eq!(known(&replayed), known(&original));
    assert_eq!((replayed.blocks(), replayed.widest()), (original.blocks(), original.widest()));
    // Slot 2 is known sooner, and the time goes to the others.
    let of = |slot| trials.iter().filter(|t| t.slot == slot).count();
    assert!(of(2) + 10 < of(3) && of(3) == of(1), "{} {} {}", of(1), of(2), of(3));
    assert_eq!(known(&original).iter().filter(|k| k.state == State::Precise).count(), 1);
}

#[test]
fn records_of_another_order_are_named() {
    let it = design(3, vec![pair(2, 0)], blocks(6), 9);
    let (mut trials, ..) = recorded(it.clone(), 1);
    trials.swap(7, 8);
    let due = Ok((trials[8].block, trials[8].slot));
    let mismatch = Schedule::replay(it.clone(), &trials).unwrap_err();
    assert_eq!(mismatch, Mismatch { trial: 8, recorded: (trials[7].block, trials[7].slot), due });
    trials.swap(7, 8);
    trials.push(record(99, (6, 0), 0, None));
    let mismatch = Schedule::replay(it, &trials).unwrap_err();
    assert!(mismatch.to_string().ends_with("none, since the campaign was over"), "{mismatch}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_replay_of_any_prefix_goes_on_in_the_same_way(it in any_design(), seed in any::<u64>(), cut in 0.0f64..1.0) {
        let (trials, stopped, original) = recorded(it.clone(), seed);
        let cut = (cut * trials.len() as f64) as usize;
        let mut schedule = Schedule::replay(it.clone(), &trials[..cut]).unwrap();
        for trial in &trials[cut..] {
            prop_assert_eq!(schedule.next(trial.began_ns), Ok((trial.block, trial.slot)));
            schedule.observe(trial.block, trial.slot, trial.rates.filter(|_| trial.audit.valid).map(|r| r.received));
        }
        schedule.finish(stopped);
        prop_assert_eq!(known(&schedule), known(&original));
        let most = it.stopping.most_blocks.unwrap();
        prop_assert!(trials.iter().all(|t| t.block < most && !it.slots[t.slot].skipped));
    }
}
