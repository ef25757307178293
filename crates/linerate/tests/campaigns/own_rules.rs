//! Rule files of administrators: measured as they are, by one command.

use super::experiment::Experiment;
use crate::common::{Bench, Campaign, Scratch, campaign, linerate, linerate_line, schema};
use serde_json::Value;
use std::fs;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testdata/rules/");

/// `linerate bench` with these rules, a few short trials long.
#[track_caller]
fn bench(file: &str, more: &str) -> Campaign {
    Bench::new(&format!(
        "--rules {FOLDER}{file} {more} --full --trials 2 --duration 20ms --flows 200"
    ))
    .run_beside()
}

/// The rules that met frames in the trials of a variant: all of them together, and frames that were sent.
fn met(campaign: &Campaign, variant: &str) -> (Vec<(String, u64)>, u64) {
    let mut rules: Vec<(String, u64)> = Vec::new();
    let trials = campaign.of(variant);
    for count in trials
        .iter()
        .flat_map(|t| t["rules"].as_array().cloned().unwrap_or_default())
    {
        let (rule, frames) = (
            count["rule"].as_str().unwrap(),
            count["frames"].as_u64().unwrap(),
        );
        match rules.iter_mut().find(|(known, _)| known == rule) {
            Some((_, sum)) => *sum += frames,
            None => rules.push((rule.to_string(), frames)),
        }
    }
    (
        rules,
        trials
            .iter()
            .map(|t| campaign::sent_and_received(t).0)
            .sum(),
    )
}

