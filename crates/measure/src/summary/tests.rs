mod limits;
mod machine;
mod warnings;

use super::*;
use crate::audit::{Cause, Evidence, Loss, Side, audit};
use crate::counters::PortCounters;
use crate::experiment::{Comparison, Experiment, Interest, System, Trials};
use crate::record::{Asked, Clocks, DirectionCounts, Planned, Roles, Warning};
use crate::strategy::{Design, Figure, History, Observed, TrialRequest, strategy};
use crate::trial::Rates;
use crate::trial::Timing;

fn slot(id: usize, variant: &str, ceiling: Option<usize>, baseline: Option<usize>) -> Slot {
    Slot {
        id,
        name: format!("{variant} IPv4 64 B"),
        variant: variant.into(),
        family: "IPv4".into(),
        transport: "UDP".into(),
        frame: "64".into(),
        lengths_fcs: vec![64],
        l4_checksum: true,
        signed: true,
        asked_fps: None,
        ceiling,
        baseline,
        flows: None,
        cpus: None,
        no_ceiling: false,
        ..Slot::default()
    }
}

/// The questions of `linerate bench --family 4 --variant nft-stateful`.
fn experiment() -> Experiment {
    Experiment {
        title: "linerate bench".into(),
        question: "How many frames does this machine forward?".into(),
        source: None,
        system: System::Linux,
        quick: false,
        link_speed: None,
        factors: Vec::new(),
        comparisons: vec![Comparison {
            of: 2,
            than: 1,
            why: Interest::Variants,
            decides: true,
        }],
        expectations: Vec::new(),
        trials: Trials {
            until: Some(0.02),
            budget_ns: Some(30_000_000_000),
            ..Trials::default()
        },
    }
}

fn campaign() -> Campaign {
    let planned = Planned {
        file: None,
        source: None,
        experiment: experiment(),
        plan: serde_json::Value::Null,
        skipped: Vec::new(),
    };
    Campaign {
        asked: Asked {
            lab: LabKind::Namespaces,
            batch: 64,
            seed: 1,
            ..Asked::default()
        },
        roles: Roles {
            generator: vec![1],
            dut: vec![1],
            receiver: vec![1],
            control: vec![0],
        },
        slots: vec![
            slot(0, "tester-baseline", None, None),
            slot(1, "forwarding", Some(0), None),
            slot(2, "nft-stateful", Some(0), Some(1)),
        ],
        planned: Some(Box::new(planned)),
        ..Campaign::default()
    }
}

fn trial(number: u64, block: u32, slot: usize, fps: f64, lost: u64) -> TrialRecord {
    let port = |frames| PortCounters {
        frames,
        ..PortCounters::default()
    };
    let rates = Some(Rates {
        offered: fps,
        received: fps,
        seconds: 0.25,
    });
    let evidence = Evidence {
        rates,
        generator: port(1000),
        receiver: port(1000 - lost),
        ..Evidence::default()
    };
    TrialRecord {
        version: VERSION,
        trial: number,
        block,
        slot,
        began_ns: number * 250_000_000,
        timing: Timing::slice(250_000_000),
        rates,
        loss_ratio: lost as f64 / 1000.0,
        generator: evidence.generator.clone(),
        receiver: evidence.receiver.clone(),
        audit: audit(&evidence),
        ..TrialRecord::default()
    }
}

/// Ten blocks on a machine whose speed changes from block to block.
fn trials(forwarding: f64) -> Vec<TrialRecord> {
    let mut all = Vec::new();
    for block in 0..10 {
        let speed = if block % 3 == 0 { 0.6 } else { 1.0 } * (1.0 + f64::from(block) / 1000.0);
        for (slot, fps) in [(0, 10e6), (1, forwarding), (2, forwarding * 0.75)] {
            all.push(trial(all.len() as u64, block, slot, fps * speed, 0));
        }
    }
    all
}

