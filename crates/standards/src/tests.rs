//! Sound records meet every row that records can meet; one change makes its row alone fail.

mod changes;
mod claims;
mod connections;
mod hostile;
mod slots;

use super::*;
use linerate_hosts::configuration::{label, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::audit::Audit;
use linerate_measure::counters::{Delays, PortCounters, StreamCounters};
use linerate_measure::experiment::{Experiment, Measure, System, Trials, WantedGoal};
use linerate_measure::record::{
    Benchmarked, Campaign, Collected, Direction, DirectionCounts, EventClass, Figures, HostFacts,
    LabKind, Maximum, Planned, Searched, Slot, SlotFacts, Stopped, Summary, TrialRecord,
};
use linerate_measure::trial::{Rates, Shape, Timing};
use linerate_wire::{
    Extensions, Family, FlowOrder, FlowSpace, FrameMix, FrameSpec, MacAddr, RFC2544_PORTS, Second,
    Selection, SourceMacs, Traffic, Transport,
};
use slots::of_slot;
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
        let Made {
            campaign,
            host,
            trials,
            facts,
            summary,
        } = self;
        conformance(&Records {
            campaign,
            host,
            trials,
            facts,
            summary: Some(summary),
        })
        .expect("tests were made")
    }

    fn statuses(&self) -> BTreeMap<&'static str, (Status, String)> {
        self.judged()
            .rows
            .into_iter()
            .map(|row| (row.id, (row.status, row.because)))
            .collect()
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
        &mut of
            .iter_mut()
            .find(|tested| tested.test == test)
            .unwrap()
            .figures
    }

    /// All reset tests have an event of this class.
    fn figures_of_resets(&mut self, class: EventClass) {
        for tested in self
            .summary
            .benchmarks
            .iter_mut()
            .flat_map(|of| &mut of.tests)
        {
            if let Figures::Reset(found) = &mut tested.figures {
                found.event.class = class;
            }
        }
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
        self.trials.extend(
            of_first
                .map(|trial| TrialRecord {
                    slot: id,
                    ..trial.clone()
                })
                .collect::<Vec<_>>(),
        );
        self.facts.push(SlotFacts {
            slot: id,
            ..self.facts[0].clone()
        });
        self.summary.benchmarks.push(Benchmarked {
            slot: id,
            ..self.summary.benchmarks[0].clone()
        });
        self.summary.searches.push(Searched {
            slot: id,
            ..self.summary.searches[0].clone()
        });
        self.campaign.slots.push(Slot {
            id,
            ..self.campaign.slots[1].clone()
        });
        &mut self.campaign.slots[id]
    }

    /// Other links of the first slot's DUT.
    fn links(&mut self, links: &str) {
        let answers = &mut self.facts[0].answers;
        answers
            .iter_mut()
            .find(|of| of.command.starts_with("ip "))
            .unwrap()
            .output = Ok(links.into());
    }

    fn trial(&mut self, test: Benchmark) -> &mut TrialRecord {
        self.trials
            .iter_mut()
            .find(|trial| trial.benchmark == Some(test))
            .unwrap()
    }
}

fn traffic(length: u16) -> Traffic {
    let nowhere = MacAddr::default();
    let frame = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
    let frame = FrameSpec {
        l4_checksum: false,
        may_fragment: true,
        ..frame
    };
    let ends = ([198, 18, 1, 2].into(), [198, 19, 1, 2].into());
    let flows = FlowSpace::across(ends, RFC2544_PORTS, 1, 1).unwrap();
    Traffic::new(frame, FrameMix::single(length), flows)
}

fn port(frames: u64, length: u16) -> PortCounters {
    let stream = StreamCounters {
        frames,
        next_sequence: frames,
        ..StreamCounters::default()
    };
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
    let timing = Timing {
        run_ns: seconds * S,
        drain_ns: 2 * S,
        settle_ns: 5 * S,
        ..Timing::default()
    };
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
        audit: Audit {
            valid: true,
            ..Audit::default()
        },
        ..TrialRecord::default()
    }
}

fn delays(frames: u64) -> Option<Delays> {
    Some(Delays {
        frames,
        tagged: (0..500).map(|n| (60 * S + n, 1000)).collect(),
        ..Delays::default()
    })
}

/// The commands of a DUT's settings, as far as rows look at them.
fn settings() -> Vec<Collected> {
    let answer = |argv: &Vec<String>| {
        let command = label(argv);
        let output = if command.starts_with("ip ") {
            LINKS
        } else {
            "==> uname <==\nLinux router 6.12.0 #1\n"
        };
        Collected {
            command,
            output: Ok(output.into()),
        }
    };
    questions(Kernel::Linux, &[]).iter().map(answer).collect()
}

