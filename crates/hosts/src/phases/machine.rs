//! The state machine of a campaign over hosts.

use super::{Cause, Design, Mode, Output, Phase};
use serde::Serialize;
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
    /// It was lost in this trial.
    lost: bool,
    /// It is lost now.
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
        let Host { failed_steps, lost, cut_short, .. } = *self;
        Verdict { failed_steps, lost, cut_short, undone }
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
    interrupted: bool,
    actions: Vec<Action>,
}

impl Machine {
    /// A campaign that has not begun.
    pub fn new(design: Design) -> Self {
        let hosts = vec![Host::default(); design.hosts.len()];
        let (running, actions) = (BTreeSet::new(), Vec::new());
        Machine { design, trial: 0, stage: Stage::Between, hosts, running, interrupted: false, actions }
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
        let failed =
            end.may_still_run || self.mode(step).fails(end.outcome, self.stage == Stage::Phase(step.phase));
        let host = &mut self.hosts[step.host];
        if host.foreground == Some(step) {
            host.foreground = None;
        }
        host.failed_steps += u32::from(failed);
        host.reset_failed |= failed && step.phase == Phase::Reset;
        let resets = matches!(self.stage, Stage::Phase(Phase::Reset) | Stage::Ending);
        host.not_undone |= end.may_still_run && resets;
        let may_still_run = end.may_still_run;
        self.actions.push(Action::Report(Report { step, failed, end }));
        if may_still_run {
            self.lose(step.host);
        }
    }

    fn mode(&self, step: StepId) -> Mode {
        self.design.hosts[step.host].steps(step.phase)[step.step].mode
    }

    fn lost(&mut self, host: usize) {
        let possible = host < self.hosts.len() && !matches!(self.stage, Stage::Between | Stage::Over);
        // At the end of a trial, nothing is left to be done on a host where nothing runs.
        let matters = self.stage != Stage::Ending || self.running.iter().any(|step| step.host == host);
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
            for host in &mut self.hosts {
                host.cut_short = true;
                self.actions.extend(host.foreground.map(|step| Action::End(step, Cause::Trial)));
            }
        }
    }

    fn interrupt(&mut self) {
        self.interrupted = true;
        if let Stage::Phase(Phase::SetUp | Phase::Run | Phase::Collect) = self.stage {
            self.hosts.iter_mut().for_each(|host| host.cut_short = true);
            self.end_all(Cause::Interrupt);
        }
    }

    fn end_all(&mut self, cause: Cause) {
        self.actions.extend(self.running.iter().map(|step| Action::End(*step, cause)));
    }

    /// Goes as far as it can without anything happening.
    fn advance(&mut self) {
        loop {
            let stage = self.stage;
            match stage {
                Stage::Over => return,
                Stage::Between if !self.begin_trial() => return,
                Stage::Between => self.enter(None),
                Stage::Phase(phase) if !self.feed(phase) => return,
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
            *host = Host { losses: host.losses, ..Host::default() };
        }
        true
    }

    /// Begins the next phase that is wanted and has a host to run on, or the end of the trial.
    fn enter(&mut self, last: Option<Phase>) {
        let later = Phase::ALL.into_iter().filter(|phase| last.is_none_or(|last| *phase > last));
        let mut possible = later.filter(|phase| self.design.phases[*phase as usize]).filter(|phase| {
            *phase == Phase::Reset || self.hosts.iter().any(|host| host.goes_on(*phase, self.interrupted))
        });
        let Some(phase) = possible.next() else {
            self.stage = Stage::Ending;
            return self.end_all(Cause::Trial);
        };
        self.stage = Stage::Phase(phase);
        for host in &mut self.hosts {
            host.next = 0;
            // A host that was lost may be back by the time of its reset.
            host.unreachable &= phase != Phase::Reset;
        }
        self.actions.push(Action::Phase { trial: self.trial, phase });
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
        let step = StepId { trial: self.trial, phase, host, step: self.hosts[host].next };
        self.hosts[host].next += 1;
        self.hosts[host].foreground = Some(step).filter(|step| !self.mode(*step).is_background());
        self.running.insert(step);
        self.actions.push(Action::Start(step));
    }

    fn end_trial(&mut self) {
        let with_reset = self.design.phases[Phase::Reset as usize];
        let verdicts = self.hosts.iter().map(|host| host.verdict(with_reset)).collect();
        self.actions.push(Action::Trial { trial: self.trial, verdicts });
        self.trial += 1;
        self.stage = Stage::Between;
        let most = self.design.rules.give_up_after.max(1);
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.losses = if host.lost { host.losses + 1 } else { 0 };
            self.actions.extend((host.losses >= most).then_some(Action::GivenUp(number)));
        }
        if self.interrupted
            || self.trial >= self.design.trials
            || self.hosts.iter().any(|host| host.losses >= most)
        {
            self.over();
        }
    }
}