#[test]
fn a_clear_ceiling_makes_the_dut_the_limit_and_splits_the_cost() {
    let s = summarise(&campaign(), &trials(1.5e6), Stopped::Precise, 0);
    assert_eq!(s.rows[0].limit, Limit::Calibration);
    assert_eq!(s.rows[1].limit, Limit::Dut);
    let dut = s.rows[1].dut_ns_per_frame.unwrap();
    assert!(
        (dut - (s.rows[1].ns_per_frame - s.rows[0].ns_per_frame)).abs() < 1.0,
        "{dut}"
    );
    let stateful = s.rows[2].baseline.unwrap();
    assert!((stateful.ratio.unwrap().median - 0.75).abs() < 1e-9 && stateful.proven);
    assert_eq!(
        (s.comparisons[0].of, s.comparisons[0].against),
        (2, stateful)
    );
}

/// At a few frames a second a window has one more or one less.
#[test]
fn a_low_rate_that_was_asked_for_and_carried_is_the_limit() {
    let mut campaign = campaign();
    campaign.slots[1].asked_fps = Some(10.0);
    let trials: Vec<TrialRecord> = (0..6)
        .flat_map(|b| {
            [
                trial(2 * b, b as u32, 0, 2e6, 0),
                trial(2 * b + 1, b as u32, 1, 8.0, 0),
            ]
        })
        .collect();
    let summary = summarise(&campaign, &trials, Stopped::Trials, 0);
    assert_eq!(summary.rows[1].limit, Limit::OfferedLoad);
}

#[test]
fn near_the_ceiling_the_tester_is_the_limit_and_that_is_said() {
    let s = summarise(&campaign(), &trials(9.5e6), Stopped::Budget, 0);
    assert_eq!(s.rows[1].limit, Limit::Tester);
    assert!(
        s.warnings
            .iter()
            .any(|w| w.slot == Some(1) && w.text.contains("too close")),
        "{:?}",
        s.warnings
    );
}

/// The DUT has between a fifth and all of the tester's rate, by block: the threshold is within.
#[test]
fn where_blocks_scatter_about_the_threshold_no_limit_is_named() {
    let scattered = |blocks: u32| {
        let mut all = Vec::new();
        for block in 0..blocks {
            let share = if block % 2 == 0 { 0.2 } else { 0.99 };
            for (slot, fps) in [(0, 5e6), (1, 5e6 * share), (2, 1e6)] {
                all.push(trial(all.len() as u64, block, slot, fps, 0));
            }
        }
        summarise(&campaign(), &all, Stopped::Budget, 0)
    };
    for blocks in [3, 10] {
        let s = scattered(blocks);
        assert_eq!(
            [s.rows[1].limit, s.rows[2].limit],
            [Limit::Noisy, Limit::Dut],
            "{blocks} blocks"
        );
        let warned = |w: &Warning| w.slot == Some(1) && w.text.contains("too much to tell");
        assert!(s.warnings.iter().any(warned), "{:?}", s.warnings);
    }
}

#[test]
fn a_trial_that_failed_its_audit_is_left_out_and_named() {
    let mut all = trials(1.5e6);
    all.push(trial(99, 11, 1, 9e9, 7));
    let s = summarise(&campaign(), &all, Stopped::Budget, 0);
    assert!(s.rows[1].received.median < 2e6);
    assert_eq!((s.rows[1].valid_trials, s.rows[1].trials), (10, 11));
    assert!(
        s.warnings
            .iter()
            .any(|w| w.text.contains("1 of 11 trials is invalid")
                && w.text.contains("7 unaccounted"))
    );
}

#[test]
fn nothing_measured_is_no_number() {
    let s = summarise(&campaign(), &[], Stopped::Failed, 0);
    assert!(
        s.rows
            .iter()
            .all(|r| r.limit == Limit::Unknown && r.received.n == 0)
    );
    assert!(s.comparisons[0].against.ratio.is_none() && s.rows[2].ceiling.unwrap().ratio.is_none());
}

