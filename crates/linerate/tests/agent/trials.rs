//! Trials through the client: every frame is accounted for.

use super::hosts::{
    CAMPAIGN, Hosts, INSIDE, counted, counter, counts, greet, greet_by, sender, sends, serve_ahead,
    state,
};
use crate::common::{lab::ip, wait_for};
use linerate_hosts::agent::message::Role;
use linerate_linux::host::cpu::online_cpus;
use linerate_linux::host::turn::Turn;
use linerate_linux::net::{Netns, procnet};
use linerate_measure::record::Direction;
use linerate_measure::trial::{Timing, rates};
use linerate_plan::Backend;
use linerate_remote::TrialResult;
use linerate_remote::agents::lab::{Cabling, Card, Frames, RealLab, Sender, Way};
use linerate_remote::agents::{Member, Trial};
use linerate_wire::{FrameMix, Load, Traffic};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

fn run(members: &[Member<'_>], rate: Option<f64>, ms: u64) -> TrialResult {
    let timing = Timing {
        quiet_ns: 200_000_000,
        drain_ns: 2_000_000_000,
        ..Timing::slice(ms * 1_000_000)
    };
    let load = Load {
        rate,
        batch: 8,
        ..Load::lasting(timing.load())
    };
    Trial {
        members,
        timing,
        load,
        answer: false,
        card_stamps: false,
        opening: None,
        tell: drop,
    }
    .run(&AtomicBool::new(false), &|_| {})
    .unwrap()
}

/// Generator and receiver on hosts of their own, a router between them.
fn conserves(by: Backend, to: Backend) {
    let hosts = Hosts::routed();
    let (generator, receiver) = (greet("g", &hosts.generator), greet("r", &hosts.receiver));
    let dut = Netns::open(&hosts.dut).unwrap();
    let look = || {
        (
            ["in0", "out0"].map(|link| counted(&hosts.dut, link)),
            procnet::drop_counters(&dut).unwrap(),
        )
    };
    receiver.prepare(counter(to)).unwrap();
    generator.prepare(sender(by)).unwrap();
    let members = [sends(&generator), counts(&receiver)];
    for rate in [Some(5_000.0), Some(20_000.0), None] {
        let ([in_before, out_before], drops_before) = look();
        let result = run(&members, rate, 300);
        let ([in_after, out_after], drops_after) = look();
        assert_eq!(result.outcome.faults, Vec::<String>::new());
        let (sent, received) = (result.sent[0].frames, result.received[0].unique());
        assert!(
            sent > 0 && result.received[0].streams[0].stream >> 8 == u16::from(CAMPAIGN),
            "{result:?}"
        );
        // The kernel's own counts of the same frames, at both ends of the router.
        let entered = in_after.rx_packets - in_before.rx_packets;
        let left = out_after.tx_packets - out_before.tx_packets;
        let refused = out_after.tx_dropped - out_before.tx_dropped;
        let drops = procnet::grown(&drops_before, &drops_after);
        let dropped: u64 = drops.values().sum();
        let lost = sent - received;
        assert!(
            received <= left && left + refused <= entered && entered <= sent,
            "{sent} {entered} {left} {received}"
        );
        // Beside other programs, a receiver that gets no CPU drops frames from its full ring.
        let known = dropped + (sent - entered) + result.received[0].refused;
        assert!(
            lost <= known,
            "{lost} of {sent} lost, {known} known: {drops:?} {result:?}"
        );
        assert_eq!(result.received[0].duplicates(), 0);
        let window = rates(&result.outcome.samples).unwrap();
        // The load of another test may have had the CPU for all of the window.
        assert!((window.seconds - 0.3).abs() < 1e-6, "{window:?}");
        assert!(
            result.outcome.samples.len() >= 2 && result.late.len() == 1,
            "{result:?}"
        );
        let first = result.outcome.samples[0];
        assert!(
            result
                .outcome
                .warm_up
                .iter()
                .all(|sample| sample.t_ns < first.t_ns),
            "{result:?}"
        );
        assert!(!result.outcome.warm_up.is_empty(), "{result:?}");
        assert!(result.cpus.contains_key("g") && result.cpus.contains_key("r"));
    }
    drop(members);
    generator.goodbye().unwrap();
    receiver.goodbye().unwrap();
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn every_frame_of_live_frames_is_accounted_for() {
    conserves(Backend::Xdp, Backend::Xdp);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn every_frame_of_sockets_is_accounted_for() {
    conserves(Backend::AfPacket, Backend::AfPacket);
    conserves(Backend::AfXdp, Backend::AfXdp);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_number_of_frames_is_sent_exactly_and_no_port_is_left_behind() {
    let hosts = Hosts::routed();
    let (generator, receiver) = (greet("g", &hosts.generator), greet("r", &hosts.receiver));
    generator.prepare(sender(Backend::Xdp)).unwrap();
    receiver.prepare(counter(Backend::Xdp)).unwrap();
    let members = [sends(&generator), counts(&receiver)];
    let timing = Timing {
        quiet_ns: 200_000_000,
        ..Timing::slice(5_000_000_000)
    };
    let load = Load {
        rate: Some(10_000.0),
        frames: Some(777),
        batch: 8,
        ..Load::lasting(timing.load())
    };
    let trial = Trial {
        members: &members,
        timing,
        load,
        answer: false,
        card_stamps: false,
        opening: None,
        tell: drop,
    };
    for _ in 0..2 {
        let result = trial.run(&AtomicBool::new(false), &|_| {}).unwrap();
        assert_eq!(
            (result.sent[0].frames, result.received[0].unique()),
            (777, 777)
        );
    }
    // The port that takes the place of another of its name detaches its program first.
    receiver.prepare(counter(Backend::Xdp)).unwrap();
    generator.release(vec![]).unwrap();
    assert!(
        generator
            .arm(vec!["out".into()], super::hosts::order(10, 1000.0))
            .is_err()
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn other_programs_on_the_cpus_of_a_load_are_counted() {
    let hosts = Hosts::routed();
    let (generator, receiver) = (greet("g", &hosts.generator), greet("r", &hosts.receiver));
    for backend in [Backend::Xdp, Backend::AfPacket] {
        receiver.prepare(counter(backend)).unwrap();
        generator.prepare(sender(backend)).unwrap();
        let members = [sends(&generator), counts(&receiver)];
        let cpu = *generator.cpus().last().unwrap();
        let others = || {
            let result = run(&members, Some(5_000.0), 1_000);
            result.cpus["g"]
                .iter()
                .map(|share| (share.cpu, share.others))
                .collect::<BTreeMap<_, _>>()
        };
        let without = others();
        assert!(without[&cpu].is_some(), "{without:?}");
        // Half of a CPU, before all threads of normal priority: a busy machine leaves no other program less.
        let (cpus, works) = (
            cpu.to_string(),
            "while :; do i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done; sleep .01; done",
        );
        let words = ["--fifo", "1", "taskset", "-c", &cpus, "sh", "-c", works];
        let mut other = std::process::Command::new("chrt")
            .args(words)
            .spawn()
            .unwrap();
        let ran = format!("/proc/{}/schedstat", other.id());
        wait_for("the other program", || {
            let ns: u64 = std::fs::read_to_string(&ran)
                .ok()?
                .split(' ')
                .next()?
                .parse()
                .ok()?;
            (ns > 50_000_000).then_some(())
        });
        let with = others();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(with[&cpu].unwrap() > 0.1, "{backend}: {with:?}");
        // Of a CPU that neither sends nor receives, the agent says nothing.
        assert!(
            with.iter()
                .all(|(of, others)| *of == cpu || others.is_none()),
            "{with:?}"
        );
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_load_waits_for_another_linerate_on_its_host() {
    static TOLD: Mutex<String> = Mutex::new(String::new());
    let hosts = Hosts::routed();
    let other = |host: &str| {
        Turn::below(&state(host), "process 7 of elsewhere", &[0], |_, _| false).unwrap()
    };
    // From now on, these hosts have turns of their own.
    for host in [&hosts.generator, &hosts.receiver] {
        let cpus = online_cpus().unwrap();
        Turn::below(&state(host), "nobody", &cpus, |_, _| false).unwrap();
    }
    let (generator, receiver) = (greet("g", &hosts.generator), greet("r", &hosts.receiver));
    receiver.prepare(counter(Backend::Xdp)).unwrap();
    generator.prepare(sender(Backend::Xdp)).unwrap();
    let held = other(&hosts.receiver);
    let members = [sends(&generator), counts(&receiver)];
    let timing = Timing {
        quiet_ns: 200_000_000,
        ..Timing::slice(300_000_000)
    };
    let load = Load {
        rate: Some(5_000.0),
        batch: 8,
        ..Load::lasting(timing.load())
    };
    let tell = |words| *TOLD.lock().unwrap() = words;
    let trial = Trial {
        members: &members,
        timing,
        load,
        answer: false,
        card_stamps: false,
        opening: None,
        tell,
    };
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| trial.run(&AtomicBool::new(false), &|_| {}).unwrap());
        wait_for("the wait to be told", || {
            (!TOLD.lock().unwrap().is_empty()).then_some(())
        });
        // Nobody has a turn on one host while the other one's is still to come.
        wait_for("the generator's turn", || {
            Turn::below(&state(&hosts.generator), "x", &[0], |_, _| false).ok()
        });
        drop(held);
        run.join().unwrap()
    });
    let told = "r: waiting for another linerate (process 7 of elsewhere), which measures on CPU 0";
    assert_eq!(*TOLD.lock().unwrap(), told);
    assert!(
        result.waited_ns > 2_000_000_000 && result.sent[0].frames > 0,
        "{result:?}"
    );
    // The turn ends with the load.
    let free = [&hosts.generator, &hosts.receiver].map(|host| other(host));
    let held = AtomicBool::new(true);
    let stopped = trial.run(&held, &|_| {}).unwrap();
    assert_eq!(stopped.sent[0].frames, 0, "Ctrl-C ends the wait");
    drop(free);
    assert_eq!(
        trial
            .run(&AtomicBool::new(false), &|_| {})
            .unwrap()
            .waited_ns,
        0
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn clocks_are_compared_and_cpus_are_named() {
    let hosts = Hosts::new();
    let agent = greet("g", &hosts.generator);
    assert!(agent.cpus().contains(&0), "{:?}", agent.cpus());
    let offset = agent.compare_clocks().unwrap();
    assert!(
        offset.ns.unsigned_abs() <= u128::from(offset.within_ns),
        "one and the same clock: {offset:?}"
    );
}

/// Longer than any frame of a quiet lab takes, and shorter than any mistake of a clock would be.
const QUIET_NS: u64 = 20_000_000;

#[test]
#[ignore = "needs root: run by make test as root"]
fn latencies_between_clocks_are_right_to_the_error_that_is_stated() {
    const AHEAD_S: u64 = 1000;
    let hosts = Hosts::routed();
    let receiver = greet("r", &hosts.receiver);
    let ahead = greet_by("g", serve_ahead(&hosts.generator, AHEAD_S));
    let offset = ahead.compare_clocks().unwrap();
    let truth = i128::from(AHEAD_S) * 1_000_000_000;
    assert!(
        (offset.ns - truth).unsigned_abs() <= offset.within_ns.into(),
        "{offset:?}"
    );
    drop(ahead);
    for (seconds, backend, card_stamps) in [
        (0, Backend::Xdp, false),
        (AHEAD_S, Backend::Xdp, true),
        (0, Backend::AfPacket, true),
        (AHEAD_S, Backend::AfPacket, true),
    ] {
        let generator = greet_by("g", serve_ahead(&hosts.generator, seconds));
        let (mut sends_at, mut counts_at) = (sender(Backend::AfPacket), counter(backend));
        for port in [&mut sends_at, &mut counts_at] {
            match &mut port.role {
                Role::Generator(traffic) => traffic.card_stamps = card_stamps,
                Role::Receiver(filter) => filter.card_stamps = card_stamps,
                Role::Client { .. } | Role::Server => unreachable!(),
            }
        }
        generator.prepare(sends_at).unwrap();
        receiver.prepare(counts_at).unwrap();
        let members = [sends(&generator), counts(&receiver)];
        let timing = Timing {
            quiet_ns: 200_000_000,
            ..Timing::slice(600_000_000)
        };
        let load = Load {
            rate: Some(5_000.0),
            batch: 8,
            ..Load::lasting(timing.load())
        };
        let trial = Trial {
            members: &members,
            timing,
            load,
            answer: false,
            card_stamps,
            opening: None,
            tell: drop,
        };
        let result = trial.run(&AtomicBool::new(false), &|_| {}).unwrap();
        let (latency, clocks) = (&result.received[0].latency, result.clocks.unwrap());
        let [least, median] = [0.0, 0.5].map(|quantile| latency.quantile(quantile).unwrap());
        println!("{backend}, ahead by {seconds} s: {clocks:?}, least {least}, median {median}");
        assert!(latency.count() >= 10 && least > 0, "{latency:?}");
        let software =
            ["g0", "r0"].map(|card| format!("{card}: this card stamps in software only"));
        match result.stamped {
            // The drivers' stamps, matched by stream and sequence number.
            Some(stamped) if backend == Backend::AfPacket => {
                assert_eq!(stamped.by_cards, [false; 2]);
                // A machine that stalls for most of the load loses stamps, too.
                assert!(
                    stamped.frames == latency.count() || latency.count() < 1500,
                    "{stamped:?} {latency:?}"
                );
                let none =
                    "no frame was stamped at both ends: latency is by the generator's program";
                let why: Vec<&String> = stamped.why.iter().filter(|why| *why != none).collect();
                assert_eq!(why, software.each_ref());
            }
            Some(stamped) => {
                assert_eq!((stamped.frames, &stamped.why[0]), (0, &software[0]));
                assert!(
                    stamped.why[2]
                        .starts_with("r0: port xdp has no stamps of cards, and af-packet has")
                );
            }
            None => assert!(!card_stamps),
        }
        assert_eq!(
            (clocks.shift_ns > 0, clocks.error_ns > 0),
            (seconds > 0, seconds > 0),
            "{clocks:?}"
        );
        // Buckets are 3 % wide.
        let (low, high) = (least + least / 30, median - median / 30);
        assert!(
            low + clocks.error_ns >= clocks.shift_ns,
            "no latency is below 0: {clocks:?} {least}"
        );
        assert!(
            high < clocks.shift_ns + clocks.error_ns + QUIET_NS,
            "{clocks:?} {median}"
        );
        assert!(
            clocks.error_ns < QUIET_NS && clocks.shift_ns <= clocks.error_ns,
            "{clocks:?}"
        );
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_lab_of_hosts_sends_several_kinds_of_frames_and_counts_what_arrives() {
    let hosts = Hosts::routed();
    let agents = vec![greet("g", &hosts.generator), greet("r", &hosts.receiver)];
    let card = |agent, interface: &str| Card {
        agent,
        interface: interface.into(),
        backend: Backend::Xdp,
        cpus: vec![],
    };
    let senders = vec![Sender {
        card: card(0, "g0"),
        to: INSIDE,
        beyond: None,
    }];
    let cabling = Cabling {
        ways: vec![Way {
            senders,
            receivers: vec![card(1, "r0")],
        }],
        isolated: true,
    };
    let Role::Generator(traffic) = sender(Backend::Xdp).role else {
        unreachable!()
    };
    let longer = Traffic {
        mix: FrameMix::single(512),
        ..(*traffic).clone()
    };
    let frames = |traffic| Frames {
        traffic,
        direction: Direction::Forward,
        bridged: false,
        tags: None,
    };
    let kinds = vec![frames(*traffic), frames(longer)];
    let mut lab = RealLab::new(agents, cabling, kinds, CAMPAIGN, drop).unwrap();
    let stop = AtomicBool::new(false);
    let timing = Timing {
        quiet_ns: 200_000_000,
        ..Timing::slice(100_000_000)
    };
    let load = Load {
        rate: Some(5_000.0),
        batch: 8,
        ..Load::lasting(timing.load())
    };
    let mut of_all = 0;
    // A route that leads the frames nowhere comes and goes.
    for (kind, change, passes) in [
        (0, None, true),
        (0, Some("add"), false),
        (1, Some("del"), true),
        (0, None, true),
    ] {
        if let Some(change) = change {
            ip(&format!(
                "-n {} route {change} blackhole 198.19.0.0/17",
                hosts.dut
            ))
            .ok();
        }
        lab.learn(kind, 0, 100, false, &stop).unwrap();
        let result = lab.trial(kind, timing, load, &stop, &|_| {}).unwrap();
        let (sent, received) = (result.sent[0].frames, result.received[0].unique());
        assert!(sent > 0 && result.outcome.faults.is_empty(), "{result:?}");
        of_all += sent;
        assert_eq!(received, if passes { sent } else { 0 });
        assert_eq!(
            result.sent[0].bytes,
            sent * if kind == 0 { 60 } else { 508 }
        );
    }
    // A busy machine sends fewer in a load.
    assert!(of_all > 1000, "{of_all}");
    let failed = lab.take_down();
    assert!(failed.is_empty(), "{failed:?}");
}
