//! One change of sound records for each row, which makes it fail.

use super::*;

type Change = fn(&mut Made);

/// Rows of destinations behind a next hop.
const NEXT_HOP: &[&str] = &["2544-13a", "2544-13b", "2544-26.6a", "9004-5a"];

/// For each row that can be met: one change of the records that makes it fail, and the rows that follow from the same fact.
const CHANGES: &[(&str, &[&str], Change)] = &[
    ("2544-6", &["2544-13b", "6201-3b"], |m| {
        m.campaign.asked.lab = LabKind::Simulated
    }),
    ("2544-7a", &["9004-5a"], |m| m.campaign.standing.clear()),
    ("2544-7b", &["6201-3a", "9004-5a"], |m| {
        let system = m.facts[3]
            .answers
            .iter_mut()
            .find(|of| of.command == "system")
            .unwrap();
        system.output = Ok("==> uname <==\nLinux router 6.13.0 #1\n".into())
    }),
    (
        "2544-7c",
        &[
            "6201-1.4a",
            "9971-4.9.3",
            "2544-13a",
            "2544-13b",
            "2544-26.6a",
            "9004-5a",
        ],
        |m| {
            m.facts.remove(0);
        },
    ),
    (
        "2544-8b",
        &[
            "9971-4.5.4",
            "2544-13a",
            "2544-13b",
            "2544-26.6a",
            "9004-5a",
        ],
        |m| m.campaign.slots[2].traffic = None,
    ),
    ("2544-9a", &["2544-10b", "9004-5c", "9971-4.5.4"], |m| {
        m.campaign.slots[7].lengths_fcs = vec![1500]
    }),
    ("2544-9b", &["9004-5c"], |m| {
        (4..=6).for_each(|slot| m.remove(slot));
        m.campaign.slots.retain(|slot| !(4..=6).contains(&slot.id));
    }),
    ("2544-9.4", &[], |m| {
        m.links(&LINKS.replacen("1500", "9000", 1))
    }),
    ("2544-15", &["2544-16"], |m| {
        m.facts[0].interfaces.push("out1".into())
    }),
    // The network ends before the destinations.
    ("2544-13a", NEXT_HOP, |m| {
        m.links(&LINKS.replace("16", "24"))
    }),
    ("2544-10a", &["2889-4"], |m| m.slot().signed = false),
    ("2544-10b", &[], |m| {
        m.trial(Benchmark::FrameLoss).receiver.bytes += 1
    }),
    ("2544-10c", &[], |m| {
        m.trial(Benchmark::FrameLoss).receiver.streams.clear()
    }),
    ("2544-11", &["2544-11.1"], |m| {
        m.campaign.slots[2]
            .traffic
            .as_mut()
            .unwrap()
            .broadcast_every = 100
    }),
    ("2544-11.1", &[], |m| {
        m.trials
            .iter_mut()
            .rev()
            .take(1)
            .for_each(|t| t.generator.broadcasts *= 2)
    }),
    ("2544-11.4", &[], |m| {
        m.campaign.planned.as_mut().unwrap().plan["lanes"][1]["settings"]["rules"]["rules-before"] =
            12.into()
    }),
    ("2544-12", &[], |m| {
        for slot in &mut m.campaign.slots[1..7] {
            let traffic = slot.traffic.as_mut().unwrap();
            let first = traffic.flows.flow(0);
            traffic.flows = FlowSpace::across((first.src, first.dst), RFC2544_PORTS, 1, 2).unwrap();
        }
    }),
    ("2544-20", &["9004-5e"], |m| {
        m.trials
            .retain(|t| t.slot != 1 || t.asked_fps != Some(MAXIMUM))
    }),
    ("2544-23", &[], |m| {
        m.trial(Benchmark::Latency).timing.settle_ns = S
    }),
    ("2544-24a", &[], |m| {
        m.trial(Benchmark::FrameLoss).timing.run_ns = 59 * S
    }),
    ("2544-24b", &["9971-4.6.6"], |m| {
        m.trial(Benchmark::Throughput).timing.run_ns = 59 * S
    }),
    ("2544-26.1b", &[], |m| {
        for of in m.summary.benchmarks[1..]
            .iter_mut()
            .flat_map(|of| &mut of.tests)
        {
            if of.test == Benchmark::Throughput {
                of.figures = Figures::None;
            }
        }
    }),
    ("2544-26.1a", &["2544-10b"], |m| {
        m.trial(Benchmark::Throughput).receiver.frames -= 1
    }),
    ("2544-26.2c", &["8219-7.2a"], |m| {
        match m.figures(Benchmark::Latency) {
            Figures::Latency(f) => f.runs[3].tags = 0,
            _ => unreachable!(),
        }
    }),
    ("2544-26.2e", &[], |m| {
        let of_many = m.summary.benchmarks[6]
            .tests
            .iter_mut()
            .find(|of| of.test == Benchmark::Latency);
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
    ("2544-26.2d", &["8219-7.2b"], |m| {
        match m.figures(Benchmark::Latency) {
            Figures::Latency(f) => f.runs.truncate(19),
            _ => unreachable!(),
        }
    }),
    ("2544-26.2a", &["8219-7.2a"], |m| {
        match m.figures(Benchmark::Latency) {
            Figures::Latency(f) => f.load = 900.0,
            _ => unreachable!(),
        }
    }),
    ("2544-26.2b", &["8219-7.2a"], |m| {
        m.trial(Benchmark::Latency).timing.run_ns = 119 * S
    }),
    ("2544-26.3a", &[], |m| {
        match m.figures(Benchmark::FrameLoss) {
            Figures::FrameLoss(f) => f.truncate(6),
            _ => unreachable!(),
        }
    }),
    ("2544-26.3b", &[], |m| {
        match m.figures(Benchmark::FrameLoss) {
            Figures::FrameLoss(f) => {
                f.remove(2);
            }
            _ => unreachable!(),
        }
    }),
    ("2544-26.4a", &["9004-6.2a"], |m| {
        m.trial(Benchmark::BackToBack).took_ns = S
    }),
    ("2544-26.4b", &["9004-6.3"], |m| {
        match m.figures(Benchmark::BackToBack) {
            Figures::BackToBack(f) => f.bursts.truncate(49),
            _ => unreachable!(),
        }
    }),
    ("2544-26.5a", &[], |m| {
        match m.figures(Benchmark::Recovery) {
            Figures::Recovery(f) => f.reduced = 600.0,
            _ => unreachable!(),
        }
    }),
    ("2544-26.5b", &[], |m| {
        match m.figures(Benchmark::Recovery) {
            Figures::Recovery(f) => f.runs.truncate(1),
            _ => unreachable!(),
        }
    }),
    ("2544-26.6b", &["6201-4b"], |m| {
        match m.figures(Benchmark::Reset) {
            Figures::Reset(f) => f.event.class = EventClass::Reconfiguration,
            _ => unreachable!(),
        }
    }),
    ("6201-1.3", &[], |m| match m.figures(Benchmark::Reset) {
        Figures::Reset(f) => (f.by_loss_ns, f.by_stamps_ns) = (None, None),
        _ => unreachable!(),
    }),
    ("6201-1.4b", &[], |m| match m.figures(Benchmark::Reset) {
        Figures::Reset(f) => f.runs.clear(),
        _ => unreachable!(),
    }),
    ("6201-4a", &[], |m| {
        m.trial(Benchmark::Reset).shape = Shape::Event { after_ns: 14 * S }
    }),
    ("6201-4b", &["2544-26.6b"], |m| {
        match m.figures(Benchmark::Reset) {
            Figures::Reset(f) => f.event.class = EventClass::Interruption,
            _ => unreachable!(),
        }
    }),
    ("6201-4b", &[], |m| {
        m.trial(Benchmark::Reset).receiver.outages[0].to_ns = 29 * S
    }),
    ("6201-3b", &["2544-26.6b", "6201-4b"], |m| {
        match m.figures(Benchmark::Reset) {
            Figures::Reset(f) => f.event.class = EventClass::ProcessReset,
            _ => unreachable!(),
        }
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
        m.summary.benchmarks[0].maximum = Some(Maximum {
            fps: THROUGHPUT,
            medium: true,
            tester_fps: 3000.0,
            kept: None,
        });
        match m.figures(Benchmark::BackToBack) {
            Figures::BackToBack(f) => (f.implied_s, f.corrected_s) = (0.4, 0.0),
            _ => unreachable!(),
        }
        match m.figures(Benchmark::Recovery) {
            Figures::Recovery(f) => (f.overload, f.reduced) = (THROUGHPUT, THROUGHPUT / 2.0),
            _ => unreachable!(),
        }
    }),
    ("9004-6.2a", &[], |m| {
        m.trial(Benchmark::BackToBack).took_ns = 3 * S
    }),
    ("9004-5e", &[], |m| {
        m.trial(Benchmark::BackToBack).receiver.streams[0].duplicates = 1
    }),
    ("9004-5f", &[], |m| m.summary.searches[0].stalls = Some(0.1)),
    ("9004-5d", &["9004-6.4"], |m| {
        match m.figures(Benchmark::BackToBack) {
            Figures::BackToBack(f) => f.throughput = 900.0,
            _ => unreachable!(),
        }
    }),
    ("9004-6.2b", &[], |m| {
        match m.figures(Benchmark::BackToBack) {
            Figures::BackToBack(f) => f.limit = 440,
            _ => unreachable!(),
        }
    }),
    ("9004-6.2c", &[], |m| {
        match m.figures(Benchmark::BackToBack) {
            Figures::BackToBack(f) => f.step = 0,
            _ => unreachable!(),
        }
    }),
    ("9004-6.3", &[], |m| m.design().repeats = Some(51)),
    ("9004-6.4", &[], |m| {
        match m.figures(Benchmark::BackToBack) {
            Figures::BackToBack(f) => f.corrected_s = 0.2,
            _ => unreachable!(),
        }
    }),
    ("9004-7", &[], |m| match m.figures(Benchmark::BackToBack) {
        Figures::BackToBack(f) => f.deviation = None,
        _ => unreachable!(),
    }),
    (
        "6815-5",
        &["2544-13a", "2544-13b", "2544-26.6a", "9004-5a"],
        |m| {
            let ends = ([198, 18, 1, 2].into(), [192, 0, 2, 1].into());
            m.traffic().flows = FlowSpace::across(ends, RFC2544_PORTS, 1, 1).unwrap();
        },
    ),
    ("8219-7.3.1", &[], |m| {
        m.trial(Benchmark::DelayVariation).receiver.delays = delays(1)
    }),
    ("8219-7.3.2", &["8219-7.3.1"], |m| {
        match m.figures(Benchmark::DelayVariation) {
            Figures::DelayVariation(f) => f.runs.truncate(19),
            _ => unreachable!(),
        }
    }),
    ("4814-4.4", &[], |m| {
        let ends = ([198, 18, 1, 2].into(), [198, 19, 0, 66].into());
        let counted = FlowSpace::across(ends, RFC2544_PORTS, 256, 25_600).unwrap();
        m.campaign.slots[7].traffic.as_mut().unwrap().flows =
            counted.with_ports(Selection::Random { seed: 1 });
    }),
    ("4814-4.5", &[], |m| {
        let own = m.campaign.slots[7].traffic.as_mut().unwrap();
        own.flows = own.flows.clone().with_ports(Selection::Counted);
    }),
    ("2889-4", &[], |m| m.slot().transport = "TCP".into()),
    ("2889-5.1a", &[], |m| {
        match m.figures(Benchmark::ForwardingRate) {
            Figures::ForwardingRate(f) => f.mfr = 1.0,
            _ => unreachable!(),
        }
    }),
    ("2889-5.1b", &[], |m| {
        m.trial(Benchmark::ForwardingRate).timing.run_ns = S / 2
    }),
    ("9971-4.5.2b", &[], |m| {
        m.trial(Benchmark::Throughput).directions = vec![DirectionCounts::default(); 2];
    }),
    ("9971-4.5.4", &[], |m| {
        m.campaign.slots[2].traffic.as_mut().unwrap().mix = FrameMix::single(64)
    }),
    ("9971-4.5.3", &[], |m| {
        m.trial(Benchmark::Throughput).shape = Shape::Burst { frames: 1 }
    }),
    ("9971-4.5.5", &["9971-4.6.6"], |m| {
        m.trial(Benchmark::Throughput).loss_ratio = 1.5
    }),
    ("9971-4.5.8", &[], |m| {
        m.trial(Benchmark::Throughput)
            .rates
            .as_mut()
            .unwrap()
            .seconds = 50.0
    }),
    ("9971-4.6.1", &["9971-4.6.6"], |m| {
        m.summary.searches[0].goals[0].goal.initial_ns = 0
    }),
    ("9971-4.6.1s", &["9971-4.6.6"], |m| {
        m.summary.searches[0].goals[0].goal.exceed = 0
    }),
    ("9971-4.6.8", &[], |m| {
        m.summary.searches[0].limits.min = 1001.0
    }),
    ("9971-4.8.4a", &["9971-4.6.6"], |m| {
        m.summary.searches[0].goals[0].outcome.upper = Some(1100.0)
    }),
    ("9971-4.8.4c", &["9971-4.8.4a", "9971-4.6.6"], |m| {
        m.summary.searches[0].goals[0].outcome.upper = None
    }),
    (
        "9971-4.8.4b",
        &["9971-4.8.4a", "9971-4.8.4c", "9971-4.6.6"],
        |m| m.summary.searches[0].goals[0].outcome.lower = None,
    ),
    ("9971-4.8.5", &[], |m| {
        m.design().goals = vec![
            WantedGoal {
                name: "a".into(),
                loss: 0.0,
                exceed: 0,
                times_ns: None
            };
            2
        ]
    }),
    ("9971-4.6.6", &[], |m| {
        let second = m
            .trials
            .iter_mut()
            .find(|t| t.asked_fps == Some(1004.0))
            .unwrap();
        second.loss_ratio = 0.0;
    }),
    ("9971-4.9.1", &[], |m| {
        m.summary.searches[0].limits.max = 3001.0
    }),
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
        let changed = after
            .iter()
            .filter(|(of, now)| now.0 != before[*of].0)
            .map(|(of, _)| *of);
        let mut others: Vec<&str> = changed
            .filter(|of| of != id && !related.contains(of))
            .collect();
        // The change of the lab makes links virtual as well.
        others.retain(|of| *id != "2544-6" || after[of].0 != Status::NotApplicable);
        if !others.is_empty() {
            faults.push(format!("{id} also changed {others:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