#[test]
fn intervals_allow_for_the_looks_of_the_strategy_that_ran_and_for_none_without_one() {
    let campaign = campaign();
    let mut strategy = strategy(Design::of(&campaign).unwrap());
    let (mut all, mut seen) = (Vec::new(), Vec::new());
    for number in 0..99 {
        let history = History {
            elapsed_ns: number * 250_000_000,
            trials: &seen,
        };
        let TrialRequest { block, slot, .. } = strategy.next(&history).unwrap();
        let fps = 1e6
            * if slot == 2 {
                0.75 + 0.1 * f64::from(block % 3)
            } else {
                1.0
            };
        all.push(trial(number, block, slot, fps, 0));
        seen.push(Observed::from(&all[all.len() - 1]));
        strategy.observe(&seen[seen.len() - 1]);
    }
    let interrupted = |trials: &[TrialRecord]| {
        let summary = summarise(&campaign, trials, Stopped::Interrupted, 0);
        summary.comparisons[0].against.ratio.unwrap()
    };
    // Of 30 s, the fourth sixth is over after 20 s, within block 26.
    assert_eq!(interrupted(&all).n, 27);
    assert_eq!(
        Some(interrupted(&all)),
        strategy.ratio(2, 1, Figure::Received, &seen)
    );
    // In an order that no strategy asked for, the interval is that of a sample whose size was fixed.
    all.sort_by_key(|t| (t.block, t.slot));
    assert_eq!(interrupted(&all).n, 33);
}

/// A trial that lost this many of a thousand frames at a place of the DUT.
fn lossy(
    number: u64,
    block: u32,
    slot: usize,
    offered: f64,
    lost: u64,
    place: &str,
) -> TrialRecord {
    let mut trial = trial(number, block, slot, offered, lost);
    trial.rates = Some(Rates {
        offered,
        received: offered * (1000 - lost) as f64 / 1000.0,
        seconds: 0.25,
    });
    let cause = if place.ends_with(" full") {
        Cause::QueueFull
    } else {
        Cause::Dropped
    };
    trial.losses = vec![Loss {
        place: place.into(),
        frames: lost,
        side: Side::Dut,
        cause,
    }];
    trial.audit.valid = true;
    trial
}

/// The summary if the last slot loses this many of a thousand frames, at the offered load of forwarding.
fn with_losses(campaign: &Campaign, lost: u64, place: &str) -> Summary {
    let mut all = Vec::new();
    for block in 0..10 {
        let speed = 1.0 - 0.3 * f64::from(block % 3);
        for (slot, fps, lost) in [(0, 10e6, 0), (1, 1.2e6, 0), (2, 1.2e6, lost)] {
            all.push(lossy(
                all.len() as u64,
                block,
                slot,
                fps * speed,
                lost,
                place,
            ));
        }
    }
    summarise(campaign, &all, Stopped::Trials, 0)
}

const INSIDE: &str = "inside the DUT (no counter says why)";

#[test]
fn a_dut_that_drops_is_not_a_slower_one() {
    let summary = with_losses(&campaign(), 500, INSIDE);
    let [_, forwarding, dropping] = &summary.rows[..] else {
        unreachable!()
    };
    assert_eq!(
        (dropping.limit, dropping.dropped, dropping.loss_ratio),
        (Limit::DutDrops, 0.5, 0.5)
    );
    assert!(
        (dropping.ns_per_frame / forwarding.ns_per_frame - 1.0).abs() < 1e-9,
        "{}",
        dropping.ns_per_frame
    );
    let comparison = &summary.comparisons[0].against;
    assert!((comparison.ratio.unwrap().median - 0.5).abs() < 1e-9 && comparison.proven);
    let cost = comparison.cost.unwrap();
    assert!(
        (cost.median - 1.0).abs() < 1e-9 && cost.low.is_some(),
        "{cost:?}"
    );
    // Refusals by a full queue are not drops by the DUT's rules.
    let overrun = with_losses(&campaign(), 500, "DUT in: receive ring full");
    assert_eq!(
        (overrun.rows[2].limit, overrun.rows[2].dropped),
        (Limit::Dut, 0.0)
    );
    assert_eq!(
        (
            overrun.comparisons[0].against.cost,
            overrun.rows[2].loss_ratio
        ),
        (None, 0.5)
    );
    assert!((overrun.rows[2].ns_per_frame / forwarding.ns_per_frame - 2.0).abs() < 1e-9);
    // Too few for a difference: its rate is compared as that of any other.
    let few = with_losses(&campaign(), 5, INSIDE);
    assert_eq!(
        (few.rows[2].limit, few.comparisons[0].against.cost),
        (Limit::Dut, None)
    );
}

