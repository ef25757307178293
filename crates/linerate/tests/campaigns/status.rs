//! The exit statuses that a script may rely on: the expectations of the plan's author decide.

use super::experiment::Experiment;
use crate::common::{LINERATE, Program, Scratch, linerate};

/// One variant, of whose rate something is expected.
fn expecting(is: &str, rate: &str) -> Experiment {
    let plan = format!(
        r#"
title = "A rate"
question = "Is it what was expected?"

[variants.forwarding]

[trials]
duration = "10 ms"
blocks = 8

[[expect]]
of = "forwarding"
is = "{is}"
rate = "{rate}"
because = "a test says so"
"#
    );
    Experiment::new(&plan, "--simulate ok")
}

#[test]
fn a_missed_expectation_is_status_3_and_a_met_one_is_none() {
    let met = expecting("at-least", "1 kpps").run("").run().status(0);
    assert!(met.stdout.contains("expected 1 met"), "{}", met.stdout);
    let missed = expecting("at-least", "900 Gpps").run("").run().status(3);
    assert!(
        missed.stdout.contains("expected MISSED: "),
        "{}",
        missed.stdout
    );
    let json = expecting("at-most", "1 kpps").run("--json").run().status(3);
    assert!(json.stdout.contains("\"missed\""), "{}", json.stdout);
}

#[test]
fn a_variant_that_is_slower_than_it_may_be_is_status_3_and_quiet_says_no_more_than_that() {
    let plan = "title = \"t\"\nquestion = \"q\"\n[variants.forwarding]\n[variants.other]\nsysctls = { \"net.ipv4.ip_early_demux\" = 0 }\n[compare]\nwith = \"forwarding\"\n[trials]\nduration = \"10 ms\"\nblocks = 8\n";
    let compared = Experiment::new(plan, "--simulate ok");
    let same = compared.run("--quiet --fail-if-slower 90%").run().status(0);
    assert_eq!((same.stdout.as_str(), same.stderr.as_str()), ("", ""));
    compared.forget();
    let json = compared.run("--quiet --json").run().status(0);
    assert!(json.stdout.starts_with('{') && json.stderr.is_empty());
    let alone = expecting("at-least", "1 kpps");
    alone
        .run("--fail-if-slower 3%")
        .run()
        .fails(2, &["--fail-if-slower", "[compare]"]);
    let quiet = expecting("at-least", "900 Gpps")
        .run("--quiet")
        .run()
        .fails(3, &["expectation missed"]);
    assert_eq!(quiet.stdout, "");
}

/// Without nft, as on a machine where nobody installed it.
#[test]
#[ignore = "needs root: run by make test as root"]
fn a_variant_that_was_asked_for_and_is_not_measured_is_status_1() {
    let scratch = Scratch::new();
    let hidden = "mount --bind /dev/null \"$(command -v nft)\"; exec \"$@\"";
    let run = |line: &str| {
        let of_shell = [
            "-m",
            "--propagation",
            "private",
            "sh",
            "-ec",
            hidden,
            "sh",
            LINERATE,
        ];
        let args: Vec<&str> = of_shell
            .into_iter()
            .chain(line.split_whitespace())
            .collect();
        let ended = Program::new("unshare").args(args).dir(scratch.path()).run();
        (
            ended.status.code(),
            ended
                .stdout
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            ended.stderr,
        )
    };
    let bench = "bench --family 4 --variant nft-stateful --trials 1 --batch 16 --duration 20ms";
    let (status, page, _) = run(bench);
    assert_eq!(status, Some(1), "{page}");
    assert!(
        page.starts_with("Not measured, although it was asked for: nft-stateful: "),
        "{page}"
    );
    let (status, page, said) = run(&format!("{bench} --quiet"));
    assert_eq!((status, page.as_str()), (Some(1), ""));
    assert!(said.contains("nft-stateful was not measured: "), "{said}");
    // The plan says that it is whole without firewalls.
    let plan = "title = \"t\"\nquestion = \"q\"\n[lab]\nbatch = 16\n[variants.forwarding]\n[variants.rules]\nOPTIONAL\n\
        rules = { tool = \"nftables\", filter = \"stateful\" }\n[trials]\nduration = \"20 ms\"\nblocks = 6\n";
    for (optional, status) in [("true", 0), ("false", 1)] {
        let text = plan.replace("OPTIONAL", &format!("optional = {optional}"));
        std::fs::write(scratch.file("plan.toml"), text).unwrap();
        let (ended, page, said) = run("run plan.toml");
        assert_eq!(ended, Some(status), "{page} {said}");
        assert!(page.contains("rules"), "{page}");
    }
}

/// A clock that shows the same time for a second, and then jumps.
const JUMPING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
	static int (*real)(clockid_t, struct timespec *);
	if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
	int failed = real(id, now);
	if (id == CLOCK_MONOTONIC) now->tv_nsec = 0;
	return failed;
}
"#;

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_clock_that_jumps_is_named_as_the_cause() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("clock.c"), JUMPING).unwrap();
    let compile = ["-shared", "-fPIC", "-o", "clock.so", "clock.c"];
    Program::new("clang")
        .args(compile)
        .dir(scratch.path())
        .run()
        .ok();
    let bench = "bench --family 4 --trials 1 --batch 16 --duration 20ms --full --out records";
    let clock = scratch.file("clock.so");
    let ended = linerate(bench.split_whitespace())
        .dir(scratch.path())
        .env("LD_PRELOAD", &clock)
        .run()
        .status(1);
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("could not be measured") && text.contains("clock stands still or jumps"),
        "{text}"
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn what_a_failed_command_says_is_no_order_for_the_terminal() {
    let plan = r#"
title = "A command that fails"
question = "What does it say?"

[variants.broken]
commands = [{ run = "printf '\\033[31mno' >&2; false", undo = "true" }]

[trials]
duration = "10 ms"
blocks = 6
"#;
    let ended = Experiment::new(plan, "").run("").run().status(1);
    assert!(ended.stdout.contains("?[31mno"), "{:?}", ended.stdout);
    for told in [&ended.stdout, &ended.stderr] {
        assert!(!told.contains('\u{1b}'), "{told:?}");
    }
}
