//! Properties that hold whatever hosts do.

use super::simulator::{Command, Lab, Seen};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn mode() -> impl Strategy<Value = Mode> {
    let limit = 1u64..40;
    prop_oneof![
        3 => limit.clone().prop_map(|s| Mode::Waited { limit_ns: s * S }),
        1 => limit.clone().prop_map(|s| Mode::Timed { limit_ns: s * S }),
        1 => prop::option::of(limit).prop_map(|s| Mode::Background { limit_ns: s.map(|s| s * S) }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(mode(), 0..4).prop_map(|all| {
        let step = |(at, mode)| Step {
            command: format!("step {at}"),
            mode,
        };
        all.into_iter().enumerate().map(step).collect()
    })
}

fn designs() -> impl Strategy<Value = Design> {
    let hosts = prop::collection::vec([steps(), steps(), steps(), steps()], 0..4);
    (0u32..4, hosts, 1u32..3, any::<bool>()).prop_map(|(trials, hosts, give_up_after, held)| {
        let host = |phases| Host {
            name: "h".into(),
            phases,
            ..Host::default()
        };
        let rules = Rules {
            give_up_after,
            held,
            ..Rules::default()
        };
        Design {
            trials,
            phases: [true; 4],
            hosts: hosts.into_iter().map(host).collect(),
            rules,
        }
    })
}

/// Behaviours for any step: one of these, by a mixture of its numbers.
fn behaviours() -> impl Strategy<Value = Vec<Command>> {
    let takes = prop_oneof![4 => 0u64..20, 1 => 20u64..60, 1 => Just(u64::MAX / S)];
    let one = (takes, 0u8..10).prop_map(|(seconds, kind)| {
        let command = Command::takes(seconds.saturating_mul(S)).saying("x");
        match kind {
            0 => command.exits(1),
            1 => command.needs_killing(),
            2 => command.cannot_be_killed(),
            3 => command.loses_host(),
            _ => command,
        }
    });
    prop::collection::vec(one, 1..12)
}

fn run(design: &Design, behaviours: Vec<Command>, interrupt: Option<u64>) -> Seen {
    let mix = move |id: StepId| {
        let n = id.trial as usize * 7 + id.phase as usize * 5 + id.host * 3 + id.step;
        behaviours[n % behaviours.len()].clone()
    };
    let mut lab = Lab::new(design.clone(), mix);
    if let Some(s) = interrupt {
        lab.interrupt_at(s * S);
    }
    lab.run()
}

/// Every step is started once and reported once; at the end nothing is left.
fn each_once(seen: &Seen) {
    let (mut started, mut reported) = (BTreeSet::new(), BTreeSet::new());
    for (_, action) in &seen.actions {
        match action {
            Action::Start(step) => assert!(started.insert(*step), "{step:?} is started twice"),
            Action::Report(report) => {
                assert!(
                    started.contains(&report.step) && reported.insert(report.step),
                    "{report:?}"
                )
            }
            Action::End(step, _) => assert!(started.contains(step), "{step:?}"),
            _ => {}
        }
    }
    assert_eq!(started, reported);
    assert_eq!(seen.actions.last().map(|a| &a.1), Some(&Action::Over));
}

/// No phase begins on any host while a step of an earlier one is waited for, and none of an earlier one is started afterwards.
fn barriers(design: &Design, seen: &Seen) {
    let background = |id: &StepId| {
        let steps = design.hosts[id.host].steps(id.phase);
        steps
            .get(id.step)
            .is_some_and(|s| matches!(s.mode, Mode::Background { .. }))
    };
    let (mut at, mut waited) = (None, BTreeSet::new());
    for (_, action) in &seen.actions {
        match action {
            Action::Phase { trial, phase } => {
                assert!(at < Some((*trial, *phase)), "{phase:?} again");
                assert!(
                    waited.is_empty(),
                    "{phase:?} begins before {waited:?} have ended"
                );
                at = Some((*trial, *phase));
            }
            Action::Start(step) => {
                assert_eq!(at, Some((step.trial, step.phase)));
                assert!(background(step) || waited.insert(*step));
                assert!(
                    waited.iter().filter(|w| w.host == step.host).count() <= 1,
                    "two at once"
                );
            }
            Action::Report(report) => {
                waited.remove(&report.step);
            }
            _ => {}
        }
    }
}

/// Each host gets its whole reset, or a verdict that it may not be restored.
fn resets(design: &Design, seen: &Seen) {
    for (trial, verdicts) in seen.verdicts.iter().enumerate() {
        for (host, verdict) in verdicts.iter().enumerate() {
            let here = |id: &&(u64, StepId)| {
                (id.1.trial as usize, id.1.host, id.1.phase) == (trial, host, Phase::Reset)
            };
            let done: Vec<usize> = seen
                .starts
                .iter()
                .filter(here)
                .map(|(_, id)| id.step)
                .collect();
            let whole = design.hosts[host].steps(Phase::Reset).len();
            assert_eq!(done, (0..done.len()).collect::<Vec<_>>());
            match verdict.undone {
                Undone::NotNeeded => panic!("reset was asked for"),
                Undone::All | Undone::WithFailures => {
                    assert_eq!(done.len(), whole, "trial {trial} host {host}")
                }
                Undone::No => assert!(verdict.lost),
            }
        }
    }
}

/// The longest that the machine may take by itself: every step at its limit, plus the time to end it.
fn bound_ns(design: &Design) -> u64 {
    let each = 40 * S + design.rules.margin_ns + 2 * design.rules.grace_ns;
    let steps: usize = design
        .hosts
        .iter()
        .flat_map(|h| &h.phases)
        .map(|p| 2 * p.len() + 1)
        .sum();
    each * (steps as u64 + 1) * u64::from(design.trials.max(1))
}

fn event(hosts: usize) -> impl Strategy<Value = Event> {
    let id = (0u32..3, 0usize..4, 0..hosts + 2, 0usize..5);
    let id = id.prop_map(|(trial, phase, host, step)| StepId {
        trial,
        phase: Phase::ALL[phase],
        host,
        step,
    });
    prop_oneof![
        6 => (id, 0i32..3, any::<bool>()).prop_map(|(id, status, gone)| {
            let outcome = if gone { Outcome::Lost } else { Outcome::Ended(Status::Exit(status)) };
            let output = Output::new(0);
            Event::Ended(id, End { outcome, may_still_run: gone, began_ns: 0, ended_ns: 0, output })
        }),
        1 => (0..hosts + 2).prop_map(Event::Lost),
        1 => Just(Event::Interrupt),
        2 => Just(Event::Enough),
        3 => Just(Event::Go),
    ]
}

proptest! {
    #[test]
    fn whatever_hosts_do(design in designs(), behaviours in behaviours(), interrupt in prop::option::of(0u64..200)) {
        let seen = run(&design, behaviours, interrupt);
        each_once(&seen);
        barriers(&design, &seen);
        resets(&design, &seen);
        prop_assert!(seen.verdicts.len() <= design.trials as usize);
        let last = seen.actions.last().map_or(0, |a| a.0);
        prop_assert!(last <= bound_ns(&design) + interrupt.unwrap_or(0) * S, "took {last} ns");
    }

    /// Events that make no sense included. Once every step is over when it is started, nothing is left to do.
    #[test]
    fn from_any_state_it_ends(
        (design, events) in designs().prop_flat_map(|d| {
            let hosts = d.hosts.len();
            (Just(d), prop::collection::vec(event(hosts), 0..60))
        }),
    ) {
        let mut machine = Machine::new(design.clone());
        let (mut seen, mut running) = (Seen::default(), BTreeSet::new());
        let mut handle = |machine: &mut Machine, event| {
            for action in machine.handle(event) {
                match &action {
                    Action::Start(step) => {
                        seen.starts.push((0, *step));
                        running.insert(*step);
                    }
                    Action::Report(report) => {
                        running.remove(&report.step);
                    }
                    Action::Trial { verdicts, .. } => seen.verdicts.push(verdicts.clone()),
                    _ => {}
                }
                seen.actions.push((0, action));
            }
            running.first().copied()
        };
        for event in events {
            handle(&mut machine, event);
        }
        let (mut event, mut rounds) = (Event::Go, 0);
        while !machine.is_over() {
            let end = |id| {
                let (outcome, output) = (Outcome::Ended(Status::Exit(0)), Output::new(0));
                Event::Ended(id, End { outcome, may_still_run: false, began_ns: 0, ended_ns: 0, output })
            };
            let idle = if machine.is_between() { Event::Go } else { Event::Enough };
            event = handle(&mut machine, event).map_or(idle, end);
            rounds += 1;
            prop_assert!(rounds < 2000);
        }
        each_once(&seen);
        barriers(&design, &seen);
        resets(&design, &seen);
        prop_assert_eq!(machine.handle(Event::Go), Vec::new());
    }
}
