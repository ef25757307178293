//! One command, one file.

use crate::sshd::{SshLab, wait_until};
use linerate_hosts::phases::{Outcome, Status};
use linerate_remote::{ExecutionTarget, Fault, Order};
use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const NEEDED: &str = "root and openssh-server";

fn with_host(test: impl FnOnce(&SshLab, &ExecutionTarget) + Send) {
    let lab = SshLab::new(&["r1"]).patient();
    let target = lab.target("r1");
    lab.enter(|| {
        test(
            &lab,
            &ExecutionTarget::connect(&target, None)
                .unwrap_or_else(|e| panic!("{e}\n{}", lab.hosts[0].log())),
        )
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_command_says_what_it_does_and_how_it_ended() {
    with_host(|_, place| {
        let run = |command: &str| place.run(&Order::new(command), None).unwrap();
        let finished = run("echo out; echo err >&2; exit 3");
        assert_eq!(finished.outcome, Outcome::Ended(Status::Exit(3)));
        assert_eq!(
            (finished.text().as_str(), finished.errors().as_str()),
            ("out\n", "err\n")
        );
        let finished = run("no-such-command");
        assert_eq!(finished.outcome, Outcome::Ended(Status::Exit(127)));
        assert!(
            finished.errors().contains("no-such-command"),
            "{finished:?}"
        );
        // All that a shell could take amiss arrives as it is, in lines too.
        let hostile =
            "printf '%s|' '$HOME' \"a'b\" 'c!d' '\\n' '*' `echo x` $(echo y)\nprintf '\\0end'";
        assert_eq!(
            run(hostile).stdout.bytes(),
            b"$HOME|a'b|c!d|\\n|*|x|y|\0end"
        );
        assert_eq!(run("kill -9 $$").outcome, Outcome::Ended(Status::Signal(9)));
        assert_eq!(run("trap; cat").text(), "");
        assert!(place.lost().is_none(), "{NEEDED}");
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    with_host(|lab, place| {
        let host = &lab.hosts[0];
        let order = Order::new("echo begun; sleep 71 & sleep 72").within(Duration::from_secs(3));
        let finished = place.run(&order, None).unwrap();
        assert_eq!(
            (finished.outcome, finished.text().as_str()),
            (Outcome::TimedOut, "begun\n")
        );
        wait_until("their end", Duration::from_secs(30), || {
            host.running("sleep 7") == 0
        });
        // A command that ignores the signal is killed; its last output is kept.
        let deaf = Order::new("trap '' TERM; sleep 73; sleep 74; sleep 75")
            .within(Duration::from_millis(300));
        assert_eq!(place.run(&deaf, None).unwrap().outcome, Outcome::TimedOut);
        wait_until("its end", Duration::from_secs(30), || {
            host.running("sleep 7") == 0
        });
        let last = "trap 'sleep 0.3; echo 14880952 pps; exit' TERM; while :; do sleep 0.1; done";
        // The shell has set its trap by then, on a busy machine, too.
        let order = Order {
            grace: Duration::from_secs(20),
            ..Order::new(last).within(Duration::from_secs(6))
        };
        let finished = place.run(&order, None).unwrap();
        assert_eq!(
            (finished.outcome, finished.text().as_str()),
            (Outcome::TimedOut, "14880952 pps\n")
        );
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn an_interrupt_ends_a_command() {
    with_host(|lab, place| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let job = scope.spawn(|| place.run(&Order::new("sleep 76"), Some(&stop)).unwrap());
            wait_until("its start", Duration::from_secs(60), || {
                lab.hosts[0].running("sleep 76") > 0
            });
            stop.store(true, Ordering::Relaxed);
            assert_eq!(job.join().unwrap().outcome, Outcome::Interrupted);
        });
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_flood_of_output_leaves_its_beginning_and_its_end() {
    with_host(|_, place| {
        let before = peak_kib();
        let flood = "echo first; yes linerate | head -c 120000000; echo last";
        let finished = place
            .run(&Order::new(flood).within(Duration::from_secs(120)), None)
            .unwrap();
        assert!(finished.is_success(), "{finished:?}");
        assert_eq!(finished.stdout.total(), 6 + 120_000_000 + 5);
        let text = finished.text();
        assert!(text.starts_with("first\nlinerate\n") && text.ends_with("last\n"));
        // Other tests of this process need some, too.
        assert!(
            peak_kib() - before < 100 * 1024,
            "{} KiB more than before",
            peak_kib() - before
        );
    });
}

/// The most memory that this process has used.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_program_has_its_pipes_to_itself() {
    with_host(|lab, place| {
        lab.hosts[0].stand_in("agent", "#!/bin/sh\necho \"$*\"\nexec cat\n");
        let mut command = place.program("agent", &["--json", "a=1"]).unwrap();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"ping\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.stdout.as_slice(), output.status.code()),
            (b"--json a=1\nping\n".as_slice(), Some(0))
        );
        for word in ["", "a b", "$(reboot)", "a'b", "!1", "a\nb", "~"] {
            assert_eq!(
                place.program("agent", &[word]).unwrap_err().fault,
                Fault::Command,
                "{word:?}"
            );
        }
    });
}
