//! The state machine of a campaign over hosts.

use super::design::{Action, Design, End, Event, Mode, Phase, Report, StepId, Undone, Verdict};
use super::supervision::Cause;
use std::collections::BTreeSet;

/// Where a campaign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The next trial has not begun.
    Between,
    Phase(Phase),
    /// All phases are over; steps that still run in the background are ended.
    Ending,
    Over,
}

/// A host in the present trial.
#[derive(Debug, Clone, Default)]
struct Host {
    /// Steps of the present phase that were started.
    next: usize,
    /// The step that the next one waits for.
    foreground: Option<StepId>,
    /// Whether the host was lost in this trial.
    lost: bool,
    /// Whether the host is lost now.
    unreachable: bool,
    cut_short: bool,
    failed_steps: u32,
    reset_failed: bool,
    /// Something of its reset could not be done.
    not_undone: bool,
    /// Trials one after the other in which it was lost.
    losses: u32,
}

impl Host {
    /// Whether steps of this phase are still to be started there.
    fn goes_on(&self, phase: Phase, interrupted: bool) -> bool {
        let wanted = match phase {
            Phase::SetUp | Phase::Run => !interrupted && !self.cut_short,
            Phase::Collect => !interrupted,
            Phase::Reset => true,
        };
        wanted && !self.unreachable
    }

    fn verdict(&self, with_reset: bool) -> Verdict {
        let undone = match (self.not_undone, with_reset, self.reset_failed) {
            (true, ..) => Undone::No,
            (false, false, _) => Undone::NotNeeded,
            (false, true, true) => Undone::WithFailures,
            (false, true, false) => Undone::All,
        };
        let Host {
            failed_steps,
            lost,
            cut_short,
            ..
        } = *self;
        Verdict {
            failed_steps,
            lost,
            cut_short,
            undone,
        }
    }
}

/// The state of a campaign. Give it [`Event::Go`] as long as it [is between trials](Machine::is_between), carry out its actions,
/// and report the events.
#[derive(Debug, Clone)]
pub struct Machine {
    design: Design,
    trial: u32,
    stage: Stage,
    hosts: Vec<Host>,
    running: BTreeSet<StepId>,
    /// Whether the phase goes on when its steps are over.
    held: bool,
    interrupted: bool,
    actions: Vec<Action>,
}

impl Machine {
    /// A campaign that has not begun.
    pub fn new(design: Design) -> Self {
        let hosts = vec![Host::default(); design.hosts.len()];
        let (running, actions) = (BTreeSet::new(), Vec::new());
        let (stage, held, interrupted) = (Stage::Between, false, false);
        Machine {
            design,
            trial: 0,
            stage,
            hosts,
            running,
            held,
            interrupted,
            actions,
        }
    }

    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Whether nothing more will be done.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether the next trial, or the end, waits for [`Event::Go`].
    pub fn is_between(&self) -> bool {
        self.stage == Stage::Between
    }

