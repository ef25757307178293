//! `linerate ruleset`: from the command line, and into the firewalls that this machine has.

mod loaded;

use crate::common::{Program, Scratch, linerate, linerate_line};

fn rules(line: &str) -> Program {
    linerate_line(&format!("rules {line}"))
}

/// Arguments, and words that the message must contain.
const REFUSED: [(&str, &[&str]); 22] = [
    ("nftables", &["--stateless|--stateful|--nat"]),
    ("nftables --stateless --stateful", &["cannot be used with"]),
    ("--stateless", &["<FIREWALL>"]),
    (
        "ufw --stateless",
        &[
            "'ufw' is not a firewall",
            "nftables, iptables, pf, openbsd-pf, ipfw and ipf",
        ],
    ),
    (
        "ipf --stateless --table 10",
        &["ipf has no tables", "pf or ipfw"],
    ),
    ("ipf --nat", &["no address translation for ipf"]),
    ("ipf --stateful --states 10", &["ipf's state table"]),
    (
        "pf --stateless --states 10k",
        &["stateless rule set keeps no states"],
    ),
    ("pf --nat", &["of pf needs the interface"]),
    (
        "ipfw --nat --interface ix0 --family 6",
        &["ipfw translates IPv4 only"],
    ),
    (
        "nftables --stateful --interface eth0",
        &["address translation only"],
    ),
    (
        "nftables --nat --interface eth0;reboot",
        &["'eth0;reboot' is not an interface name"],
    ),
    (
        "nftables --stateless --rules 100001",
        &["--rules", "0 to 100000"],
    ),
    (
        "nftables --stateless --table 10000001",
        &["--table", "0 to 10000000"],
    ),
    ("nftables --stateful --states 0", &["--states", "from 1"]),
    (
        "nftables --stateless --table many",
        &["'many' is not a number", "10k"],
    ),
    ("nftables --stateless --hit", &["a hit needs a table"]),
    (
        "nftables --stateless --table 5 --entries hosts --hit",
        &["no host can be"],
    ),
    ("nftables --stateless --seed 5", &["nothing to draw"]),
    (
        "nftables --stateless --no-optimization",
        &["only pf makes tables of rules"],
    ),
    ("pf --stateless --commands", &["only ipfw reads"]),
    (
        "nftables --stateless --table 5 --part ipset",
        &["only a rule set of iptables with a table"],
    ),
];

#[test]
fn sets_that_cannot_be_are_refused_with_what_to_do() {
    for (line, says) in REFUSED {
        let ended = rules(line).run().fails(2, says);
        assert_eq!(ended.stdout, "", "{line}");
    }
    rules("iptables --stateless --part ipset")
        .run()
        .fails(2, &["with a table has an ipset"]);
    rules("pf --stateless --part boot")
        .run()
        .fails(2, &["rules, ipset, sysctl and loader"]);
}

#[test]
fn all_faults_are_told_at_once() {
    let ended = rules("ipf --nat --table 5 --states 5 --hit --entries hosts --interface ix0").run();
    ended.fails(
        2,
        &[
            "no tables",
            "no address translation",
            "state table",
            "no host can be",
        ],
    );
}

/// The archive's files, which crates/plan/testdata/rules/README.md names.
#[test]
fn plain_sets_are_the_archive_s() {
    for (line, archived) in [
        ("pf --stateful", "pf-stateful.conf"),
        ("pf --stateless --rules 9", "pf-10-rules.conf"),
        ("pf --stateless --table 99", "pf-100-entries.conf"),
        ("openbsd-pf --stateful --states 4M", "pf-4M-states.conf"),
        ("ipfw --stateless --table 9", "ipfw-10-entries.rules"),
        ("ipf --stateless --rules 8", "ipf-10-rules.rules"),
    ] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../plan/testdata/rules/");
        let archived = std::fs::read_to_string(format!("{folder}{archived}")).unwrap();
        assert_eq!(
            rules(&format!("{line} --plain")).run().ok().stdout,
            archived,
            "{line}"
        );
        let commented = rules(line).run().ok().stdout;
        let without: String = commented
            .split_inclusive('\n')
            .filter(|l| !l.starts_with("# ") || l.contains("Flush out"))
            .collect();
        assert!(
            commented.contains("# Written by linerate: ") && commented.contains("# Load"),
            "{commented}"
        );
        assert_eq!(without, archived, "{line}");
    }
}

#[test]
fn settings_are_parts_of_their_own() {
    let part = |line: &str| rules(line).run().ok().stdout;
    let ipfw = "ipfw --stateful --states 5M --plain --part";
    let settings = "net.inet.ip.fw.dyn_max=5000000\nnet.inet.ip.fw.dyn_buckets=65536\n";
    assert_eq!(part(&format!("{ipfw} sysctl")), settings);
    assert_eq!(part(&format!("{ipfw} loader")), "");
    let pf = part("pf --stateful --states 10M --part loader");
    assert!(
        pf.ends_with("net.pf.states_hashsize=\"33554432\"\n") && pf.contains("2560 MB"),
        "{pf}"
    );
    assert!(part("pf --stateful --part sysctl").contains("# There is nothing to set."));
}

#[test]
fn sets_go_into_files() {
    let scratch = Scratch::new();
    let file = scratch.file("pf.conf");
    let ended = linerate(["rules", "pf", "--stateful", "--plain", "-o", &file])
        .run()
        .ok();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "set skip on lo0\npass\n"
    );
    rules("pf --stateful -o /nonexistent/pf.conf")
        .run()
        .fails(1, &["/nonexistent/pf.conf", "No such file"]);
    let refused = linerate(["rules", "ipf", "--nat", "-o", &file])
        .run()
        .status(2);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "set skip on lo0\npass\n",
        "{}",
        refused.stderr
    );
}

#[test]
fn a_full_disk_is_told() {
    rules("pf --stateless --table 100k -o /dev/full")
        .run()
        .fails(1, &["/dev/full", "No space left"]);
    let shell = format!(
        "{} rules pf --stateless --table 100k > /dev/full",
        crate::common::LINERATE
    );
    Program::new("sh")
        .args(["-c", &shell])
        .run()
        .fails(1, &["standard output", "No space left"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut running = rules("nftables --stateless --table 10M").start();
    running.wait_for_line("elements");
    running.close_stdout();
    let ended = running.wait().ok();
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_seed_draws_the_same_each_time() {
    let drawn = |seed: &str| {
        rules(&format!("pf --stateless --table 1000 --seed {seed}"))
            .run()
            .ok()
            .stdout
    };
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(
        drawn("1").replace("seed 1", ""),
        drawn("2").replace("seed 2", "")
    );
}

/// Every example that only writes works as described.
#[test]
fn examples_of_the_help_work() {
    let scratch = Scratch::new();
    let help = rules("--help").run().ok().stdout;
    let examples: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  linerate ")?.split("   ").next())
        .filter(|line| !line.contains('|'))
        .collect();
    assert!(examples.len() >= 7, "{help}");
    for line in examples {
        let ended = linerate_line(line).dir(scratch.path()).run().ok();
        assert!(
            ended.stdout.contains("Written by linerate")
                || line.contains(" -o ")
                || line.contains("--plain")
        );
    }
    assert!(
        std::fs::metadata(scratch.path().join("pf.conf"))
            .unwrap()
            .len()
            > 20
    );
}
