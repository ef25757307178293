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

/// Changes that the kernel refuses, that the DUT has already, and that another makes.
const UNTRIED: &str = r#"[variants.refused]
from = "router"
sysctls = { "net.ipv4.tcp_congestion_control" = "no-such" }
[variants.there]
from = "router"
sysctls = { "net.ipv4.tcp_sack" = 1 }
[variants.again]
from = "router"
sysctls = { "net/ipv4/tcp_sack" = "1" }
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
    fs::write(scratch.file("plan.toml"), PLAN.replace("ECHO", UNTRIED)).unwrap();
    let tune = linerate_line("tune plan.toml --out tuned --json --seed 1")
        .dir(scratch.path())
        .within(120);
    let ended = tune.run().ok();
    assert!(
        !ended.stderr.contains("linerate apply"),
        "no host can keep the rules of a lab: {}",
        ended.stderr
    );
    let tuned: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        verdicts(&tuned)[0],
        ("short".into(), "kept".into()),
        "{tuned:#}"
    );
    let left_out = tuned["left_out"].as_array().unwrap();
    assert_eq!(
        (verdicts(&tuned).len(), left_out.len()),
        (1, 3),
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
    assert!(show("show tuned/screening --full").contains("run-7"));
}

/// Levels of one key, and a change of its own.
const LEVELS: &str = r#"[variants.rules-20]
from = "router"
rules.before = 20
[variants.rules-100]
from = "router"
rules.before = 100
"#;

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_of_the_levels_that_help_the_best_is_kept() {
    let scratch = Scratch::new();
    let plan = PLAN.replace("ECHO", &format!("{LEVELS}{ECHO}"));
    fs::write(scratch.file("plan.toml"), plan).unwrap();
    let tune = linerate_line("tune plan.toml --out tuned --json --seed 1")
        .dir(scratch.path())
        .within(240);
    let tuned: Value = serde_json::from_str(&tune.run().ok().stdout).unwrap();
    let found = verdicts(&tuned);
    let expected = ["short", "rules-20", "rules-100"].map(String::from);
    let verdicts = ["kept", "not-chosen", "not-chosen"].map(String::from);
    let expected: Vec<(String, String)> = expected.into_iter().zip(verdicts).collect();
    assert_eq!(found[..3], expected, "{tuned:#}");
    for run in tuned["stages"][0]["runs"].as_array().unwrap() {
        let made = run.as_array().unwrap()[..3]
            .iter()
            .filter(|made| **made == true);
        assert!(made.count() <= 1, "{run}");
    }
    let show = linerate_line("show tuned").dir(scratch.path()).run().ok();
    assert!(
        show.stdout.contains("- rules.before: short is kept, +"),
        "{}",
        show.stdout
    );
}

/// The folder of a tuning is read by every verb that reads campaigns.
#[test]
fn a_tuning_is_reported_and_exported() {
    let scratch = Scratch::new();
    let plan = PLAN.replace("ECHO", &format!("{LEVELS}{ECHO}"));
    fs::write(scratch.file("plan.toml"), plan).unwrap();
    let line = |line: &str| linerate_line(line).dir(scratch.path()).run();
    line("tune plan.toml --simulate rate=100kpps --out tuned --report").ok();
    let written = fs::read_to_string(scratch.file("tuned/report.html")).unwrap();
    let page = line("report tuned").ok().stdout;
    assert_eq!(written, page);
    for part in [
        "<title>t</title>",
        "SIMULATED",
        "rules.before: none is kept",
        "Effect of each change on the rate",
        "95 % interval of the effect",
        "Campaign: screening",
    ] {
        assert!(page.contains(part), "no '{part}'");
    }
    let csv = line("show tuned --table Changes --format csv").ok().stdout;
    assert!(
        csv.lines()
            .any(|line| line.starts_with("SIMULATED: Changes,rules-20,rules.before,")),
        "{csv}"
    );
    line("export parquet tuned -o trials.parquet").ok();
    line("export parquet tuned --rows cells -o cells.parquet").ok();
    for (form, says) in [("junit", "run-3"), ("prometheus", "screening")] {
        let exported = line(&format!("export {form} tuned")).ok().stdout;
        assert!(exported.contains(says), "{form}: {exported}");
    }
    let pictures = line("export picture tuned").ok().stdout;
    assert!(
        pictures.contains("  1  Effect of each change on the rate"),
        "{pictures}"
    );
    let svg = line("export picture tuned 1").ok().stdout;
    assert!(svg.contains("<svg") && svg.contains("SIMULATED"), "{svg}");
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

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_change_that_the_kernel_refuses_or_that_changes_nothing_is_not_tried() {
    let scratch = Scratch::new();
    let short = PLAN.find("[variants.short]").unwrap()..PLAN.find("ECHO").unwrap();
    let plan = PLAN.replace(&PLAN[short], "").replace("ECHO", UNTRIED);
    fs::write(scratch.file("plan.toml"), plan).unwrap();
    let ended = linerate_line("tune plan.toml").dir(scratch.path()).run();
    ended.fails(
        4,
        &[
            "again is not tried: 'there' is the same change",
            "there is not tried: the DUT has that already",
            "refused is not tried: ",
            "net/ipv4/tcp_congestion_control",
            "no change of this plan can be tried here",
        ],
    );
}

#[test]
fn a_check_of_a_plan_names_what_a_tuning_would_refuse() {
    let scratch = Scratch::new();
    let check = |more: &str| {
        fs::write(scratch.file("plan.toml"), PLAN.replace("ECHO", more)).unwrap();
        let check = linerate_line("plan check plan.toml").dir(scratch.path());
        check.run().ok().stdout
    };
    let same = check(&UNTRIED.replace("\"1\"", "1"));
    assert!(
        same.contains("plan.toml:15:11: warning: `linerate tune` does not try 'again': 'there' is the same change"),
        "{same}"
    );
    let both = "[variants.both]\nfrom = \"short\"\nsysctls = { \"net.ipv4.tcp_sack\" = 0 }\n";
    let shared = check(both);
    assert!(
        shared.contains("refuses this plan: 'short' and 'both' both set rules.before = 0"),
        "{shared}"
    );
    assert!(!check(ECHO).contains("linerate tune"));
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
    // A change that excludes two others, which do not exclude each other.
    let third = "[variants.answer]\nfrom = \"router\"\nsysctls = { \"net.ipv4.icmp_echo_ignore_all\" = 0 }\n";
    let both = ECHO.replace("sysctls = {", "rules.before = 7\nsysctls = {");
    refused(
        &PLAN.replace("ECHO", &format!("{both}{third}")),
        "cannot be made together",
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