/// Every frame came through, and the rules that let known connections pass have counted each.
#[track_caller]
fn passes_all(campaign: &Campaign, file: &str, passing: &[&str]) {
    for trial in campaign.of(file) {
        let (sent, received) = campaign::sent_and_received(trial);
        assert_eq!(campaign::faults(trial), "");
        assert!(sent > 0 && sent == received, "{received} of {sent}");
    }
    let (rules, sent) = met(campaign, file);
    let passed: u64 = rules
        .iter()
        .filter(|(rule, _)| passing.iter().any(|p| rule.contains(p)))
        .map(|(_, n)| n)
        .sum();
    assert!(
        passing.is_empty() || passed == sent,
        "{passed} of {sent}: {rules:#?}"
    );
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn an_office_router_of_nft_is_measured_as_it_is() {
    let campaign = bench("office.nft", "");
    let out = &campaign.ended.stdout;
    passes_all(
        &campaign,
        "office.nft",
        &["ct state established,related counter accept"],
    );
    for said in [
        "eth0 is 'out' (a guess",
        "eth1 is 'in' (a guess",
        "192.168.10.0/24 is 'in' (a guess",
        "198.18.0.0/15 is 'elsewhere' (a guess",
        "Rules that matched the most frames",
        "inet filter ",
    ] {
        assert!(
            out.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(said),
            "{said}\n{out}"
        );
    }
    // IPv4 by default, and forwarding beside it.
    let record = campaign.document("campaign.json");
    let slots = record["slots"].as_array().unwrap();
    assert_eq!(
        slots
            .iter()
            .map(|s| s["variant"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["tester-baseline", "forwarding", "office.nft"]
    );
    let kept = &record["planned"]["plan"]["lanes"][2]["settings"]["rule_file"];
    assert_eq!(
        kept["text"],
        fs::read_to_string(format!("{FOLDER}office.nft")).unwrap()
    );
    assert_eq!(
        (kept["map"]["eth0"].as_str(), kept["firewall"].as_str()),
        (Some("out"), Some("nftables"))
    );
    // Rules and connections are in the schema.
    let row = &campaign.document("summary.json")["rows"][2];
    assert!(
        row["rules"].is_array() && row["connections"].is_object(),
        "{row}"
    );
    let shown = linerate(["show", "--json", campaign.path()])
        .run()
        .ok()
        .json();
    let known = linerate(["show", "--schema"]).run().ok().json();
    assert_eq!(schema::faults(&known, &shown), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn first_packets_are_measured_beside_known_connections() {
    let line = format!("--rules {FOLDER}office.nft --trials 2 --duration 20ms --full");
    let campaign = Bench::new(&line).run();
    let record = campaign.document("campaign.json");
    let slots = record["slots"].as_array().unwrap();
    let new = slots
        .iter()
        .find(|slot| slot["plan_variant"] == "office.nft-new");
    // Its name has the number of its flows, by the host's table.
    let new = new.unwrap()["variant"].as_str().unwrap();
    passes_all(&campaign, new, &["the office may go out"]);
    passes_all(&campaign, "office.nft", &["ct state established,related"]);
    let said = "In office.nft-new, each frame opens a connection.";
    assert!(
        campaign.ended.stdout.contains(said),
        "{}",
        campaign.ended.stdout
    );
    let summary = campaign.document("summary.json");
    let row = &summary["rows"][campaign.slot(new) as usize];
    assert_eq!(row["connections"]["states"], "new", "{row}");
    // Where a user says how many flows there are, or what their connections are, that is measured alone.
    for more in ["--flows 100", "--states one-way"] {
        let lines = format!("{line} {more} --print-plan");
        let plan = linerate_line(&format!("bench {lines}")).run().ok().stdout;
        assert!(!plan.contains("office.nft-new"), "{plan}");
    }
}

#[test]
#[ignore = "needs root and iptables: run by make test as root"]
fn a_branch_router_of_iptables_is_measured_as_it_is() {
    let campaign = bench("branch.iptables", "");
    passes_all(
        &campaign,
        "branch.iptables",
        &["--ctstate RELATED,ESTABLISHED"],
    );
    let (rules, _) = met(&campaign, "branch.iptables");
    assert!(
        rules
            .iter()
            .all(|(rule, _)| !rule.contains("in1") && !rule.contains("out1")),
        "{rules:#?}"
    );
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn zones_with_three_interfaces_say_which_two_are_meant() {
    let refused = linerate([
        "bench",
        "--rules",
        &format!("{FOLDER}zones.nft"),
        "--trials",
        "1",
    ])
    .run();
    refused.fails(2, &["enp2s0, enp2s0.30 and enp1s0", "--map NAME=in"]);
    let campaign = bench("zones.nft", "--map enp2s0=in --map enp1s0=out");
    passes_all(&campaign, "zones.nft", &[]);
    let out = campaign
        .ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        out.contains("10.20.0.0/16 is 'in' (a guess")
            && out.contains("no rule with a counter matched a frame"),
        "{out}"
    );
}

const PLAN: &str = r#"
title = "Own rules"
question = "What do they cost?"

[traffic]
flows = 50

[variants.plain]
about = "routing"

[variants.mine]
rules = { file = "fw/mine.nft", map = { lan = "in", wan = "out" } }

[compare]
with = "plain"

[lab]
batch = 32
[trials]
duration = "10 ms"
blocks = 2
"#;

const MINE: &str = "flush ruleset\ntable ip fw {\n  chain forward {\n    type filter hook forward priority 0; policy drop;\n    ct state invalid drop\n    iifname \"lan\" oifname \"wan\" counter accept\n    iifname wan counter accept\n  }\n}\n";

fn experiment(rules: &str) -> Experiment {
    let experiment = Experiment::new(PLAN, "");
    let folder = experiment.plan().with_file_name("fw");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("mine.nft"), rules).unwrap();
    experiment
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn a_plan_counts_what_its_rules_meet_and_goes_on_with_the_same_rules_only() {
    let experiment = experiment(MINE);
    let ended = experiment.run("--full").run().ok();
    let trials = experiment.trials();
    let counted = |t: &Value| t["rules"][0]["frames"].as_u64();
    let of_mine: Vec<&Value> = trials.iter().filter(|t| counted(t).is_some()).collect();
    assert_eq!(of_mine.len(), 2);
    for trial in of_mine {
        // The frames of this trial, not those of all until now.
        assert_eq!(counted(trial), trial["generator"]["frames"].as_u64());
        assert_eq!(
            trial["rules"][0]["rule"],
            "ip fw forward: iifname \"lan\" oifname \"wan\" counter accept"
        );
    }
    assert!(
        ended
            .stdout
            .contains("  100.00  ip fw forward: iifname \"lan\""),
        "{}",
        ended.stdout
    );
    // Each frame comes to the second of three rules.
    let passed = &experiment.document("summary.json")["rules"][0];
    let frames = passed["frames"].as_u64().unwrap();
    assert!(frames > 0 && passed["looks"] == 2 * frames, "{passed}");
    assert_eq!(
        (&passed["rules"], &passed["reached"]),
        (&3.into(), &2.into())
    );
    let said = "2.00 rules checked per frame; 2 of 3 rules reached (66.7 %)";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);

    let lanes = experiment.document("campaign.json")["planned"]["plan"]["lanes"].clone();
    assert!(
        lanes
            .as_array()
            .unwrap()
            .iter()
            .any(|l| l["settings"]["rule_file"]["text"] == MINE),
        "{lanes}"
    );

    // As if it had been stopped.
    fs::remove_file(experiment.records().join("summary.json")).unwrap();
    fs::write(
        experiment.plan().with_file_name("fw/mine.nft"),
        MINE.replace("invalid", "untracked"),
    )
    .unwrap();
    experiment
        .resume("")
        .run()
        .fails(2, &["or a rule file that it names"]);
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn what_the_tool_refuses_is_told_by_the_file_s_own_line() {
    let broken = experiment(&MINE.replace("counter accept\n  }", "countr accept\n  }"));
    broken
        .run("")
        .run()
        .fails(1, &["fw/mine.nft:7:", "syntax error"]);
    let scratch = Scratch::new();
    let file = scratch.file("fw.save");
    fs::write(
        &file,
        "*filter\n-A FORWARD -i a -o b -j ACCEPT\n-A FORWARD -i a -o b --nonsense\nCOMMIT\n",
    )
    .unwrap();
    linerate(["bench", "--rules", &file, "--trials", "1"])
        .dir(scratch.path())
        .run()
        .fails(1, &["fw.save", "line 3"]);
}
