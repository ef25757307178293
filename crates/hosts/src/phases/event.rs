//! Events that the machine takes, its orders, and the results of steps and trials.

use super::{Cause, Output, Phase};
use serde::Serialize;

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
    #[serde(rename = "reset")]
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
