//! Ctrl-C: in every phase the host is left as it was, what was measured is kept, and `--resume` goes on.

use super::experiment::{Experiment, Kept, Random};
use super::order::crossed;
use super::outside::Outside;
use super::{killed, outside};
use std::time::Duration;

/// Interrupts the experiment at these moments, one after the other, and lets it go on each time.
#[track_caller]
fn interrupt(experiment: &Experiment, moments: impl IntoIterator<Item = Duration>) -> usize {
    let (mut kept, mut interrupted) = (Kept::default(), 0);
    for moment in moments {
        let mut running = experiment.go_on().start();
        std::thread::sleep(moment);
        if running.runs() {
            running.signal(libc::SIGINT);
        }
        let ended = running.wait().no_panic();
        kept.check(experiment);
        match ended.status.code() {
            Some(0) => {
                experiment.is_complete(ended);
                experiment.forget();
                kept = Kept::default();
            }
            Some(130) => {
                interrupted += 1;
                // Before the first trial of this run, there is nothing new to be said.
                if ended.stderr.contains("linerate run --resume records goes on") {
                    assert_eq!(experiment.document("summary.json")["stopped"], "interrupted");
                    assert!(ended.stdout.contains("Records: records"), "{ended:?}");
                }
            }
            // Within the first milliseconds the program has not begun to listen, and ends by the signal itself.
            code => assert!(code.is_none() && moment < Duration::from_millis(100), "{moment:?}: {ended:?}"),
        }
    }
    experiment.is_complete(experiment.go_on().run());
    kept.check(experiment);
    interrupted
}

#[test]
fn an_interrupted_simulation_goes_on_where_it_was() {
    let experiment = Experiment::new(&crossed("blocks = 12"), "--simulate ok");
    let mut random = Random::new(4);
    let interrupted = interrupt(&experiment, (0..12).map(|_| random.below(Duration::from_millis(1200))));
    assert!(interrupted >= 3, "{interrupted}");
    experiment.blocks_are_complete(12);
    let whole = Experiment::new(&crossed("blocks = 12"), "--simulate ok");
    whole.is_complete(whole.run("--seed 7").run());
    assert_eq!(whole.order(), experiment.order());
}

/// In each phase: the labs are built, flows are learned, the batch size is chosen, trials run, labs take turns, all is put back.
#[test]
#[ignore = "needs root: run by make test as root"]
fn ctrl_c_in_each_phase_leaves_the_host_as_it_was() {
    for plan in [killed::RULES, killed::TURNS] {
        let before = Outside::now();
        let experiment = Experiment::new(plan, "--allow-host-changes");
        // The first ones before a trial has been recorded: nothing is left to go on with. Then all the rest.
        for after_ms in [5, 30, 80, 150, 250, 400, 600] {
            interrupt_once(&experiment, after_ms, &before);
        }
        let moments = [100, 300, 700, 900, 1100, 500].map(Duration::from_millis);
        interrupt(&experiment, moments);
        before.is_as_it_was(&experiment, "in the end");
        experiment.blocks_are_complete(killed::BLOCKS);
    }
}

#[track_caller]
fn interrupt_once(experiment: &Experiment, after_ms: u64, before: &outside::Outside) {
    let mut running = experiment.go_on().start();
    std::thread::sleep(Duration::from_millis(after_ms));
    if running.runs() {
        running.signal(libc::SIGINT);
    }
    let ended = running.wait().no_panic();
    assert!(ended.took < Duration::from_secs(20), "{after_ms} ms: {ended:?}");
    let by_signal = ended.status.code().is_none() && after_ms < 100;
    assert!(by_signal || matches!(ended.status.code(), Some(0 | 130)), "{after_ms} ms: {ended:?}");
    before.is_as_it_was(experiment, &format!("after Ctrl-C at {after_ms} ms"));
}
