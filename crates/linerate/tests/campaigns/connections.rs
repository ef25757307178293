//! Connections through the kernel: each is accounted for, and DUTs with known answers give them.

use super::experiment::Experiment;
use crate::common::campaign::faults;
use crate::common::{Scratch, linerate, linerate_line};
use serde_json::Value;
use std::fs;

/// A plan of connections, whose variants and factors follow.
pub(super) fn plan(connections: &str, rest: &str) -> String {
    format!(
        "title = \"Connections\"\nquestion = \"Is each accounted for?\"\ntraffic = {{ {connections} }}\ncompare.until = \"50 %\"\n\
         trials = {{ duration = \"60 ms\", blocks = 1 }}\n{rest}"
    )
}

/// The trials of a campaign, each with the name of its slot.
pub(super) fn trials(experiment: &Experiment) -> Vec<(String, Value)> {
    let campaign = experiment.document("campaign.json");
    let name =
        |trial: &Value| campaign["slots"][trial["slot"].as_u64().unwrap() as usize]["name"].clone();
    experiment
        .trials()
        .into_iter()
        .map(|t| (name(&t).as_str().unwrap().to_string(), t))
        .collect()
}

pub(super) fn attempted(trial: &Value) -> u64 {
    trial["opened"]["attempted"].as_u64().unwrap()
}

