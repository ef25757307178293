//! Campaigns that `--resume` refuses, and its messages.

use super::experiment::{Experiment, Kept};
use super::order::crossed;
use crate::common::{Bench, linerate, wait_for};
use std::fs;

/// Blocks of a campaign that is stopped before its end, on a busy machine, too.
const BLOCKS: u64 = 120;

/// A campaign that was stopped after some trials.
fn stopped() -> Experiment {
    let experiment = Experiment::new(&crossed(&format!("blocks = {BLOCKS}")), "--simulate ok");
    let running = experiment.run("--seed 7").start();
    wait_for("ten trials", || {
        (experiment.trials().len() >= 10).then_some(())
    });
    running.signal(libc::SIGINT);
    let ended = running.wait().status(130);
    assert!(
        ended
            .stderr
            .contains("stopped; to resume: linerate run --resume records"),
        "{}",
        ended.stderr
    );
    experiment
}

/// Refused, with a reason, and nothing of the records is touched.
#[track_caller]
fn is_refused(experiment: &Experiment, more: &str, code: i32, says: &[&str]) {
    let read = |name: &str| fs::read(experiment.records().join(name)).unwrap_or_default();
    let files = ["campaign.json", "host.json", "trials.jsonl", "summary.json"];
    let before = files.map(read);
    experiment.resume(more).run().fails(code, says);
    assert_eq!(files.map(read), before, "{says:?}");
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_with_what_to_do() {
    let over = Experiment::new(&crossed("blocks = 1"), "--simulate ok");
    over.is_complete(over.run("").run());
    is_refused(
        &over,
        "",
        2,
        &[
            "all trials are done",
            "linerate show records",
            "linerate run plan.toml",
        ],
    );

    let bench = Bench::new("--simulate ok --trials 1 --duration 10ms").run();
    let resumed = linerate(["run", "--simulate", "ok", "--resume", bench.path()]).run();
    resumed.fails(
        2,
        &["all trials are done", "`linerate bench` begins a new one"],
    );
    let mut without_plan = bench.document("campaign.json");
    without_plan.as_object_mut().unwrap().remove("planned");
    fs::write(
        bench.directory.join("campaign.json"),
        without_plan.to_string(),
    )
    .unwrap();
    let resumed = linerate(["run", "--simulate", "ok", "--resume", bench.path()]).run();
    resumed.fails(2, &["cannot be resumed", "linerate run", "linerate bench"]);

    let none = over.temporary();
    let none = none.to_str().unwrap();
    linerate(["run", "--resume", none])
        .run()
        .fails(1, &["not a record of linerate", "campaign.json"]);
    linerate(["run", "--resume", "/nonexistent"])
        .run()
        .fails(1, &["/nonexistent", "No such file"]);
    let plan = over.plan();
    linerate(["run", "--resume", plan.to_str().unwrap()])
        .run()
        .fails(1, &["plan.toml", "not a folder"]);
    linerate(["run", plan.to_str().unwrap(), "--resume", none])
        .run()
        .fails(2, &["cannot be used with"]);
    linerate(["run"]).run().fails(2, &["PLAN"]);
}

#[test]
fn a_plan_that_has_changed_is_noticed() {
    let experiment = stopped();
    let plan = fs::read_to_string(experiment.plan()).unwrap();
    let changed = "plan.toml has changed since this campaign began";
    for (old, new) in [
        ("\"10 ms\"", "\"11 ms\""),
        ("[0, 10]", "[0, 11]"),
        ("\"512 B\"", "\"128 B\""),
        ("title", "titel"),
    ] {
        fs::write(experiment.plan(), plan.replace(old, new)).unwrap();
        is_refused(&experiment, "", 2, &[changed, "put the plan back"]);
    }
    // A change that is only a remark changes nothing.
    fs::write(experiment.plan(), format!("# A remark.\n{plan}")).unwrap();
    let mut kept = Kept::default();
    kept.check(&experiment);
    let running = experiment.resume("").start();
    let before = kept.trials();
    wait_for("more trials", || {
        (experiment.trials().len() > before + 5).then_some(())
    });
    running.signal(libc::SIGINT);
    running.wait().status(130);
    kept.check(&experiment);
    fs::remove_file(experiment.plan()).unwrap();
    let ended = experiment.resume("").run();
    assert!(
        ended.stderr.contains("continuing with the recorded plan"),
        "{}",
        ended.stderr
    );
    experiment.is_complete(ended);
    kept.check(&experiment);
    experiment.blocks_are_complete(BLOCKS);
}

#[test]
fn another_machine_is_noticed() {
    let experiment = stopped();
    let file = experiment.records().join("host.json");
    let mut host = experiment.document("host.json");
    let kernel = host["kernel"].as_str().unwrap().to_string();
    host["kernel"] = "9.8.7".into();
    fs::write(&file, host.to_string()).unwrap();
    let is = format!("kernel was '9.8.7' and is '{kernel}'");
    is_refused(
        &experiment,
        "",
        1,
        &[
            "has changed since the campaign began",
            &is,
            "start a new campaign",
        ],
    );
    host["kernel"] = kernel.into();
    fs::write(&file, host.to_string()).unwrap();
    experiment.is_complete(experiment.resume("").run());
}

#[test]
fn a_simulation_goes_on_as_a_simulation() {
    let experiment = stopped();
    linerate(["run", "--resume", experiment.records().to_str().unwrap()])
        .run()
        .fails(2, &["a simulated campaign is resumed with its --simulate"]);
    let plan = experiment.plan();
    linerate(["run", "--simulate", "nothing", plan.to_str().unwrap()])
        .run()
        .fails(2, &["--simulate", "nothing"]);
}

#[test]
fn two_processes_do_not_write_one_campaign() {
    let experiment = Experiment::new(&crossed("blocks = 10_000"), "--simulate ok");
    let running = experiment.run("").start();
    wait_for("the campaign", || {
        (experiment.trials().len() > 2).then_some(())
    });
    experiment.resume("").run().fails(
        1,
        &[
            "being written by another linerate",
            "wait for it, or end it",
        ],
    );
    experiment
        .run("")
        .run()
        .fails(1, &["not empty", "new folder"]);
    running.signal(libc::SIGINT);
    running.wait().status(130);
    Kept::default().check(&experiment);
}
