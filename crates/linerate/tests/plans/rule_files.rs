//! Rule files that plans and `bench` name, looked at before anything is measured.

use crate::common::{Program, Scratch, linerate};
use std::fs;

const PLAN: &str = "title = \"Own\"\nquestion = \"?\"\n\n[variants.plain]\nabout = \"routing\"\n\n[variants.mine]\nrules = RULES\n\n[trials]\nduration = \"10 ms\"\nblocks = 6\n";
const RULES: &str = "table ip fw {\n  chain forward {\n    type filter hook forward priority 0;\n    iifname eth1 oifname eth0 ip saddr 10.1.0.0/16 accept\n  }\n}\n";

fn folder(rules: &str) -> Scratch {
    let scratch = Scratch::new();
    fs::write(
        scratch.path().join("plan.toml"),
        PLAN.replace("RULES", rules),
    )
    .unwrap();
    fs::write(scratch.path().join("fw.nft"), RULES).unwrap();
    fs::write(scratch.path().join("pf.conf"), "block in all\n").unwrap();
    fs::write(
        scratch.path().join("includes.nft"),
        "table ip a { }\ninclude \"/etc/shadow\"\n",
    )
    .unwrap();
    fs::write(scratch.path().join("large.nft"), "#".repeat(5 << 20)).unwrap();
    Program::new("mkfifo")
        .args([scratch.file("fifo")])
        .run()
        .ok();
    scratch
}

/// The rules, and the messages of `plan check` about them.
const REFUSED: [(&str, &[&str]); 11] = [
    (
        "{ file = \"fv.nft\" }",
        &["8:18", "cannot read the rule file fv.nft", "No such file"],
    ),
    ("{ file = \".\" }", &["Is a directory"]),
    ("{ file = \"fifo\" }", &["not a regular file"]),
    ("{ file = \"large.nft\" }", &["more than 4194304 bytes"]),
    (
        "{ file = \"includes.nft\" }",
        &["includes.nft:2:1: this file includes another"],
    ),
    (
        "{ file = \"pf.conf\" }",
        &["rule file of pf", "there it is nftables or iptables"],
    ),
    ("{ file = \"fw.nft\", tool = \"pf\" }", &["Linux has no pf"]),
    (
        "{ file = \"fw.nft\", map = { eht1 = \"in\" } }",
        &["names no 'eht1'", "it names eth1 and eth0"],
    ),
    (
        "{ file = \"fw.nft\", map = { eth1 = \"inside\" } }",
        &["inside"],
    ),
    (
        "{ file = \"fw.nft\", filter = \"stateful\" }",
        &["a rule file has rules of its own"],
    ),
    (
        "{ map = { eth1 = \"in\" } }",
        &["no file whose names could be mapped"],
    ),
];

#[test]
fn rule_files_that_cannot_be_are_refused_with_what_to_do() {
    for (rules, says) in REFUSED {
        let scratch = folder(rules);
        let ended = linerate(["plan", "check", "plan.toml"])
            .dir(scratch.path())
            .run();
        assert_eq!(ended.status.code(), Some(2), "{rules}: {ended:?}");
        let said = ended
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            says.iter().all(|part| said.contains(part)),
            "{rules}: {says:?}\n{}",
            ended.stdout
        );
    }
}

#[test]
fn what_is_guessed_of_a_rule_file_is_said() {
    let scratch = folder("{ file = \"fw.nft\" }");
    // From another folder: the file is beside the plan.
    let checked = linerate(["plan", "check", &scratch.file("plan.toml")])
        .run()
        .ok();
    let said = checked
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for part in [
        "eth1 is 'in' (a guess: a rule accepts from eth1 to eth0)",
        "10.1.0.0/16 is 'in'",
        "no rule has a counter",
    ] {
        assert!(said.contains(part), "{part}\n{}", checked.stdout);
    }
    let shown = linerate(["plan", "show", &scratch.file("plan.toml")])
        .run()
        .ok();
    assert!(
        shown.stdout.contains("rule file fw.nft of nftables"),
        "{}",
        shown.stdout
    );
    let given = folder("{ file = \"fw.nft\", map = { eth1 = \"out\", \"10.1.0.0/16\" = \"in\" } }");
    let shown = linerate(["plan", "show", "plan.toml"])
        .dir(given.path())
        .run()
        .ok();
    assert!(
        shown.stdout.contains("eth0 = in") && shown.stdout.contains("eth1 = out"),
        "{}",
        shown.stdout
    );
}

#[test]
fn bench_refuses_the_same() {
    let scratch = folder("{}");
    for (line, says) in [
        ("--rules fv.nft", "cannot read the rule file fv.nft"),
        ("--rules fifo", "not a regular file"),
        ("--rules pf.conf", "rule file of pf"),
        ("--rules includes.nft", "includes.nft:2:1:"),
        ("--rules fw.nft --map eht1=in", "names no 'eht1'"),
        (
            "--rules fw.nft --rules fw.nft --map eht1=in",
            "no rule file names it",
        ),
        ("--rules fw.nft --map eth1", "write eth0=out"),
        ("--map eth1=in", "--rules"),
    ] {
        let line = format!("bench {line} --simulate ok --trials 1 --out records");
        linerate(line.split_whitespace())
            .dir(scratch.path())
            .run()
            .fails(2, &[says]);
    }
    let line = "bench --rules fw.nft --rules fw.nft --simulate ok --trials 1 --duration 10ms --out records";
    let two = linerate(line.split_whitespace())
        .dir(scratch.path())
        .run()
        .no_panic();
    assert!(
        two.stdout.contains("fw.nft#2 IPv4") && !two.stdout.contains("IPv6"),
        "{}",
        two.stdout
    );
}

#[test]
fn traffic_is_frames_or_connections_or_requests() {
    for (plan, traffic) in [
        ("rules", "64 B IPv4 UDP, "),
        ("connections", "connections: IPv4 "),
        ("http", "HTTP close 1,024 B over 64 connections"),
    ] {
        let shown = linerate(["plan", "show", plan]).run().ok().stdout;
        assert!(shown.contains(traffic), "{shown}");
    }
}
