//! What a machine knows of a host and of a step that runs.

use super::design::Mode;
use super::event::{Outcome, Status, StepId, Undone, Verdict};
use super::{Output, Phase};

/// A host in the present trial, and what is remembered of it from trial to trial.
#[derive(Debug, Clone, Default)]
pub(super) struct HostState {
    /// It takes part, and its first phase has begun.
    pub(super) began: bool,
    /// Steps of the present phase that were started.
    pub(super) next: usize,
    /// The step that the next one waits for.
    pub(super) foreground: Option<StepId>,
    /// What undoes the set-up so far, the last step's at the end.
    pub(super) undo: Vec<String>,
    /// It was lost in this trial.
    pub(super) lost: bool,
    /// It is lost now.
    pub(super) unreachable: bool,
    pub(super) cut_short: bool,
    pub(super) failed_steps: u32,
    pub(super) reset_failed: bool,
    /// Something of its reset could not be done.
    pub(super) not_undone: bool,
    /// Trials one after the other in which it was lost.
    losses: u32,
    pub(super) given_up: bool,
}

impl HostState {
    /// A new trial begins.
    pub(super) fn begin(&mut self, takes_part: bool) {
        let (losses, given_up) = (self.losses, self.given_up);
        *self = HostState { began: takes_part, losses, given_up, ..HostState::default() };
    }

    /// A phase begins. A host that was lost may be back by the time of its reset.
    pub(super) fn enter(&mut self, phase: Phase) {
        self.next = 0;
        if phase == Phase::Reset {
            self.unreachable = false;
        }
    }

    /// Whether steps of this phase are still to be started there.
    pub(super) fn goes_on(&self, phase: Phase, interrupted: bool) -> bool {
        let wanted = match phase {
            Phase::SetUp | Phase::Run => !interrupted && !self.cut_short,
            Phase::Collect => !interrupted,
            Phase::Reset => true,
        };
        self.began && !self.unreachable && wanted
    }

    /// The trial is over. Says whether the host is given up by this.
    pub(super) fn end(&mut self, give_up_after: u32) -> bool {
        self.losses = if self.lost { self.losses + 1 } else { self.losses * u32::from(!self.began) };
        let given_up = self.given_up;
        self.given_up |= self.losses >= give_up_after.max(1);
        self.given_up && !given_up
    }

    pub(super) fn verdict(&self, with_reset: bool) -> Verdict {
        let undone = match (self.not_undone, self.began && with_reset, self.reset_failed) {
            (true, _, _) => Undone::No,
            (false, false, _) => Undone::NotNeeded,
            (false, true, true) => Undone::WithFailures,
            (false, true, false) => Undone::All,
        };
        Verdict {
            took_part: self.began,
            failed_steps: self.failed_steps,
            lost: self.lost,
            cut_short: self.cut_short,
            undone,
        }
    }
}

/// Why a step is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Limit,
    Interrupt,
    Trial,
}

/// How far the ending of a step has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    Terminated(Cause),
    Killed(Cause),
}

/// A step that runs.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) mode: Mode,
    pub(super) began_ns: u64,
    /// When something is done about it.
    pub(super) deadline_ns: Option<u64>,
    pub(super) ending: Ending,
    pub(super) output: Output,
}

impl Running {
    pub(super) fn new(mode: Mode, margin_ns: u64, most_output: usize, now_ns: u64) -> Self {
        let (ending, output) = (Ending::No, Output::new(most_output));
        let mut running = Running { mode, began_ns: now_ns, deadline_ns: None, ending, output };
        running.begin(margin_ns, now_ns);
        running
    }

    /// Its command begins now, unless it was told to end already.
    pub(super) fn begin(&mut self, margin_ns: u64, now_ns: u64) {
        if self.ending == Ending::No {
            let after = match self.mode {
                Mode::Waited { limit_ns } => Some(limit_ns.saturating_add(margin_ns)),
                Mode::Timed { limit_ns } => Some(limit_ns),
                Mode::Background { limit_ns } => limit_ns,
            };
            self.began_ns = now_ns;
            self.deadline_ns = after.map(|after| now_ns.saturating_add(after));
        }
    }

    /// What became of it, now that it has ended with `status` or was given up.
    pub(super) fn outcome(&self, status: Option<Status>) -> Outcome {
        match (self.ending, status) {
            (Ending::No, Some(status)) => Outcome::Ended(status),
            (Ending::No, None) => Outcome::Lost,
            (Ending::Terminated(cause) | Ending::Killed(cause), _) => match cause {
                Cause::Limit => Outcome::TimedOut,
                Cause::Interrupt => Outcome::Interrupted,
                Cause::Trial => Outcome::Stopped,
            },
        }
    }

    /// Whether this outcome is a failure, in the step's own phase or in a later one.
    ///
    /// A step in the background is ended by others: by `pkill` in a later step, and then with whatever status.
    pub(super) fn failed(&self, outcome: Outcome, in_its_phase: bool) -> bool {
        let background = matches!(self.mode, Mode::Background { .. });
        match outcome {
            Outcome::Ended(Status::Exit(0)) | Outcome::Interrupted | Outcome::Stopped => false,
            Outcome::Ended(Status::Signal(1 | 2 | 9 | 15)) if background => false,
            Outcome::Ended(_) => in_its_phase || !background,
            Outcome::TimedOut => matches!(self.mode, Mode::Waited { .. }),
            Outcome::Lost => true,
        }
    }
}
