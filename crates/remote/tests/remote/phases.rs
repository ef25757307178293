//! Campaigns on hosts without faults.

use crate::campaign::{S, campaign, design, host, waited};
use crate::sshd::{SshLab, wait_until};
use linerate_hosts::phases::{
    Action, Event, Host, Mode, Outcome, Phase, Signal, Status, Step, Undone,
};
use linerate_remote::{Driver, ExecutionTarget, Notice, Started, Stream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[test]
#[ignore = "needs root and openssh-server"]
fn phases_are_carried_out_on_all_hosts() {
    let lab = SshLab::new(&["r1", "r2", "r3"]).patient();
    let hosts = ["r1", "r2", "r3"].map(|name| {
        host(
            name,
            waited("cat /proc/self/net/fib_trie | grep -c 198.18", 10),
        )
    });
    let mut design = design(hosts.into());
    design.trials = 2;
    design.hosts[1].phases[1].insert(
        0,
        Step {
            command: "sleep 62".into(),
            mode: Mode::Background { limit_ns: None },
        },
    );
    let timed = Step {
        command: "echo so far; sleep 63".into(),
        mode: Mode::Timed { limit_ns: 3 * S },
    };
    design.hosts[2].phases[1].push(timed);
    let seen = campaign(&lab, design, &AtomicBool::new(false), &mut |_| {});
    assert!(
        seen.complaints.is_empty() && seen.troubles.is_empty(),
        "{seen:#?}"
    );
    assert_eq!(seen.verdicts.len(), 2);
    assert!(
        seen.verdicts
            .iter()
            .flatten()
            .all(|v| v.is_whole() && v.undone == Undone::All),
        "{seen:#?}"
    );
    let ends: Vec<_> = seen
        .starts
        .iter()
        .filter(|(id, _)| id.host == 0)
        .map(|(_, c)| c.as_str())
        .collect();
    assert_eq!(
        ends[2..],
        [
            ["echo collect", "echo reset", "echo set-up"].as_slice(),
            &ends[1..2],
            &ends[2..4]
        ]
        .concat()[..]
    );
    assert!(seen.output(2, Phase::Run)[1].starts_with("so far\n"));
    let outcome = |command: &str| {
        let id = seen
            .starts
            .iter()
            .find(|(_, c)| c.contains(command))
            .unwrap()
            .0;
        seen.reports
            .iter()
            .find(|r| r.step == id)
            .unwrap()
            .end
            .outcome
    };
    assert_eq!(
        (outcome("sleep 62"), outcome("sleep 63")),
        (Outcome::Stopped, Outcome::TimedOut)
    );
    assert_eq!(seen.started.len(), 2);
    wait_until("the end of the steps", Duration::from_secs(30), || {
        lab.hosts.iter().all(|host| host.running("sleep 6") == 0)
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn all_hosts_begin_at_one_instant_and_a_wrong_clock_does_not_matter() {
    // A busy machine reads a clock late, but not by a part of that hour.
    one_instant(60 * S);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn figures_all_hosts_begin_at_one_instant() {
    one_instant(S / 2);
}

/// A run on three hosts, one of which has another clock; their starts are known to this many nanoseconds.
fn one_instant(within: u64) {
    let lab = SshLab::new(&["r1", "r2", "r3"]).patient();
    // An hour ahead.
    lab.hosts[1].stand_in("date", "#!/bin/sh\nexec /bin/date -d '+1 hour' \"$@\"\n");
    let run = || waited("/bin/date +%s%N", 60);
    let design = design(["r1", "r2", "r3"].map(|name| host(name, run())).into());
    let seen = campaign(&lab, design, &AtomicBool::new(false), &mut |_| {});
    let Started {
        starts,
        skew_ns,
        error_ns,
    } = &seen.started[0];
    println!("skew {skew_ns} ns, {error_ns} ns at most wrong");
    let truth: Vec<i128> = (0..3)
        .map(|host| seen.output(host, Phase::Run)[0].trim().parse().unwrap())
        .collect();
    // The commands read the clock a moment after they began; they are compared by differences.
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        let found = i128::from(starts[one].at_ns) - i128::from(starts[other].at_ns);
        let wrong = (found - (truth[one] - truth[other])).unsigned_abs();
        assert!(wrong < u128::from(within), "{wrong} ns wrong: {seen:#?}");
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn commands_that_fail_say_what_to_do() {
    let lab = SshLab::new(&["r1"]).patient();
    let full = lab.folder().join("full");
    let mut one = host("r1", waited("pkt-gen-of-another-world -i em0", 10));
    let path = full.display();
    one.phases[0].push(waited(
        &format!("mkdir {path} && mount -t tmpfs -o size=64k none {path}"),
        10,
    ));
    one.phases[3].push(waited(&format!("umount {path}"), 10));
    one.phases[2].push(waited(&format!("cat /dev/zero >{path}/file"), 10));
    one.phases[2].push(waited("sleep 64", 1));
    one.phases[2].push(waited("head -c 20000000 /dev/zero", 60));
    let mut design = design(vec![one]);
    design.rules.margin_ns = 0;
    design.rules.most_output = 1000;
    let seen = campaign(&lab, design, &AtomicBool::new(false), &mut |_| {});
    let [missing, full, slow] = seen.complaints.as_slice() else {
        panic!("{seen:#?}")
    };
    assert!(
        missing.starts_with(
            "r1, run of trial 1, step 1: `pkt-gen-of-another-world -i em0` was not found"
        ),
        "{missing}"
    );
    assert!(
        full.starts_with("r1, collect of trial 1, step 2: ") && full.contains("make room"),
        "{full}"
    );
    assert!(slow.contains("`sleep 64` did not end within 1 s"), "{slow}");
    let flood = seen
        .reports
        .iter()
        .find(|r| r.step.phase == Phase::Collect && r.step.step == 3)
        .unwrap();
    assert_eq!(
        (flood.end.outcome, flood.end.output.total()),
        (Outcome::Ended(Status::Exit(0)), 20_000_000)
    );
    assert_eq!(seen.verdicts[0][0].undone, Undone::All);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn twenty_hosts_are_taken_through_their_phases() {
    are_taken_through_their_phases(20);
}

#[test]
#[ignore = "needs root and openssh-server: run by make test-long as root"]
fn takes_minutes_a_hundred_hosts_are_taken_through_their_phases() {
    are_taken_through_their_phases(100);
}

fn are_taken_through_their_phases(number: usize) {
    let names: Vec<String> = (0..number).map(|number| format!("h{number}")).collect();
    let lab = SshLab::new(&names.iter().map(String::as_str).collect::<Vec<_>>()).patient();
    let mut design = design(
        names
            .iter()
            .map(|name| host(name, waited("hostname", 30)))
            .collect(),
    );
    design.phases = [false, true, false, false];
    let seen = campaign(&lab, design, &AtomicBool::new(false), &mut |_| {});
    assert!(
        seen.complaints.is_empty() && seen.troubles.is_empty(),
        "{:?} {:?}",
        seen.complaints,
        seen.troubles
    );
    assert_eq!(seen.reports.len(), number);
    assert!(seen.verdicts[0].iter().all(|v| v.is_whole()));
    println!(
        "a phase of {number} hosts took {:?}, with {} ns of skew",
        seen.took, seen.started[0].skew_ns
    );
}

/// Without ssh: the supervision is the same.
#[test]
fn commands_here_are_carried_out_likewise() {
    let mut troubles = 0;
    let mut outputs = Vec::new();
    let mut observe = |notice: Notice<'_>| match notice {
        Notice::Trouble { .. } => troubles += 1,
        Notice::Action {
            action: Action::Report(report),
            ..
        } => {
            outputs.push(String::from_utf8_lossy(&report.end.output.bytes()).into_owned());
        }
        _ => {}
    };
    let place = ExecutionTarget::Here {
        name: "here".into(),
        netns: None,
    };
    let mut design = design(vec![host("here", waited("echo run", 10))]);
    design.trials = 2;
    Driver::new(design, vec![place], &mut observe)
        .run(&AtomicBool::new(false))
        .unwrap();
    let expected = ["set-up\n", "run\n", "collect\n", "reset\n"];
    assert_eq!(
        (troubles, outputs),
        (
            0,
            expected
                .iter()
                .chain(&expected)
                .map(|s| (*s).to_owned())
                .collect()
        )
    );
}

/// The shape of a trial of tools: the receiver is up before the generator begins, counts until it has ended, and both print their totals.
#[test]
fn a_phase_that_is_held_lasts_until_there_is_enough_of_it() {
    let background = Mode::Background { limit_ns: None };
    let timed = Mode::Timed { limit_ns: 60 * S };
    let tools = [
        ("receiver", Phase::SetUp, background),
        ("generator", Phase::Run, timed),
    ];
    let hosts = tools.map(|(name, phase, mode)| {
        let text = format!(
            "trap 'echo {name} totals; exit' INT; echo {name} up; while :; do sleep 0.05; done"
        );
        let mut host = Host {
            name: name.into(),
            stop: Signal::Interrupt,
            ..Host::default()
        };
        host.phases[phase as usize].push(Step {
            command: format!("exec sh -c \"{text}\""),
            mode,
        });
        host
    });
    let mut design = design(hosts.into());
    (design.phases, design.rules.held) = ([true, true, true, false], true);
    let places = tools.map(|(name, ..)| ExecutionTarget::Here {
        name: name.into(),
        netns: None,
    });
    let (mut seen, mut enough) = (Vec::new(), false);
    let mut observe = |notice: Notice<'_>| match notice {
        Notice::Action {
            action: Action::Phase { phase, .. },
            ..
        } => {
            seen.push(phase.name().to_owned());
            enough = *phase == Phase::Collect;
        }
        Notice::Wrote(_, Stream::Output, bytes) => {
            seen.push(String::from_utf8_lossy(bytes).trim().to_owned());
            enough |= bytes.ends_with(b"up\n");
        }
        Notice::Action {
            action: Action::Report(report),
            ..
        } => {
            assert_eq!(
                (report.end.outcome, report.failed),
                (Outcome::Stopped, false)
            );
        }
        Notice::Idle(event) if std::mem::take(&mut enough) => *event = Some(Event::Enough),
        _ => {}
    };
    Driver::new(design, places.into(), &mut observe)
        .run(&AtomicBool::new(false))
        .unwrap();
    let expected = [
        "set-up",
        "receiver up",
        "run",
        "generator up",
        "generator totals",
        "collect",
        "receiver totals",
    ];
    assert_eq!(seen, expected);
}

/// Steps that take no time are over when their beginning is heard of.
#[test]
fn that_a_run_has_begun_is_told_within_its_trial() {
    let mut seen = Vec::new();
    let mut observe = |notice: Notice<'_>| match notice {
        Notice::Started(_) => seen.push("started"),
        Notice::Action {
            action: Action::Trial { .. },
            ..
        } => seen.push("over"),
        _ => {}
    };
    let names = ["one", "other"];
    let places = names.map(|name| ExecutionTarget::Here {
        name: name.into(),
        netns: None,
    });
    let mut design = design(names.map(|name| host(name, waited(":", 10))).into());
    (design.trials, design.phases) = (40, [false, true, false, false]);
    Driver::new(design, places.into(), &mut observe)
        .run(&AtomicBool::new(false))
        .unwrap();
    assert_eq!(seen, ["started", "over"].repeat(40));
}
