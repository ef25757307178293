//! How long a command may run, and how it is ended. The clock is the caller's.

use super::{Outcome, Status};

/// Ways to end a command, from mild to hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// SIGINT, to the process that prints totals when it is interrupted.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// Why a command is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Limit,
    /// The user wants to stop.
    Interrupt,
    /// The trial is over.
    Trial,
}

impl Cause {
    pub fn outcome(self) -> Outcome {
        match self {
            Cause::Limit => Outcome::TimedOut,
            Cause::Interrupt => Outcome::Interrupted,
            Cause::Trial => Outcome::Stopped,
        }
    }
}

/// An order about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Send(Signal),
    /// It could not be killed: stop waiting for it.
    GiveUp,
}

/// A command that runs, or is about to.
#[derive(Debug, Clone)]
pub struct Supervision {
    limit_ns: Option<u64>,
    grace_ns: u64,
    deadline_ns: Option<u64>,
    ending: Option<(Cause, Signal)>,
}

impl Supervision {
    /// `limit_ns`: how long the command may run; `grace_ns`: how long it may take to end after each signal.
    pub fn new(limit_ns: Option<u64>, grace_ns: u64) -> Self {
        Supervision { limit_ns, grace_ns, deadline_ns: None, ending: None }
    }

    /// The command begins: its limit counts from here.
    pub fn begin(&mut self, now_ns: u64) {
        if self.ending.is_none() {
            self.deadline_ns = self.limit_ns.map(|limit_ns| now_ns.saturating_add(limit_ns));
        }
    }

    /// When [`Supervision::due`] has something to say, unless the command ends before.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Requests the end of the command. `false`: it was already requested.
    pub fn stop(&mut self, cause: Cause, signal: Signal, now_ns: u64) -> bool {
        let first = self.ending.is_none();
        if first {
            self.press(cause, signal, now_ns);
        }
        first
    }

    /// The signal that is due by now, or that the command is given up. Each is returned once.
    pub fn due(&mut self, now_ns: u64) -> Option<Due> {
        self.deadline_ns.filter(|deadline| *deadline <= now_ns)?;
        let (cause, signal) = match self.ending {
            None => (Cause::Limit, Signal::Terminate),
            Some((cause, Signal::Interrupt)) => (cause, Signal::Terminate),
            Some((cause, Signal::Terminate)) => (cause, Signal::Kill),
            Some((_, Signal::Kill)) => {
                self.deadline_ns = None;
                return Some(Due::GiveUp);
            }
        };
        self.press(cause, signal, now_ns);
        Some(Due::Send(signal))
    }

    fn press(&mut self, cause: Cause, signal: Signal, now_ns: u64) {
        self.ending = Some((cause, signal));
        self.deadline_ns = Some(now_ns.saturating_add(self.grace_ns));
    }

    /// The outcome of the command that has ended with `status`, or was given up.
    pub fn outcome(&self, status: Option<Status>) -> Outcome {
        match (self.ending, status) {
            (Some((cause, _)), _) => cause.outcome(),
            (None, Some(status)) => Outcome::Ended(status),
            (None, None) => Outcome::Lost,
        }
    }
}
