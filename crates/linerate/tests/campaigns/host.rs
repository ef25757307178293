//! Cells that the machine cannot or may not set up are skipped with the reason, and the rest is measured.

use super::experiment::Experiment;
use super::outside::Outside;
use crate::common::{LINERATE, Program, linerate, own_machine, wait_for};
use std::fs;

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");

/// A plan with these variants and factors, in trials of 10 ms.
fn plan(variants: &str) -> String {
    format!(
        "title = \"t\"\nquestion = \"q\"\n[traffic]\nflows = 100\n{variants}\n[lab]\nbatch = 32\n[trials]\nduration = \"10 ms\"\nblocks = 6\n"
    )
}

/// The level of a setting of the whole host that has nothing to do with forwarding, and that no other test changes.
fn levels(setting: &str, levels: [u64; 2]) -> String {
    plan(&format!(
        "[variants.plain]\nabout = \"routing\"\n[factors.level]\nsets = \"sysctls.{setting}\"\nlevels = {levels:?}"
    ))
}

fn value(setting: &str) -> u64 {
    let file = format!("/proc/sys/{}", setting.replace('.', "/"));
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn settings_of_the_host_are_not_changed_without_consent() {
    own_machine();
    const SETTING: &str = "vm.dirty_expire_centisecs";
    let now = value(SETTING);
    let before = Outside::now(&["vm/dirty_expire_centisecs"]);
    let some = Experiment::new(&levels(SETTING, [now, now + 5]), "");
    let ended = some.run("").run();
    let skipped = some.document("campaign.json")["planned"]["skipped"].clone();
    assert_eq!(skipped.as_array().unwrap().len(), 1, "{skipped}");
    let reason = skipped[0]["reasons"][0].as_str().unwrap();
    for part in [
        "settings of the whole host",
        &format!("{SETTING}={}", now + 5),
        "--allow-host-changes",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    assert!(
        ended.stdout.contains("--allow-host-changes"),
        "the reason is not shown:\n{}",
        ended.stdout
    );
    some.is_complete(ended);
    some.blocks_are_complete(6);
    before.is_as_it_was(&some, "without consent");

    let none = Experiment::new(&levels(SETTING, [now + 5, now + 6]), "");
    let reasons = [
        "skipped",
        &format!("{SETTING}={}", now + 6),
        "--allow-host-changes",
    ];
    let ended = none.run("").run().fails(4, &reasons);
    assert_eq!(ended.stdout, "");
    assert!(
        !none.records().exists(),
        "a folder of a campaign that was none"
    );
    before.is_as_it_was(&none, "with nothing to measure");

    let all = Experiment::new(&levels(SETTING, [now + 5, now + 6]), "--allow-host-changes");
    all.is_complete(all.run("").run());
    before.is_as_it_was(&all, "with consent");
}

/// The campaign continues with the cells that are still allowed.
#[test]
#[ignore = "needs root: run by make test as root"]
fn consent_that_is_gone_is_noticed() {
    own_machine();
    let experiment = Experiment::new(&levels("vm.extfrag_threshold", [495, 505]), "");
    let running = experiment.run("--allow-host-changes").start();
    wait_for("two trials", || (experiment.recorded() >= 2).then_some(()));
    running.signal(libc::SIGINT);
    running.wait().status(130);
    experiment.resume("").run().fails(
        1,
        &[
            "has changed since the campaign began",
            "--allow-host-changes",
        ],
    );
    experiment.is_complete(experiment.resume("--allow-host-changes").run());
}

/// `linerate run` where `nft` is no program: only in its own view of the files.
fn without_nft(experiment: &Experiment) -> Program {
    let masked = "mount --bind /dev/null \"$(readlink -f \"$(command -v nft)\")\" && exec \"$@\"";
    let unshared = [
        "-m",
        "sh",
        "-c",
        masked,
        "sh",
        LINERATE,
        "run",
        "plan.toml",
        "--out",
        "records",
    ];
    Program::new("unshare")
        .args(unshared)
        .dir(experiment.plan().parent().unwrap())
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_missing_tool_is_a_reason() {
    let variants = "[variants.plain]\nabout = \"routing\"\n\
        [variants.filtered]\nrules = { tool = \"nftables\", filter = \"stateless\" }";
    let experiment = Experiment::new(&plan(variants), "");
    let ended = without_nft(&experiment).run();
    let skipped = experiment.document("campaign.json")["planned"]["skipped"].to_string();
    let reason = "nft is not installed";
    assert!(
        skipped.contains(reason) && ended.stdout.contains(reason),
        "{skipped}\n{}",
        ended.stdout
    );
    ended.status(1);
    assert_eq!(
        experiment.measured_slots().len(),
        2,
        "the plain variant with its ceiling"
    );

    let alone = "[variants.filtered]\nrules = { tool = \"nftables\", filter = \"stateless\" }";
    without_nft(&Experiment::new(&plan(alone), ""))
        .run()
        .fails(4, &["skipped", reason]);
    let required = format!("{}[requires]\ntools = [\"no-such-tool\"]\n", plan(alone));
    Experiment::new(&required, "")
        .run("")
        .run()
        .fails(4, &["skipped", "no-such-tool"]);
}

#[test]
fn a_lab_of_hosts_needs_a_lab_file_without_faults() {
    let experiment = Experiment::new("", "");
    let here = experiment.temporary();
    let plan = format!("{PLANS}/lab/forwarding.toml");
    let run = |more: &[&str]| linerate([&["run", &plan], more].concat()).dir(&here).run();
    run(&[]).fails(
        1,
        &[
            "cannot read the lab file",
            "lab.toml",
            "linerate lab example",
        ],
    );
    assert_eq!(
        fs::read_dir(&here).unwrap().count(),
        0,
        "something was left"
    );
    fs::write(
        here.join("faulty.toml"),
        "isolated = 1\n[hosts.a]\nrole = \"dut\"\n",
    )
    .unwrap();
    run(&["--lab", "faulty.toml"]).fails(2, &["faulty.toml:1", "isolated", "ssh"]);
    assert_eq!(
        fs::read_dir(&here).unwrap().count(),
        1,
        "something was left"
    );
}

/// How long it takes from one trial's end to the next one's beginning, where nothing but the rule set is another one. Only
/// printed: how fast the machine is that runs the tests is no property of linerate.
#[test]
#[ignore = "needs root: run by make test as root"]
fn trials_of_different_rule_sets_follow_each_other() {
    let variants = "[variants.nft]\nrules = { tool = \"nftables\", filter = \"stateless\" }\n\
        [variants.iptables]\nrules = { tool = \"iptables\", filter = \"stateless\" }\n\
        [factors.rules]\nsets = \"rules.before\"\nlevels = [0, 100]";
    let experiment = Experiment::new(&plan(variants), "");
    experiment.is_complete(experiment.run("").run());
    experiment.blocks_are_complete(6);
    let trials = experiment.trials();
    let number = |trial: &serde_json::Value, name: &str| trial[name].as_u64().unwrap();
    let load = |trial: &serde_json::Value| {
        number(&trial["timing"], "warm_up_ns") + number(&trial["timing"], "interval_ns")
    };
    let gaps = trials.windows(2).map(|pair| {
        let end = number(&pair[0], "began_ns") + load(&pair[0]);
        number(&pair[1], "began_ns")
            .checked_sub(end)
            .expect("a trial began before the last was over") as f64
            / 1e6
    });
    let gaps: Vec<f64> = gaps.collect();
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    println!(
        "between two trials: median {:.1} ms, longest {longest:.1} ms",
        crate::common::median(&gaps)
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_second_campaign_that_may_change_the_host_is_refused_at_its_start() {
    let plan = "title = \"t\"\nquestion = \"q\"\n[variants.a]\nabout = \"a\"\n[trials]\nduration = \"20 ms\"\nblocks = 5000\n";
    let experiment = Experiment::new(plan, "");
    let run = format!(
        "{} run plan.toml --allow-host-changes --out",
        crate::common::LINERATE
    );
    let line = format!(
        "{run} first >/dev/null 2>&1 & first=$!; until [ -s first/trials.jsonl ]; do sleep 0.02; done; \
         {run} second; code=$?; kill -INT $first; wait $first; exit $code"
    );
    let folder = experiment.plan().parent().unwrap().to_path_buf();
    let ended = Program::with_own_run(&line).dir(&folder).run();
    ended.fails(1, &["another linerate (process ", "wait for its end"]);
    assert!(!folder.join("second").exists());
}
