//! Findings with the experiments that prove them.

use crate::common::{Scratch, linerate};
use serde_json::Value;
use std::fs;

const PLAN: &str = r#"
title = "Rules"
question = "What do they cost?"
lab.batch = 64
variants.filtered.rules = { tool = "nftables", filter = "stateless", before = 1_000 }
variants.closed.sysctls."net.ipv4.ip_forward" = 0
trials = { duration = "20 ms", blocks = 6 }
"#;

fn finding(explanations: &Value, cause: &str) -> Value {
    let all = explanations
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|of| of["findings"].as_array().unwrap());
    all.clone()
        .find(|f| f["cause"] == cause)
        .unwrap_or_else(|| panic!("{explanations:#}"))
        .clone()
}

#[test]
#[ignore = "needs root and nft"]
fn takes_minutes_a_long_list_of_rules_is_proven_by_a_table() {
    let scratch = Scratch::new();
    fs::write(scratch.file("rules.toml"), PLAN).unwrap();
    let run = |args: &[&str]| linerate(args).dir(scratch.path()).within(60).run().ok();
    // Status 1: a variant forwards nothing.
    linerate(["run", "rules.toml", "--out", "records", "--quiet"])
        .dir(scratch.path())
        .within(60)
        .run();
    let wrote = run(&["explain", "records", "--write-plans", "plans"]);
    assert!(
        wrote
            .stderr
            .contains("linerate run plans/linear-rules.toml"),
        "{wrote:?}"
    );
    run(&["plan", "check", "plans/linear-rules.toml"]);
    let explained = run(&["explain", "records", "--prove", "--budget", "3s", "--json"]).json();
    let proof = &finding(&explained, "linear-rules")["proof"];
    assert!(
        proof["ratio"]["median"].as_f64().unwrap() > 2.0,
        "{explained:#}"
    );
    // On a busy machine, the time may be too short for an interval.
    let low = proof["ratio"]["low"].as_f64();
    assert_eq!(
        proof["verdict"],
        if low.is_some() { "proven" } else { "undecided" },
        "{proof}"
    );
    // No ratio has 0 below it: the rates say enough.
    let opened = &finding(&explained, "frames-dropped")["proof"];
    assert!(
        opened["verdict"] == "proven" && opened["ratio"].is_null(),
        "{opened}"
    );
    assert!(
        opened["reason"]
            .as_str()
            .unwrap()
            .contains("forwards no frame as measured"),
        "{opened}"
    );
    // The experiment is a campaign like any other, beside the first one.
    let records = proof["records"].as_str().unwrap();
    let page = run(&["show", records]).stdout;
    assert!(page.contains("as-measured"), "{page}");
    assert_eq!(
        fs::canonicalize(records).unwrap().parent(),
        Some(fs::canonicalize(scratch.path()).unwrap().as_path())
    );
}

/// A queueing discipline of the cards below macvlans: the change of the finding removes those of the macvlans.
const QUEUED: &str = r#"
title = "Queues"
question = "What does a queue cost?"
trials = { duration = "20 ms", blocks = 2 }
collect.profile = "1 s"
[lab]
batch = 64
[variants.queued]
dut = "macvlan"
[[variants.queued.commands]]
run = "for i in $(ip -o link show type veth | awk -F '[ :@]+' '{ print $2 }'); do tc qdisc add dev $i root tbf rate 100gbit burst 10m limit 100m; done"
undo = "true"
"#;

#[test]
#[ignore = "needs root and tc"]
fn takes_minutes_a_change_that_leaves_its_cause_there_decides_nothing() {
    let scratch = Scratch::new();
    fs::write(scratch.file("queues.toml"), QUEUED).unwrap();
    let run = |args: &[&str]| linerate(args).dir(scratch.path()).within(120).run().ok();
    linerate(["run", "queues.toml", "--out", "records", "--quiet"])
        .dir(scratch.path())
        .within(60)
        .run();
    let explained = run(&["explain", "records", "--prove", "--budget", "2s", "--json"]).json();
    let proof = &finding(&explained, "queueing-discipline")["proof"];
    let decided = [&proof["verdict"], &proof["reason"]];
    assert_eq!(
        decided,
        ["undecided", "the change did not remove the cause here"],
        "{explained:#}"
    );
}

#[test]
fn experiments_need_the_machine_that_was_measured() {
    let scratch = Scratch::new();
    fs::write(scratch.file("rules.toml"), PLAN).unwrap();
    let run = |args: &[&str]| linerate(args).dir(scratch.path()).run();
    run(&[
        "run",
        "rules.toml",
        "--simulate",
        "ok",
        "--out",
        "records",
        "--quiet",
    ])
    .ok();
    let refused = run(&["explain", "records", "records", "--prove"]);
    refused.fails(2, &["experiments are for the findings of one campaign"]);
    run(&["explain", "records", "--budget", "1s"]).fails(2, &["--prove"]);
    let none = run(&["explain", "records", "--prove"]).status(5);
    assert!(
        none.stderr
            .contains("there is no experiment: no finding has a change"),
        "{none:?}"
    );
}
