//! The machine against hosts that are simulated: well-behaved ones by example, all others by property.

mod properties;
mod simulator;

use super::*;
use simulator::{Command, Lab, design, host, ids, step};

const S: u64 = 1_000_000_000;

fn waited(command: &str, seconds: u64) -> Step {
    step(
        command,
        Mode::Waited {
            limit_ns: seconds * S,
        },
    )
}

#[test]
fn phases_begin_when_all_hosts_are_ready_and_steps_follow_each_other() {
    let design = design(
        vec![host("a", [2, 1, 1, 1]), host("b", [1, 2, 0, 1])],
        Rules::default(),
    );
    let mut lab = Lab::new(design, |id| Command::takes((1 + id.host as u64) * S));
    let seen = lab.run();
    let order: Vec<String> = seen
        .starts
        .iter()
        .map(|(ns, id)| format!("{}{}@{}", id.phase.name(), id.host, ns / S))
        .collect();
    let expected =
        "set-up0@0 set-up1@0 set-up0@1 run0@2 run1@2 run1@4 collect0@6 reset0@7 reset1@7";
    assert_eq!(order.join(" "), expected);
    assert_eq!(seen.verdicts.len(), 1);
    assert!(
        seen.verdicts[0]
            .iter()
            .all(|v| v.is_whole() && v.undone == Undone::All)
    );
}

#[test]
fn a_sleep_as_long_as_its_limit_has_not_failed() {
    let mut one = host("a", [0, 1, 0, 0]);
    one.phases[1][0] = waited("sleep 30", 30);
    let mut lab = Lab::new(design(vec![one.clone()], Rules::default()), |_| {
        Command::takes(30 * S + S / 2)
    });
    let seen = lab.run();
    assert_eq!(seen.reports[0].end.outcome, Outcome::Ended(Status::Exit(0)));
    let mut lab = Lab::new(design(vec![one], Rules::default()), |_| {
        Command::takes(3000 * S).saying("so far")
    });
    let seen = lab.run();
    let report = &seen.reports[0];
    assert_eq!(
        (report.end.outcome, report.failed, report.end.ended_ns / S),
        (Outcome::TimedOut, true, 32)
    );
    assert_eq!(report.end.output.bytes(), b"so far");
}

#[test]
fn a_timeout_ends_a_step_at_its_time_and_is_no_failure() {
    let mut one = host("a", [0, 2, 0, 0]);
    one.phases[1][0] = step("pkt-gen", Mode::Timed { limit_ns: 10 * S });
    let mut lab = Lab::new(design(vec![one], Rules::default()), |id| match id.step {
        0 => Command::takes(u64::MAX).saying("14880952 pps"),
        _ => Command::takes(S),
    });
    let seen = lab.run();
    assert_eq!(
        (seen.reports[0].end.outcome, seen.reports[0].failed),
        (Outcome::TimedOut, false)
    );
    assert_eq!(seen.reports[0].end.output.bytes(), b"14880952 pps");
    assert_eq!(seen.starts[1].0, 10 * S);
    assert!(seen.verdicts[0][0].is_whole());
}

#[test]
fn limits_count_from_when_the_command_begins() {
    let mut timed = Supervision::new(Some(10 * S), 3 * S);
    assert_eq!((timed.deadline_ns(), timed.due(60 * S)), (None, None));
    timed.begin(63 * S);
    assert_eq!(timed.deadline_ns(), Some(73 * S));
    assert_eq!(timed.due(72 * S), None);
    assert_eq!(
        (timed.due(73 * S), timed.due(73 * S)),
        (Some(Due::Send(Signal::Terminate)), None)
    );
    // The limit does not begin again after a request to end.
    timed.begin(74 * S);
    assert_eq!(timed.deadline_ns(), Some(76 * S));
    assert_eq!(timed.outcome(Some(Status::Signal(15))), Outcome::TimedOut);
    assert_eq!(
        (timed.due(76 * S), timed.due(79 * S)),
        (Some(Due::Send(Signal::Kill)), Some(Due::GiveUp))
    );
    assert_eq!((timed.due(u64::MAX), timed.deadline_ns()), (None, None));
}

