//! The design of a campaign over hosts.

use super::{Outcome, Phase, Status};

const SECOND_NS: u64 = 1_000_000_000;

/// A campaign over hosts.
#[derive(Debug, Clone)]
pub struct Design {
    /// How often the phases are carried out.
    pub trials: u32,
    /// Those that are carried out, by [`Phase::ALL`]. Without reset nothing is undone.
    pub phases: [bool; 4],
    pub hosts: Vec<Host>,
    pub rules: Rules,
}

/// A host and its steps.
#[derive(Debug, Clone)]
pub struct Host {
    pub name: String,
    /// The steps of each phase, by [`Phase::ALL`].
    pub phases: [Vec<Step>; 4],
}

impl Host {
    pub fn steps(&self, phase: Phase) -> &[Step] {
        &self.phases[phase as usize]
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// A line for /bin/sh.
    pub command: String,
    pub mode: Mode,
}

/// Whether and how long a step is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is waited for. One that takes longer than its limit and [`Rules::margin_ns`] is ended, and has failed.
    Waited { limit_ns: u64 },
    /// It is waited for and ended at this time exactly, which is no failure.
    Timed { limit_ns: u64 },
    /// It is not waited for. It is ended at its limit or with the trial, which is no failure.
    Background { limit_ns: Option<u64> },
}

impl Mode {
    /// As it was asked for.
    pub fn limit_ns(self) -> Option<u64> {
        match self {
            Mode::Waited { limit_ns } | Mode::Timed { limit_ns } => Some(limit_ns),
            Mode::Background { limit_ns } => limit_ns,
        }
    }

    pub fn is_background(self) -> bool {
        matches!(self, Mode::Background { .. })
    }

    /// Whether this outcome is a failure, in the step's own phase or in a later one.
    ///
    /// A step in the background is ended by others: by `pkill` in a later step, and then with any status.
    pub(super) fn fails(self, outcome: Outcome, in_its_phase: bool) -> bool {
        match outcome {
            Outcome::Ended(Status::Exit(0)) | Outcome::Interrupted | Outcome::Stopped => false,
            Outcome::Ended(Status::Signal(1 | 2 | 9 | 15)) if self.is_background() => false,
            Outcome::Ended(_) => in_its_phase || !self.is_background(),
            Outcome::TimedOut => matches!(self, Mode::Waited { .. }),
            Outcome::Lost => true,
        }
    }
}

/// Limits of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The time that a step that is waited for may take beyond its limit: `sleep 30` with a limit of 30 s has not failed.
    pub margin_ns: u64,
    /// Time from the request to end until a step is killed, and then until it is given up.
    pub grace_ns: u64,
    /// The campaign ends after a host was lost in this many trials in a row.
    pub give_up_after: u32,
    /// Bytes that are kept of the output of a step.
    pub most_output: usize,
}

impl Rules {
    /// When a step is ended at the latest, after its command began.
    pub fn ends_after_ns(&self, mode: Mode) -> Option<u64> {
        let margin_ns = if matches!(mode, Mode::Waited { .. }) { self.margin_ns } else { 0 };
        mode.limit_ns().map(|limit_ns| limit_ns.saturating_add(margin_ns))
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules { margin_ns: 2 * SECOND_NS, grace_ns: 3 * SECOND_NS, give_up_after: 2, most_output: 256 << 10 }
    }
}