#[test]
fn a_slot_without_a_figure_is_named_with_the_reason() {
    let why = |summary: &Summary| -> Vec<String> {
        summary
            .unmeasured
            .iter()
            .map(|u| format!("{}: {}", u.slot, u.why))
            .collect()
    };
    let mut embedded = campaign();
    embedded.asked.lab = LabKind::Namespaces;
    let all = with_losses(
        &embedded,
        1000,
        "DUT: dropped by the rule set (counter dropped)",
    );
    let [dropped] = &why(&all)[..] else {
        panic!("{:?}", all.unmeasured)
    };
    for part in [
        "2: dropped every test frame",
        "counter dropped",
        "198.18.0.0/15",
    ] {
        assert!(dropped.contains(part), "{dropped}");
    }
    assert!(
        all.rows[2].ns_per_frame > 0.0 && all.comparisons[0].against.cost.is_some(),
        "dropping has a cost"
    );
    embedded.asked.lab = LabKind::Simulated;
    assert_eq!(
        why(&with_losses(&embedded, 1000, INSIDE)),
        Vec::<String>::new(),
        "it was asked for"
    );

    let mut trials = trials(1.5e6);
    trials
        .iter_mut()
        .filter(|t| t.slot == 2)
        .for_each(|t| t.audit = audit(&Evidence::default()));
    let one = |stopped| summarise(&campaign(), &trials, stopped, 0);
    assert_eq!(
        why(&one(Stopped::Trials)),
        [
            "2: could not be measured: all 10 trials failed their audit (the first: no frame was sent)"
        ]
    );
    trials.retain(|t| t.slot != 2);
    assert_eq!(
        why(&summarise(&campaign(), &trials, Stopped::Interrupted, 0)),
        Vec::<String>::new()
    );
    assert_eq!(
        why(&summarise(&campaign(), &trials, Stopped::Budget, 0)),
        ["2: could not be measured: the time ran out before its first trial"]
    );
}

/// Ages between two clocks have a shift of their own in each trial, and an unknown error.
#[test]
fn latencies_between_clocks_are_put_right_and_their_variation_needs_no_clock() {
    let mut campaign = campaign();
    campaign.asked.lab = LabKind::Hosts;
    let aged = |number: u64, by_ns: u64, clocks| {
        let mut trial = trial(number, number as u32, 1, 1e6, 0);
        (0..1000).for_each(|n| {
            trial
                .receiver
                .latency
                .record(by_ns + if n < 980 { 20_000 } else { 70_000 })
        });
        TrialRecord { clocks, ..trial }
    };
    // The second comparison was 10 us too small, within its error; the third trial is of a record without comparisons.
    let trials = [
        aged(
            0,
            100_000,
            Some(Clocks {
                shift_ns: 100_000,
                error_ns: 100_000,
            }),
        ),
        aged(
            1,
            30_000,
            Some(Clocks {
                shift_ns: 40_000,
                error_ns: 41_000,
            }),
        ),
        aged(2, 5_000_000_000, None),
    ];
    let row = &summarise(&campaign, &trials, Stopped::Precise, 0).rows[1];
    let near = |name: &str, ns: u64| {
        assert!(
            row.latency_ns[name].abs_diff(ns) <= 4_000,
            "{name}: {:?}",
            row.latency_ns
        );
    };
    near("min", 10_000);
    near("p50", 20_000);
    near("p99", 60_000);
    near("p99.9", 70_000);
    near("pdv", 50_000);
    assert_eq!(row.clock_error_ns, Some(100_000));
    let row = &summarise(&campaign, &trials[2..], Stopped::Precise, 0).rows[1];
    assert_eq!(
        (row.latency_ns.len(), row.clock_error_ns),
        (0, None),
        "of clocks that were not compared"
    );
}

