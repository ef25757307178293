//! Connections under a flood of SYNs, through the kernel: every SYN is accounted for, and known rules pass a known number.

use super::connections::{attempted, plan, reached, trials};
use super::experiment::Experiment;
use crate::common::campaign::faults;
use crate::common::{Scratch, campaign, linerate_line};
use serde_json::Value;
use std::path::Path;

fn flood(trial: &Value, key: &str) -> u64 {
    trial["opened"]["flood"][key].as_u64().unwrap()
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn every_syn_of_a_flood_passes_and_is_in_the_table() {
    let variants = r#"
        variants.forwarding = { about = "no firewall" }
        variants.stateful.rules = { tool = "nftables", filter = "stateful" }
        variants.nat.rules = { tool = "nftables", filter = "nat" }
        factors.family = { sets = "traffic.family", levels = ["IPv4", "IPv6"] }
        factors.flood = { sets = "traffic.flood", levels = ["none", "20 kpps"] }
    "#;
    let experiment = Experiment::new(&plan("connections = \"request\"", variants), "");
    let ended = experiment.run("--full").run().counted();
    let all = trials(&experiment);
    // Three variants and the tester alone.
    assert_eq!(all.len(), 4 * 2 * 2, "{}", ended.stdout);
    let (mut opened, mut of_floods) = (0, 0);
    for (name, trial) in &all {
        assert_eq!(faults(trial), "", "{name}");
        let n = attempted(trial);
        assert!(
            n > 0 && reached(trial).iter().all(|stage| *stage == n),
            "{name}"
        );
        let floods = name.contains("20 kpps");
        let of_flood = if floods {
            assert_eq!(flood(trial, "arrived"), flood(trial, "sent"), "{name}");
            assert_eq!(flood(trial, "answered"), 0, "{name}");
            flood(trial, "sent")
        } else {
            assert!(trial["opened"].get("flood").is_none(), "{name}");
            0
        };
        assert_eq!(of_flood > 0, floods, "{name}: {of_flood}");
        (opened, of_floods) = (opened + n, of_floods + of_flood);
        if name.contains("stateful") || name.contains("nat") {
            assert_eq!(trial["connections"]["tracked"], n + of_flood, "{name}");
        }
    }
    // A busy machine has fewer in a trial of 60 ms.
    assert!(opened > 1600 && of_floods > 4000, "{opened}, {of_floods}");
    let heads = "by flood";
    assert!(ended.stdout.contains(heads), "{}", ended.stdout);
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn rules_pass_a_known_part_of_a_flood() {
    // Half of the flood's addresses are dropped; the others are limited together with the connections.
    let variants = r#"
        [variants.half]
        files = [{ path = "fw.nft", text = """
        table ip fw {
          chain forward { type filter hook forward priority 0; ip saddr 198.18.192.0/18 drop; }
        }
        """ }]
        commands = [{ run = "nft -f fw.nft", undo = "nft delete table ip fw" }]
        [variants.limited]
        files = [{ path = "limited.nft", text = """
        table ip fw {
          chain forward {
            type filter hook forward priority 0
            tcp flags & (syn | ack) == syn limit rate over 5000/second burst 100 packets drop
          }
        }
        """ }]
        commands = [{ run = "nft -f limited.nft", undo = "nft delete table ip fw" }]
    "#;
    let load = "connections = \"request\", rate = \"1 kpps\", flood = \"20 kpps\"";
    let text = plan(load, variants)
        .replace("duration = \"60 ms\"", "duration = \"500 ms\"")
        .replace("blocks = 1", "blocks = 4");
    let experiment = Experiment::new(&text, "");
    // A trial in which connections fail is valid, and one is enough: a busy machine may offer too few in the other.
    let ended = experiment.run("").run().counted();
    let mut limited = Vec::new();
    for (name, trial) in trials(&experiment) {
        if name.contains("tester") || trial["audit"]["valid"] != true {
            continue;
        }
        let (sent, arrived) = (flood(&trial, "sent"), flood(&trial, "arrived"));
        assert!(sent > 5000, "{name}: {sent}; {}", ended.stderr);
        if name.contains("half") {
            assert_eq!(faults(&trial), "", "{name}");
            assert_eq!(reached(&trial), vec![attempted(&trial); 6], "{name}");
            // The addresses are a permutation's: nearly half of any part of it are in the upper half.
            let share = arrived as f64 / sent as f64;
            assert!((0.48..0.52).contains(&share), "{arrived} of {sent}");
        } else {
            let passed = arrived + reached(&trial)[0];
            let seconds = flood(&trial, "load_ns") as f64 / 1e9;
            let expected = 100.0 + 5000.0 * seconds;
            limited.push(passed as f64 / expected);
        }
    }
    // A stall of the generator's CPU that outlasts the burst makes them fewer, and nothing makes them more.
    assert!(limited.iter().all(|share| *share < 1.02), "{limited:?}");
    let most = limited.iter().copied().fold(0.0, f64::max);
    assert!(limited.is_empty() || most > 0.98, "{limited:?}");
}

/// Rules deny port 81, or pass it; the DUT's answers to illegal SYNs are counted, too.
#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn illegal_attempts_are_counted_to_the_last() {
    let variants = r#"
        variants.open = { about = "no firewall" }
        variants.tracked.rules = { tool = "nftables", filter = "stateful" }
        [variants.denied]
        files = [{ path = "fw.nft", text = """
        table inet fw {
          chain forward { type filter hook forward priority 0; ct state established accept; tcp dport 80 accept; drop; }
        }
        """ }]
        commands = [{ run = "nft -f fw.nft", undo = "nft delete table inet fw" }]
        [variants.rejected]
        files = [{ path = "reject.nft", text = """
        table inet fw {
          chain forward { type filter hook forward priority 0; tcp dport 80 accept; tcp dport 81 reject with tcp reset; }
        }
        """ }]
        commands = [{ run = "nft -f reject.nft", undo = "nft delete table inet fw" }]
        [variants.unreachable]
        sysctls = { "net.ipv4.icmp_ratelimit" = 0, "net.ipv4.icmp_msgs_per_sec" = 10000000, "net.ipv4.icmp_msgs_burst" = 1000000, "net.ipv6.icmp.ratelimit" = 0 }
        files = [{ path = "icmp.nft", text = """
        table inet fw {
          chain forward { type filter hook forward priority 0; tcp dport 80 accept; tcp dport 81 reject with icmpx admin-prohibited; }
        }
        """ }]
        commands = [{ run = "nft -f icmp.nft", undo = "nft delete table inet fw" }]
        [factors]
        family = { sets = "traffic.family", levels = ["IPv4", "IPv6"] }
        illegal = { sets = "traffic.illegal", levels = ["none", "50 %"] }
        rate = { sets = "traffic.rate", levels = ["max", "5 kpps"] }
        [[expect]]
        of = { variant = "denied", illegal = "50 %" }
        is = "none-passes"
        because = "only port 80 is open"
        [[expect]]
        of = { variant = "open", illegal = "50 %" }
        is = "all-pass"
        because = "nothing denies it"
    "#;
    let experiment = Experiment::new(&plan("connections = \"request\"", variants), "");
    let ended = experiment.run("").run().counted();
    let all = trials(&experiment);
    // Five variants, and the tester alone as fast as it can.
    assert_eq!(all.len(), 5 * 8 + 4, "{}", ended.stdout);
    let (mut legal, mut illegal) = (0, 0);
    for (name, trial) in &all {
        assert_eq!(faults(trial), "", "{name}");
        let n = attempted(trial);
        assert!(reached(trial).iter().all(|stage| *stage == n), "{name}");
        if !name.contains("50 %") {
            assert!(trial["opened"].get("flood").is_none(), "{name}");
            continue;
        }
        let sent = flood(trial, "sent");
        assert!(sent > 0 && sent <= n, "{name}: {sent} with {n}");
        (legal, illegal) = (legal + n, illegal + sent);
        let expected = if name.contains("denied") {
            [0, 0]
        } else if name.contains("rejected") || name.contains("unreachable") {
            [0, sent]
        } else {
            [sent, 0]
        };
        let counted = ["arrived", "answered"].map(|key| flood(trial, key));
        assert_eq!(counted, expected, "{name}");
        if name.contains("tracked") {
            assert_eq!(trial["connections"]["tracked"], n + sent, "{name}");
        }
    }
    // One for each connection, but those that are due when a load ends: more than a few only on a busy machine, and at a low rate.
    assert!(illegal * 100 > legal * 95, "{illegal} with {legal}");
    let met = "expected 2 met";
    assert!(ended.stdout.contains(met), "{}", ended.stdout);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_flood_goes_on_at_each_load_of_a_search() {
    let scratch = Scratch::new();
    let records = scratch.file("records");
    let line = "search --connections request --flood 10kpps --goal pdr --duration 50ms --budget 4s";
    // Too short for a result.
    linerate_line(line)
        .args(["--out", &records])
        .run()
        .no_panic();
    let trials = campaign::trials(Path::new(&records));
    assert!(!trials.is_empty());
    for trial in &trials {
        assert_eq!(trial["opened"]["flood"]["asked"], 10_000, "{trial:#}");
        assert!(flood(trial, "sent") > 0, "{trial:#}");
    }
}

#[test]
fn a_plan_is_printed_only_if_it_could_be_run() {
    for (line, fault) in [
        (
            "--flood 1kpps",
            "add --connections request, or leave --flood out",
        ),
        (
            "--connections request --flood 1pps",
            "use a flood of 40 pps or more",
        ),
        (
            "--concurrent 100000 --rate 10kpps --budget 20s",
            "more than the budget of 20 s",
        ),
    ] {
        for print in ["", " --print-plan"] {
            let ended = linerate_line(&format!("bench {line}{print}")).run();
            assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
            assert!(ended.stderr.contains(fault), "{}", ended.stderr);
            assert_eq!(ended.stdout, "");
        }
    }
}