/// A step of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StepId {
    /// From 0.
    pub trial: u32,
    pub phase: Phase,
    /// Its place in the design.
    pub host: usize,
    /// Step of that phase, from 0.
    pub step: usize,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The first trial may begin, or the next one.
    Go,
    /// A step is over.
    Ended(StepId, End),
    /// The connection to a host is lost, or could not be made. The loss of its steps is the next event.
    Lost(usize),
    /// The user wants it to end.
    Interrupt,
}

/// The way in which a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub outcome: Outcome,
    /// It was lost, or was killed and given up: it may still run.
    pub may_still_run: bool,
    /// When its command began, of a clock that never goes back.
    pub began_ns: u64,
    /// When it was over.
    pub ended_ns: u64,
    pub output: Output,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// With this exit status; 127 without such a command.
    Exit(i32),
    /// By this signal; if a shell reported it, it may also be the exit status of that number plus 128.
    Signal(i32),
}

impl Status {
    /// The most likely meaning of a shell's exit status: it does not distinguish a signal from a command that ended with 130.
    pub fn of_shell(number: i32) -> Status {
        match number {
            129..=159 => Status::Signal(number - 128),
            _ => Status::Exit(number),
        }
    }

    /// The exit status in the form of a shell.
    pub fn as_shells_say(self) -> i32 {
        match self {
            Status::Exit(number) => number,
            Status::Signal(number) => 128 + number,
        }
    }

    /// The signal, if it was one.
    pub fn signal(self) -> Option<i32> {
        match self {
            Status::Exit(_) => None,
            Status::Signal(number) => Some(number),
        }
    }
}

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ended by itself.
    Ended(Status),
    /// It was ended at its limit.
    TimedOut,
    /// It was ended because the user wants to stop.
    Interrupted,
    /// It was ended because the trial was over for its host: a step in the background, or a host was lost.
    Stopped,
    /// The connection was lost while it ran.
    Lost,
}

/// An order of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A phase of a trial begins. All that is to be started at once follows.
    Phase { trial: u32, phase: Phase },
    /// Start this step of the design.
    Start(StepId),
    /// End a step. One that is ending already goes on doing so.
    End(StepId, Cause),
    /// A step is over.
    Report(Report),
    /// A host was lost too often: there is no further trial.
    GivenUp(usize),
    /// A trial is over, with the result on each host.
    Trial { trial: u32, verdicts: Vec<Verdict> },
    /// The campaign is over.
    Over,
}

/// A step that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub step: StepId,
    /// Whether this counts as a failure.
    pub failed: bool,
    pub end: End,
}

/// The verdict on a host in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Steps that failed.
    pub failed_steps: u32,
    /// It was lost, or did not obey.
    pub lost: bool,
    /// The trial was cut short, by an interrupt or because a host was lost.
    pub cut_short: bool,
    pub undone: Undone,
}

impl Verdict {
    /// Whether the results of the trial there may be used.
    pub fn is_whole(&self) -> bool {
        self.failed_steps == 0 && !self.lost && !self.cut_short
    }
}

/// The outcome of the reset of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// Reset was not asked for.
    NotNeeded,
    /// All its steps ended without failure.
    All,
    /// All its steps were run, and some failed.
    WithFailures,
    /// The host could not be reached, or did not end a step: it is not as it was.
    No,
}
