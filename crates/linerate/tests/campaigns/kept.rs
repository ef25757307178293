//! Connections that are kept open at the same time, through the kernel: DUTs with known answers give them.

use super::connections::{attempted, failed, plan, reached, trials};
use super::experiment::Experiment;
use crate::common::campaign::faults;
use crate::common::{linerate, linerate_line};
use serde_json::Value;
use std::fs;

/// A variant whose rules nft loads.
fn rules(name: &str, table: &str) -> String {
    format!(
        "[variants.{name}]\nfiles = [{{ path = \"fw.nft\", text = \"\"\"\ntable ip fw {{\n{table}\n}}\n\"\"\" }}]\n\
         commands = [{{ run = \"nft -f fw.nft\", undo = \"nft delete table ip fw\" }}]\n"
    )
}

/// The trial of a variant.
fn trial_of(experiment: &Experiment, variant: &str) -> Value {
    let all = trials(experiment);
    let found = all.into_iter().find(|(name, _)| name == variant);
    found.unwrap_or_else(|| panic!("no trial of {variant}")).1
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn all_that_are_open_at_once_work_and_are_in_the_table() {
    let variants = r#"
        variants.forwarding = { about = "no firewall" }
        variants.stateful.rules = { tool = "nftables", filter = "stateful" }
        variants.nat.rules = { tool = "nftables", filter = "nat" }
        factors.family = { sets = "traffic.family", levels = ["IPv4", "IPv6"] }
    "#;
    let experiment = Experiment::new(&plan("open = 3000, object = 100", variants), "");
    let ended = experiment.run("").run().ok();
    let said = "hold all 3,000 IPv4 connections at once, each with a request and its answer";
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains(said), "{}", ended.stdout);
    let all = trials(&experiment);
    assert_eq!(all.len(), 4 * 2, "{}", ended.stdout);
    for (name, trial) in &all {
        assert_eq!(faults(trial), "", "{name}");
        assert_eq!(
            (attempted(trial), reached(trial)),
            (3000, vec![3000; 8]),
            "{name}"
        );
        let kept = &trial["opened"]["kept"];
        assert!(kept["open_ns"].as_u64() > Some(0), "{name}: {kept}");
        if name.contains("stateful") || name.contains("nat") {
            assert_eq!(kept["entries"], 3000, "{name}");
            assert_eq!(trial["connections"]["tracked"], 3000, "{name}");
        }
    }
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_table_holds_exactly_its_limit_and_none_of_those_breaks() {
    const MORE: u64 = 5000;
    // Absent until connection tracking is loaded.
    let limit = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max");
    let limit: u64 = limit.map_or(262_144, |limit| limit.trim().parse().unwrap());
    let variants = "variants.stateful.rules = { tool = \"nftables\", filter = \"stateful\" }";
    let load = format!("open = {}", limit + MORE);
    let experiment = Experiment::new(&plan(&load, variants), "");
    let ended = experiment.run("").within(300).run().ok();
    let before = format!("{} or more will be refused", "5,000");
    assert!(ended.stderr.contains(&before), "{}", ended.stderr);
    let trial = trial_of(&experiment, "stateful");
    assert_eq!(faults(&trial), "");
    assert_eq!(
        reached(&trial),
        [limit; 8],
        "the others are refused, and none breaks"
    );
    assert_eq!(failed(&trial)[0], MORE);
    assert_eq!(trial["opened"]["kept"]["entries"], limit);
    assert_eq!(trial["dut"]["Conntrack.drop"], MORE);
    let full = "its table was full (nf_conntrack_max; counters of conntrack: drop 5,000)";
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains(full), "{}", ended.stdout);
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_hundred_ports_of_nat_hold_a_hundred_connections_to_each_server() {
    let nat = "chain post { type nat hook postrouting priority srcnat; meta l4proto tcp masquerade to :40000-40099; }";
    for (servers, asked) in [(1, 150), (2, 400)] {
        let load = format!("open = {asked}, servers = {servers}");
        let experiment = Experiment::new(&plan(&load, &rules("ports", nat)), "");
        let ended = experiment.run("").run().ok();
        let (trial, held) = (trial_of(&experiment, "ports"), 100 * servers);
        assert_eq!(faults(&trial), "");
        assert_eq!(reached(&trial), [held; 8], "{servers} servers");
        assert_eq!(trial["dut"]["Conntrack.insert_failed"], asked - held);
        let said = format!("ports holds {held} of {asked} IPv4 connections at once");
        assert!(ended.stdout.contains(&said), "{}", ended.stdout);
        assert!(ended.stdout.contains("no free port"), "{}", ended.stdout);
    }
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_rule_that_counts_connections_holds_its_number() {
    let count = "chain forward { type filter hook forward priority filter; ct state new ct count over 1000 drop; }";
    let experiment = Experiment::new(&plan("open = 1500", &rules("count", count)), "");
    experiment.run("").run().ok();
    let trial = trial_of(&experiment, "count");
    assert_eq!(faults(&trial), "");
    assert_eq!(reached(&trial), [1000; 8]);
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn connections_that_break_while_they_are_open_are_told() {
    let cut = "chain forward { type filter hook forward priority filter; tcp dport 80 tcp flags & psh == psh drop; }";
    let experiment = Experiment::new(&plan("open = 700", &rules("cut", cut)), "");
    let ended = experiment.run("").run();
    let trial = trial_of(&experiment, "cut");
    assert_eq!(
        failed(&trial),
        [0, 0, 0, 700, 0, 0, 0, 0],
        "all are open, and no request arrives"
    );
    let said = "of which 700 carried no request and answer";
    let text = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(text.contains(said), "{}", ended.stdout);
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn connections_are_closed_by_either_end_or_reset_and_stay_in_the_table() {
    let variants = r#"
        variants.nat.rules = { tool = "nftables", filter = "nat" }
        factors.close = { sets = "traffic.close", levels = ["client", "server", "reset"] }
    "#;
    let experiment = Experiment::new(&plan("open = 700", variants), "");
    let ended = experiment.run("").run().ok();
    assert!(ended.stdout.contains("entries"), "{}", ended.stdout);
    let all = trials(&experiment);
    assert_eq!(all.len(), 2 * 3, "{}", ended.stdout);
    for (name, trial) in &all {
        assert_eq!(faults(trial), "", "{name}");
        let stages = match name {
            name if name.contains("reset") => 6,
            name if name.contains("server") => 9,
            _ => 8,
        };
        assert_eq!(reached(trial), vec![700; stages], "{name}");
        // The window is that of the closing.
        let last = trial["samples"].as_array().unwrap().last().unwrap();
        let kept = &trial["opened"]["kept"];
        assert_eq!(last["t_ns"], kept["close_ns"], "{name}: {trial:#}");
        if !name.contains("tester") {
            assert_eq!(kept["entries"], 700, "{name}");
            assert_eq!(trial["connections"]["tracked"], 700, "{name}");
        }
        assert_eq!(trial["dut"].get("Conntrack.invalid"), None, "{name}");
    }
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn rules_loaded_again_break_no_connection_unless_the_dut_forgets_them() {
    let variants = r#"
        [variants.reloaded]
        rules = { tool = "nftables", filter = "stateful" }
        event.what = "rules-reloaded"
        [variants.restarted]
        from = "reloaded"
        event.what = "firewall-restarted"
        [variants.strict]
        from = "restarted"
        sysctls = { "net.netfilter.nf_conntrack_tcp_loose" = 0 }
        [[expect]]
        of = "reloaded"
        is = "all-pass"
        because = "the table stays"
        [[expect]]
        of = "restarted"
        is = "all-pass"
        because = "connections are picked up"
        [[expect]]
        of = "strict"
        is = "none-passes"
        because = "connections begin with a SYN"
    "#;
    let experiment = Experiment::new(&plan("open = 700", variants), "");
    let ended = experiment.run("").run().ok();
    for said in [
        "rules-reloaded breaks none of 700 open IPv4 connections: reloaded in",
        "expected 3 met",
    ] {
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
    }
    for (variant, answered) in [("reloaded", 700), ("restarted", 700), ("strict", 0)] {
        let trial = trial_of(&experiment, variant);
        assert_eq!(faults(&trial), "", "{variant}");
        let mut stages = vec![700; 3];
        stages.extend([answered; 5]);
        assert_eq!(reached(&trial), stages, "{variant}");
        assert_eq!(trial["opened"]["kept"]["entries"], 700, "{variant}");
        let event = &trial["event"];
        let ran = event["ran"].as_array().unwrap().len();
        assert_eq!(ran, if variant == "reloaded" { 1 } else { 2 }, "{event}");
    }
}

#[test]
fn numbers_of_open_connections_that_cannot_be_are_refused_with_what_to_do() {
    let bench = |more: &str| linerate_line(&format!("bench {more}")).run();
    bench("--concurrent 0").fails(2, &["at least 1"]);
    bench("--concurrent 16777217").fails(2, &["at most 16777216"]);
    bench("--concurrent 3000000 --servers 2").fails(
        2,
        &[
            "64 clients with 16,384 ports each and 2 servers make 2,097,152 pairs",
            "more servers",
        ],
    );
    bench("--connections --servers 3").fails(2, &["1, 2, 4, 8 or 16"]);
    bench("--servers 2").fails(2, &["only connections have servers"]);
    bench("--connections --close server").fails(2, &["that are kept open", "--concurrent"]);
    bench("--connections half --concurrent 10").fails(2, &["only connections of the kind request"]);
    bench("--concurrent 10 --variant known-loss=9@fin").fails(2, &["closed one by one"]);
    bench("--concurrent 10 --sizes 64").fails(2, &["--sizes", "--concurrent"]);
    bench("--concurrent 10 --simulate loss=10").fails(2, &["a simulated DUT has no connections"]);
    let searched = plan(
        "open = 10, rate = \"10 kpps\"",
        "variants.a = { about = \"a\" }",
    )
    .replace("blocks = 1", "measure = \"search\"");
    let experiment = Experiment::new(&searched, "");
    experiment
        .run("")
        .run()
        .fails(2, &["no rate", "several levels of traffic.open"]);
    let print = linerate(["bench", "--concurrent", "10,20", "--print-plan"])
        .run()
        .ok();
    assert!(
        print.stdout.contains("sets = \"traffic.open\""),
        "{}",
        print.stdout
    );
}
