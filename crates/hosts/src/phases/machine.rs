//! The state machine of a campaign over hosts.

use super::design::{Design, Failure, Mode};
use super::event::{Action, Event, Outcome, Report, Signal, Status, StepId};
use super::host::{Cause, Ending, HostState, Running};
use super::{Host, Phase};
use std::collections::{BTreeMap, BTreeSet};

/// Where a campaign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The next trial has not begun.
    Between,
    Phase(Phase),
    /// All phases are over; what still runs in the background is ended.
    Ending,
    Over,
}

/// The state of a campaign. Give it [`Event::Tick`] to begin, do what it says, tell it what happened, and tick it at
/// [`Machine::wake_ns`].
#[derive(Debug, Clone)]
pub struct Machine {
    design: Design,
    trial: u32,
    stage: Stage,
    hosts: Vec<HostState>,
    running: BTreeMap<StepId, Running>,
    interrupted: bool,
    actions: Vec<Action>,
}

impl Machine {
    /// A campaign that has not begun.
    pub fn new(design: Design) -> Self {
        let hosts = vec![HostState::default(); design.hosts.len()];
        Machine {
            design,
            trial: 0,
            stage: Stage::Between,
            hosts,
            running: BTreeMap::new(),
            interrupted: false,
            actions: Vec::new(),
        }
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Whether nothing more will be done.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// When to tick it at the latest, if nothing else happens; a time in the past means at once. `None` when it is over.
    pub fn wake_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Between => Some(0),
            Stage::Over => None,
            Stage::Phase(_) | Stage::Ending => self.running.values().filter_map(|r| r.deadline_ns).min(),
        }
    }

    /// Takes in what happened by `now_ns` of a clock that never goes back, and says what to do, in this order. What is told of steps
    /// that do not run (any more) counts for nothing.
    pub fn handle(&mut self, event: Event, now_ns: u64) -> Vec<Action> {
        match event {
            Event::Began(step) => {
                if let Some(running) = self.running.get_mut(&step) {
                    running.begin(self.design.rules.margin_ns, now_ns);
                }
            }
            Event::Ended(step, status) => self.ended(step, status, now_ns),
            Event::Wrote(step, bytes) => {
                if let Some(running) = self.running.get_mut(&step) {
                    running.output.push(&bytes);
                }
            }
            Event::Lost(host) => self.lost(host, now_ns),
            Event::Interrupt => self.interrupt(now_ns),
            Event::Tick => {}
        }
        self.expire(now_ns);
        self.advance(now_ns);
        std::mem::take(&mut self.actions)
    }

    fn ended(&mut self, step: StepId, status: Status, now_ns: u64) {
        if let Some(running) = self.running.remove(&step) {
            let outcome = running.outcome(Some(status));
            self.finish(step, running, outcome, false, now_ns);
        }
    }

    fn lost(&mut self, host: usize, now_ns: u64) {
        if !self.hosts.get(host).is_some_and(|state| state.began)
            || matches!(self.stage, Stage::Between | Stage::Over)
        {
            return;
        }
        let there: Vec<StepId> = self.running.keys().filter(|step| step.host == host).copied().collect();
        let out_of_reach = !there.is_empty();
        for step in there {
            if let Some(running) = self.running.remove(&step) {
                self.finish(step, running, Outcome::Lost, true, now_ns);
            }
        }
        if self.stage == Stage::Ending && !out_of_reach {
            return; // Nothing is left to be done there.
        }
        self.lose(host, now_ns);
    }

    fn interrupt(&mut self, now_ns: u64) {
        self.interrupted = true;
        if let Stage::Phase(Phase::SetUp | Phase::Run | Phase::Collect) = self.stage {
            self.hosts.iter_mut().filter(|host| host.began).for_each(|host| host.cut_short = true);
            for step in self.running.keys().copied().collect::<Vec<_>>() {
                self.stop(step, Cause::Interrupt, now_ns);
            }
        }
    }

    /// Does something about the steps whose time has come.
    fn expire(&mut self, now_ns: u64) {
        let due = |running: &Running| running.deadline_ns.is_some_and(|deadline| deadline <= now_ns);
        let steps: Vec<StepId> = self.running.iter().filter(|(_, r)| due(r)).map(|(step, _)| *step).collect();
        for step in steps {
            // What became of an earlier one may have taken care of it.
            let Some(running) = self.running.get_mut(&step).filter(|running| due(running)) else { continue };
            match running.ending {
                Ending::No => self.stop(step, Cause::Limit, now_ns),
                Ending::Terminated(cause) => {
                    running.ending = Ending::Killed(cause);
                    running.deadline_ns = Some(now_ns.saturating_add(self.design.rules.grace_ns));
                    self.actions.push(Action::End(step, Signal::Kill));
                }
                Ending::Killed(_) => self.give_up(step, now_ns),
            }
        }
    }

    /// A step that could not be killed: its host does not do what it is told.
    fn give_up(&mut self, step: StepId, now_ns: u64) {
        if let Some(running) = self.running.remove(&step) {
            let outcome = running.outcome(None);
            self.finish(step, running, outcome, true, now_ns);
            self.lose(step.host, now_ns);
        }
    }

    fn stop(&mut self, step: StepId, cause: Cause, now_ns: u64) {
        let grace_ns = self.design.rules.grace_ns;
        if let Some(running) = self.running.get_mut(&step).filter(|running| running.ending == Ending::No) {
            running.ending = Ending::Terminated(cause);
            running.deadline_ns = Some(now_ns.saturating_add(grace_ns));
            self.actions.push(Action::End(step, Signal::Terminate));
        }
    }

    /// Reports a step that is over, and draws the consequences.
    fn finish(&mut self, step: StepId, running: Running, outcome: Outcome, may_still_run: bool, now_ns: u64) {
        let in_its_phase = self.stage == Stage::Phase(step.phase);
        let failed = may_still_run || running.failed(outcome, in_its_phase);
        let host = &mut self.hosts[step.host];
        if host.foreground == Some(step) {
            host.foreground = None;
        }
        host.failed_steps += u32::from(failed);
        host.reset_failed |= failed && step.phase == Phase::Reset;
        host.not_undone |= may_still_run && matches!(self.stage, Stage::Phase(Phase::Reset) | Stage::Ending);
        let Running { began_ns, output, .. } = running;
        self.actions.push(Action::Report(Report {
            step,
            outcome,
            failed,
            may_still_run,
            began_ns,
            ended_ns: now_ns,
            output,
        }));
        if failed && in_its_phase && self.design.rules.failure == Failure::EndTrial {
            self.cut_short(step.host, now_ns);
        }
    }

    /// A host is out of reach until its reset.
    fn lose(&mut self, host: usize, now_ns: u64) {
        let in_reset = self.stage == Stage::Phase(Phase::Reset);
        let left = in_reset && self.planned(host, Phase::Reset).is_some();
        let state = &mut self.hosts[host];
        state.lost = true;
        state.unreachable = true;
        state.not_undone |= left;
        self.cut_short(host, now_ns);
    }

    /// Ends set-up and run for all hosts of a group.
    fn cut_short(&mut self, host: usize, now_ns: u64) {
        if !matches!(self.stage, Stage::Phase(Phase::SetUp | Phase::Run)) {
            return;
        }
        let group = self.design.hosts[host].group;
        for other in 0..self.hosts.len() {
            if self.design.hosts[other].group != group || !self.hosts[other].began {
                continue;
            }
            self.hosts[other].cut_short = true;
            if let Some(step) = self.hosts[other].foreground {
                self.stop(step, Cause::Trial, now_ns);
            }
        }
    }

    /// Goes as far as it can without anything happening.
    fn advance(&mut self, now_ns: u64) {
        loop {
            match self.stage {
                Stage::Over => return,
                Stage::Between => {
                    if !self.begin_trial() {
                        return self.over();
                    }
                    self.enter(None, now_ns);
                }
                Stage::Phase(phase) => {
                    if !self.feed(phase, now_ns) {
                        return;
                    }
                    self.enter(Some(phase), now_ns);
                }
                Stage::Ending => {
                    if self.running.is_empty() {
                        self.end_trial();
                    }
                    // The next trial begins with the next tick, so that one call never takes more than one.
                    return;
                }
            }
        }
    }

    fn over(&mut self) {
        self.stage = Stage::Over;
        self.actions.push(Action::Over);
    }

    /// Whether there is another trial, and somewhere to do it.
    fn begin_trial(&mut self) -> bool {
        if self.interrupted || self.trial >= self.design.trials {
            return false;
        }
        let hosts = || self.hosts.iter().zip(&self.design.hosts);
        let without: BTreeSet<u32> =
            hosts().filter(|(state, _)| state.given_up).map(|(_, host)| host.group).collect();
        for (state, host) in self.hosts.iter_mut().zip(&self.design.hosts) {
            state.begin(!without.contains(&host.group));
        }
        self.hosts.iter().any(|state| state.began)
    }

    /// Begins the next phase that is wanted and has a host to run on, or the end of the trial.
    fn enter(&mut self, last: Option<Phase>, now_ns: u64) {
        let later = Phase::ALL.into_iter().filter(|phase| last.is_none_or(|last| *phase > last));
        let wanted = later.filter(|phase| self.design.phases[*phase as usize]);
        let mut possible = wanted.filter(|phase| {
            *phase == Phase::Reset || self.hosts.iter().any(|host| host.goes_on(*phase, self.interrupted))
        });
        let next = possible.next();
        match next {
            Some(phase) => {
                self.stage = Stage::Phase(phase);
                self.hosts.iter_mut().for_each(|host| host.enter(phase));
                self.actions.push(Action::Phase { trial: self.trial, phase });
            }
            None => {
                self.stage = Stage::Ending;
                for step in self.running.keys().copied().collect::<Vec<_>>() {
                    self.stop(step, Cause::Trial, now_ns);
                }
            }
        }
    }

    /// Starts what can be started; whether the phase is over on all hosts.
    fn feed(&mut self, phase: Phase, now_ns: u64) -> bool {
        for host in 0..self.hosts.len() {
            while self.hosts[host].foreground.is_none() && self.hosts[host].goes_on(phase, self.interrupted) {
                let Some(planned) = self.planned(host, phase) else { break };
                self.start(host, phase, planned, now_ns);
            }
        }
        self.hosts.iter().all(|host| host.foreground.is_none())
    }

    /// What a host would do next in a phase.
    fn planned(&self, host: usize, phase: Phase) -> Option<Planned> {
        let (state, design): (&HostState, &Host) = (&self.hosts[host], &self.design.hosts[host]);
        if let Some(step) = design.steps(phase).get(state.next) {
            let undo = step.undo.clone().filter(|_| phase == Phase::SetUp);
            return Some(Planned { command: step.command.clone(), mode: step.mode, undo });
        }
        let undo = state.undo.last().filter(|_| phase == Phase::Reset)?;
        let mode = Mode::Waited { limit_ns: self.design.rules.undo_limit_ns };
        Some(Planned { command: undo.clone(), mode, undo: None })
    }

    fn start(&mut self, host: usize, phase: Phase, planned: Planned, now_ns: u64) {
        let state = &mut self.hosts[host];
        let step = StepId { trial: self.trial, phase, host, step: state.next };
        if phase == Phase::Reset && state.next >= self.design.hosts[host].steps(phase).len() {
            state.undo.pop();
        }
        state.undo.extend(planned.undo.clone());
        state.next += 1;
        if !matches!(planned.mode, Mode::Background { .. }) {
            state.foreground = Some(step);
        }
        let rules = &self.design.rules;
        self.running.insert(step, Running::new(planned.mode, rules.margin_ns, rules.most_output, now_ns));
        self.actions.push(Action::Start { step, command: planned.command, undo: planned.undo });
    }

    fn end_trial(&mut self) {
        let with_reset = self.design.phases[Phase::Reset as usize];
        let verdicts = self.hosts.iter().map(|host| host.verdict(with_reset)).collect();
        self.actions.push(Action::Trial { trial: self.trial, verdicts });
        for host in 0..self.hosts.len() {
            if self.hosts[host].end(self.design.rules.give_up_after) {
                self.actions.push(Action::GivenUp(host));
            }
        }
        self.trial += 1;
        self.stage = Stage::Between;
        if self.interrupted || self.trial >= self.design.trials || self.hosts.iter().all(|host| host.given_up)
        {
            self.over();
        }
    }
}

/// A step that is to be started.
struct Planned {
    command: String,
    mode: Mode,
    undo: Option<String>,
}
