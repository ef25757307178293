//! `linerate tune`: changes that help, cost and do nothing are told apart.

use crate::common::{Scratch, linerate_line};
use serde_json::Value;
use std::fs;

/// A router with a rule set that nobody needs, and a change of it.
const PLAN: &str = r#"
title = "t"
question = "q"
[variants.router]
rules = { tool = "nftables", filter = "stateless", before = 200 }
[variants.short]
from = "router"
rules.before = 0
ECHO[traffic]
family = "IPv4"
[lab]
batch = 64
[trials]
duration = "10 ms"
blocks = 6
"#;

/// A change that frames do not notice.
const ECHO: &str = r#"[variants.echo]
from = "router"
sysctls = { "net.ipv4.icmp_echo_ignore_all" = 1 }
"#;

fn verdicts(tuned: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let changes = tuned["changes"].as_array().unwrap();
    changes
        .iter()
        .map(|change| (text(&change["name"]), text(&change["verdict"])))
        .collect()
}

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_the_change_that_helps_is_found_and_proven() {
    let scratch = Scratch::new();
    fs::write(scratch.file("plan.toml"), PLAN.replace("ECHO", "")).unwrap();
    let tune = linerate_line("tune plan.toml --out tuned --json --seed 1")
        .dir(scratch.path())
        .within(120);
    let tuned: Value = serde_json::from_str(&tune.run().ok().stdout).unwrap();
    assert_eq!(
        verdicts(&tuned)[0],
        ("short".into(), "kept".into()),
        "{tuned:#}"
    );
    assert_eq!(tuned["together"]["verdict"], "proven");
    assert!(
        tuned["together"]["ratio"]["low"].as_f64().unwrap() > 1.5,
        "{tuned:#}"
    );
    // The plan of the result can be carried out, and each campaign is a record like any other.
    let show = |line: &str| linerate_line(line).dir(scratch.path()).run().ok().stdout;
    assert!(show("plan check tuned/kept.toml").contains("no faults"));
    assert!(show("show tuned").contains("Settings of the kept changes"));
    assert!(show("show tuned/screening").contains("run-7"));
}

#[test]
fn a_dut_that_no_change_reaches_gives_no_finding() {
    let scratch = Scratch::new();
    fs::write(scratch.file("plan.toml"), PLAN.replace("ECHO", ECHO)).unwrap();
    let tune = linerate_line("tune plan.toml --simulate rate=100kpps --out tuned --json")
        .dir(scratch.path());
    let tuned: Value = serde_json::from_str(&tune.run().ok().stdout).unwrap();
    let verdicts = verdicts(&tuned);
    assert!(
        verdicts
            .iter()
            .all(|(_, verdict)| verdict != "kept" && verdict != "harmful"),
        "{verdicts:?}"
    );
    let screened = &tuned["changes"][0]["screened"]["ratio"];
    assert!(
        (screened["median"].as_f64().unwrap() - 1.0).abs() < 0.01,
        "{screened}"
    );
}

/// Inline, the load does not wait for the CPU that threaded NAPI hands frames to.
#[test]
fn a_change_that_cannot_be_tried_is_left_out_and_named() {
    let scratch = Scratch::new();
    let napi =
        format!("{ECHO}[variants.napi]\nfrom = \"router\"\ninterface.threaded-napi = true\n");
    let tune = |plan: &str| {
        fs::write(scratch.file("plan.toml"), plan.replace("ECHO", &napi)).unwrap();
        let tune = "tune plan.toml --simulate rate=100kpps --json";
        linerate_line(tune).dir(scratch.path()).run()
    };
    let ended = tune(PLAN).ok();
    let tuned: Value = serde_json::from_str(&ended.stdout).unwrap();
    let names: Vec<String> = verdicts(&tuned).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["short", "echo"]);
    assert_eq!(tuned["left_out"][0]["name"], "napi");
    assert!(
        ended.stderr.contains("napi is not tried: inline"),
        "{}",
        ended.stderr
    );
    let threaded = tune(&PLAN.replace("[lab]", "[lab]\nmode = \"threaded\"")).ok();
    let tuned: Value = serde_json::from_str(&threaded.stdout).unwrap();
    assert_eq!(
        (verdicts(&tuned).len(), &tuned["left_out"]),
        (3, &serde_json::json!([]))
    );
}

#[test]
fn plans_without_changes_are_refused() {
    let scratch = Scratch::new();
    let refused = |text: &str, says: &str| {
        fs::write(scratch.file("plan.toml"), text.replace("ECHO", ECHO)).unwrap();
        let ended = linerate_line("tune plan.toml --simulate ok")
            .dir(scratch.path())
            .run();
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(says), "{}", ended.stderr);
        assert!(
            !scratch.path().join("linerate-results").exists(),
            "nothing is made for nothing"
        );
    };
    refused(
        &PLAN.replace(
            "[traffic]",
            "[factors.f]\nsets = \"traffic.flows\"\nlevels = [1, 2]\n[traffic]",
        ),
        "factor 'f'",
    );
    refused(
        &PLAN.replace(
            "ECHO",
            &ECHO.replace("sysctls = {", "rules.before = 7\nsysctls = {"),
        ),
        "both set rules.before",
    );
    refused(
        &PLAN.replace("[traffic]", "[traffic]\nflos = 1"),
        "did you mean 'flows'",
    );
    // One block of the screening takes longer.
    refused(
        &PLAN.replace("blocks = 6", "budget = \"300 ms\""),
        "takes at least",
    );
    // The message says what takes the time: on hosts it is not the load.
    let of_hosts = "[lab]\nfile = \"LAB.toml\"\nlink-speed = \"1 Gbit/s\"";
    let of_hosts = PLAN
        .replace("[lab]\nbatch = 64", of_hosts)
        .replace("blocks = 6", "budget = \"60 s\"\npause = \"2 s\"");
    refused(&of_hosts, "to start and stop trials, ");
    let unknown = linerate_line("tune tunee").run();
    unknown.fails(2, &["did you mean 'tune'?"]);
}

/// Twenty tunings of the plan that comes with linerate: three of its ten settings matter, two of them for the better.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_three_of_ten_settings_are_found_in_18_of_20() {
    let mut found = 0;
    for seed in 0..20 {
        let scratch = Scratch::new();
        let line = format!("tune tune --budget 60s --seed {seed} --out tuned --json");
        let ended = linerate_line(&line)
            .dir(scratch.path())
            .within(240)
            .run()
            .ok();
        let tuned: Value = serde_json::from_str(&ended.stdout).unwrap();
        let of = |wanted: &str| -> Vec<String> {
            verdicts(&tuned)
                .into_iter()
                .filter(|(_, v)| v == wanted)
                .map(|(name, _)| name)
                .collect()
        };
        let (kept, harmful) = (of("kept"), of("harmful"));
        println!("seed {seed}: kept {kept:?}, harmful {harmful:?}");
        found +=
            usize::from(kept == ["short-rules", "no-bridge-netfilter"] && harmful == ["shaper"]);
    }
    assert!(found >= 18, "{found} of 20");
}
