//! Campaigns on hosts that break down: nothing hangs, no load is left, a host that returns is reset, and the message names a
//! remedy.

use crate::campaign::{Seen, campaign, design, host, waited};
use crate::sshd::{SILENCE, SshHost, SshLab, wait_until};
use linerate_hosts::phases::{Mode, Outcome, Phase, Step, Undone};
use linerate_remote::{Driver, ExecutionTarget, Notice, Target};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time that a load may go on without linerate. By itself, the load would take a minute or more; on a quiet machine it ends [`SOON`].
const LOAD: Duration = Duration::from_secs(30);
/// Longest time for which a load continues after linerate has ended, on a quiet machine.
const SOON: Duration = Duration::from_secs(5);

/// A campaign on two hosts whose run would take a minute; something happens to the first when it has begun, and it is lost.
fn broken(lab: &SshLab, what: &mut (dyn FnMut() + Send)) -> Seen {
    broken_for_a_while(lab, what, &mut || ())
}

/// A campaign whose connection is broken for a while; `then` runs when the loss is reported.
fn broken_for_a_while(
    lab: &SshLab,
    what: &mut (dyn FnMut() + Send),
    then: &mut (dyn FnMut() + Send),
) -> Seen {
    let design = design(vec![
        host("r1", waited("sleep 601", 60)),
        host("r2", waited("sleep 602", 60)),
    ]);
    let seen = campaign(
        lab,
        design,
        &AtomicBool::new(false),
        &mut |notice| match notice {
            Notice::Started(_) => what(),
            Notice::Trouble { .. } => then(),
            _ => {}
        },
    );
    assert!(seen.took < Duration::from_secs(55), "{seen:#?}");
    // The other host was not harmed, and is as it was.
    let [first, other] = seen.verdicts[0][..] else {
        panic!("{seen:#?}")
    };
    assert!(
        first.lost && !other.lost && other.cut_short && other.undone == Undone::All,
        "{seen:#?}"
    );
    assert_eq!(seen.output(1, Phase::Reset), ["reset\n"]);
    let outcome = |host: usize| {
        seen.reports
            .iter()
            .find(|r| r.step.host == host && r.step.phase == Phase::Run)
            .unwrap()
            .end
            .outcome
    };
    assert_eq!((outcome(0), outcome(1)), (Outcome::Lost, Outcome::Stopped));
    let trouble = &seen.troubles[0];
    assert!(
        trouble.starts_with("r1: ") && trouble.contains("[run of trial 1, step 1: sleep 601]"),
        "{trouble}"
    );
    seen
}

