use super::*;
use crate::audit::{Evidence, audit};
use crate::counters::PortCounters;
use crate::record::{Asked, Roles};
use crate::trial::{Rates, Timing};

fn slot(id: usize, variant: &str, ceiling: Option<usize>, baseline: Option<usize>) -> Slot {
    Slot {
        id,
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
        imported: None,
    }
}

fn campaign() -> Campaign {
    Campaign {
        version: VERSION,
        linerate: "0".into(),
        name: "test".into(),
        started: "2026-01-01T00:00:00Z".into(),
        asked: Asked {
            command: vec![],
            mode: Mode::Inline,
            lab: "simulated".into(),
            generator: String::new(),
            receiver: String::new(),
            flows: 1,
            order: "sequential".into(),
            rate: "max".into(),
            timing: Timing::slice(250_000_000),
            budget_ns: 30_000_000_000,
            trials: None,
            batch: 64,
            seed: 1,
        },
        roles: Roles { generator: vec![1], dut: vec![1], receiver: vec![1], control: vec![0] },
        slots: vec![
            slot(0, "card-to-card", None, None),
            slot(1, "forwarding", Some(0), None),
            slot(2, "nft-stateful", Some(0), Some(1)),
        ],
        notes: vec![],
        planned: None,
        imported: None,
    }
}

fn trial(number: u64, block: u32, slot: usize, fps: f64, lost: u64) -> TrialRecord {
    let port = |frames| PortCounters { frames, ..PortCounters::default() };
    let rates = Some(Rates { offered: fps, received: fps, seconds: 0.25 });
    let evidence =
        Evidence { rates, generator: port(1000), receiver: port(1000 - lost), ..Evidence::default() };
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
        losses: vec![],
        dut: BTreeMap::new(),
        cpus: vec![],
        audit: audit(&evidence),
        samples: vec![],
        collected: Vec::new(),
        skew_ns: None,
        imported: None,
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
    assert!((dut - (s.rows[1].ns_per_frame - s.rows[0].ns_per_frame)).abs() < 1.0, "{dut}");
    assert!((s.comparisons[0].ratio.median - 0.75).abs() < 1e-9 && s.comparisons[0].proven_different());
}

#[test]
fn near_the_ceiling_the_tester_is_the_limit_and_that_is_said() {
    let s = summarise(&campaign(), &trials(9.5e6), Stopped::Budget, 0);
    assert_eq!(s.rows[1].limit, Limit::Tester);
    assert!(s.warnings.iter().any(|w| w.contains("forwarding IPv4 64 B: too close")), "{:?}", s.warnings);
}

#[test]
fn a_trial_that_failed_its_audit_is_left_out_and_named() {
    let mut all = trials(1.5e6);
    all.push(trial(99, 11, 1, 9e9, 7));
    let s = summarise(&campaign(), &all, Stopped::Budget, 0);
    assert!(s.rows[1].received.median < 2e6);
    assert_eq!((s.rows[1].valid_trials, s.rows[1].trials), (10, 11));
    assert!(s.warnings.iter().any(|w| w.contains("1 of 11 trials failed") && w.contains("7 unaccounted")));
}

#[test]
fn nothing_measured_is_no_number() {
    let s = summarise(&campaign(), &[], Stopped::Failed, 0);
    assert!(s.rows.iter().all(|r| r.limit == Limit::Unknown && r.received.n == 0));
    assert!(s.comparisons.is_empty());
}

#[test]
fn intervals_allow_for_the_looks_of_the_schedule_that_ran_and_for_none_without_one() {
    let campaign = campaign();
    let mut schedule = Schedule::new(Design::of(&campaign));
    let mut all = Vec::new();
    for number in 0..99 {
        let (block, slot) = schedule.next(number * 250_000_000).unwrap();
        let fps = 1e6 * if slot == 2 { 0.75 + 0.1 * f64::from(block % 3) } else { 1.0 };
        all.push(trial(number, block, slot, fps, 0));
        schedule.observe(block, slot, Some(fps));
    }
    let interrupted = |trials: &[TrialRecord]| {
        let summary = summarise(&campaign, trials, Stopped::Interrupted, 0);
        summary.comparisons[0].ratio
    };
    // Of 30 s, the fourth sixth is over after 20 s, within block 26.
    assert_eq!(interrupted(&all).n, 27);
    assert_eq!(Some(interrupted(&all)), schedule.ratio(2, 1));
    // In an order that no schedule drew, the interval is that of a sample whose size was fixed.
    all.sort_by_key(|t| (t.block, t.slot));
    assert_eq!(interrupted(&all).n, 33);
}
