//! What a machine is told and what it says.

use super::{Output, Phase};
use serde::Serialize;

/// A step of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StepId {
    /// Trial, from 0.
    pub trial: u32,
    /// Phase.
    pub phase: Phase,
    /// Host, by its place in the design.
    pub host: usize,
    /// Step of that phase, from 0; in reset, what undoes the set-up follows behind the steps of reset.
    pub step: usize,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The command of a step begins only now: it had to be sent, or to wait for others to begin at the same instant. Its limit
    /// counts from here.
    Began(StepId),
    /// A step has ended by itself, or because it was ended.
    Ended(StepId, Status),
    /// A step has written something.
    Wrote(StepId, Vec<u8>),
    /// The connection to a host is gone, or could not be made. Whatever runs there is out of reach.
    Lost(usize),
    /// The user wants it to end.
    Interrupt,
    /// Nothing but time has passed.
    Tick,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// With this exit status; 127 where there is no such command.
    Exit(i32),
    /// By this signal; where a shell told, it may also have been the exit status of that number and 128.
    Signal(i32),
}

impl Status {
    /// The exit status that a shell tells.
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

/// How a step is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// So that it can still say what it found (SIGTERM).
    Terminate,
    /// At once (SIGKILL).
    Kill,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ended by itself.
    Ended(Status),
    /// It was ended at its limit.
    TimedOut,
    /// It was ended because the user interrupted the campaign.
    Interrupted,
    /// It was ended because the trial was over for its host: a step in the background, or another step had failed.
    Stopped,
    /// The connection was lost while it ran.
    Lost,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A phase begins. All that is to be started at once follows.
    Phase {
        /// Trial, from 0.
        trial: u32,
        /// Phase.
        phase: Phase,
    },
    /// Start a command. What undoes it must be written down first.
    Start {
        /// Which step this is.
        step: StepId,
        /// What a shell is given.
        command: String,
        /// What will be run in reset because of it.
        undo: Option<String>,
    },
    /// End a step.
    End(StepId, Signal),
    /// A step is over.
    Report(Report),
    /// A host is not tried again.
    GivenUp(usize),
    /// A trial is over, for each host.
    Trial {
        /// Trial, from 0.
        trial: u32,
        /// By host.
        verdicts: Vec<Verdict>,
    },
    /// The campaign is over.
    Over,
}

/// A step that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which.
    pub step: StepId,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether this counts as a failure.
    pub failed: bool,
    /// It was told to end, killed, and given up: it may still run.
    pub may_still_run: bool,
    /// When it was started.
    pub began_ns: u64,
    /// When it was over.
    pub ended_ns: u64,
    /// What it wrote until then.
    pub output: Output,
}

/// What became of a host in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// It took part. A host that was given up, or needs one that was, does not.
    pub took_part: bool,
    /// Steps that failed.
    pub failed_steps: u32,
    /// It was lost, or did not do what it was told.
    pub lost: bool,
    /// The trial was cut short for it: by an interrupt, by a step that failed, or by a host that it needs.
    pub cut_short: bool,
    /// What became of its reset.
    pub undone: Undone,
}

impl Verdict {
    /// Whether what the trial found there may be used.
    pub fn is_whole(&self) -> bool {
        self.took_part && self.failed_steps == 0 && !self.lost && !self.cut_short
    }
}

/// What became of the reset of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// There was nothing to do: the set-up never began, or reset was not asked for.
    NotNeeded,
    /// All its steps ended without failure.
    All,
    /// All its steps were run, and some failed.
    WithFailures,
    /// The host could not be reached, or did not end a step: it is not as it was.
    No,
}