#[track_caller]
fn no_load(host: &SshHost) {
    wait_until("the end of the load", LOAD, || {
        host.running("sleep 60") == 0
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn an_sshd_that_is_killed() {
    let lab = SshLab::new(&["r1", "r2"]).patient_but("r1");
    let seen = broken(&lab, &mut || {
        lab.hosts[0].signal_sshd(libc::SIGKILL);
    });
    no_load(&lab.hosts[0]);
    assert!(
        seen.troubles[0].contains("the connection was lost"),
        "{:?}",
        seen.troubles
    );
    assert!(seen.troubles[0].contains("look at its power, console and management link"));
    assert!(
        seen.troubles[1].contains("refuses connections")
            && seen.troubles[1].contains("reset of trial 1")
    );
    assert_eq!(seen.verdicts[0][0].undone, Undone::No);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn an_ssh_of_ours_that_is_killed() {
    let lab = SshLab::new(&["r1", "r2"]).patient_but("r1");
    let seen = broken(&lab, &mut || {
        let masters = processes_of(lab.client());
        let (pid, _) = masters
            .iter()
            .find(|(_, line)| line.contains("-- r1 "))
            .unwrap();
        // SAFETY: takes numbers only; the process was started by this test.
        unsafe { libc::kill(*pid, libc::SIGKILL) };
    });
    no_load(&lab.hosts[0]);
    assert!(
        seen.troubles[0].contains("was ended (signal 9)"),
        "{:?}",
        seen.troubles
    );
    // The host was connected again for its reset.
    assert_eq!(seen.verdicts[0][0].undone, Undone::All);
    assert_eq!(seen.output(0, Phase::Reset), ["reset\n"]);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_that_freezes() {
    let lab = SshLab::new(&["r1", "r2"]).patient_but("r1");
    let seen = broken(&lab, &mut || {
        lab.hosts[0].signal_sshd(libc::SIGSTOP);
    });
    // The host's sshd is still frozen.
    no_load(&lab.hosts[0]);
    assert!(
        seen.troubles[0].contains("the host has not answered"),
        "{:?}",
        seen.troubles
    );
    assert!(
        seen.troubles[1].contains("the host does not answer"),
        "{:?}",
        seen.troubles
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_link_that_is_cut_until_the_host_is_lost() {
    let lab = SshLab::new(&["r1", "r2"]).patient_but("r1");
    let mut back = || {
        no_load(&lab.hosts[0]);
        lab.hosts[0].link(true);
    };
    let seen = broken_for_a_while(&lab, &mut || lab.hosts[0].link(false), &mut back);
    assert!(
        seen.troubles[0].contains("the host has not answered"),
        "{:?}",
        seen.troubles
    );
    assert_eq!(
        seen.verdicts[0][0].undone,
        Undone::All,
        "{:?}",
        seen.troubles
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_connection_that_stands_still_for_a_moment() {
    // A link that is cut would not do: TCP asks again at ever longer intervals, so that its connection goes on seconds after the link is
    // back, and on a busy machine after ssh has given it up.
    stands_still_for_a_moment(LOAD, |lab, goes| {
        let masters = processes_of(lab.client());
        let (pid, _) = masters
            .iter()
            .find(|(_, line)| line.contains("-- r1 "))
            .unwrap();
        // SAFETY: takes numbers only; the process was started by this test.
        unsafe { libc::kill(*pid, if goes { libc::SIGCONT } else { libc::SIGSTOP }) };
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn figures_a_link_that_is_cut_for_a_moment() {
    stands_still_for_a_moment(SOON, |lab, goes| lab.hosts[0].link(goes));
}

/// Holds a connection up until the load has ended, which takes so long at most.
fn stands_still_for_a_moment(within: Duration, set: fn(&SshLab, bool)) {
    let lab = SshLab::new(&["r1"]);
    let design = design(vec![host("r1", waited("sleep 601", 60))]);
    let seen = campaign(&lab, design, &AtomicBool::new(false), &mut |notice| {
        if let Notice::Started(_) = notice {
            // Shells on the way to the load have it in their arguments, and end.
            let begun = || lab.hosts[0].runs("sleep 601");
            wait_until("the load", LOAD, begun);
            set(&lab, false);
            let took = wait_until("the end of the load", within, || {
                lab.hosts[0].running("sleep 601") == 0
            });
            println!("without a connection the load went on for {took:?}");
            set(&lab, true);
        }
    });
    // The connection lives on.
    let verdict = seen.verdicts[0][0];
    assert!(
        !verdict.lost && verdict.failed_steps == 1 && verdict.undone == Undone::All,
        "{seen:#?}"
    );
    let [trouble] = seen.troubles.as_slice() else {
        panic!("{seen:#?}")
    };
    assert!(
        trouble.starts_with("r1: the host did not hear of linerate for 3 s"),
        "{trouble}"
    );
    assert!(
        trouble.ends_with("[run of trial 1, step 1: sleep 601]"),
        "{trouble}"
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_that_comes_back_as_another() {
    let mut lab = SshLab::new(&["r1", "r2"]).patient_but("r1");
    let mut first = lab.hosts.remove(0);
    let seen = broken(&lab, &mut || first.change_key());
    assert!(
        seen.troubles[1].contains("THE KEY OF THE HOST HAS CHANGED"),
        "{:?}",
        seen.troubles
    );
    assert!(seen.troubles[1].contains("ssh-keygen -R"));
    no_load(&first);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn ctrl_c_ends_the_run_and_resets() {
    let lab = SshLab::new(&["r1", "r2"]).patient();
    let stop = AtomicBool::new(false);
    let mut design = design(vec![
        host("r1", waited("sleep 601", 60)),
        host("r2", waited("sleep 602", 60)),
    ]);
    design.trials = 5;
    let seen = campaign(&lab, design, &stop, &mut |notice| {
        if let Notice::Started(_) = notice {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert!(seen.took < Duration::from_secs(55));
    assert_eq!(seen.verdicts.len(), 1);
    assert!(
        seen.verdicts[0]
            .iter()
            .all(|v| v.cut_short && !v.lost && v.undone == Undone::All)
    );
    let interrupted = seen
        .reports
        .iter()
        .filter(|r| r.end.outcome == Outcome::Interrupted)
        .count();
    assert_eq!(interrupted, 2);
    lab.hosts.iter().for_each(no_load);
}

/// Passes the hosts to the test below, when another test starts it.
const CONFIG: &str = "LINERATE_TEST_SSH_CONFIG";

#[test]
#[ignore = "needs root and openssh-server"]
fn kill_9_leaves_no_load_and_no_ssh() {
    let lab = SshLab::new(&["r1"]);
    let mut command = lab.command(std::env::current_exe().unwrap());
    command.args([
        "--ignored",
        "--exact",
        "faults::a_campaign_in_a_process_of_its_own",
    ]);
    let mut child = command
        .env(CONFIG, lab.config())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the load", Duration::from_secs(60), || {
        lab.hosts[0].running("sleep 603") > 12
    });
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the end of the load", LOAD, || {
        lab.hosts[0].running("sleep 603") == 0
    });
    wait_until("the end of the connection", LOAD, || {
        processes_of(lab.client()).is_empty()
    });
    wait_until("the end of the session", LOAD, || {
        lab.hosts[0].running("sshd: root@") == 0
    });
}

/// Part of the test above; by itself it has nothing to do.
#[test]
#[ignore = "is started by another test"]
fn a_campaign_in_a_process_of_its_own() {
    let Some(config) = std::env::var_os(CONFIG) else {
        return;
    };
    let mut target = Target {
        silence: SILENCE,
        ..Target::new("r1")
    };
    target.config = Some(PathBuf::from(config));
    let place = ExecutionTarget::connect(&target, None).unwrap();
    let mut design = design(vec![host("r1", waited("sleep 603", 60))]);
    // More than one connection has room for.
    let mode = Mode::Background { limit_ns: None };
    let background = Step {
        command: "sleep 603".into(),
        mode,
    };
    design.hosts[0].phases[1].splice(0..0, std::iter::repeat_n(background, 12));
    Driver::new(design, vec![place], &mut |_| {})
        .run(&AtomicBool::new(false))
        .unwrap();
}

/// The processes in the client's namespace.
fn processes_of(client: &linerate_linux::net::Netns) -> Vec<(i32, String)> {
    use std::os::unix::fs::MetadataExt;
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let inside = |pid: &i32| {
        std::fs::metadata(format!("/proc/{pid}/ns/net"))
            .is_ok_and(|file| file.ino() == client.inode())
    };
    let name = |pid: i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, String::from_utf8_lossy(&line).replace('\0', " "))
    };
    pids.filter(inside)
        .map(name)
        .filter(|(_, line)| !line.is_empty())
        .collect()
}