    /// Takes an event, and returns actions, to be done in this order. Events of steps that do not run (any more) are ignored.
    pub fn handle(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Ended(step, end) => self.ended(step, end),
            Event::Lost(host) => self.lost(host),
            Event::Enough => self.enough(),
            Event::Interrupt => self.interrupt(),
            Event::Go => {}
        }
        self.advance();
        std::mem::take(&mut self.actions)
    }

    /// Reports a step that is over, and draws the consequences.
    fn ended(&mut self, step: StepId, end: End) {
        if !self.running.remove(&step) {
            return;
        }
        let failed = end.may_still_run
            || self
                .mode(step)
                .fails(end.outcome, self.stage == Stage::Phase(step.phase));
        let host = &mut self.hosts[step.host];
        if host.foreground == Some(step) {
            host.foreground = None;
        }
        host.failed_steps += u32::from(failed);
        host.reset_failed |= failed && step.phase == Phase::Reset;
        let resets = matches!(self.stage, Stage::Phase(Phase::Reset) | Stage::Ending);
        host.not_undone |= end.may_still_run && resets;
        let may_still_run = end.may_still_run;
        self.actions
            .push(Action::Report(Report { step, failed, end }));
        if may_still_run {
            self.lose(step.host);
        }
    }

    fn mode(&self, step: StepId) -> Mode {
        self.design.hosts[step.host].steps(step.phase)[step.step].mode
    }

    fn lost(&mut self, host: usize) {
        let possible =
            host < self.hosts.len() && !matches!(self.stage, Stage::Between | Stage::Over);
        // At the end of a trial, nothing is left to be done on a host where nothing runs.
        let matters =
            self.stage != Stage::Ending || self.running.iter().any(|step| step.host == host);
        if possible && matters {
            self.lose(host);
        }
    }

    /// A host is out of reach until its reset.
    fn lose(&mut self, host: usize) {
        let left = self.stage == Stage::Phase(Phase::Reset) && self.has_next(host, Phase::Reset);
        let state = &mut self.hosts[host];
        (state.lost, state.unreachable) = (true, true);
        state.not_undone |= left;
        if let Stage::Phase(Phase::SetUp | Phase::Run) = self.stage {
            self.hosts.iter_mut().for_each(|host| host.cut_short = true);
            self.end_foreground();
        }
    }

    fn end_foreground(&mut self) {
        let waited = self.hosts.iter().filter_map(|host| host.foreground);
        self.actions
            .extend(waited.map(|step| Action::End(step, Cause::Trial)));
    }

    fn enough(&mut self) {
        if std::mem::take(&mut self.held) {
            self.end_foreground();
        }
    }

    fn interrupt(&mut self) {
        (self.interrupted, self.held) = (true, false);
        if let Stage::Phase(Phase::SetUp | Phase::Run | Phase::Collect) = self.stage {
            self.hosts.iter_mut().for_each(|host| host.cut_short = true);
            self.end_all(Cause::Interrupt);
        }
    }

    fn end_all(&mut self, cause: Cause) {
        self.actions
            .extend(self.running.iter().map(|step| Action::End(*step, cause)));
    }

    /// Goes as far as it can without anything happening.
    fn advance(&mut self) {
        loop {
            let stage = self.stage;
            match stage {
                Stage::Over => return,
                Stage::Between if !self.begin_trial() => return,
                Stage::Between => self.enter(None),
                Stage::Phase(phase) if !self.feed(phase) || self.held => return,
                Stage::Phase(phase) => self.enter(Some(phase)),
                Stage::Ending => {
                    if self.running.is_empty() {
                        self.end_trial();
                    }
                    // The next trial begins with the next event, so that one call never takes more than one.
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
        if self.interrupted || self.trial >= self.design.trials || self.hosts.is_empty() {
            self.over();
            return false;
        }
        for host in &mut self.hosts {
            *host = Host {
                losses: host.losses,
                ..Host::default()
            };
        }
        true
    }

    /// Begins the next phase that is wanted and has a host to run on, or the end of the trial.
    fn enter(&mut self, last: Option<Phase>) {
        let later = Phase::ALL
            .into_iter()
            .filter(|phase| last.is_none_or(|last| *phase > last));
        let mut possible = later
            .filter(|phase| self.design.phases[*phase as usize])
            .filter(|phase| {
                *phase == Phase::Reset
                    || self
                        .hosts
                        .iter()
                        .any(|host| host.goes_on(*phase, self.interrupted))
            });
        let Some(phase) = possible.next() else {
            self.stage = Stage::Ending;
            return self.end_all(Cause::Trial);
        };
        self.stage = Stage::Phase(phase);
        self.held = self.design.rules.held && phase != Phase::Reset;
        for host in &mut self.hosts {
            host.next = 0;
            // A host that was lost may be back by the time of its reset.
            host.unreachable &= phase != Phase::Reset;
        }
        self.actions.push(Action::Phase {
            trial: self.trial,
            phase,
        });
    }

    /// Starts the next steps; whether the phase is over on all hosts.
    fn feed(&mut self, phase: Phase) -> bool {
        for host in 0..self.hosts.len() {
            while self.hosts[host].foreground.is_none()
                && self.hosts[host].goes_on(phase, self.interrupted)
                && self.has_next(host, phase)
            {
                self.start(host, phase);
            }
        }
        self.hosts.iter().all(|host| host.foreground.is_none())
    }

    fn has_next(&self, host: usize, phase: Phase) -> bool {
        self.hosts[host].next < self.design.hosts[host].steps(phase).len()
    }

    fn start(&mut self, host: usize, phase: Phase) {
        let step = StepId {
            trial: self.trial,
            phase,
            host,
            step: self.hosts[host].next,
        };
        self.hosts[host].next += 1;
        self.hosts[host].foreground = Some(step).filter(|step| !self.mode(*step).is_background());
        self.running.insert(step);
        self.actions.push(Action::Start(step));
    }

    fn end_trial(&mut self) {
        let with_reset = self.design.phases[Phase::Reset as usize];
        let verdicts = self
            .hosts
            .iter()
            .map(|host| host.verdict(with_reset))
            .collect();
        self.actions.push(Action::Trial {
            trial: self.trial,
            verdicts,
        });
        self.trial += 1;
        self.stage = Stage::Between;
        let most = self.design.rules.give_up_after.max(1);
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.losses = if host.lost { host.losses + 1 } else { 0 };
            self.actions
                .extend((host.losses >= most).then_some(Action::GivenUp(number)));
        }
        if self.interrupted
            || self.trial >= self.design.trials
            || self.hosts.iter().any(|host| host.losses >= most)
        {
            self.over();
        }
    }
}
