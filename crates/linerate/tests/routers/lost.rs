//! A router that is lost in the middle of a campaign: the lane that lost it is marked, and the rest is measured once it is back.

use super::bsd::{Bsd, PLAN};
use super::trials;
use serde_json::Value;

/// A plan whose second of three variants takes a reboot.
fn with_reboots() -> String {
    let reboots = "[variants.queues]\nboot = { \"hw.igb.num_queues\" = 1 }\n\n[variants.mask]";
    PLAN.replace("[variants.mask]", reboots).replace(
        "[trials]",
        "[trials]\nreboot = \"when-needed\"\norder = \"sequential\"",
    )
}

/// Why a trial is not valid; nothing where it is.
fn failures(trial: &Value) -> String {
    if trial["audit"]["valid"] == true {
        String::new()
    } else {
        trial["audit"]["checks"].to_string()
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_router_that_stays_away_ends_the_campaign_with_its_trial_marked() {
    let bsd = Bsd::new();
    bsd.reboots(false);
    bsd.patience("10 s");
    let ended = bsd.run(&with_reboots(), &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    for part in [
        "router: it has not come back 10 s after its reboot",
        "lacks a power-cycle program",
        "its trials are marked as failed, and the campaign continues with the others",
        "router: it has not come back 10 s after it was lost",
        "nothing can be measured without it",
        "console",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let trials = trials(&bsd.records());
    assert_eq!(trials.len(), 4, "those of the third variant can be resumed");
    assert!(
        trials[..2].iter().all(|trial| failures(trial).is_empty()),
        "{trials:#?}"
    );
    assert!(
        trials[2..]
            .iter()
            .all(|trial| failures(trial).contains("has not come back")),
        "{trials:#?}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_variant_that_a_router_does_not_come_back_with_is_marked_and_the_others_are_measured() {
    let bsd = Bsd::new();
    // From its second reboot, out of the variant, it comes back by itself.
    bsd.reboots_from(Some(2));
    // Turning its power off and on helps from the second time on.
    let power = bsd.power_that_helps_from(2);
    bsd.lab(&format!("power-cycle = [\"{power}\"]"));
    bsd.patience("12 s");
    let ended = bsd.run(&with_reboots(), &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("its power was turned off and on by"),
        "{}",
        ended.stderr
    );
    let trials = trials(&bsd.records());
    let marked: Vec<bool> = trials
        .iter()
        .map(|t| failures(t).contains("has not come back"))
        .collect();
    assert_eq!(marked, [false, false, true, true, false, false]);
    assert!(
        trials
            .iter()
            .filter(|t| t["slot"] != 1)
            .all(|t| failures(t).is_empty()),
        "{trials:#?}"
    );
    // One reboot into the variant, and one out of its loader settings: not into the variant again.
    assert_eq!(
        bsd.log("router")
            .iter()
            .filter(|line| *line == "reboot")
            .count(),
        2,
        "{:?}",
        bsd.log("router")
    );
    assert_eq!(bsd.read("router", "root/boot/loader.conf.local").trim(), "");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_router_that_crashes_under_load_is_set_up_again_unless_it_crashes_again() {
    for (times, marked) in [(1, vec![true, false]), (9, vec![true, true, true])] {
        let bsd = Bsd::new();
        bsd.reboots(true);
        // The router is down before its trials are over.
        bsd.set("tester", "pace", "1");
        let state = bsd.state("router").display().to_string();
        // Where the second variant stands, it boots in mid-trial.
        let crash = format!(
            "[ $(sysctl -n kern.random.harvest.mask) = 351 ] && [ $(ls {state} | grep -c crash-) -lt {times} ] && mktemp {state}/crash-XXXXXX && exec shutdown -r now"
        );
        let plan = PLAN
            .replace(
                "blocks = 2",
                &format!("blocks = {}\norder = \"sequential\"", marked.len()),
            )
            .replace("200 ms", "3 s")
            .replace(
                "[traffic]",
                &format!("[collect]\nduring = ['{crash}']\n\n[traffic]"),
            );
        let ended = bsd.run(&plan, &[]);
        let trials = trials(&bsd.records());
        let of = |slot: u64| trials.iter().filter(move |t| t["slot"] == slot);
        assert_eq!(
            of(1).map(|t| !failures(t).is_empty()).collect::<Vec<_>>(),
            marked,
            "{}",
            ended.stderr
        );
        assert!(
            of(0).count() == marked.len() && of(0).all(|t| failures(t).is_empty()),
            "{trials:#?}"
        );
        assert!(
            of(1).next().unwrap()["audit"]
                .to_string()
                .contains("booted"),
            "{trials:#?}"
        );
        let crashes = std::fs::read_dir(&state).unwrap().flatten();
        let crashes = crashes
            .filter(|f| f.file_name().to_string_lossy().starts_with("crash-"))
            .count();
        assert_eq!(crashes, times.min(2), "{}", ended.stderr);
        let kept = bsd.read("router", "sysctl");
        assert_eq!(
            kept.lines()
                .filter(|line| line.ends_with("mask=511"))
                .count(),
            1,
            "{kept}"
        );
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_router_on_which_a_program_hangs_has_one_trial_marked() {
    let bsd = Bsd::new();
    // After its third trial: by then both slots have been asked how the router is configured, which passes over a program that hangs.
    let state = bsd.state("router").display().to_string();
    let third = format!(
        "echo >>{state}/looks; [ $(wc -l <{state}/looks) != 3 ] || echo netstat >{state}/hang"
    );
    let plan = PLAN.replace(
        "[traffic]",
        &format!("[collect]\ncommands = ['{third}']\n\n[traffic]"),
    );
    let ended = bsd.run(&plan, &[]);
    assert!(
        ended
            .stderr
            .contains("this trial is marked as failed, and the campaign continues"),
        "{}",
        ended.stderr
    );
    let trials = bsd.trials();
    let marked: Vec<String> = trials
        .iter()
        .map(failures)
        .filter(|why| !why.is_empty())
        .collect();
    assert!(trials.len() == 4 && marked.len() == 1, "{marked:#?}");
    assert!(marked[0].contains("does not end there"), "{marked:?}");
}