#[test]
fn the_first_reason_to_end_a_command_is_told() {
    let mut asked = Supervision::new(Some(10 * S), S);
    asked.begin(0);
    assert!(asked.stop(Cause::Interrupt, Signal::Interrupt, 5 * S));
    assert!(!asked.stop(Cause::Trial, Signal::Terminate, 5 * S));
    assert_eq!(
        (asked.due(6 * S), asked.due(7 * S)),
        (
            Some(Due::Send(Signal::Terminate)),
            Some(Due::Send(Signal::Kill))
        )
    );
    assert_eq!(asked.outcome(None), Outcome::Interrupted);
}

#[test]
fn what_runs_in_the_background_ends_with_the_trial() {
    let mut one = host("a", [0, 2, 1, 1]);
    one.phases[1][0] = step("tcpdump", Mode::Background { limit_ns: None });
    let background = |id: StepId| id.phase == Phase::Run && id.step == 0;
    let mut lab = Lab::new(design(vec![one], Rules::default()), move |id| {
        Command::takes(if background(id) { u64::MAX } else { S })
    });
    let seen = lab.run();
    assert_eq!(
        seen.starts.iter().map(|s| s.0 / S).collect::<Vec<_>>(),
        [0, 0, 1, 2]
    );
    let last = seen.reports.last().unwrap();
    assert!(background(last.step) && last.end.ended_ns == 3 * S);
    assert_eq!((last.end.outcome, last.failed), (Outcome::Stopped, false));
}

#[test]
fn a_phase_that_is_held_lasts_until_there_is_enough_of_it() {
    let mut hosts = vec![
        host("receiver", [1, 0, 0, 0]),
        host("generator", [0, 1, 0, 0]),
    ];
    hosts[0].phases[0][0] = step("count", Mode::Background { limit_ns: None });
    let mut design = design(
        hosts,
        Rules {
            held: true,
            ..Rules::default()
        },
    );
    design.phases = [true, true, true, false];
    let mut machine = Machine::new(design);
    let [receiver, generator] = [(Phase::SetUp, 0), (Phase::Run, 1)].map(|(phase, host)| StepId {
        trial: 0,
        phase,
        host,
        step: 0,
    });
    let ended = |id| {
        let (outcome, output) = (Outcome::Stopped, Output::new(0));
        Event::Ended(
            id,
            End {
                outcome,
                may_still_run: false,
                began_ns: 0,
                ended_ns: 0,
                output,
            },
        )
    };
    let mut took = |event| {
        let done = machine
            .handle(event)
            .into_iter()
            .filter(|action| !matches!(action, Action::Report(_)));
        done.collect::<Vec<_>>()
    };
    let phase = |phase| Action::Phase { trial: 0, phase };
    assert_eq!(
        took(Event::Go),
        [phase(Phase::SetUp), Action::Start(receiver)]
    );
    assert_eq!(took(Event::Go), []);
    assert_eq!(
        took(Event::Enough),
        [phase(Phase::Run), Action::Start(generator)]
    );
    // The generator is waited for, and the receiver still counts.
    assert_eq!(took(Event::Enough), [Action::End(generator, Cause::Trial)]);
    assert_eq!(took(Event::Enough), []);
    assert_eq!(took(ended(generator)), [phase(Phase::Collect)]);
    assert_eq!(took(Event::Enough), [Action::End(receiver, Cause::Trial)]);
    assert!(matches!(
        took(ended(receiver))[..],
        [Action::Trial { .. }, Action::Over]
    ));
}

#[test]
fn a_step_that_fails_is_noted_and_the_next_one_follows() {
    let hosts = vec![host("a", [3, 1, 1, 1]), host("b", [1, 1, 1, 1])];
    let fails = |id: StepId| id.phase == Phase::SetUp && id.host == 0 && id.step == 1;
    let commands = move |id| {
        if fails(id) {
            Command::takes(S).exits(1)
        } else {
            Command::takes(S)
        }
    };
    let seen = Lab::new(design(hosts, Rules::default()), commands).run();
    assert_eq!(seen.starts.len(), 6 + 4);
    assert_eq!(
        seen.verdicts[0]
            .iter()
            .map(|v| (v.failed_steps, v.cut_short))
            .collect::<Vec<_>>(),
        [(1, false), (0, false)]
    );
}