/// Connections that reached each stage.
pub(super) fn reached(trial: &Value) -> Vec<u64> {
    trial["opened"]["reached"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect()
}

/// Connections that failed before each stage.
pub(super) fn failed(trial: &Value) -> Vec<u64> {
    let reached = reached(trial);
    let before = std::iter::once(attempted(trial)).chain(reached.iter().copied());
    before
        .zip(&reached)
        .map(|(before, reached)| before - reached)
        .collect()
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn every_connection_is_counted_at_both_ends_and_by_the_dut() {
    let variants = r#"
        variants.forwarding = { about = "no firewall" }
        variants.stateful.rules = { tool = "nftables", filter = "stateful" }
        variants.nat.rules = { tool = "nftables", filter = "nat" }
        factors.exchange = { sets = "traffic.connections", levels = ["request", "greeting", "rst", "half", "udp"] }
        factors.family = { sets = "traffic.family", levels = ["IPv4", "IPv6"] }
    "#;
    let experiment = Experiment::new(&plan("object = 100", variants), "");
    let ended = experiment.run("").run().counted();
    let table = "table    at ";
    assert!(ended.stdout.contains(table), "{}", ended.stdout);
    let all = trials(&experiment);
    // Three variants and the tester alone.
    assert_eq!(all.len(), 4 * 5 * 2, "{}", ended.stdout);
    let of_all: u64 = all.iter().map(|(_, trial)| attempted(trial)).sum();
    assert!(of_all > 4000, "{of_all}");
    for (name, trial) in &all {
        assert_eq!(faults(trial), "", "{name}");
        let (n, reached) = (attempted(trial), reached(trial));
        assert!(
            n > 0 && reached.iter().all(|stage| *stage == n),
            "{name}: {n} attempted, {reached:?}"
        );
        let stages = if name.contains("half") { 1 } else { 6 };
        let stages = if name.contains("udp") {
            2
        } else if name.contains("rst") {
            5
        } else {
            stages
        };
        assert_eq!(reached.len(), stages, "{name}");
        // Wrong checksums would be invalid, and wrong flags another state.
        if !name.contains("forwarding") && !name.contains("tester") {
            assert_eq!(trial["connections"]["tracked"], n, "{name}");
        }
        assert_eq!(trial["dut"].get("Conntrack.invalid"), None, "{name}");
    }
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn connections_whose_frame_is_dropped_fail_at_its_stage() {
    const KINDS: [&str; 6] = ["syn", "syn-ack", "request", "answer", "fin", "last-ack"];
    let variant = |kind: &str| {
        format!(
            "variants.{kind}.dut = \"known-loss=97@{kind}\"\n\
             variants.{kind}-nat = {{ dut = \"known-loss=97@{kind}\", rules = {{ tool = \"nftables\", filter = \"nat\" }} }}\n"
        )
    };
    let variants: String = KINDS.iter().map(|kind| variant(kind)).collect();
    let experiment = Experiment::new(&plan("connections = \"request\"", &variants), "");
    experiment.run("").run().counted();
    let mut of_all = 0;
    for (name, trial) in trials(&experiment)
        .iter()
        .filter(|(name, _)| !name.contains("tester"))
    {
        assert_eq!(faults(trial), "", "{name}");
        let stage = KINDS
            .iter()
            .position(|kind| name == kind || *name == format!("{kind}-nat"))
            .unwrap();
        let mut expected = vec![0; KINDS.len()];
        expected[stage] = attempted(trial) / 97;
        assert_eq!(failed(trial), expected, "{name}: of {}", attempted(trial));
        of_all += expected[stage];
    }
    assert!(of_all > 2 * KINDS.len() as u64, "{of_all}");
}

/// A rule that lets so many new connections a second pass, and a burst before.
#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_limit_of_new_connections_is_found_by_its_formula() {
    let variants = r#"
        [variants.limit]
        files = [{ path = "fw.nft", text = """
        table inet fw {
          chain forward {
            type filter hook forward priority filter; policy accept;
            ct state new limit rate 5000/second burst 50 packets accept
            ct state new drop
          }
        }
        """ }]
        commands = [{ run = "nft -f fw.nft", undo = "nft delete table inet fw" }]
    "#;
    let plan = plan("connections = \"request\", rate = \"20 kpps\"", variants)
        .replace("\"60 ms\"", "\"300 ms\"")
        .replace("blocks = 1", "blocks = 3");
    let experiment = Experiment::new(&plan, "");
    let ended = experiment.run("--full").run();
    let all = trials(&experiment);
    let of_limit: Vec<&Value> = all
        .iter()
        .filter_map(|(name, trial)| (name == "limit").then_some(trial))
        .collect();
    let mut shares = Vec::new();
    for trial in &of_limit {
        assert_eq!(faults(trial), "", "{}", ended.stdout);
        let seconds = trial["generator"]["active_ns"].as_u64().unwrap() as f64 / 1e9;
        let closed = *reached(trial).last().unwrap() as f64;
        shares.push(closed / (50.0 + 5000.0 * seconds));
        assert!(attempted(trial) as f64 > 1.2 * closed);
    }
    // A stall of this machine that outlasts the burst makes them fewer, and nothing makes them more.
    assert!(shares.iter().all(|share| *share < 1.02), "{shares:?}");
    assert!(shares.iter().any(|share| *share > 0.7), "{shares:?}");
    let named =
        ended.stdout.contains("fail at the DUT") && ended.stdout.contains("SYN did not arrive");
    assert!(
        named
            || of_limit
                .iter()
                .any(|trial| trial["audit"]["valid"] == false),
        "{}",
        ended.stdout
    );
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_dut_that_answers_itself_is_named() {
    let variants = r#"
        [variants.reset]
        files = [{ path = "fw.nft", text = """
        table inet fw {
          chain forward {
            type filter hook forward priority filter; policy accept;
            tcp flags & (syn | ack) == syn reject with tcp reset
          }
        }
        """ }]
        commands = [{ run = "nft -f fw.nft", undo = "nft delete table inet fw" }]
    "#;
    let experiment = Experiment::new(&plan("connections = \"request\"", variants), "");
    let ended = experiment.run("").run().status(1);
    let all = trials(&experiment);
    let (_, trial) = all.iter().find(|(name, _)| name == "reset").unwrap();
    assert!(faults(trial).contains("RST"), "{}", faults(trial));
    assert_eq!(failed(trial)[0], attempted(trial), "no SYN arrives");
    let said = "reset let no connection pass (SYN did not arrive; ";
    assert!(
        ended.stdout.contains(said) && ended.stdout.contains("RST segments came"),
        "{}",
        ended.stdout
    );
}

/// Closed connections stay in the table for two minutes, and so the limit is met in the midst of the trial.
#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn takes_minutes_a_full_table_holds_its_limit_and_is_named() {
    // Absent until connection tracking is loaded.
    let limit = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max");
    let limit: u64 = limit.map_or(262_144, |limit| limit.trim().parse().unwrap());
    let variants = "variants.stateful.rules = { tool = \"nftables\", filter = \"stateful\" }";
    // Enough for a DUT of 20,000 connections a second.
    let seconds = limit.div_ceil(20_000).clamp(4, 40);
    let plan = plan("connections = \"request\"", variants)
        .replace("\"60 ms\"", &format!("\"{seconds} s\""));
    let experiment = Experiment::new(&plan, "");
    experiment.run("").within(300).run().status(1);
    let all = trials(&experiment);
    let (_, trial) = all.iter().find(|(name, _)| name == "stateful").unwrap();
    assert!(
        faults(trial).contains(&format!("was full: {limit} of {limit}")),
        "{}",
        faults(trial)
    );
    assert_eq!(
        reached(trial),
        [limit; 6],
        "the next ones are refused, and none is broken"
    );
    assert_eq!(
        trial["dut"]["Conntrack.drop"].as_u64().unwrap(),
        attempted(trial) - limit
    );
}

/// The tester opens more connections in a trial than the table holds: the search goes on below, and blames the table alone.
#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_search_keeps_to_what_the_table_of_connections_holds() {
    let scratch = Scratch::new();
    let out = scratch.file("records");
    let ended = linerate_line(
        "search --connections request --variant nft-stateful --budget 4s --duration 300ms --full --out",
    )
    .args([&out])
    .run();
    let read = |file: &str| fs::read_to_string(format!("{out}/{file}")).unwrap();
    let trials = read("trials.jsonl");
    let of_dut: Vec<Value> = trials
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|trial: &Value| trial["slot"] == 1)
        .collect();
    let is_full = |trial: &&Value| faults(trial).contains("was full");
    let full = of_dut.iter().filter(is_full).count();
    assert!(
        full <= 1,
        "{full} of {} trials\n{}",
        of_dut.len(),
        ended.stdout
    );
    if full == 1 {
        assert!(of_dut.len() > 1, "the search goes on: {}", ended.stdout);
        assert!(
            ended.stdout.contains("(nf_conntrack_max)"),
            "{}",
            ended.stdout
        );
    }
}

