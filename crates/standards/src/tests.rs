//! Sound records meet every row that records can meet; one change makes its row alone fail.

use super::*;
use linerate_hosts::configuration::{label, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::audit::Audit;
use linerate_measure::counters::{Delays, PortCounters, StreamCounters};
use linerate_measure::experiment::{Experiment, Measure, System, Trials, WantedGoal};
use linerate_measure::record::{
    AtLoad, BackToBack, Benchmarked, Campaign, Collected, DelayVariation, Direction, DirectionCounts,
    DutEvent, Ended, EventClass, Figures, ForwardingRate, HostFacts, LabKind, Latency, LatencyRun, Maximum,
    Planned, Recovery, RecoveryRun, Reset, ResetRun, Searched, SearchedGoal, Slot, SlotFacts, Stopped,
    Summary, Tested, Throughput, TrialRecord, VariationRun,
};
use linerate_measure::trial::{Rates, Shape, Timing};
use linerate_search::{Goal, Limits, Outcome};
use linerate_wire::{
    Family, FlowOrder, FlowSpace, FrameMix, FrameSpec, MacAddr, Ports, RFC2544_PORTS, Traffic, Transport,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const S: u64 = 1_000_000_000;
const THROUGHPUT: f64 = 1000.0;
const MAXIMUM: f64 = 2000.0;

/// The records of a campaign, owned.
#[derive(Clone)]
struct Made {
    campaign: Campaign,
    host: HostFacts,
    trials: Vec<TrialRecord>,
    facts: Vec<SlotFacts>,
    summary: Summary,
}

impl Made {
    fn judged(&self) -> Conformance {
        let Made { campaign, host, trials, facts, summary } = self;
        conformance(&Records { campaign, host, trials, facts, summary: Some(summary) })
            .expect("tests were made")
    }

    fn statuses(&self) -> BTreeMap<&'static str, (Status, String)> {
        self.judged().rows.into_iter().map(|row| (row.id, (row.status, row.because))).collect()
    }

    fn slot(&mut self) -> &mut Slot {
        &mut self.campaign.slots[1]
    }

    fn traffic(&mut self) -> &mut Traffic {
        self.slot().traffic.as_mut().unwrap()
    }

    fn design(&mut self) -> &mut Trials {
        &mut self.campaign.planned.as_mut().unwrap().experiment.trials
    }

    fn figures(&mut self, test: Benchmark) -> &mut Figures {
        let of = &mut self.summary.benchmarks[0].tests;
        &mut of.iter_mut().find(|tested| tested.test == test).unwrap().figures
    }

    /// Everything of a slot but the slot itself.
    fn remove(&mut self, slot: usize) {
        self.trials.retain(|trial| trial.slot != slot);
        self.facts.retain(|facts| facts.slot != slot);
        self.summary.benchmarks.retain(|of| of.slot != slot);
        self.summary.searches.retain(|of| of.slot != slot);
    }

    /// Another slot, with everything of the first one.
    fn copy_first(&mut self) -> &mut Slot {
        let id = self.campaign.slots.len();
        let of_first = self.trials.iter().filter(|trial| trial.slot == 1);
        self.trials
            .extend(of_first.map(|trial| TrialRecord { slot: id, ..trial.clone() }).collect::<Vec<_>>());
        self.facts.push(SlotFacts { slot: id, ..self.facts[0].clone() });
        self.summary.benchmarks.push(Benchmarked { slot: id, ..self.summary.benchmarks[0].clone() });
        self.summary.searches.push(Searched { slot: id, ..self.summary.searches[0].clone() });
        self.campaign.slots.push(Slot { id, ..self.campaign.slots[1].clone() });
        &mut self.campaign.slots[id]
    }

    fn trial(&mut self, test: Benchmark) -> &mut TrialRecord {
        self.trials.iter_mut().find(|trial| trial.benchmark == Some(test)).unwrap()
    }
}

fn traffic(length: u16) -> Traffic {
    let nowhere = MacAddr::default();
    let frame = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
    let frame = FrameSpec { l4_checksum: false, may_fragment: true, ..frame };
    let ends = ([198, 18, 1, 2].into(), [198, 19, 1, 2].into());
    let flows = FlowSpace::across(ends, RFC2544_PORTS, 1, 1).unwrap();
    Traffic::new(frame, FrameMix::single(length), flows)
}

fn port(frames: u64, length: u16) -> PortCounters {
    let stream = StreamCounters { frames, next_sequence: frames, ..StreamCounters::default() };
    PortCounters {
        frames,
        bytes: frames * u64::from(length - 4),
        streams: vec![stream],
        ..PortCounters::default()
    }
}

/// A trial at a load that loses `lost` frames.
fn trial(slot: usize, test: Option<Benchmark>, load: f64, seconds: u64, lost: u64) -> TrialRecord {
    let length = if slot == 0 { 64 } else { case::SIZES[slot - 1] };
    let sent = (load * seconds as f64) as u64;
    let timing = Timing { run_ns: seconds * S, drain_ns: 2 * S, settle_ns: 5 * S, ..Timing::default() };
    let received = sent - lost;
    TrialRecord {
        slot,
        benchmark: test,
        asked_fps: Some(load),
        timing,
        took_ns: (seconds + 11) * S,
        rates: Some(Rates {
            offered: load,
            received: received as f64 / seconds as f64,
            seconds: seconds as f64,
        }),
        loss_ratio: lost as f64 / sent as f64,
        generator: port(sent, length),
        receiver: port(received, length),
        audit: Audit { valid: true, ..Audit::default() },
        ..TrialRecord::default()
    }
}

fn delays(frames: u64) -> Option<Delays> {
    Some(Delays { frames, tagged: (0..500).map(|n| (60 * S + n, 1000)).collect(), ..Delays::default() })
}

fn of_slot(slot: usize, trials: &mut Vec<TrialRecord>) -> (Benchmarked, Searched) {
    use Benchmark::*;
    let mut add = |count: usize, made: TrialRecord| trials.extend(std::iter::repeat_n(made, count));
    add(1, trial(slot, Some(Throughput), THROUGHPUT, 60, 0));
    add(1, trial(slot, Some(Throughput), 1004.0, 60, 10));
    let mut latency = trial(slot, Some(Latency), THROUGHPUT, 120, 0);
    latency.receiver.delays = delays(latency.receiver.frames);
    add(20, latency);
    let mut variation = trial(slot, Some(DelayVariation), THROUGHPUT, 60, 0);
    variation.receiver.delays = delays(variation.receiver.frames);
    add(20, variation);
    let loads: Vec<AtLoad> = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
        .map(|share| {
            let (load, lost) = (share * MAXIMUM, if share > 0.5 { 60 } else { 0 });
            add(1, trial(slot, Some(FrameLoss), load, 60, lost));
            AtLoad { load, share, offered: load, forwarded: load, sent: (load * 60.0) as u64, lost }
        })
        .into();
    let mut burst = trial(slot, Some(BackToBack), MAXIMUM, 2, 0);
    burst.shape = Shape::Burst { frames: 400 };
    (burst.generator, burst.receiver) = (port(400, case::SIZES[slot - 1]), port(400, case::SIZES[slot - 1]));
    add(1, burst);
    let mut step = trial(slot, Some(Recovery), 1100.0, 120, 5);
    step.shape = Shape::Step { after_ns: 60 * S, fps: 550.0 };
    add(5, step);
    let mut event = trial(slot, Some(Reset), THROUGHPUT, 75, 100);
    event.shape = Shape::Event { after_ns: 15 * S };
    add(if slot == 1 { 5 } else { 0 }, event);
    add(1, trial(slot, Some(ForwardingRate), MAXIMUM, 30, 100));
    let run = LatencyRun { tags: 500, first_ns: 1000, typical_ns: 1000.0, worst_ns: 1000.0 };
    let variation = VariationRun { frames: 60_000, pdv_ns: 1.0, ipdv_ns: [0.0; 3], broken: 0 };
    let reset = |what: &str, class: EventClass| self::Reset {
        event: DutEvent { what: what.into(), class, began_ns: 0, ended_ns: 0, ran: Vec::new() },
        load: THROUGHPUT,
        runs: vec![ResetRun { lost: 100, by_loss_ns: 1e8, by_stamps_ns: Some(100_000_000), back: true }; 5],
        by_loss_ns: Some(1e8),
        by_stamps_ns: Some(1e8),
    };
    let mut figures = vec![
        (
            Throughput,
            Figures::Throughput(self::Throughput {
                fps: THROUGHPUT,
                upper: Some(1004.0),
                frames: 60_000,
                seconds: 60.0,
                burst_s: None,
            }),
        ),
        (
            Latency,
            Figures::Latency(self::Latency {
                load: THROUGHPUT,
                runs: vec![run; 20],
                mean_ns: 1000.0,
                typical_ns: 1000.0,
                worst_ns: 1000.0,
            }),
        ),
        (FrameLoss, Figures::FrameLoss(loads.clone())),
        (
            BackToBack,
            Figures::BackToBack(self::BackToBack {
                bursts: vec![400; 50],
                mean: 400.0,
                least: 400,
                most: 400,
                deviation: Some(0.0),
                implied_s: 0.2,
                corrected_s: 0.1,
                actual_s: None,
                throughput: THROUGHPUT,
                limit: 4000,
                step: 1,
            }),
        ),
        (
            Recovery,
            Figures::Recovery(self::Recovery {
                throughput: THROUGHPUT,
                overload: 1100.0,
                reduced: 550.0,
                runs: vec![RecoveryRun { lost: 5, ns: Some(9) }; 5],
                mean_ns: Some(9.0),
            }),
        ),
        (
            DelayVariation,
            Figures::DelayVariation(self::DelayVariation {
                load: THROUGHPUT,
                runs: vec![variation; 20],
                pdv_ns: 1.0,
                ipdv_ns: [0.0; 3],
            }),
        ),
        (
            ForwardingRate,
            Figures::ForwardingRate(self::ForwardingRate {
                frmol: 900.0,
                frmol_offered: MAXIMUM,
                mfr: 1000.0,
                mfr_offered: 1000.0,
                loads,
            }),
        ),
    ];
    if slot == 1 {
        figures.push((Reset, Figures::Reset(reset("power-off", EventClass::PowerInterruption))));
        figures.push((Reset, Figures::Reset(reset("reboot", EventClass::OsReset))));
    }
    let tests = figures.into_iter().map(|(test, figures)| Tested {
        test,
        why: None,
        valid_trials: 1,
        trials: 1,
        figures,
    });
    let maximum = Some(Maximum { fps: MAXIMUM, medium: true, tester_fps: 3000.0 });
    let goal = Goal {
        loss: 0.0,
        exceed: 500_000_000,
        width: 0.005,
        initial_ns: S,
        final_ns: 60 * S,
        sum_ns: 60 * S,
        coarser: 2,
    };
    let outcome = Outcome {
        lower: Some(THROUGHPUT),
        upper: Some(1004.0),
        conditional: Some(THROUGHPUT),
        irregular: None,
    };
    let searched = Searched {
        slot,
        goals: vec![SearchedGoal { name: "rfc2544".into(), goal, outcome, interval: [None; 2] }],
        limits: Limits { min: 1.0, max: 2500.0 },
        stalls: Some(0.0),
        loads: Vec::new(),
        ended: Some(Ended::Known),
    };
    (Benchmarked { slot, maximum, tests: tests.collect() }, searched)
}

/// The commands of a DUT's settings, as far as rows look at them.
fn settings() -> Vec<Collected> {
    let answer = |argv: &Vec<String>| {
        let output = Ok("==> uname <==\nLinux router 6.12.0 #1\n".into());
        Collected { command: label(argv), output }
    };
    questions(Kernel::Linux, &[]).iter().map(answer).collect()
}

/// All tests at seven sizes on hosts, as the RFCs want them.
fn sound() -> Made {
    let slot = |id: usize| {
        let length = if id == 0 { 64 } else { case::SIZES[id - 1] };
        Slot {
            id,
            name: format!("forwarding {length} B"),
            plan_variant: if id == 0 { "tester-baseline".into() } else { "forwarding".into() },
            transport: "UDP".into(),
            lengths_fcs: vec![length],
            signed: true,
            ceiling: (id > 0).then_some(0),
            traffic: Some(Box::new(traffic(length))),
            ..Slot::default()
        }
    };
    let mut slots: Vec<Slot> = (0..8).map(slot).collect();
    // One more kind of frames: random destinations and ports, and a hundredth of broadcast frames.
    let many = slots[7].traffic.as_mut().unwrap();
    let ends = ([198, 18, 1, 2].into(), [198, 19, 0, 66].into());
    many.flows =
        FlowSpace::across(ends, RFC2544_PORTS, 256, 25_600).unwrap().with_ports(Ports::Random { seed: 1 });
    many.order = FlowOrder::Random { seed: 1 };
    many.broadcast_every = 100;
    let mut trials = vec![trial(0, None, 3000.0, 1, 0)];
    let (benchmarks, searches) = (1..8).map(|slot| of_slot(slot, &mut trials)).unzip();
    for trial in trials.iter_mut().filter(|trial| trial.slot == 7) {
        trial.generator.broadcasts = trial.generator.frames / 99;
    }
    for (number, trial) in trials.iter_mut().enumerate() {
        trial.trial = number as u64;
    }
    let design = Trials {
        measure: Measure::Rfc2544,
        tests: Benchmark::ALL.into(),
        duration_ns: 60 * S,
        pause_ns: 4 * S,
        ..Trials::default()
    };
    let experiment = Experiment {
        title: String::new(),
        question: String::new(),
        source: None,
        system: System::Linux,
        quick: false,
        factors: Vec::new(),
        comparisons: Vec::new(),
        expectations: Vec::new(),
        trials: design,
        link_speed: Some(1e9),
    };
    let lane = |before: u64| serde_json::json!({ "settings": { "rules": { "rules-before": before } } });
    let plan = serde_json::json!({
        "cells": [{ "lane": 2 }, { "lane": 2 }, { "lane": 0 }, { "lane": 1 }],
        "lanes": [lane(0), lane(24), { "settings": { "rules": null } }],
    });
    let mut campaign = Campaign {
        slots,
        planned: Some(Box::new(Planned { file: None, experiment, plan, skipped: Vec::new() })),
        ..Campaign::default()
    };
    campaign.asked.lab = LabKind::Hosts;
    campaign.standing.insert("statement".into(), "as its manual says".into());
    let facts = |slot| SlotFacts {
        version: 1,
        slot,
        kernel: "linux".into(),
        interfaces: Vec::new(),
        answers: settings(),
    };
    let summary: Summary = serde_json::from_value(serde_json::json!({
        "version": 1, "stopped": Stopped::Precise, "seconds": 1.0, "reboots": 0, "load_share": 1.0, "peak_memory": 0, "rows": [],
        "comparisons": [], "series": [], "expectations": [], "unmeasured": [], "warnings": [], "profiles": [], "explanations": [],
    }))
    .unwrap();
    Made {
        campaign,
        host: HostFacts { kernel: "6.12".into(), ..HostFacts::default() },
        trials,
        facts: (1..8).map(facts).collect(),
        summary: Summary { benchmarks, searches, ..summary },
    }
}

/// Rows that records of linerate cannot meet today, with the status that they have.
const OTHERS: [(&str, Status); 22] = [
    ("2544-7d", Status::Deviation),
    ("2544-8a", Status::Deviation),
    ("2544-9.4", Status::NotRun),
    ("2544-11.2", Status::NotRun),
    ("2544-11.3a", Status::NotRun),
    ("2544-11.3b", Status::NotRun),
    ("2544-13a", Status::Violated),
    ("2544-13b", Status::NotRun),
    ("2544-14", Status::Deviation),
    ("2544-15", Status::NotRun),
    ("2544-16", Status::NotRun),
    ("2544-21", Status::NotRun),
    ("2544-25", Status::NotRun),
    ("2544-26.6a", Status::Deviation),
    ("9004-3b", Status::NotRun),
    ("9004-5a", Status::Violated),
    ("9971-4.5.2a", Status::NotApplicable),
    ("9971-4.5.9", Status::NotRun),
    ("8219-4", Status::Deviation),
    ("8219-5.1", Status::NotApplicable),
    ("8219-5.3", Status::Deviation),
    ("4814-4.2", Status::NotApplicable),
];

#[test]
fn sound_records_meet_every_row_that_records_can_meet() {
    let others: BTreeMap<&str, Status> = OTHERS.into();
    for (id, (status, because)) in sound().statuses() {
        assert_eq!(status, others.get(id).copied().unwrap_or(Status::Met), "{id}: {because}");
    }
}

type Change = fn(&mut Made);

/// For each row that can be met: one change of the records that makes it fail, and the rows that follow from the same fact.
const CHANGES: &[(&str, &[&str], Change)] = &[
    ("2544-6", &["2544-13b"], |m| m.campaign.asked.lab = LabKind::Simulated),
    ("2544-7a", &[], |m| m.campaign.standing.clear()),
    ("2544-7b", &["6201-3a"], |m| {
        m.facts[3]
            .answers
            .iter_mut()
            .for_each(|answer| answer.output = Ok("==> uname <==\nLinux router 6.13.0 #1\n".into()))
    }),
    ("2544-7c", &["6201-1.4a", "9971-4.9.3"], |m| {
        m.facts.remove(0);
    }),
    ("2544-8b", &["9971-4.5.4"], |m| m.campaign.slots[2].traffic = None),
    ("2544-9a", &["2544-10b", "9004-5c", "9971-4.5.4"], |m| m.campaign.slots[7].lengths_fcs = vec![1500]),
    ("2544-9b", &["9004-5c"], |m| {
        (4..=6).for_each(|slot| m.remove(slot));
        m.campaign.slots.retain(|slot| !(4..=6).contains(&slot.id));
    }),
    ("2544-9.4", &[], |m| {
        let facts = &mut m.facts[0];
        facts.interfaces = vec!["in0".into(), "out0".into()];
        let links = r#"[{"ifname":"in0","mtu":1500},{"ifname":"out0","mtu":9000}]"#;
        facts.answers.iter_mut().find(|of| of.command == "ip -d -j link show").unwrap().output =
            Ok(links.into());
    }),
    ("2544-10a", &["2889-4"], |m| m.slot().signed = false),
    ("2544-10b", &[], |m| m.trial(Benchmark::FrameLoss).receiver.bytes += 1),
    ("2544-10c", &[], |m| m.trial(Benchmark::FrameLoss).receiver.streams.clear()),
    ("2544-11", &["2544-11.1"], |m| m.campaign.slots[2].traffic.as_mut().unwrap().broadcast_every = 100),
    ("2544-11.1", &[], |m| m.trials.iter_mut().rev().take(1).for_each(|t| t.generator.broadcasts *= 2)),
    ("2544-11.4", &[], |m| {
        m.campaign.planned.as_mut().unwrap().plan["lanes"][1]["settings"]["rules"]["rules-before"] = 12.into()
    }),
    ("2544-12", &[], |m| {
        for slot in &mut m.campaign.slots[1..7] {
            let traffic = slot.traffic.as_mut().unwrap();
            let first = traffic.flows.flow(0);
            traffic.flows = FlowSpace::across((first.src, first.dst), RFC2544_PORTS, 1, 2).unwrap();
        }
    }),
    ("2544-20", &["9004-5e"], |m| m.trials.retain(|t| t.slot != 1 || t.asked_fps != Some(MAXIMUM))),
    ("2544-23", &[], |m| m.trial(Benchmark::Latency).timing.settle_ns = S),
    ("2544-24a", &[], |m| m.trial(Benchmark::FrameLoss).timing.run_ns = 59 * S),
    ("2544-24b", &["9971-4.6.6"], |m| m.trial(Benchmark::Throughput).timing.run_ns = 59 * S),
    ("2544-26.1b", &[], |m| {
        for of in m.summary.benchmarks[1..].iter_mut().flat_map(|of| &mut of.tests) {
            if of.test == Benchmark::Throughput {
                of.figures = Figures::None;
            }
        }
    }),
    ("2544-26.1a", &["2544-10b"], |m| m.trial(Benchmark::Throughput).receiver.frames -= 1),
    ("2544-26.2c", &["8219-7.2a"], |m| match m.figures(Benchmark::Latency) {
        Figures::Latency(f) => f.runs[3].tags = 0,
        _ => unreachable!(),
    }),
    ("2544-26.2e", &[], |m| {
        let of_many = m.summary.benchmarks[6].tests.iter_mut().find(|of| of.test == Benchmark::Latency);
        of_many.unwrap().figures = Figures::None;
    }),
    ("8219-7.2a", &[], |m| match m.figures(Benchmark::Latency) {
        Figures::Latency(f) => f.runs[3].tags = 499,
        _ => unreachable!(),
    }),
    ("8219-7.2b", &[], |m| match m.figures(Benchmark::Latency) {
        Figures::Latency(f) => f.worst_ns = 999.0,
        _ => unreachable!(),
    }),
    ("2544-26.2d", &["8219-7.2b"], |m| match m.figures(Benchmark::Latency) {
        Figures::Latency(f) => f.runs.truncate(19),
        _ => unreachable!(),
    }),
    ("2544-26.2a", &["8219-7.2a"], |m| match m.figures(Benchmark::Latency) {
        Figures::Latency(f) => f.load = 900.0,
        _ => unreachable!(),
    }),
    ("2544-26.2b", &["8219-7.2a"], |m| m.trial(Benchmark::Latency).timing.run_ns = 119 * S),
    ("2544-26.3a", &[], |m| match m.figures(Benchmark::FrameLoss) {
        Figures::FrameLoss(f) => f.truncate(6),
        _ => unreachable!(),
    }),
    ("2544-26.3b", &[], |m| match m.figures(Benchmark::FrameLoss) {
        Figures::FrameLoss(f) => {
            f.remove(2);
        }
        _ => unreachable!(),
    }),
    ("2544-26.4a", &["9004-6.2a"], |m| m.trial(Benchmark::BackToBack).took_ns = S),
    ("2544-26.4b", &["9004-6.3"], |m| match m.figures(Benchmark::BackToBack) {
        Figures::BackToBack(f) => f.bursts.truncate(49),
        _ => unreachable!(),
    }),
    ("2544-26.5a", &[], |m| match m.figures(Benchmark::Recovery) {
        Figures::Recovery(f) => f.reduced = 600.0,
        _ => unreachable!(),
    }),
    ("2544-26.5b", &[], |m| match m.figures(Benchmark::Recovery) {
        Figures::Recovery(f) => f.runs.truncate(1),
        _ => unreachable!(),
    }),
    ("2544-26.6b", &["6201-4b"], |m| match m.figures(Benchmark::Reset) {
        Figures::Reset(f) => f.event.class = EventClass::Reconfiguration,
        _ => unreachable!(),
    }),
    ("6201-1.3", &[], |m| match m.figures(Benchmark::Reset) {
        Figures::Reset(f) => (f.by_loss_ns, f.by_stamps_ns) = (None, None),
        _ => unreachable!(),
    }),
    ("6201-1.4b", &[], |m| match m.figures(Benchmark::Reset) {
        Figures::Reset(f) => f.runs.clear(),
        _ => unreachable!(),
    }),
    ("6201-4a", &[], |m| m.trial(Benchmark::Reset).shape = Shape::Event { after_ns: 14 * S }),
    ("6201-4b", &["2544-26.6b"], |m| match m.figures(Benchmark::Reset) {
        Figures::Reset(f) => f.event.class = EventClass::Interruption,
        _ => unreachable!(),
    }),
    ("9004-3a", &[], |m| {
        let mix: FrameMix = "mix:64x1+1518x1".parse().unwrap();
        let slot = m.copy_first();
        slot.lengths_fcs.clone_from(&mix.pattern);
        slot.traffic.as_mut().unwrap().mix = mix;
    }),
    ("9004-5c", &[], |m| {
        m.remove(4);
        m.campaign.slots.remove(4);
    }),
    ("9004-6.1", &[], |m| {
        m.summary.benchmarks[0].maximum = Some(Maximum { fps: THROUGHPUT, medium: true, tester_fps: 3000.0 });
        match m.figures(Benchmark::BackToBack) {
            Figures::BackToBack(f) => (f.implied_s, f.corrected_s) = (0.4, 0.0),
            _ => unreachable!(),
        }
        match m.figures(Benchmark::Recovery) {
            Figures::Recovery(f) => (f.overload, f.reduced) = (THROUGHPUT, THROUGHPUT / 2.0),
            _ => unreachable!(),
        }
    }),
    ("9004-6.2a", &[], |m| m.trial(Benchmark::BackToBack).took_ns = 3 * S),
    ("9004-5e", &[], |m| m.trial(Benchmark::BackToBack).receiver.streams[0].duplicates = 1),
    ("9004-5f", &[], |m| m.summary.searches[0].stalls = Some(0.1)),
    ("9004-5d", &["9004-6.4"], |m| match m.figures(Benchmark::BackToBack) {
        Figures::BackToBack(f) => f.throughput = 900.0,
        _ => unreachable!(),
    }),
    ("9004-6.2b", &[], |m| match m.figures(Benchmark::BackToBack) {
        Figures::BackToBack(f) => f.limit = 440,
        _ => unreachable!(),
    }),
    ("9004-6.2c", &[], |m| match m.figures(Benchmark::BackToBack) {
        Figures::BackToBack(f) => f.step = 0,
        _ => unreachable!(),
    }),
    ("9004-6.3", &[], |m| m.design().repeats = Some(51)),
    ("9004-6.4", &[], |m| match m.figures(Benchmark::BackToBack) {
        Figures::BackToBack(f) => f.corrected_s = 0.2,
        _ => unreachable!(),
    }),
    ("9004-7", &[], |m| match m.figures(Benchmark::BackToBack) {
        Figures::BackToBack(f) => f.deviation = None,
        _ => unreachable!(),
    }),
    ("6815-5", &[], |m| {
        let ends = ([198, 18, 1, 2].into(), [192, 0, 2, 1].into());
        m.traffic().flows = FlowSpace::across(ends, RFC2544_PORTS, 1, 1).unwrap();
    }),
    ("8219-7.3.1", &[], |m| m.trial(Benchmark::DelayVariation).receiver.delays = delays(1)),
    ("8219-7.3.2", &["8219-7.3.1"], |m| match m.figures(Benchmark::DelayVariation) {
        Figures::DelayVariation(f) => f.runs.truncate(19),
        _ => unreachable!(),
    }),
    ("4814-4.4", &["2544-12"], |m| {
        m.campaign.slots[7].traffic.as_mut().unwrap().order = FlowOrder::Sequential
    }),
    ("4814-4.5", &["4814-4.4"], |m| {
        let own = m.campaign.slots[7].traffic.as_mut().unwrap();
        own.flows = own.flows.clone().with_ports(Ports::Counted);
    }),
    ("2889-4", &[], |m| m.slot().transport = "TCP".into()),
    ("2889-5.1a", &[], |m| match m.figures(Benchmark::ForwardingRate) {
        Figures::ForwardingRate(f) => f.mfr = 1.0,
        _ => unreachable!(),
    }),
    ("2889-5.1b", &[], |m| m.trial(Benchmark::ForwardingRate).timing.run_ns = S / 2),
    ("9971-4.5.2b", &[], |m| {
        m.trial(Benchmark::Throughput).directions = vec![DirectionCounts::default(); 2];
    }),
    ("9971-4.5.4", &[], |m| m.campaign.slots[2].traffic.as_mut().unwrap().mix = FrameMix::single(64)),
    ("9971-4.5.3", &[], |m| m.trial(Benchmark::Throughput).shape = Shape::Burst { frames: 1 }),
    ("9971-4.5.5", &["9971-4.6.6"], |m| m.trial(Benchmark::Throughput).loss_ratio = 1.5),
    ("9971-4.5.8", &[], |m| m.trial(Benchmark::Throughput).rates.as_mut().unwrap().seconds = 50.0),
    ("9971-4.6.1", &["9971-4.6.6"], |m| m.summary.searches[0].goals[0].goal.initial_ns = 0),
    ("9971-4.6.1s", &["9971-4.6.6"], |m| m.summary.searches[0].goals[0].goal.exceed = 0),
    ("9971-4.6.8", &[], |m| m.summary.searches[0].limits.min = 1001.0),
    ("9971-4.8.4a", &["9971-4.6.6"], |m| m.summary.searches[0].goals[0].outcome.upper = Some(1100.0)),
    ("9971-4.8.4c", &["9971-4.8.4a", "9971-4.6.6"], |m| m.summary.searches[0].goals[0].outcome.upper = None),
    ("9971-4.8.4b", &["9971-4.8.4a", "9971-4.8.4c", "9971-4.6.6"], |m| {
        m.summary.searches[0].goals[0].outcome.lower = None
    }),
    ("9971-4.8.5", &[], |m| {
        m.design().goals = vec![WantedGoal { name: "a".into(), loss: 0.0, exceed: 0, times_ns: None }; 2]
    }),
    ("9971-4.6.6", &[], |m| {
        let second = m.trials.iter_mut().find(|t| t.asked_fps == Some(1004.0)).unwrap();
        second.loss_ratio = 0.0;
    }),
    ("9971-4.9.1", &[], |m| m.summary.searches[0].limits.max = 3001.0),
];

#[test]
fn one_change_of_the_records_makes_its_row_fail_and_no_other() {
    let before = sound().statuses();
    let mut faults = Vec::new();
    for (id, related, change) in CHANGES {
        let mut made = sound();
        change(&mut made);
        let after = made.statuses();
        let fails = |status: Status| matches!(status, Status::Deviation | Status::Violated);
        let is_new = before[id].0 == Status::Met && after[id].0 != Status::Met
            || !fails(before[id].0) && fails(after[id].0);
        if !is_new {
            faults.push(format!("{id} is {:?}", after[id]));
        }
        let changed = after.iter().filter(|(of, now)| now.0 != before[*of].0).map(|(of, _)| *of);
        let mut others: Vec<&str> = changed.filter(|of| of != id && !related.contains(of)).collect();
        // The change of the lab makes links virtual as well.
        others.retain(|of| *id != "2544-6" || after[of].0 != Status::NotApplicable);
        if !others.is_empty() {
            faults.push(format!("{id} also changed {others:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_claim_follows_from_the_rows() {
    let mut made = sound();
    let claim = |made: &Made, document: &str| {
        made.judged().claims.into_iter().find(|claim| claim.document == document).unwrap()
    };
    let latency = claim(&made, "RFC 8219");
    assert_eq!(latency.to_string(), "RFC 8219 latency: conditionally compliant (8219-4, 8219-5.3)");
    let throughput = claim(&made, "RFC 2544");
    assert_eq!((throughput.compliance, &throughput.rows), (Compliance::NotCompliant, &vec!["2544-13a"]));
    assert_eq!(claim(&made, "RFC 2889").compliance, Compliance::Unconditionally);
    assert!(
        !made.judged().holds() && made.judged().line().contains("; RFC 9004 back-to-back: not compliant")
    );
    made.campaign.asked.lab = LabKind::Simulated;
    assert_eq!(claim(&made, "RFC 2889").rows, ["2544-6"], "a simulation complies with nothing");
    made.design().measure = Measure::Rate;
    let Made { campaign, host, trials, facts, summary } = &made;
    assert_eq!(conformance(&Records { campaign, host, trials, facts, summary: Some(summary) }), None);
}

/// Both directions at once, and the loads of a trial.
#[test]
fn both_directions_have_equal_loads() {
    let with = |sent: [u64; 2]| {
        let mut made = sound();
        made.campaign.slots.iter_mut().for_each(|slot| slot.direction = Direction::Both);
        let way = |sent: &u64| DirectionCounts { sent: *sent, ..DirectionCounts::default() };
        let directions: Vec<DirectionCounts> = sent.iter().map(way).collect();
        made.trials.iter_mut().for_each(|trial| trial.directions.clone_from(&directions));
        made.statuses()["2544-14"].clone()
    };
    assert_eq!(with([1000, 1005]).0, Status::Met);
    let (status, because) = with([1000, 900]);
    assert!(status == Status::Deviation && because.ends_with(": 1000 frames there, 900 back"), "{because}");
}

#[test]
fn virtual_links_have_no_medium_and_meet_no_row_that_needs_one() {
    let mut made = sound();
    made.campaign.asked.lab = LabKind::Namespaces;
    let now = made.statuses();
    for id in ["2544-20", "2544-26.1b", "2544-26.1c", "2544-26.3c", "6201-1.4b", "9004-5b"] {
        assert_eq!(now[id], (Status::NotApplicable, "virtual link".into()), "{id}");
    }
    assert_eq!(now["2544-25"].0, Status::Deviation);
}

#[test]
fn tests_that_were_not_made_are_not_run_and_claim_nothing() {
    let mut made = sound();
    made.design().tests = vec![Benchmark::FrameLoss];
    let now = made.statuses();
    assert_eq!(now["9004-6.4"], (Status::NotRun, "back-to-back is not part of this campaign".into()));
    assert_eq!(now["2544-26.3a"].0, Status::Met);
    assert!(made.judged().claims.iter().all(|claim| !claim.document.contains("9004")));
}

#[test]
fn frames_are_listed_to_the_octet() {
    let frames = sound().judged().frames;
    assert_eq!(frames.iter().map(|frame| frame.length_fcs).collect::<Vec<_>>(), case::SIZES);
    assert!(frames[0].octets.contains("08 00 45 00 00 2e 00 00 00 00 0a 11"), "{}", frames[0].octets);
    assert!(
        frames[0].octets.contains("c6 12 01 02 c6 13 01 02 c0 20 00 07 00 1a 00 00 4c 4e 52 31"),
        "the signature begins"
    );
}

#[test]
fn rows_are_unique_and_in_order() {
    let ids: Vec<&str> = rows::all().map(|row| row.id).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!((unique.len(), ids.len()), (105, 105));
    assert_eq!((ids[0], ids[1], *ids.last().unwrap()), ("2544-6", "2544-7a", "2889-5.1b"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// From a folder that anybody may have written: pieces are exchanged, numbers are anything.
    #[test]
    fn no_records_make_it_panic(at in any::<prop::sample::Index>(), number in any::<u64>(), real in any::<f64>(), slot in any::<usize>(), which in 0..12usize) {
        let mut made = sound();
        let trial = at.index(made.trials.len());
        let trial = &mut made.trials[trial];
        match which {
            0 => trial.slot = slot,
            1 => trial.took_ns = number,
            2 => trial.timing.run_ns = number,
            3 => (trial.receiver.frames, trial.generator.frames) = (number, 0),
            4 => trial.asked_fps = Some(real),
            5 => made.campaign.slots.clear(),
            6 => made.campaign.slots[1].id = slot,
            7 => made.campaign.slots[1].lengths_fcs.clear(),
            8 => made.summary.benchmarks[0].slot = slot,
            9 => (made.summary.benchmarks[0].maximum, made.summary.searches[0].slot) = (None, slot),
            10 => (trial.generator.broadcasts, trial.receiver.bytes) = (number, number),
            _ => made.campaign.slots[1].levels = vec![(slot, slot)],
        }
        let _ = made.judged();
        made.facts.clear();
        made.trials.clear();
        made.summary.benchmarks.iter_mut().flat_map(|of| &mut of.tests).for_each(|tested| match &mut tested.figures {
            Figures::BackToBack(figure) => figure.bursts.clear(),
            Figures::FrameLoss(loads) => loads.iter_mut().for_each(|load| load.share = real),
            Figures::Latency(figure) => figure.runs.clear(),
            _ => {}
        });
        let _ = made.judged();
    }
}
