//! Plans with faults: all of them are reported at once, and nothing is touched.

use super::outside::Outside;
use crate::common::{Scratch, linerate, own_machine};
use std::fs;

/// A valid plan around the given parts.
fn plan(traffic: &str, variants: &str, trials: &str) -> String {
    format!(
        "title = \"t\"\nquestion = \"q\"\n[lab]\nlink-speed = \"10 Gbit/s\"\n[traffic]\n{traffic}\n{variants}\n[trials]\n{trials}\n"
    )
}

const VARIANTS: &str = "[variants.a]\nabout = \"a\"";
const TRIALS: &str = "duration = \"10 ms\"\nblocks = 6";

#[track_caller]
fn has_faults(text: &str, says: &[&str]) {
    let scratch = Scratch::new();
    let file = scratch.file("bad.toml");
    fs::write(&file, text).unwrap();
    for more in [
        &["--simulate", "ok"][..],
        &["--allow-host-changes"],
        &["--quick", "--out", "records"],
    ] {
        let ended = linerate(["run", "bad.toml"].iter().chain(more))
            .dir(scratch.path())
            .run()
            .fails(2, says);
        assert_eq!(ended.stdout, "", "{more:?}");
    }
    assert_eq!(
        fs::read_dir(scratch.path()).unwrap().count(),
        1,
        "{text}\nsomething was left behind"
    );
}

#[test]
fn every_kind_of_fault() {
    has_faults(
        &plan("", VARIANTS, "durration = \"1 s\"\nblocks = 6"),
        &["has no key 'durration'", "did you mean 'duration'?"],
    );
    has_faults(
        &plan("size = 64", VARIANTS, TRIALS),
        &["64 of what? The unit is missing", "write \"64 B\""],
    );
    has_faults(
        &plan("", VARIANTS, "duration = 250\nblocks = 6"),
        &["250 of what? The unit is missing"],
    );
    has_faults(
        &plan("size = \"64 ms\"", VARIANTS, TRIALS),
        &["bad.toml:6:8", "64 ms"],
    );
    has_faults(
        &plan("rate = \"100 Mpps\"", VARIANTS, TRIALS),
        &["bad.toml:6:8", "100 Mpps"],
    );
    has_faults(
        &plan("", VARIANTS, "duration = \"10 ms\"\nblocks = -1"),
        &["-1 is negative"],
    );
    has_faults(&plan("flows = -5", VARIANTS, TRIALS), &["-5 is negative"]);
    let cycle =
        "[variants.a]\nfrom = \"c\"\n[variants.b]\nfrom = \"a\"\n[variants.c]\nfrom = \"b\"";
    has_faults(&plan("", cycle, TRIALS), &["from each other"]);
    has_faults(
        &plan(
            "",
            VARIANTS,
            "duration = \"10 ms\"\nblocks = 1_000_000_000_000",
        ),
        &["1000000000000"],
    );
    has_faults("title = ", &["bad.toml:1:"]);
    has_faults("", &["title"]);
}

#[test]
fn all_faults_at_once() {
    let text = plan(
        "size = 64\nrate = \"1 parsec\"\nflows = -1",
        "[variants.a]\nfrom = \"b\"\n[variants.b]\nfrom = \"a\"",
        "durration = \"1 s\"\nduration = \"10 kpps\"\nblocks = -3",
    );
    let all = [
        "bad.toml:6:8",
        "bad.toml:7:8",
        "bad.toml:8:9",
        "from each other",
        "'durration'",
        "bad.toml:15:12",
        "bad.toml:16:10",
    ];
    has_faults(&text, &all);
}

/// As root, which could do everything.
#[test]
#[ignore = "needs root: run by make test as root"]
fn nothing_of_the_host_is_touched() {
    let experiment = super::experiment::Experiment::new(&plan("size = 64", VARIANTS, TRIALS), "");
    own_machine();
    let before = Outside::now(&[]);
    experiment
        .run("--allow-host-changes")
        .run()
        .fails(2, &["64 of what?"]);
    before.is_as_it_was(&experiment, "after a plan with faults");
    assert!(!experiment.records().exists());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_variant_whose_command_fails_is_named_and_the_others_are_measured() {
    let plan = r#"
title = "A command that fails"
question = "Are the others measured?"

[variants.plain]

[variants.broken]
commands = [{ run = "echo there is no such thing >&2; false", undo = "true" }]

[trials]
duration = "10 ms"
blocks = 2

[lab]
batch = 32
"#;
    let experiment = super::experiment::Experiment::new(plan, "");
    let ended = experiment.run("").run().status(1);
    for said in ["broken", "cannot run", "there is no such thing"] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    let trials = experiment.trials();
    let measured = trials
        .iter()
        .filter(|trial| trial["generator"]["frames"].as_u64() > Some(0));
    assert_eq!(measured.count(), 4, "the tester alone and plain, two each");
}
