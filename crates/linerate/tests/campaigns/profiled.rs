//! A campaign that also samples where the time of a frame goes.

use super::common::{Scratch, linerate};
use super::experiment::Experiment;
use linerate_profile::Profile;
use serde_json::Value;
use std::fs;

#[test]
#[ignore = "needs root and nft"]
fn the_functions_of_a_firewall_explain_its_time() {
    let scratch = Scratch::new();
    let args =
        ["--family", "4", "--variant", "nft-stateful", "--trials", "4", "--profile", "--out", "records"];
    let ended = linerate(["bench"].iter().chain(&args).copied()).dir(scratch.path()).within(60).run().ok();
    assert!(ended.stdout.contains("Where the time of a frame goes\n"), "{}", ended.stdout);
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(scratch.file("records/summary.json")).unwrap()).unwrap();
    let profiles = summary["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 3, "{summary:#}");
    let with_called = |slot: usize, name: &str| {
        let functions = profiles[slot]["functions"].as_array().unwrap();
        functions.iter().find(|f| f["name"] == name).map_or(0, |f| f["with_called"].as_u64().unwrap())
    };
    for (slot, profile) in profiles.iter().enumerate() {
        let samples = profile["samples"].as_u64().unwrap();
        assert!(profile["slot"] == slot && samples > 200 && profile["lost"] == 0, "{profile:#}");
        let stacks = scratch.file(&format!("records/{}", profile["stacks"].as_str().unwrap()));
        assert_eq!(Profile::of_folded(&fs::read_to_string(stacks).unwrap()).samples(), samples);
    }
    // Each function where its work is done, and nowhere else.
    let takes_time =
        |slot: usize, name| with_called(slot, name) * 50 > profiles[slot]["samples"].as_u64().unwrap();
    assert_eq!([0, 1, 2].map(|slot| takes_time(slot, "veth_xmit")), [false, true, true], "{profiles:#?}");
    assert_eq!(
        [0, 1, 2].map(|slot| takes_time(slot, "nf_conntrack_in")),
        [false, false, true],
        "{profiles:#?}"
    );
    // The sampled trials are no part of the others.
    assert_eq!(fs::read_to_string(scratch.file("records/trials.jsonl")).unwrap().lines().count(), 12);
    let again = linerate(["show", "records"]).dir(scratch.path()).run().ok().stdout;
    assert!(again.contains("Where the time of a frame goes\n"), "{again}");
}

#[test]
fn a_simulated_dut_has_no_functions() {
    linerate(["bench", "--simulate", "ok", "--profile"]).run().fails(2, &["--profile", "--simulate"]);
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
    assert!(ended.stdout.contains("not profiled: a simulated DUT has no kernel"), "{}", ended.stdout);
}
