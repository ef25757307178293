//! Hosts that behave as the test specifies, and a driver that carries out the machine's actions and supervises running steps.

use super::super::*;
use std::collections::{BTreeMap, VecDeque};

/// Behaviour of a command.
#[derive(Debug, Clone)]
pub struct Command {
    takes_ns: u64,
    status: i32,
    output: String,
    /// The mildest signal that ends it.
    deaf: u8,
    loses_host: bool,
}

impl Command {
    pub fn takes(takes_ns: u64) -> Self {
        Command {
            takes_ns,
            status: 0,
            output: String::new(),
            deaf: 0,
            loses_host: false,
        }
    }

    pub fn exits(self, status: i32) -> Self {
        Command { status, ..self }
    }

    pub fn saying(self, output: &str) -> Self {
        Command {
            output: output.into(),
            ..self
        }
    }

    /// SIGTERM does not end it.
    pub fn needs_killing(self) -> Self {
        Command { deaf: 1, ..self }
    }

    /// Nothing ends it.
    pub fn cannot_be_killed(self) -> Self {
        Command { deaf: 2, ..self }
    }

    /// Instead of ending, it takes the host down.
    pub fn loses_host(self) -> Self {
        Command {
            loses_host: true,
            ..self
        }
    }
}

/// Observations of a campaign.
#[derive(Debug, Default)]
pub struct Seen {
    pub starts: Vec<(u64, StepId)>,
    pub reports: Vec<Report>,
    pub verdicts: Vec<Vec<Verdict>>,
    pub given_up: Vec<usize>,
    /// All of it, in order.
    pub actions: Vec<(u64, Action)>,
}

type Behaviour = Box<dyn Fn(StepId) -> Command>;

/// A command that runs.
struct Runs {
    began_ns: u64,
    ends_ns: u64,
    command: Command,
    supervision: Supervision,
}

impl Runs {
    fn send(&mut self, signal: Signal, now: u64) {
        if self.command.deaf <= u8::from(signal == Signal::Kill) {
            self.ends_ns = now;
            self.command.loses_host = false;
            self.command.status = 143;
        }
    }
}

/// A lab with a machine.
pub struct Lab {
    pub machine: Machine,
    behaviour: Behaviour,
    interrupt_ns: Option<u64>,
    running: BTreeMap<StepId, Runs>,
    events: VecDeque<Event>,
}

