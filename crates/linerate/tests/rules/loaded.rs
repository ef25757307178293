//! Every set of a Linux firewall is loaded by its own tools, read back, and let test traffic through.

use crate::common::{LINERATE, Lab, Namespace, Program, linerate_line, wait_for};
use linerate_plan::rules::{Firewall, Kind, RuleSet};
use serde_json::Value;
use std::io::Write;

/// Arguments for `linerate ruleset nftables`, and the resulting numbers of rules, sets and elements.
const NFTABLES: [(&str, [usize; 3]); 13] = [
    ("--stateless", [4, 0, 0]),
    ("--stateful", [6, 0, 0]),
    ("--nat", [2, 0, 0]),
    ("--nat --family 6 --interface eth1", [1, 0, 0]),
    ("--stateless --family 4", [2, 0, 0]),
    ("--stateful --family 6 --rules 100", [103, 0, 0]),
    ("--stateless --rules 500", [1004, 0, 0]),
    (
        "--stateless --rules 10 --entries hosts --seed 3",
        [24, 0, 0],
    ),
    ("--stateless --table 1000", [6, 2, 2000]),
    ("--stateless --table 1000 --hit --family 4", [3, 1, 1000]),
    (
        "--stateful --table 1000 --entries hosts --seed 1",
        [8, 2, 2000],
    ),
    ("--stateless --table 0", [6, 2, 0]),
    ("--nat --table 10 --rules 10", [26, 2, 20]),
];

/// Rule sets of iptables: how many rules each IP version has, and how many entries its ipset.
const IPTABLES: [(&str, [usize; 2], usize); 9] = [
    ("--stateless", [2, 2], 0),
    ("--stateful", [3, 3], 0),
    ("--nat", [3, 3], 0),
    ("--nat --family 4 --interface eth1", [3, 0], 0),
    ("--stateful --family 6 --rules 100", [0, 103], 0),
    ("--stateless --rules 200", [202, 202], 0),
    ("--stateless --table 1000", [3, 3], 1000),
    (
        "--stateful --table 70000 --entries hosts --seed 2",
        [4, 4],
        70_000,
    ),
    ("--stateless --table 1000 --hit", [3, 3], 1000),
];

/// The command of `rules` into the program that reads it, as the help shows it.
fn pipeline(line: &str, program: &str) -> String {
    format!("{LINERATE} rules {line} | {program}")
}

/// A program reads a part of a set, from its standard input, in a namespace.
fn load(namespace: &Namespace, line: &str, program: &str) {
    namespace
        .exec(&["sh", "-c", &pipeline(line, program)])
        .run()
        .ok();
}

/// Whether a program can be started at all.
fn is_installed(program: &str) -> bool {
    Program::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .run()
        .status
        .success()
}

/// The reason why ipsets cannot be tried: some systems lack the tool or this part of the kernel.
fn why_no_ipset() -> Option<String> {
    if !is_installed("ipset") {
        return Some("ipset is not installed".into());
    }
    let tried = Namespace::new()
        .exec(&["ipset", "create", "tried", "hash:net"])
        .run();
    (!tried.status.success()).then(|| tried.stderr.trim().to_string())
}

/// Reports at once, past the capture of the test harness, that something was not tried.
fn not_tried(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "NOT TRIED: {what}: {why}");
}

fn nft_json(namespace: &Namespace) -> Vec<Value> {
    let listed = namespace
        .exec(&["nft", "-j", "list", "ruleset"])
        .run()
        .ok()
        .json();
    listed["nftables"].as_array().unwrap().clone()
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn nft_loads_every_set_in_place_of_the_last() {
    let namespace = Namespace::new();
    for (line, expected) in NFTABLES {
        let line = format!("nftables {line}");
        load(&namespace, &line, "nft -c -f -");
        load(&namespace, &line, "nft -f -");
        let listed = nft_json(&namespace);
        let all = |what: &str| {
            listed
                .iter()
                .filter_map(|o| o.get(what))
                .cloned()
                .collect::<Vec<Value>>()
        };
        let elements = |set: &Value| set["elem"].as_array().map_or(0, Vec::len);
        let sets = all("set");
        let found = [
            all("rule").len(),
            sets.len(),
            sets.iter().map(elements).sum(),
        ];
        let tables = if line.contains("--family") { 1 } else { 2 };
        assert_eq!((found, all("table").len()), (expected, tables), "{line}");
        assert!(
            all("chain").iter().all(|chain| chain["policy"] == "accept"),
            "{line}"
        );
    }
    let removal = "nft delete table ip linerate; nft delete table ip6 linerate";
    namespace.exec(&["sh", "-c", removal]).run().ok();
    assert_eq!(
        nft_json(&namespace).len(),
        1,
        "the set says how it is removed, and something is left"
    );
}

/// The variants that come with linerate are the same rules, as nft understands both.
#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn minimal_sets_are_the_lab_s_variants() {
    let namespace = Namespace::new();
    let understood = |rules: &str| {
        let script =
            format!("printf '%s' '{rules}' | nft -f - && nft list ruleset && nft flush ruleset");
        namespace.exec(&["sh", "-c", &script]).run().ok().stdout
    };
    for (variant, kind) in [
        ("nft-stateless", Kind::Stateless),
        ("nft-stateful", Kind::Stateful),
        ("nat", Kind::Nat),
    ] {
        let mut rules = Vec::new();
        RuleSet::new(Firewall::Nftables, kind)
            .write(&mut rules)
            .unwrap();
        let ours = understood(&String::from_utf8(rules).unwrap());
        assert!(ours.contains("table ip6 linerate {"), "{ours}");
        let lab = Lab::up(&[variant]);
        assert_eq!(
            ours,
            lab.exec("dut0", &["nft", "list", "ruleset"])
                .run()
                .ok()
                .stdout,
            "{variant}"
        );
    }
}

