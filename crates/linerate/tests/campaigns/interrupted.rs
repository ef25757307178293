//! Ctrl-C: in every phase the host is restored, the trials are kept, and `--resume` continues.

use super::experiment::{Experiment, Kept, Random};
use super::killed;
use super::order::crossed;
use super::outside::Outside;
use crate::common::{Running, own_machine, wait_for};
use std::time::Duration;

/// Interrupts the experiment at these moments, one after the other, and resumes it each time.
#[track_caller]
fn interrupt(experiment: &Experiment, moments: impl IntoIterator<Item = Duration>) {
    let mut kept = Kept::default();
    for moment in moments {
        let running = experiment.go_on().start();
        std::thread::sleep(moment);
        if interrupted(experiment, &mut kept, running) {
            continue;
        }
        experiment.forget();
        kept = Kept::default();
    }
    experiment.is_complete(experiment.go_on().run());
    kept.check(experiment);
}

/// Sends an interrupt. Returns false if the campaign had ended before.
#[track_caller]
fn interrupted(experiment: &Experiment, kept: &mut Kept, mut running: Running) -> bool {
    let early = !running.handles(libc::SIGINT);
    if running.runs() {
        running.signal(libc::SIGINT);
    }
    let ended = running.wait().no_panic();
    kept.check(experiment);
    match ended.status.code() {
        Some(0) => {
            experiment.is_complete(ended);
            return false;
        }
        // Before the first trial of this run, there is nothing new to be said.
        Some(130)
            if ended
                .stderr
                .contains("to resume: linerate run --resume records") =>
        {
            assert_eq!(
                experiment.document("summary.json")["stopped"],
                "interrupted"
            );
            assert!(ended.stdout.contains("records  records"), "{ended:?}");
        }
        Some(130) => {}
        // At first the program does not handle the signal, and ends by it.
        code => assert!(code.is_none() && early, "{ended:?}"),
    }
    true
}

#[test]
fn an_interrupted_simulation_goes_on_where_it_was() {
    const BLOCKS: &str = "blocks = 24";
    let experiment = Experiment::new(&crossed(BLOCKS), "--simulate ok");
    let (mut kept, mut random) = (Kept::default(), Random::new(4));
    for _ in 0..3 {
        let trials = experiment.recorded()
            + 1
            + random.below(Duration::from_millis(20)).as_millis() as usize;
        let running = experiment.go_on().start();
        wait_for("more trials", || {
            (experiment.recorded() >= trials).then_some(())
        });
        assert!(
            interrupted(&experiment, &mut kept, running),
            "it ended before it could be interrupted"
        );
    }
    experiment.is_complete(experiment.go_on().run());
    kept.check(&experiment);
    experiment.blocks_are_complete(24);
    let whole = Experiment::new(&crossed(BLOCKS), "--simulate ok");
    whole.is_complete(whole.run("--seed 7").run());
    assert_eq!(whole.order(), experiment.order());
}

/// In each phase: the labs are built, flows are learned, the batch size is chosen, trials run, labs take turns, all is restored.
#[test]
#[ignore = "needs root: run by make test as root"]
fn ctrl_c_in_each_phase_leaves_the_host_as_it_was() {
    ctrl_c_in_each_phase(
        &killed::turns(SETTING),
        &[5, 80, 250, 600],
        &[100, 700, 300],
    );
}

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_ctrl_c_in_each_phase_of_rule_sets_leaves_the_host_as_it_was() {
    for plan in [killed::RULES, &killed::turns(SETTING)] {
        let first = [5, 30, 80, 150, 250, 400, 600];
        ctrl_c_in_each_phase(plan, &first, &[100, 300, 700, 900, 1100, 500]);
    }
}

/// The setting that these campaigns change.
const SETTING: &str = "vm/vfs_cache_pressure";

/// At so many milliseconds: the first ones before a trial has been recorded, when nothing is left to resume. Then all the rest.
fn ctrl_c_in_each_phase(plan: &str, first: &[u64], later: &[u64]) {
    own_machine();
    let before = Outside::now(&[SETTING]);
    let experiment = Experiment::new(plan, "--allow-host-changes");
    for after_ms in first {
        interrupt_once(&experiment, *after_ms, &before);
    }
    interrupt(
        &experiment,
        later.iter().copied().map(Duration::from_millis),
    );
    before.is_as_it_was(&experiment, "in the end");
    experiment.blocks_are_complete(killed::BLOCKS);
}

#[track_caller]
fn interrupt_once(experiment: &Experiment, after_ms: u64, before: &Outside) {
    let mut running = experiment.go_on().start();
    std::thread::sleep(Duration::from_millis(after_ms));
    let early = !running.handles(libc::SIGINT);
    if running.runs() {
        running.signal(libc::SIGINT);
    }
    let ended = running.wait().no_panic();
    assert!(
        ended.took < Duration::from_secs(60),
        "{after_ms} ms: {ended:?}"
    );
    let by_signal = ended.status.code().is_none() && early;
    assert!(
        by_signal || matches!(ended.status.code(), Some(0 | 130)),
        "{after_ms} ms: {ended:?}"
    );
    before.is_as_it_was(experiment, &format!("after Ctrl-C at {after_ms} ms"));
}
