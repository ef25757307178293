//! Tools and hosts that break down: the trial ends soon, no load is left, and the message names a remedy.

use crate::bsd::{Bsd, LOAD, TIMING, task};
use crate::sshd::{SILENCE, wait_until};
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_remote::TrialResult;
use linerate_remote::external::{ToolHost, ToolTrial};
use linerate_remote::{ExecutionTarget, RemoteError, Target};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long it does where nothing else takes the CPUs, with some room.
const SOON: Duration = Duration::from_secs(5);

/// Hosts on which a trial would take a minute.
fn long() -> Bsd {
    Bsd {
        timing: Timing {
            run_ns: 60_000_000_000,
            ..TIMING
        },
        ..Bsd::new()
    }
}

/// A trial of a minute, in which something happens while frames are sent.
fn disturbed(
    bsd: &Bsd,
    stop: &AtomicBool,
    what: impl FnOnce() + Send,
) -> Result<TrialResult, RemoteError> {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bsd.wait_sending("gen");
            what();
        });
        bsd.run(&["gen", "gen2"], Some(100_000.0), stop).0
    })
}

/// A tool's own words, as a fault of a trial in which frames were sent.
#[track_caller]
fn told(result: &TrialResult, beginning: &str, words: &str) {
    let told = result
        .outcome
        .faults
        .iter()
        .any(|fault| fault.starts_with(beginning) && fault.contains(words));
    assert!(told, "{result:#?}");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_generator_that_crashes_ends_the_trial() {
    for (fault, words) in [
        (
            "crash",
            " times); run it again; if it repeats, the link goes down or the driver resets",
        ),
        ("segv", "Segmentation fault; run it again"),
    ] {
        let bsd = long();
        bsd.set("gen", "fault", fault);
        bsd.set("gen", "fault-after", "15");
        let result = bsd.trial(&["gen", "gen2"], None).unwrap();
        told(&result, "gen: pkt-gen (sending on igb1): ", words);
        bsd.no_load();
        assert!(result.received[0].frames > 0);
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_receiver_that_crashes_ends_the_trial() {
    let bsd = long();
    bsd.set("rec", "fault", "crash");
    // The generators have begun by then.
    bsd.set("rec", "fault-after", "40");
    let result = bsd.trial(&["gen"], None).unwrap();
    // By its last words or by its totals, whatever is here first.
    told(
        &result,
        "rec: pkt-gen (receiving on igb1): ",
        "run it again; if it repeats",
    );
    bsd.no_load();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn what_keeps_a_tool_from_beginning_is_an_error() {
    for (host, fault, beginning, words) in [
        (
            "gen",
            "open",
            "gen: pkt-gen failed while sending on igb1: ",
            "netmap support",
        ),
        (
            "rec",
            "busy",
            "rec: pkt-gen failed while receiving on igb1: ",
            "an earlier load may still run",
        ),
    ] {
        let bsd = Bsd::new();
        bsd.set(host, "fault", fault);
        let error = bsd.trial(&["gen"], None).unwrap_err().to_string();
        assert!(
            error.starts_with(beginning) && error.contains(words),
            "{error}"
        );
        bsd.no_load();
    }
    let bsd = Bsd::new();
    bsd.lab.hosts[0].stand_in(
        "timeout",
        "#!/bin/sh\necho 'sh: pkt-gen: not found' >&2\nexit 127\n",
    );
    let error = bsd.trial(&["gen"], None).unwrap_err().to_string();
    assert!(
        error.contains("not found; install pkt-gen: pkg install netmap-utils"),
        "{error}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_tool_that_does_nothing_is_not_waited_for() {
    let bsd = Bsd::new();
    bsd.set("gen", "fault", "hang");
    // The receiver waits as long: a sample each second will do.
    bsd.set("rec", "pace", "1");
    let error = bsd.trial(&["gen"], None).unwrap_err().to_string();
    assert!(
        error.starts_with("gen: pkt-gen did nothing for 13 s while sending on igb1; "),
        "{error}"
    );
    assert!(
        error.contains("by hand: timeout --foreground -s INT"),
        "{error}"
    );
    bsd.no_load();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_tool_that_falls_silent_is_ended() {
    let bsd = long();
    bsd.set("gen", "fault", "still");
    let result = bsd.trial(&["gen"], None).unwrap();
    told(
        &result,
        "gen: pkt-gen (sending on igb1): ",
        "printed nothing for 10 s, and was ended; see on that host",
    );
    bsd.no_load();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn seconds_that_cannot_be_read_are_told() {
    let bsd = Bsd::new();
    bsd.set("rec", "fault", "garble");
    let result = bsd.trial(&["gen"], None).unwrap();
    told(
        &result,
        "rec: pkt-gen (receiving on igb1): ",
        "keep other output off its terminal",
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_flood_of_output_is_cut_off() {
    let bsd = long();
    bsd.set("gen", "fault", "flood");
    bsd.set("gen", "fault-after", "1");
    let result = bsd.trial(&["gen", "gen2"], None).unwrap();
    told(
        &result,
        "gen: pkt-gen (sending on igb1): ",
        "printed more than 8 MiB and was ended",
    );
    let ends = || bsd.loads() == 0 && bsd.lab.hosts[0].running("sender_body") == 0;
    wait_until("the end of the flood", LOAD, ends);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn ctrl_c_ends_the_loads_and_shows_what_was_counted() {
    let (bsd, stop) = (long(), AtomicBool::new(false));
    let result = disturbed(&bsd, &stop, || stop.store(true, Ordering::Relaxed)).unwrap();
    bsd.no_load();
    assert!(result.outcome.faults.is_empty(), "{result:?}");
    assert!(
        result.sent[0].frames > 0 && result.received[0].frames == result.sent[0].frames,
        "{result:?}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn ctrl_c_before_there_is_a_load_is_no_error() {
    for host in ["rec", "gen"] {
        let (bsd, stop) = (Bsd::new(), AtomicBool::new(host == "rec"));
        bsd.set("gen", "fault", "hang");
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_until("the command", Duration::from_secs(60), || {
                    stop.load(Ordering::Relaxed) || bsd.lab.hosts[0].running("-f tx") > 0
                });
                stop.store(true, Ordering::Relaxed);
            });
            bsd.run(&["gen"], None, &stop).0.unwrap()
        });
        bsd.no_load();
        assert!(result.outcome.faults.is_empty(), "{result:?}");
        assert_eq!(
            (result.sent[0].frames, result.outcome.samples.len()),
            (0, 0)
        );
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn hosts_that_are_lost_name_themselves_and_the_others_end() {
    hosts_are_lost(LOAD);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn figures_loads_that_cannot_be_reached_end_soon() {
    hosts_are_lost(SOON);
}

/// Loses hosts in the midst of a load, which ends within this time.
fn hosts_are_lost(within: Duration) {
    type Case = (&'static str, &'static str, fn(&Bsd));
    let cases: [Case; 3] = [
        ("gen", "the connection was lost (sending on igb1", |bsd| {
            bsd.lab.hosts[0].signal_sshd(libc::SIGKILL);
        }),
        (
            "gen",
            "the host has not answered for 3 s (sending on igb1",
            |bsd| {
                bsd.lab.hosts[0].signal_sshd(libc::SIGSTOP);
            },
        ),
        (
            "rec",
            "the host has not answered for 3 s (receiving on igb1",
            |bsd| bsd.lab.hosts[2].link(false),
        ),
    ];
    for (host, words, what) in cases {
        let mut bsd = long();
        bsd.lab.hasty = Some(host);
        let lost = || {
            what(&bsd);
            let there = bsd.lab.hosts.iter().find(|h| h.name == host).unwrap();
            let took = wait_until("the end of its load", within, || {
                there.running("pkt-gen") == 0
            });
            println!("{words}: its load went on for {took:?}");
        };
        let error = disturbed(&bsd, &AtomicBool::new(false), lost)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(&format!("{host}: {words}")), "{error}");
        assert!(
            error.contains("look at its power, console and management link"),
            "{error}"
        );
        bsd.no_load();
    }
}

/// Passes the hosts to the test below, when another test starts it.
const CONFIG: &str = "LINERATE_TEST_SSH_CONFIG";

#[test]
#[ignore = "needs root and openssh-server"]
fn kill_9_leaves_no_load() {
    let bsd = Bsd::new();
    let mut command = bsd.lab.command(std::env::current_exe().unwrap());
    command.args([
        "--ignored",
        "--exact",
        "faults::a_trial_in_a_process_of_its_own",
    ]);
    let mut child = command
        .env(CONFIG, bsd.lab.config())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    bsd.wait_sending("gen");
    assert!(bsd.loads() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    bsd.no_load();
}

/// Part of the test above; by itself it has nothing to do.
#[test]
#[ignore = "is started by another test"]
fn a_trial_in_a_process_of_its_own() {
    let Some(config) = std::env::var_os(CONFIG) else {
        return;
    };
    let host = |name: &str| {
        let mut target = Target {
            silence: SILENCE,
            ..Target::new(name)
        };
        target.config = Some(config.clone().into());
        let place = Arc::new(ExecutionTarget::connect(&target, None).unwrap());
        ToolHost {
            place,
            tool: Backend::PktGen,
            sudo: false,
        }
    };
    let timing = Timing {
        run_ns: 60_000_000_000,
        ..TIMING
    };
    let (generators, receiver) = ([(host("gen"), task(None, None))], host("rec"));
    let receiver = Some((&receiver, task(None, None)));
    let trial = ToolTrial {
        generators: &generators,
        receiver,
        timing,
        patience: Duration::from_secs(9),
    };
    trial.run(&AtomicBool::new(false)).unwrap();
}
