//! A command on a host with the bounds that it is run in, and how it ended: a step of a campaign, a question, a change, a collector.

use crate::line;
use linerate_hosts::phases::{Outcome, Output, Signal, Status, Supervision};
use std::time::Duration;

/// Time from the request to end until a command is killed, and then until it is given up.
const GRACE: Duration = Duration::from_secs(2);
/// A command, and the bounds that it is run in.
#[derive(Debug, Clone)]
pub struct Order {
    /// The command for /bin/sh.
    pub command: String,
    /// Time after which the command is ended; [`Duration::MAX`]: never.
    pub limit: Duration,
    /// Bytes that are kept of each of its outputs: the first half and the last.
    pub most_output: usize,
    /// The first signal, if it has to end early.
    pub stop: Signal,
    /// How long it may take to end after each signal.
    pub grace: Duration,
    /// Whether it is run by `sudo -n`, with the shell that supervises it: that could not end it otherwise.
    pub sudo: bool,
}

impl Order {
    /// A command that may take half a minute, of whose outputs 64 KiB each are kept.
    pub fn new(command: impl Into<String>) -> Order {
        let (limit, most_output) = (Duration::from_secs(30), 64 * 1024);
        Order {
            command: command.into(),
            limit,
            most_output,
            stop: Signal::Terminate,
            grace: GRACE,
            sudo: false,
        }
    }

    /// A program with its arguments, in place of the shell.
    pub fn program<S: AsRef<str>>(argv: &[S]) -> Order {
        Order::new(format!("exec {}", line(argv, false)))
    }

    /// By `sudo -n`, if that is wanted.
    #[must_use]
    pub fn by_sudo(self, sudo: bool) -> Order {
        Order { sudo, ..self }
    }

    /// When it is ended, and how.
    pub(crate) fn supervision(&self) -> Supervision {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).ok();
        Supervision::new(ns(self.limit), ns(self.grace).unwrap_or(u64::MAX))
    }

    /// With another limit.
    #[must_use]
    pub fn within(self, limit: Duration) -> Order {
        Order { limit, ..self }
    }
}

/// A command that is over.
#[derive(Debug, Clone)]
pub struct Finished {
    /// [`Outcome::Ended`], [`Outcome::TimedOut`] or [`Outcome::Interrupted`].
    pub outcome: Outcome,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
}

impl Finished {
    /// Whether it ended by itself and with status 0.
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Ended(Status::Exit(0))
    }

    /// Standard output as far as it was kept, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout.bytes()).into_owned()
    }

    /// Standard error as far as it was kept, as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr.bytes()).into_owned()
    }
}
