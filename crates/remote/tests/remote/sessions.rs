//! More sessions than sshd takes over one connection.

use crate::campaign::{Seen, campaign, design, host, waited};
use crate::sshd::{SshLab, wait_until};
use linerate_hosts::phases::{Design, Mode, Outcome, Phase, Status, Step, Undone};
use linerate_remote::{Connection, ExecutionTarget, Notice, Order, Session, session::Kind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A run with this number of steps in the background, and one in front of them.
fn crowded(number: usize) -> Design {
    let background = Step {
        command: "sleep 604".into(),
        mode: Mode::Background { limit_ns: None },
    };
    let mut one = host("r1", waited("sleep 0.1; echo run", 10));
    one.phases[1].splice(0..0, std::iter::repeat_n(background, number));
    design(vec![one])
}

fn conducted(lab: &SshLab, number: usize) -> Seen {
    let seen = campaign(lab, crowded(number), &AtomicBool::new(false), &mut |_| {});
    wait_until("the end of the sessions", Duration::from_secs(30), || {
        lab.hosts[0].running("sleep 604") == 0 && lab.hosts[0].running("sshd: root@") == 0
    });
    seen
}

#[track_caller]
fn all_is_well(seen: &Seen) {
    assert!(
        seen.complaints.is_empty() && seen.troubles.is_empty(),
        "{seen:#?}"
    );
    let verdict = seen.verdicts[0][0];
    assert!(
        verdict.is_whole() && verdict.undone == Undone::All,
        "{seen:#?}"
    );
    assert_eq!(seen.output(0, Phase::Reset), ["reset\n"]);
    assert_eq!(seen.started.len(), 1);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn forty_steps_in_the_background_leave_room_for_reset() {
    all_is_well(&conducted(&SshLab::new(&["r1"]).patient(), 40));
}

#[test]
#[ignore = "needs root and openssh-server"]
fn hosts_that_take_fewer_sessions_are_found_out() {
    all_is_well(&conducted(
        &SshLab::with_settings(&["r1"], "MaxSessions 3").patient(),
        7,
    ));
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_that_takes_one_session_says_so_in_few_words() {
    let seen = conducted(
        &SshLab::with_settings(&["r1"], "MaxSessions 1").patient(),
        1,
    );
    let refused = Outcome::Ended(Status::Exit(126));
    assert!(
        !seen.reports.is_empty() && seen.reports.iter().all(|r| r.end.outcome == refused),
        "{seen:#?}"
    );
    let says = "r1: the host takes no more sessions; raise MaxSessions in its sshd_config";
    assert!(
        seen.troubles
            .iter()
            .all(|trouble| trouble.starts_with(says)),
        "{:?}",
        seen.troubles
    );
}

/// Where no further connection can be made, reset has the place that was left for it.
#[test]
#[ignore = "needs root and openssh-server"]
fn reset_is_run_where_no_further_connection_can_be_made() {
    let lab = SshLab::new(&["r1"]).patient();
    let mut design = crowded(0);
    let background = Step {
        command: "sleep 604".into(),
        mode: Mode::Background { limit_ns: None },
    };
    design.hosts[0].phases[2].splice(0..0, std::iter::repeat_n(background, 12));
    let seen = campaign(&lab, design, &AtomicBool::new(false), &mut |notice| {
        if let Notice::Started(_) = notice {
            lab.hosts[0].stop_listening();
        }
    });
    let refused = seen
        .reports
        .iter()
        .filter(|r| r.end.outcome == Outcome::Ended(Status::Exit(126)))
        .count();
    assert!((4..=5).contains(&refused), "{seen:#?}");
    assert!(
        seen.troubles[0].contains("of a further connection: the host refuses connections"),
        "{:?}",
        seen.troubles
    );
    assert_eq!(seen.output(0, Phase::Reset), ["reset\n"], "{seen:#?}");
    assert_eq!(seen.verdicts[0][0].undone, Undone::All);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn commands_beside_many_sessions_find_room_and_all_lines_are_one_connection() {
    let lab = SshLab::new(&["r1"]).patient();
    lab.enter(|| {
        let place = ExecutionTarget::from(Connection::open(&lab.target("r1"), None).unwrap());
        let sessions: Vec<Session> = (0..12)
            .map(|_| {
                let order = Order::new("sleep 604").within(Duration::MAX);
                Session::start(&place, Kind::Watched, &order).unwrap()
            })
            .collect();
        assert!(place.run(&Order::new("true"), None).unwrap().is_success());
        assert_eq!(lab.hosts[0].running("sshd: root@"), 2);
        drop(sessions);
        assert!(place.lost().is_none());
        drop(place);
    });
    wait_until("the end of all lines", Duration::from_secs(30), || {
        lab.hosts[0].running("sshd: root@") == 0
    });
}
