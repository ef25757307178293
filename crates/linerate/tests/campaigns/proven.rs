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

/// Filters that each have an action: the change of the finding leaves them, because they decide what becomes of a frame. A queueing
/// discipline of the cards below macvlans, beside one that no frame passes.
const LEFT: &str = r#"
title = "Filters and queues"
question = "What do they cost?"
trials = { duration = "20 ms", blocks = 2 }
collect.profile = "1 s"
[lab]
batch = 64
[variants.filtered]
commands = [{ run = "ip link add ifb0 type ifb; ip link set ifb0 up; tc qdisc add dev {in} clsact; for i in $(seq 30); do tc filter add dev {in} ingress prio $i protocol ip u32 match ip dst 203.0.113.$i/32 action mirred egress mirror dev ifb0; done", undo = "tc qdisc del dev {in} clsact; ip link del ifb0" }]
[variants.queued]
dut = "macvlan"
commands = [{ run = "ip link add ifb0 type ifb; for i in ifb0 card-{in} card-{out}; do tc qdisc add dev $i root tbf rate 100gbit burst 10m limit 100m; done", undo = "true" }]
"#;

#[test]
#[ignore = "needs root and tc"]
fn takes_minutes_changes_remove_what_was_found_and_leave_what_decides() {
    let scratch = Scratch::new();
    fs::write(scratch.file("left.toml"), LEFT).unwrap();
    let run = |args: &[&str]| linerate(args).dir(scratch.path()).within(120).run().ok();
    linerate(["run", "left.toml", "--out", "records", "--quiet"])
        .dir(scratch.path())
        .within(60)
        .run();
    let explained = run(&["explain", "records", "--prove", "--budget", "2s", "--json"]).json();
    let proof = &finding(&explained, "traffic-filters")["proof"];
    let decided = [&proof["verdict"], &proof["reason"]];
    assert_eq!(
        decided,
        ["undecided", "the change did not remove the cause here"],
        "{explained:#}"
    );
    let queueing = finding(&explained, "queueing-discipline");
    let change = queueing["patch"]["commands"][0]["run"].as_str().unwrap();
    assert!(
        change.starts_with("for dev in card-{in} card-{out}; do"),
        "{change}"
    );
    assert_ne!(queueing["proof"]["verdict"], "refuted", "{queueing:#}");
    let reason = &queueing["proof"]["reason"];
    assert_ne!(
        reason, "the change did not remove the cause here",
        "{queueing:#}"
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
