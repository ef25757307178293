//! The plans that come with linerate, at the smallest size that still takes all their paths: one block of short trials. Their
//! quick forms, and the laws of physics for them, are among the long tests (shipped.rs).

use crate::common::{Scratch, campaign, linerate, own_run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");

fn searches(plan: &str) -> bool {
    ["search", "rfc2544"]
        .iter()
        .any(|kind| plan.contains(&format!("measure = \"{kind}\"")))
}

/// A plan whose quick form has one block of trials of 50 ms.
fn shortened(plan: &str) -> String {
    let at = plan.find("\n[quick]\n").expect("a quick form") + "\n[quick]\n".len();
    let (before, quick) = plan.split_at(at);
    let (quick, after) = quick.split_at(quick.find("\n[").map_or(quick.len(), |end| end + 1));
    let sizes = ["duration", "blocks", "budget"];
    let kept = quick
        .lines()
        .filter(|line| !sizes.iter().any(|size| line.starts_with(size)));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    // A search has no blocks.
    let end = if searches(plan) {
        "budget = \"3 s\""
    } else {
        "blocks = 1"
    };
    let short = format!("{before}duration = \"50 ms\"\n{end}\n{kept}{after}");
    // Other tests choose the batch size by measurement.
    match short.contains("\n[lab]\n") {
        true => short.replace("\n[lab]\n", "\n[lab]\nbatch = 32\n"),
        false => format!("{short}\n[lab]\nbatch = 32\n"),
    }
}

/// Runs it once; returns its faults.
fn faults(file: &Path) -> Vec<String> {
    let scratch = Scratch::new();
    let plan = fs::read_to_string(file).unwrap();
    fs::write(scratch.path().join("plan.toml"), shortened(&plan)).unwrap();
    let args = [
        "run",
        "plan.toml",
        "--quick",
        "--allow-host-changes",
        "--json",
        "--out",
        "records",
    ];
    let ended = linerate(args)
        .dir(scratch.path())
        .within(120)
        .run()
        .no_panic();
    match ended.status.code() {
        // 3, 5: an expectation was missed, or is undecided, as after a single block.
        // 1: a cell has no valid trial, whose checks are named below; or the time was over before all tests had a result.
        Some(0 | 1 | 3 | 5) => {}
        Some(4) if ended.stderr.contains("skipped: ") => return Vec::new(),
        status => return vec![format!("exit status {status:?}: {}", ended.stderr)],
    }
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let trials = campaign::trials(&scratch.path().join("records"));
    let skipped = document["campaign"]["planned"]["skipped"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let slots = document["campaign"]["slots"].as_array().unwrap();
    let measured =
        (0..slots.len()).filter(|slot| !skipped.iter().any(|skip| skip["cell"] == *slot));
    // A trial on a busy machine may be invalid.
    let measured_well = |slot: &usize| {
        let mut own = trials.iter().filter(|trial| trial["slot"] == *slot);
        own.any(|trial| campaign::faults(trial).is_empty())
    };
    measured
        .filter(|slot| !measured_well(slot))
        .map(|slot| {
            let why: Vec<_> = trials
                .iter()
                .filter(|trial| trial["slot"] == slot)
                .map(campaign::faults)
                .collect();
            format!("{}: no sound trial: {why:?}", slots[slot]["variant"])
        })
        .collect()
}

/// Settings that no other test of every change makes; those of the other plans are made by make test-long.
#[test]
#[ignore = "needs root: run by make test as root"]
fn plans_with_settings_of_their_own_are_measured() {
    let names = ["napi-budget", "offloads", "rps", "threaded-napi"];
    are_measured(&names.map(|name| Path::new(PLANS).join(name).with_extension("toml")));
}

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_every_plan_is_measured() {
    let mut plans: Vec<_> = fs::read_dir(PLANS)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    plans.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    assert!(plans.len() > 20, "{} plans", plans.len());
    plans.sort();
    are_measured(&plans);
}

fn are_measured(plans: &[PathBuf]) {
    // Some change settings of the whole host, which another linerate may do meanwhile.
    own_run();
    let mut wrong = Vec::new();
    for plan in plans {
        wrong.extend(
            faults(plan)
                .into_iter()
                .map(|fault| format!("{}: {fault}", plan.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