#[test]
fn connections_that_cannot_be_are_refused_with_what_to_do() {
    let bench = |more: &str| {
        linerate(["bench", "--connections", "request"])
            .args(more.split_whitespace())
            .run()
    };
    bench("--simulate loss=10").fails(2, &["a simulated DUT has no connections"]);
    bench("--object 1441").fails(2, &["1440"]);
    bench("--sizes 128").fails(2, &["--sizes", "--connections"]);
    bench("--rate 50%").fails(2, &["is one of connections", "use --rate 10kpps"]);
    bench("--variant vlan").fails(2, &["no 802.1Q tags"]);
    let half = linerate([
        "bench",
        "--connections",
        "half",
        "--variant",
        "known-loss=9@fin",
    ])
    .run();
    half.fails(2, &["loses a frame that these connections do not have"]);
    let frames = linerate(["bench", "--variant", "known-loss=9@fin"]).run();
    frames.fails(2, &["loses frames of connections", "known-loss=1000"]);
    bench("--direction both").fails(
        2,
        &[
            "connections cannot have this direction",
            "docs/connections.md",
        ],
    );
    bench("--flows 7").fails(2, &["connections cannot have this flows"]);
    bench("--mode threaded").fails(2, &["would overrun every DUT", "add --rate 10kpps"]);
    let alone = linerate(["bench", "--object", "100", "--trials", "1"]).run();
    alone.fails(2, &["only connections and HTTP have an object"]);
    let searched = plan(
        "connections = \"request\"",
        "variants.a = { about = \"a\" }",
    )
    .replace("blocks = 1", "measure = \"rfc2544\"");
    let experiment = Experiment::new(&searched, "");
    experiment
        .run("")
        .run()
        .fails(2, &["the tests of RFC 2544 are of frames"]);
    for (traffic, says) in [
        ("open = 10", "can be kept open in the embedded lab only"),
        (
            "connections = \"rst\"",
            "need a rate: their last frame arrives at the server",
        ),
        (
            "connections = \"request\", flood = \"1kpps\"",
            "a flood can come with connections in the embedded lab only",
        ),
    ] {
        let hosts = plan(
            traffic,
            "lab.file = \"LAB.toml\"\nvariants.a = { about = \"a\" }",
        );
        Experiment::new(&hosts, "").run("").run().fails(2, &[says]);
    }
}
