//! Ctrl-C and kill -9 of linerate at bad moments: in the midst of a reboot, of putting back, and of a load.

use super::bsd::{Bsd, PLAN};
use crate::common::{Running, wait_for};

/// The router has its own settings, no change is left to undo, and no program sends or counts.
#[track_caller]
fn is_as_it_was(bsd: &Bsd) {
    wait_for("loads to end", || (bsd.loads() == 0).then_some(()));
    assert_eq!(bsd.read("router", "root/boot/loader.conf.local").trim(), "");
    let masks = bsd.read("router", "sysctl");
    assert_eq!(
        masks
            .lines()
            .filter(|line| line.ends_with("mask=511"))
            .count(),
        1,
        "{masks}"
    );
    for journal in std::fs::read_dir(bsd.scratch.file("state/linerate/hosts"))
        .unwrap()
        .flatten()
    {
        let left = std::fs::read_to_string(journal.path()).unwrap();
        assert!(!left.contains("argv"), "{left}");
    }
}

fn rebooting() -> (Bsd, Running) {
    let bsd = Bsd::new();
    bsd.reboots(true);
    let plan = PLAN
        .replace(
            "[variants.mask]",
            "[variants.queues]\nboot = { \"hw.igb.num_queues\" = 1 }\n\n[variants.mask]",
        )
        .replace(
            "blocks = 2",
            "blocks = 1\norder = \"sequential\"\nreboot = \"when-needed\"",
        );
    let running = bsd.program(&plan, &[]).start();
    // By then, the router does it by itself.
    wait_for("a reboot", || {
        bsd.state("router")
            .join("down.going")
            .exists()
            .then_some(())
    });
    assert_ne!(bsd.read("router", "root/boot/loader.conf.local").trim(), "");
    (bsd, running)
}

#[test]
#[ignore = "needs root and openssh-server"]
fn an_interrupt_in_the_midst_of_a_reboot_puts_back_by_another() {
    let (bsd, running) = rebooting();
    running.signal(libc::SIGINT);
    let ended = running.wait().no_panic().status(130);
    assert!(
        ended
            .stderr
            .contains("to resume: linerate run --resume records"),
        "{}",
        ended.stderr
    );
    assert_eq!(bsd.read("router", "boots").trim(), "2", "{}", ended.stderr);
    is_as_it_was(&bsd);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn one_that_was_killed_in_the_midst_of_a_reboot_is_made_good_by_the_next() {
    let (bsd, running) = rebooting();
    running.signal(libc::SIGKILL);
    drop(running);
    let router = bsd
        .ssh
        .hosts
        .iter()
        .find(|host| host.name == "router")
        .unwrap();
    let sshd = "/usr/sbin/sshd -D";
    wait_for("its sshd to go", || {
        bsd.state("router").join("down.gone").exists().then_some(())
    });
    wait_for("its sshd", || (router.running(sshd) > 0).then_some(()));
    router.wait_listening();
    let ended = bsd.resume().ok();
    assert!(
        ended
            .stderr
            .contains("restored settings that an interrupted run had changed"),
        "{}",
        ended.stderr
    );
    let trials = bsd.trials();
    assert!(
        trials.len() == 3 && trials.iter().all(|t| t["audit"]["valid"] == true),
        "{trials:#?}"
    );
    is_as_it_was(&bsd);
}

/// A campaign in the midst of undoing its first variant. The undoing ends once [`go_on`] has made its file.
fn putting_back() -> (Bsd, Running) {
    let bsd = Bsd::new();
    let undone = bsd.state("router").join("undone");
    let go = bsd.state("router").join("go");
    let undo = format!(
        "echo begun >>{0}; until [ -e {1} ]; do sleep 0.05; done; echo done >>{0}",
        undone.display(),
        go.display()
    );
    // The one that is changed comes first.
    let default = PLAN.find("[variants.default]").unwrap()..PLAN.find("[variants.mask]").unwrap();
    let mut plan = PLAN.to_string();
    plan.replace_range(default.clone(), "");
    let commands = format!(
        "commands = [{{ run = \"true\", undo = \"{undo}\" }}]\n\n{}[compare]",
        &PLAN[default]
    );
    let plan = plan
        .replace("[compare]", &commands)
        .replace("blocks = 2", "blocks = 1\norder = \"sequential\"");
    let running = bsd.program(&plan, &[]).start();
    wait_for("putting back", || {
        (bsd.read("router", "undone") == "begun\n").then_some(())
    });
    // A thread of linerate's writes the record meanwhile.
    wait_for("the record of the trial", || {
        (bsd.trials().len() == 1).then_some(())
    });
    (bsd, running)
}

fn go_on(bsd: &Bsd) {
    bsd.set("router", "go", "");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn an_interrupt_in_the_midst_of_putting_back_lets_it_finish() {
    let (bsd, running) = putting_back();
    running.signal(libc::SIGINT);
    go_on(&bsd);
    let ended = running.wait().no_panic().status(130);
    assert_eq!(
        bsd.read("router", "undone"),
        "begun\ndone\n",
        "once: {}",
        ended.stderr
    );
    is_as_it_was(&bsd);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn one_that_was_killed_in_the_midst_of_putting_back_is_made_good_by_the_next() {
    let (bsd, running) = putting_back();
    running.signal(libc::SIGKILL);
    drop(running);
    go_on(&bsd);
    let ended = bsd.resume().ok();
    assert!(
        ended
            .stderr
            .contains("restored settings that an interrupted run had changed"),
        "{}",
        ended.stderr
    );
    let undone = bsd.read("router", "undone");
    // The killed run began it, and the next run did it again: whether the killed one finished it is unknown.
    assert_eq!(undone.matches("begun").count(), 2, "{undone}");
    assert!(undone.ends_with("done\n"), "{undone}");
    assert_eq!(bsd.trials().len(), 2);
    is_as_it_was(&bsd);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn loads_of_one_that_was_killed_are_gone_before_those_of_the_next() {
    let bsd = Bsd::new();
    let running = bsd
        .program(&PLAN.replace("\"200 ms\"", "\"20 s\""), &[])
        .start();
    wait_for("loads", || {
        (!bsd.wire("offered.tester.igb1").is_empty()).then_some(())
    });
    running.signal(libc::SIGKILL);
    drop(running);
    std::fs::remove_dir_all(bsd.records()).unwrap();
    let ended = bsd.run(&PLAN.replace("blocks = 2", "blocks = 1"), &[]);
    let trials = bsd.trials();
    // pkt-gen says so if another one has the interface.
    assert!(
        trials.len() == 2 && trials.iter().all(|t| t["audit"]["valid"] == true),
        "{}{trials:#?}",
        ended.stderr
    );
    is_as_it_was(&bsd);
}