#[test]
fn the_time_is_that_of_whole_trials_with_their_reboots() {
    let mut trials = trials(1.5e6);
    let last = trials.last_mut().unwrap();
    (last.took_ns, last.reboots) = (60_000_000_000, 1);
    let summary = summarise(&campaign(), &trials, Stopped::Trials, 0);
    assert_eq!((summary.seconds, summary.reboots), (29.0 * 0.25 + 60.0, 1));
}

/// A DUT that forwards one direction alone: its rows tell the directions apart, and a link is as full as either.
#[test]
fn rows_have_both_directions() {
    let mut campaign = campaign();
    campaign.slots[1].direction = Direction::Both;
    let mut trials = trials(1.5e6);
    let rates = |received| {
        Some(Rates {
            offered: 0.75e6,
            received,
            seconds: 0.25,
        })
    };
    let way = |direction, lost, received| DirectionCounts {
        direction,
        sent: 500,
        received: 500 - lost,
        lost,
        rates: rates(received),
        losses: vec![Loss {
            place: "DUT: nft's drop rule".into(),
            frames: lost,
            side: Side::Dut,
            cause: Cause::Dropped,
        }],
        ..DirectionCounts::default()
    };
    let one = summarise(&campaign, &trials, Stopped::Precise, 0);
    for trial in trials.iter_mut().filter(|trial| trial.slot == 1) {
        trial.directions = vec![
            way(Direction::Forward, 0, 0.75e6),
            way(Direction::Reverse, 500, 0.0),
        ];
    }
    let s = summarise(&campaign, &trials, Stopped::Precise, 0);
    let [forward, reverse] = s.rows[1].directions[..] else {
        panic!("{:?}", s.rows[1])
    };
    assert_eq!(
        (
            forward.direction,
            forward.loss_ratio,
            forward.received.median
        ),
        (Direction::Forward, 0.0, 0.75e6)
    );
    assert_eq!(
        (
            reverse.direction,
            reverse.loss_ratio,
            reverse.received.median
        ),
        (Direction::Reverse, 1.0, 0.0)
    );
    let warned = s
        .warnings
        .iter()
        .find(|warning| warning.text.contains("in the reverse direction"));
    assert!(
        warned.is_some_and(|warning| warning.text.contains("(DUT: nft's drop rule)")),
        "{:?}",
        s.warnings
    );
    assert!(s.rows[0].directions.is_empty() && one.rows[1].directions.is_empty());
    campaign.slots[1].direction = Direction::Forward;
    let alone = summarise(&campaign, &trials, Stopped::Precise, 0);
    assert_eq!(
        2.0 * s.rows[1].line_share["10G"],
        alone.rows[1].line_share["10G"]
    );
}

/// A window of some thousand frames/s ends between frames that were sent and have not come yet.
#[test]
fn no_more_frames_come_than_were_offered() {
    let mut all = trials(2e3);
    all.iter_mut()
        .filter_map(|t| t.rates.as_mut())
        .for_each(|rates| rates.offered = 0.97 * rates.received);
    let row = &summarise(&campaign(), &all, Stopped::Budget, 0).rows[1];
    assert!(
        row.offered >= row.received.median
            && row.offered * (1.0 - row.loss_ratio) >= 0.999 * row.received.median
    );
}