/// Rules as `iptables-save` shows them, for the IP version of this mark.
fn written(line: &str, mark: &str, other: &str) -> Vec<String> {
    let text = linerate_line(&format!("rules iptables {line}"))
        .run()
        .ok()
        .stdout;
    let own = text
        .lines()
        .filter(|l| l.contains("-A ") && !l.starts_with(other));
    own.map(|l| {
        l.trim_start_matches(mark)
            .replace("ESTABLISHED,RELATED", "RELATED,ESTABLISHED")
    })
    .collect()
}

fn saved(namespace: &Namespace, program: &str) -> Vec<String> {
    let text = namespace.exec(&[program]).run().ok().stdout;
    text.lines()
        .filter(|l| l.starts_with("-A "))
        .map(String::from)
        .collect()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn iptables_loads_every_set() {
    let no_ipset = why_no_ipset();
    for backend in ["nft", "legacy"] {
        let restore = format!("iptables-{backend}-restore");
        if !is_installed(&restore) {
            not_tried(&format!("rule sets of {restore}"), "it is not installed");
            continue;
        }
        for (line, rules, entries) in IPTABLES {
            if let Some(why) = no_ipset.as_ref().filter(|_| entries > 0) {
                not_tried(&format!("iptables-{backend} {line}"), why);
                continue;
            }
            loaded_by(backend, line, rules, entries);
        }
    }
}

fn loaded_by(backend: &str, line: &str, rules: [usize; 2], entries: usize) {
    let namespace = Namespace::new();
    if entries > 0 {
        load(
            &namespace,
            &format!("iptables {line} --part ipset"),
            "ipset restore",
        );
        let sets = namespace.exec(&["ipset", "list", "-t"]).run().ok().stdout;
        assert_eq!(
            sets.matches(&format!("Number of entries: {entries}\n"))
                .count(),
            2,
            "{line}: {sets}"
        );
    }
    for (program, mark, other, expected) in [
        ("iptables", "-4 ", "-6 ", rules[0]),
        ("ip6tables", "-6 ", "-4 ", rules[1]),
    ] {
        if expected == 0 {
            continue;
        }
        load(
            &namespace,
            &format!("iptables {line}"),
            &format!("{program}-{backend}-restore"),
        );
        let mut found = saved(&namespace, &format!("{program}-{backend}-save"));
        assert_eq!(found.len(), expected, "{backend} {line}: {found:?}");
        let mut written = written(line, mark, other);
        // The tables are shown in an order of their own.
        found.sort();
        written.sort();
        assert_eq!(found, written, "{backend} {line}");
    }
}

/// Fewer than a ring of a veth holds: none is lost on a busy machine.
const FRAMES: u64 = 200;

/// Frames that the DUT has sent to the receiver.
fn forwarded(lab: &Lab) -> u64 {
    let shown = lab
        .exec("dut0", &["ip", "-j", "-s", "link", "show", "out1"])
        .run()
        .ok()
        .json();
    shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
}

fn send(lab: &Lab, family: &str) {
    lab.send("g1", &format!("-n {FRAMES} -R 20k {family}"))
        .run()
        .ok();
}

/// No rules or tables block test frames.
#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn test_traffic_passes_every_set() {
    let lab = Lab::up(&["forwarding"]);
    let load = |line: &str, program: &str| {
        lab.exec("dut0", &["sh", "-c", &pipeline(line, program)])
            .run()
            .ok();
    };
    let sets = [
        "nftables --stateless --rules 100 --table 1000 --seed 1",
        "nftables --stateful --rules 100 --entries hosts",
        "nftables --stateless --table 100 --hit",
        "nftables --nat",
        "iptables --stateless --rules 100 --seed 2",
        "iptables --stateful",
        "iptables --nat",
    ];
    for line in sets {
        if line.starts_with("iptables") && !is_installed("iptables-restore") {
            not_tried(
                &format!("test traffic through {line}"),
                "iptables is not installed",
            );
            continue;
        }
        if line.starts_with("iptables") {
            lab.exec("dut0", &["nft", "flush", "ruleset"]).run().ok();
            load(line, "iptables-restore");
            load(line, "ip6tables-restore");
        } else {
            load(line, "nft -f -");
        }
        for family in ["-4", "-6"] {
            let before = forwarded(&lab);
            send(&lab, family);
            wait_for(&format!("all frames to pass {line} {family}"), || {
                (forwarded(&lab) >= before + FRAMES).then_some(())
            });
        }
    }
    lab.exec("dut0", &["nft", "flush", "ruleset"]).run().ok();
    load("nftables --stateless --family 4", "nft -f -");
    let before = forwarded(&lab);
    send(&lab, "-6");
    wait_for("a set for IPv4 to let IPv6 pass, as iptables does", || {
        (forwarded(&lab) >= before + FRAMES).then_some(())
    });
}