impl Lab {
    pub fn new(design: Design, behaviour: impl Fn(StepId) -> Command + 'static) -> Self {
        Lab {
            machine: Machine::new(design),
            behaviour: Box::new(behaviour),
            interrupt_ns: None,
            running: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    pub fn interrupt_at(&mut self, ns: u64) {
        self.interrupt_ns = Some(ns);
    }

    /// Carries the campaign out.
    pub fn run(&mut self) -> Seen {
        let (mut seen, mut now, mut rounds) = (Seen::default(), 0, 0);
        while !self.machine.is_over() {
            rounds += 1;
            assert!(rounds < 100_000, "it does not end: {:?}", self.machine);
            if self.machine.is_between() {
                self.events.push_back(Event::Go);
            } else {
                now = self.next(now);
            }
            while let Some(event) = self.events.pop_front() {
                for action in self.machine.handle(event) {
                    self.act(action, now, &mut seen);
                }
            }
        }
        seen
    }

    fn act(&mut self, action: Action, now: u64, seen: &mut Seen) {
        seen.actions.push((now, action.clone()));
        match action {
            Action::Start(step) => {
                seen.starts.push((now, step));
                let design = self.machine.design();
                let mode = design.hosts[step.host].steps(step.phase)[step.step].mode;
                let mut supervision =
                    Supervision::new(design.rules.ends_after_ns(mode), design.rules.grace_ns);
                supervision.begin(now);
                let command = (self.behaviour)(step);
                let ends_ns = now.saturating_add(command.takes_ns);
                self.running.insert(
                    step,
                    Runs {
                        began_ns: now,
                        ends_ns,
                        command,
                        supervision,
                    },
                );
            }
            Action::End(step, cause) => {
                if let Some(runs) = self.running.get_mut(&step)
                    && runs.supervision.stop(cause, Signal::Terminate, now)
                {
                    runs.send(Signal::Terminate, now);
                }
            }
            Action::Report(report) => seen.reports.push(report),
            Action::GivenUp(host) => seen.given_up.push(host),
            Action::Trial { verdicts, .. } => seen.verdicts.push(verdicts),
            Action::Phase { .. } | Action::Over => {}
        }
    }

    /// Waits for the next event; returns its time.
    fn next(&mut self, now: u64) -> u64 {
        let at = |runs: &Runs| {
            runs.ends_ns
                .min(runs.supervision.deadline_ns().unwrap_or(u64::MAX))
        };
        let first = self.running.iter().map(|(id, runs)| (at(runs), *id)).min();
        if let Some(at) = self
            .interrupt_ns
            .filter(|at| first.is_none_or(|first| *at <= first.0))
        {
            self.interrupt_ns = None;
            self.events.push_back(Event::Interrupt);
            return at.max(now);
        }
        // A command that takes for ever ends near the end of time.
        let ends = first.filter(|(at, _)| *at < u64::MAX / 2);
        let Some((at, id)) = ends else {
            assert!(self.machine.design().rules.held, "nobody ends {first:?}");
            self.events.push_back(Event::Enough);
            return now;
        };
        let (now, runs) = (at.max(now), self.running.get_mut(&id).unwrap());
        if runs.ends_ns > now {
            match runs.supervision.due(now) {
                Some(Due::Send(signal)) => runs.send(signal, now),
                Some(Due::GiveUp) => self.over(id, None, now),
                None => {}
            }
        } else if runs.command.loses_host {
            self.events.push_back(Event::Lost(id.host));
            let there: Vec<StepId> = self
                .running
                .keys()
                .filter(|other| other.host == id.host)
                .copied()
                .collect();
            there
                .into_iter()
                .for_each(|step| self.over(step, None, now));
        } else {
            let status = Status::Exit(runs.command.status);
            self.over(id, Some(status), now);
        }
        now
    }

    fn over(&mut self, step: StepId, status: Option<Status>, now: u64) {
        let Runs {
            began_ns,
            command,
            supervision,
            ..
        } = self.running.remove(&step).unwrap();
        let mut output = Output::new(100);
        output.push(command.output.as_bytes());
        let outcome = supervision.outcome(status);
        let end = End {
            outcome,
            may_still_run: status.is_none(),
            began_ns,
            ended_ns: now,
            output,
        };
        self.events.push_back(Event::Ended(step, end));
    }
}

pub fn step(command: &str, mode: Mode) -> Step {
    Step {
        command: command.into(),
        mode,
    }
}

/// A host with these numbers of steps in each phase, each with a limit of 30 s.
pub fn host(name: &str, steps: [usize; 4]) -> Host {
    let of = |phase: Phase| {
        let step = |at| {
            step(
                &format!("{} {at}", phase.name()),
                Mode::Waited {
                    limit_ns: 30_000_000_000,
                },
            )
        };
        (0..steps[phase as usize]).map(step).collect()
    };
    Host {
        name: name.into(),
        phases: Phase::ALL.map(of),
        ..Host::default()
    }
}

pub fn design(hosts: Vec<Host>, rules: Rules) -> Design {
    Design {
        trials: 1,
        phases: [true; 4],
        hosts,
        rules,
    }
}

/// The steps that were started on a host.
pub fn ids(seen: &Seen, host: usize) -> Vec<String> {
    let there = seen.starts.iter().filter(|(_, id)| id.host == host);
    there
        .map(|(_, id)| format!("{}/{}", id.phase.name(), id.step))
        .collect()
}