/// The DUT's links: the destinations are in networks of their own.
const LINKS: &str = r#"[{"ifname":"in0","mtu":1500,"addr_info":[{"local":"198.18.1.1","prefixlen":24}]},
    {"ifname":"out0","mtu":1500,"addr_info":[{"local":"198.19.0.1","prefixlen":16}]}]"#;

/// All tests at seven sizes on hosts, as the RFCs want them.
fn sound() -> Made {
    let slot = |id: usize| {
        let length = if id == 0 { 64 } else { case::SIZES[id - 1] };
        Slot {
            id,
            name: format!("forwarding {length} B"),
            plan_variant: if id == 0 {
                "tester-baseline".into()
            } else {
                "forwarding".into()
            },
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
    many.flows = FlowSpace::across(ends, RFC2544_PORTS, 256, 25_600)
        .unwrap()
        .with_ports(Selection::Random { seed: 1 });
    many.flows = many
        .flows
        .clone()
        .with_random_addresses(1, [65_277, 189])
        .unwrap();
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
    let lane =
        |before: u64| serde_json::json!({ "settings": { "rules": { "rules-before": before } } });
    let plan = serde_json::json!({
        "cells": [{ "lane": 2 }, { "lane": 2 }, { "lane": 0 }, { "lane": 1 }],
        "lanes": [lane(0), lane(24), { "settings": { "rules": null } }],
    });
    let mut campaign = Campaign {
        slots,
        planned: Some(Box::new(Planned {
            file: None,
            source: None,
            experiment,
            plan,
            skipped: Vec::new(),
        })),
        ..Campaign::default()
    };
    campaign.asked.lab = LabKind::Hosts;
    campaign
        .standing
        .insert("statement".into(), "as its manual says".into());
    let facts = |slot| SlotFacts {
        version: 1,
        slot,
        kernel: "linux".into(),
        interfaces: vec!["in0".into(), "out0".into()],
        answers: settings(),
    };
    let summary: Summary = serde_json::from_value(serde_json::json!({
        "version": 1, "stopped": Stopped::Precise, "seconds": 1.0, "reboots": 0, "load_share": 1.0, "peak_memory": 0, "rows": [],
        "comparisons": [], "series": [], "expectations": [], "unmeasured": [], "warnings": [], "profiles": [], "explanations": [], "searches": [],
    }))
    .unwrap();
    Made {
        campaign,
        host: HostFacts {
            kernel: "6.12".into(),
            ..HostFacts::default()
        },
        trials,
        facts: (1..8).map(facts).collect(),
        summary: Summary {
            benchmarks,
            searches,
            ..summary
        },
    }
}

/// Rows that records of linerate cannot meet today, with the status that they have.
const OTHERS: [(&str, Status); 22] = [
    ("2544-7d", Status::Deviation),
    ("2544-8a", Status::Deviation),
    ("2544-9.4", Status::NotApplicable),
    ("2544-11.2", Status::NotRun),
    ("2544-11.3a", Status::NotRun),
    ("2544-11.3b", Status::NotRun),
    ("2544-13a", Status::NotApplicable),
    ("2544-13b", Status::NotApplicable),
    ("2544-14", Status::Deviation),
    ("2544-16", Status::NotApplicable),
    ("2544-21", Status::NotRun),
    ("2544-25", Status::NotRun),
    ("6201-3b", Status::NotRun),
    ("9004-3b", Status::NotRun),
    ("9971-4.5.2a", Status::NotApplicable),
    ("9971-4.5.9", Status::NotRun),
    ("8219-4", Status::Deviation),
    ("8219-5.1", Status::NotApplicable),
    ("8219-5.3", Status::Deviation),
    ("4814-4.2", Status::NotApplicable),
    ("5180-5.3", Status::NotRun),
    ("5180-7", Status::NotRun),
];

#[test]
fn sound_records_meet_every_row_that_records_can_meet() {
    let others: BTreeMap<&str, Status> = OTHERS.into();
    for (id, (status, because)) in sound().statuses() {
        assert_eq!(
            status,
            others.get(id).copied().unwrap_or(Status::Met),
            "{id}: {because}"
        );
    }
}

/// Both directions at once, and the loads of a trial.
#[test]
fn both_directions_have_equal_loads() {
    let with = |sent: [u64; 2]| {
        let mut made = sound();
        made.campaign
            .slots
            .iter_mut()
            .for_each(|slot| slot.direction = Direction::Both);
        let way = |sent: &u64| DirectionCounts {
            sent: *sent,
            ..DirectionCounts::default()
        };
        let directions: Vec<DirectionCounts> = sent.iter().map(way).collect();
        made.trials
            .iter_mut()
            .for_each(|trial| trial.directions.clone_from(&directions));
        made.statuses()["2544-14"].clone()
    };
    assert_eq!(with([1000, 1005]).0, Status::Met);
    let (status, because) = with([1000, 900]);
    assert!(
        status == Status::Deviation && because.ends_with(": 1000 frames there, 900 back"),
        "{because}"
    );
}

#[test]
fn virtual_links_have_no_medium_and_meet_no_row_that_needs_one() {
    let mut made = sound();
    made.campaign.asked.lab = LabKind::Namespaces;
    let now = made.statuses();
    for id in [
        "2544-20",
        "2544-26.1b",
        "2544-26.1c",
        "2544-26.3c",
        "6201-1.4b",
        "9004-5b",
    ] {
        assert_eq!(
            now[id],
            (Status::NotApplicable, "virtual link".into()),
            "{id}"
        );
    }
    assert_eq!(now["2544-25"].0, Status::Deviation);
}

/// The frames of a campaign, and the rows that follow from them.
#[test]
fn ipv6_bursts_and_source_addresses_are_judged_by_the_frames_that_were_sent() {
    let with = |changes: &[fn(&mut Traffic)]| {
        let mut made = sound();
        for (slot, change) in made.campaign.slots[1..].iter_mut().zip(changes) {
            change(slot.traffic.as_mut().unwrap());
        }
        made.statuses()
    };
    let chains: [fn(&mut Traffic); 3] = [
        |t| {
            t.frame = FrameSpec {
                family: Family::V6,
                ..t.frame
            }
        },
        |t| {
            t.frame = FrameSpec {
                family: Family::V6,
                extensions: Extensions::Routing,
                ..t.frame
            }
        },
        |t| {
            t.frame = FrameSpec {
                family: Family::V6,
                extensions: Extensions::Chain,
                ..t.frame
            }
        },
    ];
    assert_eq!(with(&chains)["5180-5.3"].0, Status::Met);
    assert_eq!(
        with(&chains[..2])["5180-5.3"].0,
        Status::Deviation,
        "no chain"
    );
    assert_eq!(with(&chains[..1])["5180-7"].0, Status::Deviation, "no mix");
    fn mix(t: &mut Traffic, percent: u32) {
        t.ipv6 = Some(Second {
            millionths: percent * 10_000,
            flows: t.flows.clone(),
        });
    }
    let mixes: [fn(&mut Traffic); 4] = [chains[0], |t| mix(t, 10), |t| mix(t, 50), |t| mix(t, 90)];
    assert_eq!(
        with(&mixes)["5180-7"],
        (
            Status::Met,
            "IPv6 frames, in percent: {0, 10, 50, 90, 100}".into()
        )
    );
    let macs: [fn(&mut Traffic); 1] = [|t| t.source_macs = SourceMacs::Random { seed: 1 }];
    assert_eq!(with(&macs)["4814-4.2"].0, Status::Met);
    let mut made = sound();
    for (number, frames) in [16, 64, 256, 1024].into_iter().enumerate() {
        made.campaign.slots[number + 1]
            .traffic
            .as_mut()
            .unwrap()
            .burst = frames;
        let found = made.summary.benchmarks[number]
            .tests
            .iter_mut()
            .find(|of| of.test == Benchmark::Throughput);
        let Figures::Throughput(found) = &mut found.unwrap().figures else {
            unreachable!()
        };
        found.burst_s = Some(0.001);
        let status = if frames == 1024 {
            Status::Met
        } else {
            Status::Deviation
        };
        assert_eq!(made.statuses()["2544-21"].0, status, "up to {frames}");
    }
    made.campaign.asked.lab = LabKind::Namespaces;
    assert_eq!(
        made.statuses()["2544-21"].0,
        Status::NotApplicable,
        "no medium"
    );
}

#[test]
fn frames_are_listed_to_the_octet() {
    let frames = sound().judged().frames;
    assert_eq!(
        frames
            .iter()
            .map(|frame| frame.length_fcs)
            .collect::<Vec<_>>(),
        case::SIZES
    );
    assert!(
        frames[0]
            .octets
            .contains("08 00 45 00 00 2e 00 00 00 00 0a 11"),
        "{}",
        frames[0].octets
    );
    assert!(
        frames[0]
            .octets
            .contains("c6 12 01 02 c6 13 01 02 c0 20 00 07 00 1a 00 00 4c 4e 52 31"),
        "the signature begins"
    );
}

#[test]
fn rows_are_unique_and_in_order() {
    let ids: Vec<&str> = rows::all().map(|row| row.id).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!((unique.len(), ids.len()), (107, 107));
    assert_eq!(
        (ids[0], ids[1], *ids.last().unwrap()),
        ("2544-6", "2544-7a", "2889-5.1b")
    );
}
