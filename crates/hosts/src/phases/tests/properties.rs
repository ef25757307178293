//! What holds whatever hosts do.

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
    let one = (mode(), any::<bool>());
    prop::collection::vec(one, 0..4).prop_map(|all| {
        let step = |(at, (mode, undo)): (usize, (Mode, bool))| Step {
            command: format!("step {at}"),
            mode,
            undo: undo.then(|| format!("undo {at}")),
        };
        all.into_iter().enumerate().map(step).collect()
    })
}

fn designs() -> impl Strategy<Value = Design> {
    let host = (0u32..2, [steps(), steps(), steps(), steps()]);
    let hosts = prop::collection::vec(host, 0..4);
    (0u32..4, hosts, any::<bool>(), 1u32..3).prop_map(|(trials, hosts, go_on, give_up_after)| {
        let failure = if go_on { Failure::GoOn } else { Failure::EndTrial };
        let hosts =
            hosts.into_iter().map(|(group, phases)| Host { name: "h".into(), group, phases }).collect();
        Design {
            trials,
            phases: [true; 4],
            hosts,
            rules: Rules { failure, give_up_after, ..Rules::default() },
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
            Action::Start { step, .. } => assert!(started.insert(*step), "{step:?} is started twice"),
            Action::Report(report) => {
                assert!(started.contains(&report.step) && reported.insert(report.step), "{report:?}")
            }
            Action::End(step, _) => assert!(started.contains(step) && !reported.contains(step), "{step:?}"),
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
        steps.get(id.step).is_some_and(|s| matches!(s.mode, Mode::Background { .. }))
    };
    let (mut at, mut waited) = (None, BTreeSet::new());
    for (_, action) in &seen.actions {
        match action {
            Action::Phase { trial, phase } => {
                assert!(at < Some((*trial, *phase)), "{phase:?} again");
                assert!(waited.is_empty(), "{phase:?} begins before {waited:?} have ended");
                at = Some((*trial, *phase));
            }
            Action::Start { step, .. } => {
                assert_eq!(at, Some((step.trial, step.phase)));
                assert!(background(step) || waited.insert(*step));
                assert!(waited.iter().filter(|w| w.host == step.host).count() <= 1, "two at once");
            }
            Action::Report(report) => {
                waited.remove(&report.step);
            }
            _ => {}
        }
    }
}

/// Each host that took part gets its whole reset, the undoing in reverse order; or is told to be as it was not.
fn resets(design: &Design, seen: &Seen) {
    for (trial, verdicts) in seen.verdicts.iter().enumerate() {
        for (host, verdict) in verdicts.iter().enumerate() {
            let of = |phase: Phase| {
                let here = move |id: &&(u64, StepId)| {
                    (id.1.trial as usize, id.1.host, id.1.phase) == (trial, host, phase)
                };
                seen.starts.iter().filter(here).map(|(_, id)| id.step).collect::<Vec<_>>()
            };
            let steps = design.hosts[host].steps(Phase::SetUp);
            let undo = of(Phase::SetUp).iter().filter(|at| steps[**at].undo.is_some()).count();
            let whole = design.hosts[host].steps(Phase::Reset).len() + undo;
            let done = of(Phase::Reset);
            assert_eq!(done, (0..done.len()).collect::<Vec<_>>());
            match verdict.undone {
                Undone::NotNeeded => assert!(!verdict.took_part && done.is_empty()),
                Undone::All | Undone::WithFailures => {
                    assert_eq!(done.len(), whole, "trial {trial} host {host}")
                }
                Undone::No => assert!(verdict.lost),
            }
            if verdict.took_part && !verdict.lost {
                assert_ne!(verdict.undone, Undone::No);
            }
            let undone: Vec<&String> = seen
                .starts
                .iter()
                .zip(&seen.commands)
                .filter(|((_, id), command)| {
                    (id.trial as usize, id.host) == (trial, host) && command.starts_with("undo")
                })
                .map(|(_, command)| command)
                .collect();
            assert!(undone.windows(2).all(|w| w[0] > w[1]), "{undone:?}");
        }
    }
}

/// The longest that the machine may take by itself: every step at its limit, and what ends it.
fn bound_ns(design: &Design) -> u64 {
    let each = 40 * S + design.rules.margin_ns + 2 * design.rules.grace_ns;
    let steps: usize = design.hosts.iter().flat_map(|h| &h.phases).map(|p| 2 * p.len() + 1).sum();
    each * (steps as u64 + 1) * u64::from(design.trials.max(1))
}

fn event(hosts: usize) -> impl Strategy<Value = Event> {
    let id = (0u32..3, 0usize..4, 0..hosts + 2, 0usize..5);
    let id = id.prop_map(|(trial, phase, host, step)| StepId { trial, phase: Phase::ALL[phase], host, step });
    prop_oneof![
        6 => (id.clone(), 0i32..3).prop_map(|(id, status)| Event::Ended(id, Status::Exit(status))),
        1 => id.prop_map(|id| Event::Wrote(id, b"x".to_vec())),
        1 => (0..hosts + 2).prop_map(Event::Lost),
        1 => Just(Event::Interrupt),
        3 => Just(Event::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 256 } else { 4096 }))]

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

    /// Events that make no sense included.
    #[test]
    fn from_any_state_it_ends_by_itself(
        (design, events) in designs().prop_flat_map(|d| {
            let hosts = d.hosts.len();
            (Just(d), prop::collection::vec((event(hosts), 0u64..3), 0..60))
        }),
    ) {
        let mut machine = Machine::new(design.clone());
        let (mut now, mut seen) = (0, Seen::default());
        let mut handle = |machine: &mut Machine, event, now| {
            for action in machine.handle(event, now) {
                match &action {
                    Action::Start { step, command, .. } => {
                        seen.starts.push((now, *step));
                        seen.commands.push(command.clone());
                    }
                    Action::Trial { verdicts, .. } => seen.verdicts.push(verdicts.clone()),
                    _ => {}
                }
                seen.actions.push((now, action));
            }
        };
        for (event, seconds) in events {
            now += seconds * S;
            handle(&mut machine, event, now);
        }
        let from = now;
        let mut ticks = 0;
        while let Some(wake) = machine.wake_ns() {
            now = now.max(wake);
            handle(&mut machine, Event::Tick, now);
            ticks += 1;
            prop_assert!(ticks < 2000);
        }
        prop_assert!(machine.is_over() && now - from <= bound_ns(&design));
        each_once(&seen);
        barriers(&design, &seen);
        resets(&design, &seen);
        prop_assert_eq!(machine.handle(Event::Tick, now), Vec::new());
    }
}
