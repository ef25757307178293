//! A campaign that also samples where the time of a frame goes.

use super::experiment::Experiment;
use crate::common::{Scratch, linerate};
use linerate_measure::record::{Staged, Step};
use linerate_profile::Profile;
use serde_json::{Value, json};
use std::fs;

#[test]
#[ignore = "needs root and nft"]
fn takes_minutes_the_functions_of_a_firewall_explain_its_time() {
    let scratch = Scratch::new();
    let args = [
        "--family",
        "4",
        "--variant",
        "nft-stateful",
        "--trials",
        "4",
        "--profile",
        "--full",
        "--out",
        "records",
    ];
    let ended = linerate(["bench"].iter().chain(&args).copied())
        .dir(scratch.path())
        .within(60)
        .run()
        .ok();
    assert!(
        ended.stdout.contains("Where the time of a frame goes\n"),
        "{}",
        ended.stdout
    );
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(scratch.file("records/summary.json")).unwrap())
            .unwrap();
    let profiles = summary["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 3, "{summary:#}");
    let with_called = |slot: usize, name: &str| {
        let functions = profiles[slot]["functions"].as_array().unwrap();
        functions
            .iter()
            .find(|f| f["name"] == name)
            .map_or(0, |f| f["with_called"].as_u64().unwrap())
    };
    for (slot, profile) in profiles.iter().enumerate() {
        let samples = profile["samples"].as_u64().unwrap();
        assert!(
            profile["slot"] == slot && samples > 200 && profile["lost"] == 0,
            "{profile:#}"
        );
        let stacks = scratch.file(&format!("records/{}", profile["stacks"].as_str().unwrap()));
        assert_eq!(
            Profile::of_folded(&fs::read_to_string(stacks).unwrap()).samples(),
            samples
        );
    }
    // Each function where its work is done. Elsewhere the samples may have some of another lab on the same CPU.
    let share = |slot: usize, name| {
        with_called(slot, name) as f64 / profiles[slot]["samples"].as_f64().unwrap()
    };
    let much =
        |slot: usize, name, than: usize| share(slot, name) > (2.0 * share(than, name)).max(0.01);
    assert!(
        much(1, "veth_xmit", 0) && much(2, "veth_xmit", 0),
        "{profiles:#?}"
    );
    assert!(
        much(2, "nf_conntrack_in", 0) && much(2, "nf_conntrack_in", 1),
        "{profiles:#?}"
    );
    // The firewall's work before the route lookup takes longer than forwarding alone.
    let before_routing = |slot: usize| {
        let stages = &profiles[slot]["stages"];
        assert!(stages["followed"].as_u64().unwrap() > 20, "{stages}");
        // Frames at once, by Little's law: no more than a batch of GRO.
        let times: Staged = serde_json::from_value(stages.clone()).unwrap();
        let at_once = times.times.whole.mean().unwrap() * times.received.unwrap() / 1e9;
        assert!(at_once > 0.5 && at_once < 9.0, "{at_once}");
        println!(
            "slot {slot}: {at_once} frames at once at {:?}",
            times.received
        );
        let steps: Vec<Step> = serde_json::from_value(stages["steps"].clone()).unwrap();
        steps
            .iter()
            .find(|step| step.to == "fib_table_lookup")
            .unwrap()
            .times
            .quantile(0.5)
            .unwrap()
    };
    assert!(
        2 * before_routing(2) > 3 * before_routing(1),
        "{} {}",
        before_routing(2),
        before_routing(1)
    );
    assert_eq!(profiles[0]["stages"], Value::Null);
    for profile in profiles {
        let events = &profile["events"];
        assert!(
            events["sent"].as_u64().unwrap() > 1000 && events["drops"] == json!({}),
            "{events}"
        );
        assert!(events["waits"]["times"].is_u64(), "{profile}");
        // The CPU's own counters, or the reason: most virtual machines have none.
        let missing = profile["missing"].as_array().unwrap();
        let uncounted = missing.iter().all(|why| {
            why.as_str()
                .unwrap()
                .starts_with("events of the CPUs: cycles, ")
        });
        assert!(missing.len() < 2 && uncounted, "{profile}");
        assert_eq!(
            missing.is_empty(),
            profile["counted"]["cycles"].is_u64(),
            "{profile}"
        );
        assert!(
            profile["counted"]["context-switches"].as_u64() > Some(0),
            "{profile}"
        );
        assert!(
            profile["rates"].as_array().unwrap().len() == 4
                && profile["frames"].as_u64() > Some(1000)
        );
    }
    // Where the extra time goes: into connection tracking first, and no more than the functions into their locks.
    let pair = ["explain", "records:forwarding", "records:nft-stateful"];
    let difference = linerate(pair.into_iter().chain(["--json"]))
        .dir(scratch.path())
        .run()
        .ok()
        .json();
    let first = difference["functions"][0]["name"].as_str().unwrap();
    assert!(
        first.contains("nf_") || first.contains("nft_"),
        "{difference:#}"
    );
    assert!(difference["locks"]["all"]["ns"][1].is_number() && difference["adds_up"].is_boolean());
    assert!(
        difference["counted"]["context-switches"][0].as_f64() > Some(0.0),
        "{difference:#}"
    );
    assert!(difference["sampled_ns"]["n"] == 8 && difference["unexplained_ns"]["low"].is_number());
    let page = linerate(pair).dir(scratch.path()).run().ok().stdout;
    assert!(
        page.contains("context-switches") && page.contains("by the rates of 8 trials"),
        "{page}"
    );
    // The sampled trials are no part of the others.
    assert_eq!(
        fs::read_to_string(scratch.file("records/trials.jsonl"))
            .unwrap()
            .lines()
            .count(),
        12
    );
    let again = linerate(["show", "records", "--full"])
        .dir(scratch.path())
        .run()
        .ok()
        .stdout;
    for section in [
        "Where the time of a frame goes",
        "How long frames are in the stack",
        "Waits for locks",
    ] {
        assert!(again.contains(&format!("{section}\n")), "{again}");
    }
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn plain_forwarding_is_profiled_beside_a_plan_s_variants() {
    let scratch = Scratch::new();
    let plan = r#"
title = "A firewall"
question = "What does it cost?"
[variants.firewall]
rules = { tool = "nftables", filter = "stateful" }
[traffic]
family = "IPv4"
[trials]
duration = "50 ms"
blocks = 1
[collect]
profile = "200 ms"
"#;
    fs::write(scratch.file("plan.toml"), plan).unwrap();
    let profiled = linerate(["run", "plan.toml", "--profile", "--out", "records"])
        .dir(scratch.path())
        .within(60)
        .run()
        .no_panic();
    let added = "plain forwarding beside the variants";
    assert!(profiled.stderr.contains(added), "{profiled:?}");
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(scratch.file(&format!("records/{name}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let slots = read("campaign")["slots"].clone();
    let named = |slot: &Value| slot["variant"] == "plain";
    let plain = slots.as_array().unwrap().iter().position(named).unwrap();
    let profiles = read("summary")["profiles"].clone();
    let profiled = profiles.as_array().unwrap().iter();
    assert!(
        profiled.clone().any(|profile| profile["slot"] == plain),
        "{profiles:#}"
    );
}

#[test]
fn a_simulated_dut_has_no_functions() {
    linerate(["bench", "--simulate", "ok", "--profile"])
        .run()
        .fails(2, &["--profile", "--simulate"]);
}

#[test]
fn a_plan_that_samples_says_why_a_testbed_cannot() {
    let plan = r#"
title = "t"
question = "q"
collect.profile = true
trials = { duration = "50 ms", blocks = 2 }
[variants.forwarding]
"#;
    let experiment = Experiment::new(plan, "--simulate ok");
    let ended = experiment.run("").run().ok();
    assert!(
        ended
            .stdout
            .contains("not profiled: a simulated DUT has no kernel"),
        "{}",
        ended.stdout
    );
}
