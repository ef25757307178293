//! What a driver tells while a campaign runs.

use crate::error::RemoteError;
use crate::session::Stream;
use linerate_hosts::phases::{Action, Design, Phase, StepId};
use std::fmt;

/// Something that a caller may want to write down or show.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The machine says this. It is told before it is done: what undoes a step can be written down before the step is started.
    Action {
        /// CLOCK_MONOTONIC, in nanoseconds.
        at_ns: u64,
        /// What it says.
        action: &'a Action,
    },
    /// A step wrote something. The report of the step has no more than a part of it, and both streams together.
    Wrote {
        /// Which.
        step: StepId,
        /// Where.
        stream: Stream,
        /// When it arrived: CLOCK_MONOTONIC, in nanoseconds.
        at_ns: u64,
        /// What.
        bytes: &'a [u8],
    },
    /// A run has begun on all its hosts.
    Started(&'a Started),
    /// A host was lost, or a step could not be started.
    Trouble(&'a Trouble),
    /// A host that was lost is connected again.
    Back {
        /// Its place in the design.
        host: usize,
    },
}

/// When the first steps of a run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Each host's first step.
    pub starts: Vec<Start>,
    /// From the first to the last of them.
    pub skew_ns: u64,
    /// How wrong that can be.
    pub error_ns: u64,
}

/// When a step began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Which.
    pub step: StepId,
    /// CLOCK_MONOTONIC of this machine, in nanoseconds.
    pub at_ns: u64,
    /// How wrong that can be: known from the host's clock, or else from when it was told and when it had answered.
    pub error_ns: u64,
    /// How far the host's clock is ahead of this machine's, where it could be read.
    pub clock_ahead_ns: Option<i64>,
}

impl Started {
    pub(super) fn new(starts: Vec<Start>) -> Option<Started> {
        let first = starts.iter().min_by_key(|start| start.at_ns)?;
        let last = starts.iter().max_by_key(|start| start.at_ns)?;
        let (skew_ns, error_ns) = (last.at_ns - first.at_ns, first.error_ns + last.error_ns);
        Some(Started { starts, skew_ns, error_ns })
    }
}

/// What went wrong with a host, and what it was doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The host's place in the design.
    pub host: usize,
    /// What is wrong.
    pub error: RemoteError,
    /// What ran there, or was to be started.
    pub steps: Vec<(StepId, String)>,
}

impl Trouble {
    pub(super) fn new(design: &Design, host: usize, steps: Vec<StepId>, error: RemoteError) -> Trouble {
        let command = |step: &StepId| {
            let planned = design.hosts[host].steps(step.phase).get(step.step);
            planned.map_or_else(|| "what undoes the set-up".to_owned(), |step| step.command.clone())
        };
        let steps = steps.into_iter().map(|step| (step, command(&step))).collect();
        Trouble { host, error, steps }
    }
}

impl fmt::Display for Trouble {
    /// `r1: the connection was lost; look at its power ... (run of trial 1, step 2: sleep 30)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        for (at, (step, command)) in self.steps.iter().enumerate() {
            let (trial, phase, number) = (step.trial + 1, Phase::name(step.phase), step.step + 1);
            f.write_str(if at == 0 { " [" } else { "; " })?;
            write!(f, "{phase} of trial {trial}, step {number}: {}", short(command))?;
        }
        f.write_str(if self.steps.is_empty() { "" } else { "]" })
    }
}

/// The beginning of a command, on one line.
fn short(command: &str) -> String {
    let line: String =
        command.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(60).collect();
    if command.trim().chars().nth(60).is_some() { format!("{line}...") } else { line }
}