#[test]
fn an_interrupt_ends_what_runs_and_resets() {
    let mut one = host("a", [1, 3, 1, 1]);
    one.phases[1][0] = step("load", Mode::Background { limit_ns: None });
    let mut design = design(vec![one], Rules::default());
    design.trials = 5;
    let mut lab = Lab::new(design, |id| {
        Command::takes(if id.phase == Phase::Run { 25 * S } else { S })
    });
    lab.interrupt_at(10 * S);
    let seen = lab.run();
    assert_eq!(ids(&seen, 0), ["set-up/0", "run/0", "run/1", "reset/0"]);
    let interrupted = seen
        .reports
        .iter()
        .filter(|r| r.end.outcome == Outcome::Interrupted && r.end.ended_ns == 10 * S);
    assert_eq!(interrupted.count(), 2);
    assert_eq!(seen.verdicts.len(), 1);
    assert_eq!(
        (seen.verdicts[0][0].undone, seen.verdicts[0][0].cut_short),
        (Undone::All, true)
    );
}

#[test]
fn a_lost_host_ends_the_trial_and_then_the_campaign() {
    let mut design = design(
        vec![host("a", [1, 2, 1, 1]), host("b", [1, 2, 1, 1])],
        Rules::default(),
    );
    design.trials = 4;
    // Host 0 goes down in the run of each trial, and does not come back.
    let mut lab = Lab::new(design, |id| match (id.host, id.phase) {
        (0, Phase::Run | Phase::Reset) => Command::takes(S / 2).loses_host(),
        _ => Command::takes(S),
    });
    let seen = lab.run();
    assert_eq!((seen.given_up, seen.verdicts.len()), (vec![0], 2));
    let of = |trial: usize, host: usize| seen.verdicts[trial][host];
    assert_eq!((of(0, 0).lost, of(0, 0).undone), (true, Undone::No));
    assert_eq!((of(0, 1).cut_short, of(0, 1).undone), (true, Undone::All));
}

#[test]
fn a_command_that_cannot_be_killed_holds_nothing_up() {
    let mut lab = Lab::new(
        design(vec![host("a", [1, 1, 0, 1])], Rules::default()),
        |id| match id.phase {
            Phase::Run => Command::takes(u64::MAX).cannot_be_killed(),
            _ => Command::takes(S),
        },
    );
    let seen = lab.run();
    let run = seen
        .reports
        .iter()
        .find(|r| r.step.phase == Phase::Run)
        .unwrap();
    // The limit, its margin, and twice the grace.
    assert_eq!(
        (run.end.outcome, run.end.may_still_run, run.end.ended_ns / S),
        (Outcome::TimedOut, true, 1 + 30 + 2 + 3 + 3)
    );
    assert_eq!(ids(&seen, 0), ["set-up/0", "run/0", "reset/0"]);
    assert!(seen.verdicts[0][0].lost);
}

#[test]
fn nothing_to_do_is_done_at_once() {
    let over = |design| Lab::new(design, |_| Command::takes(S)).run();
    assert_eq!(over(design(Vec::new(), Rules::default())).verdicts.len(), 0);
    let mut empty = design(vec![host("a", [0; 4])], Rules::default());
    empty.trials = 3;
    assert_eq!(over(empty.clone()).verdicts.len(), 3);
    empty.trials = 0;
    assert_eq!(over(empty).verdicts.len(), 0);
}

#[test]
fn phases_that_are_not_wanted_are_left_out() {
    let mut design = design(vec![host("a", [1, 1, 1, 1])], Rules::default());
    design.phases = [true, false, true, false];
    let seen = Lab::new(design, |_| Command::takes(S)).run();
    assert_eq!(ids(&seen, 0), ["set-up/0", "collect/0"]);
    assert_eq!(seen.verdicts[0][0].undone, Undone::NotNeeded);
}
