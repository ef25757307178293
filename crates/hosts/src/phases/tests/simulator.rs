//! Hosts that do what the test says, and a driver that carries out what the machine says.

use super::super::*;
use std::collections::BTreeMap;

/// What a command does.
#[derive(Debug, Clone)]
pub struct Command {
    takes_ns: u64,
    status: i32,
    output: String,
    /// What ends it, at least.
    deaf: u8,
    loses_host: bool,
}

impl Command {
    pub fn takes(takes_ns: u64) -> Self {
        Command { takes_ns, status: 0, output: String::new(), deaf: 0, loses_host: false }
    }

    pub fn exits(self, status: i32) -> Self {
        Command { status, ..self }
    }

    pub fn saying(self, output: &str) -> Self {
        Command { output: output.into(), ..self }
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
        Command { loses_host: true, ..self }
    }
}

/// What was seen of a campaign.
#[derive(Debug, Default)]
pub struct Seen {
    pub starts: Vec<(u64, StepId)>,
    pub commands: Vec<String>,
    pub reports: Vec<Report>,
    pub verdicts: Vec<Vec<Verdict>>,
    pub given_up: Vec<usize>,
    /// All of it, in order.
    pub actions: Vec<(u64, Action)>,
}

type Behaviour = Box<dyn Fn(StepId) -> Command>;

/// A lab with a machine.
pub struct Lab {
    pub machine: Machine,
    behaviour: Behaviour,
    interrupt_ns: Option<u64>,
    running: BTreeMap<StepId, (u64, Command)>,
}

impl Lab {
    pub fn new(design: Design, behaviour: impl Fn(StepId) -> Command + 'static) -> Self {
        Lab {
            machine: Machine::new(design),
            behaviour: Box::new(behaviour),
            interrupt_ns: None,
            running: BTreeMap::new(),
        }
    }

    pub fn interrupt_at(&mut self, ns: u64) {
        self.interrupt_ns = Some(ns);
    }

    /// Carries the campaign out.
    pub fn run(&mut self) -> Seen {
        let (mut seen, mut now, mut rounds) = (Seen::default(), 0, 0);
        let mut event = Event::Tick;
        while !self.machine.is_over() {
            rounds += 1;
            assert!(rounds < 100_000, "it does not end: {:?}", self.machine);
            let actions = self.machine.handle(event, now);
            for action in actions {
                self.act(action, now, &mut seen);
            }
            (event, now) = self.next(now);
        }
        assert_eq!(self.machine.wake_ns(), None);
        seen
    }

    fn act(&mut self, action: Action, now: u64, seen: &mut Seen) {
        seen.actions.push((now, action.clone()));
        match action {
            Action::Start { step, command, .. } => {
                seen.starts.push((now, step));
                seen.commands.push(command);
                let behaves = (self.behaviour)(step);
                self.running.insert(step, (now.saturating_add(behaves.takes_ns), behaves));
            }
            Action::End(step, signal) => {
                if let Some((ends, command)) = self.running.get_mut(&step)
                    && command.deaf <= u8::from(signal == Signal::Kill)
                {
                    *ends = now;
                    command.loses_host = false;
                    command.status = 143;
                }
            }
            Action::Report(report) => seen.reports.push(report),
            Action::GivenUp(host) => seen.given_up.push(host),
            Action::Trial { verdicts, .. } => seen.verdicts.push(verdicts),
            Action::Phase { .. } | Action::Over => {}
        }
    }

    /// What happens next, and when.
    fn next(&mut self, now: u64) -> (Event, u64) {
        let wake = self.machine.wake_ns().unwrap_or(u64::MAX).max(now);
        let first = self.running.iter().map(|(id, (ends, _))| (*ends, *id)).min();
        if let Some(at) = self.interrupt_ns.filter(|at| *at <= wake.min(first.map_or(u64::MAX, |f| f.0))) {
            self.interrupt_ns = None;
            return (Event::Interrupt, at.max(now));
        }
        let Some((ends, id)) = first.filter(|(ends, _)| *ends <= wake && *ends < u64::MAX) else {
            return (Event::Tick, wake);
        };
        let output = std::mem::take(&mut self.running.get_mut(&id).unwrap().1.output);
        if !output.is_empty() {
            return (Event::Wrote(id, output.into()), now);
        }
        let (_, command) = self.running.remove(&id).unwrap();
        if command.loses_host {
            self.running.retain(|other, _| other.host != id.host);
            return (Event::Lost(id.host), ends.max(now));
        }
        (Event::Ended(id, Status::Exit(command.status)), ends.max(now))
    }
}

pub fn step(command: &str, mode: Mode) -> Step {
    Step { command: command.into(), mode, undo: None }
}

/// A host with so many steps in each phase, each with a limit of 30 s.
pub fn host(name: &str, steps: [usize; 4]) -> Host {
    let of = |phase: Phase| {
        let step = |at| step(&format!("{} {at}", phase.name()), Mode::Waited { limit_ns: 30_000_000_000 });
        (0..steps[phase as usize]).map(step).collect()
    };
    Host { name: name.into(), group: 0, phases: Phase::ALL.map(of) }
}

pub fn design(hosts: Vec<Host>, rules: Rules) -> Design {
    Design { trials: 1, phases: [true; 4], hosts, rules }
}

/// The steps that were started on a host.
pub fn ids(seen: &Seen, host: usize) -> Vec<String> {
    let there = seen.starts.iter().filter(|(_, id)| id.host == host);
    there.map(|(_, id)| format!("{}/{}", id.phase.name(), id.step)).collect()
}
