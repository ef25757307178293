//! How long a command may run, how it ends, and how much of its output is kept. The clock is the caller's.

use serde::Serialize;
use std::collections::VecDeque;
use std::fmt;

/// Ways to end a command, from mild to hard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// SIGINT, to the process that prints totals when it is interrupted.
    Interrupt,
    /// SIGTERM.
    #[default]
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
    /// The command could not be killed: stop waiting for it.
    GiveUp,
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

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Exit(status) => write!(f, "ended with status {status}"),
            Status::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
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
    /// The command ended by itself.
    Ended(Status),
    /// The command was ended at its limit.
    TimedOut,
    /// The command was ended because the user wants to stop.
    Interrupted,
    /// The command was ended because the trial was over for its host: a step in the background, or a host was lost.
    Stopped,
    /// The connection was lost while it ran.
    Lost,
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
        Supervision {
            limit_ns,
            grace_ns,
            deadline_ns: None,
            ending: None,
        }
    }

    /// The command begins: its limit counts from here.
    pub fn begin(&mut self, now_ns: u64) {
        if self.ending.is_none() {
            self.deadline_ns = self
                .limit_ns
                .map(|limit_ns| now_ns.saturating_add(limit_ns));
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

/// The output of a command. One that writes a gigabyte leaves no more than the bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most_head: usize,
    most_tail: usize,
    total: u64,
}

impl Output {
    /// No output yet; keeps `most` bytes of later output: the first half and the last.
    pub fn new(most: usize) -> Self {
        let most_head = most.div_ceil(2);
        Output {
            head: Vec::new(),
            tail: VecDeque::new(),
            most_head,
            most_tail: most - most_head,
            total: 0,
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(self.most_head - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.most_tail)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most_tail);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Bytes that the command wrote.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that were not kept. They are missing between the two halves.
    pub fn missing(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// The bytes that were kept; a line in the middle gives the number of missing ones.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.missing() > 0 {
            all.extend_from_slice(
                format!("\n[... {} bytes are missing ...]\n", self.missing()).as_bytes(),
            );
        }
        let (a, b) = self.tail.as_slices();
        all.extend_from_slice(a);
        all.extend_from_slice(b);
        all
    }
}

#[cfg(test)]
mod output_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_flood_leaves_its_beginning_and_its_end() {
        let mut output = Output::new(10);
        output.push(b"begin");
        for _ in 0..1000 {
            output.push(b"flood");
        }
        output.push(b"e n d");
        assert_eq!((output.total(), output.missing()), (5010, 5000));
        assert_eq!(
            output.bytes(),
            b"begin\n[... 5000 bytes are missing ...]\ne n d"
        );
    }

    proptest! {
        #[test]
        fn what_fits_is_kept_whole_and_the_rest_is_counted(
            most in 0usize..40,
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..8),
        ) {
            let mut output = Output::new(most);
            parts.iter().for_each(|part| output.push(part));
            let all = parts.concat();
            prop_assert_eq!(output.total(), all.len() as u64);
            prop_assert_eq!(output.missing(), all.len().saturating_sub(most) as u64);
            let bytes = output.bytes();
            prop_assert!(bytes.starts_with(&all[..all.len().min(most.div_ceil(2))]));
            prop_assert!(bytes.ends_with(&all[all.len() - all.len().min(most / 2)..]));
            if all.len() <= most {
                prop_assert_eq!(bytes, all);
            }
        }
    }
}
