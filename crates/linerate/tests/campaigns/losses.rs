//! A DUT that drops frames is not reported as a slower one, and one that drops all of them is reported.

use super::experiment::Experiment;
use crate::common::{Bench, Ended, linerate};
use serde_json::Value;

/// A plan whose second variant has this rule of nft's.
fn with_rule(variant: &str, rule: &str, more: &str, blocks: u64) -> Experiment {
    let table = "add table inet own { chain f { type filter hook forward priority 0; }; }";
    let plan = format!(
        r#"
title = "Own rules"
question = "What do they cost?"
{more}

[variants.forwarding]

[variants.{variant}]
commands = [{{ run = "nft '{table}; add rule inet own f {rule}'", undo = "nft flush ruleset" }}]

[compare]
with = "forwarding"

[lab]
batch = 32
[trials]
duration = "50 ms"
blocks = {blocks}
"#
    );
    Experiment::new(&plan, "")
}

/// The text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    let text = flat(text);
    for part in parts {
        assert!(text.contains(part), "no '{part}' in:\n{text}");
    }
}

fn close(value: &Value, wanted: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{value}"));
    assert!(
        (value / wanted - 1.0).abs() < 0.02,
        "{value} instead of {wanted}"
    );
}

#[test]
#[ignore = "needs root and nft"]
fn half_of_the_frames_dropped_is_no_slower_dut() {
    // Status 5: the rates differ too much on a busy machine.
    half_of_the_frames_dropped(10, &[3, 5]);
}

/// How long the DUT needs for a frame, which the machine must have for itself.
#[test]
#[ignore = "needs root and nft"]
fn figures_half_of_the_frames_dropped_costs_as_much_as_none() {
    let half = half_of_the_frames_dropped(16, &[3]);
    let summary = half.document("summary.json");
    let [_, forwarding, _] = &summary["rows"].as_array().unwrap()[..] else {
        panic!("{summary:#}")
    };
    assert_eq!(forwarding["limit"], "dut");
    // Half as much passes, and a frame costs about the same: by far not twice as much.
    let compared = &summary["comparisons"][0];
    let median = |what: &str| compared[what]["median"].as_f64().unwrap();
    assert!(
        (0.3..0.7).contains(&median("ratio")) && (0.6..1.5).contains(&median("cost")),
        "{compared:#}"
    );
    let [reference, other] =
        ["forwarding", "mine"].map(|slot| format!("{}:{slot}", half.records().display()));
    let json = linerate(["compare", "--json", &reference, &other])
        .run()
        .ok()
        .json();
    assert!(
        json["comparisons"][0]["handled"]["median"]
            .as_f64()
            .unwrap()
            > 0.65,
        "{json:#}"
    );
}

fn half_of_the_frames_dropped(blocks: u64, statuses: &[i32]) -> Experiment {
    let half = with_rule("mine", "numgen inc mod 2 == 0 drop", "", blocks);
    let ended = half
        .run("--full --fail-if-slower 3%")
        .first()
        .run()
        .no_panic();
    let decided = |ended: &Ended, told: &str| {
        let status = ended.status.code().unwrap();
        assert!(
            statuses.contains(&status) && (status != 3 || ended.stderr.contains(told)),
            "{status}: {}",
            ended.stderr
        );
    };
    decided(&ended, "mine passes less than forwarding by 3 %");
    let place = "inside the DUT (no counter says why)";
    says(
        &ended.stdout,
        &[
            "mine passes 50.0 % of the frames; ",
            "an offered frame",
            "Losses by place",
            place,
            "Offered, received and lost",
            "DUT drops",
        ],
    );
    assert!(
        !flat(&ended.stdout).contains("mine forwards"),
        "{}",
        ended.stdout
    );

    let summary = half.document("summary.json");
    let [_, _, mine] = &summary["rows"].as_array().unwrap()[..] else {
        panic!("{summary:#}")
    };
    assert_eq!(mine["limit"], "dut-drops");
    close(&mine["loss_ratio"], 0.5);
    close(&mine["dropped"], 0.5);
    close(
        &mine["handled"]["median"],
        mine["offered"].as_f64().unwrap(),
    );
    close(
        &mine["received"]["median"],
        mine["offered"].as_f64().unwrap() / 2.0,
    );
    assert_eq!(mine["losses"][0]["place"], place);

    let records = half.records();
    let [reference, other] =
        ["forwarding", "mine"].map(|slot| format!("{}:{slot}", records.display()));
    let told = linerate(["compare", &reference, &other]).run().ok();
    says(
        &told.stdout,
        &[
            "passes 50.0 % of the frames",
            "100 %; counting the dropped frames as handled",
        ],
    );
    let json = linerate([
        "compare",
        "--json",
        &reference,
        &other,
        "--fail-if-slower",
        "3%",
    ])
    .run()
    .no_panic();
    decided(&json, "it drops frames");
    let json = json.json();
    let found = &json["comparisons"][0];
    close(&found["lost"][1], 0.5);
    close(&found["dropped"][1], 0.5);
    half
}

#[test]
#[ignore = "needs root and nft"]
fn rules_that_drop_every_frame_are_told_with_what_they_must_pass() {
    let (more, addresses) = ("[traffic]\nfamily = \"IPv6\"", "2001:2::/48");
    let none = with_rule("mine", "counter drop", more, 2);
    let ended = none.run("--full").first().run().status(1);
    let why = format!(
        "mine dropped every test frame inside the DUT (no counter says why): its rules and settings must let {addresses} pass between the inside and the outside interface."
    );
    let before = flat(ended.stdout.split("cell").next().unwrap());
    assert!(
        before.contains(&why),
        "not in the first lines:\n{}",
        ended.stdout
    );
    says(
        &ended.stdout,
        &["mine passes 0 % of the frames; ", "no frame passed"],
    );
    assert!(!ended.stdout.contains("-100.00"), "{}", ended.stdout);
    assert_eq!(none.document("summary.json")["unmeasured"][0]["slot"], 2);
    none.forget();
    let quiet = none
        .run("--quiet")
        .first()
        .run()
        .fails(1, &["mine dropped every test frame", addresses]);
    assert_eq!(quiet.stdout, "");
}

#[test]
#[ignore = "needs root and nft"]
fn the_rule_of_a_file_that_drops_every_frame_is_named() {
    let none = with_rule("mine", "accept", "", 2);
    let rules = "table inet own {\n chain f {\n type filter hook forward priority 0;\n counter drop\n }\n}\n";
    std::fs::write(none.plan().with_file_name("own.nft"), rules).unwrap();
    let plan = std::fs::read_to_string(none.plan()).unwrap();
    let commands = plan
        .lines()
        .find(|line| line.starts_with("commands"))
        .unwrap();
    std::fs::write(
        none.plan(),
        plan.replace(commands, "rules = { file = \"own.nft\" }"),
    )
    .unwrap();
    let ended = none.run("").first().run().status(1);
    says(
        &ended.stdout,
        &[
            "mine dropped every test frame by `",
            "drop`: its rules and settings must let 198.18.0.0/15 pass",
        ],
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_known_answer_may_be_that_everything_is_dropped() {
    let campaign =
        Bench::new("--variant known-loss=1 --family 4 --trials 2 --duration 50ms").run_first();
    let row = campaign.row("known-loss=1");
    assert_eq!(
        (&row["limit"], &row["dropped"]),
        (&"dut-drops".into(), &1.0.into()),
        "{row:#}"
    );
    assert_eq!(
        campaign.document("summary.json")["unmeasured"],
        Value::Array(Vec::new())
    );
    assert_eq!(campaign.ended.status.code(), Some(0));
}
