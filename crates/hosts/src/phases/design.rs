//! What a campaign over hosts is to do.

use super::Phase;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// A campaign over hosts.
#[derive(Debug, Clone)]
pub struct Design {
    /// How often the phases are carried out.
    pub trials: u32,
    /// Those that are carried out, by [`Phase::ALL`]. Without reset nothing is undone.
    pub phases: [bool; 4],
    /// Where.
    pub hosts: Vec<Host>,
    /// What else is to be kept to.
    pub rules: Rules,
}

/// A host and what is done on it.
#[derive(Debug, Clone)]
pub struct Host {
    /// What it is called.
    pub name: String,
    /// Hosts of one group need each other: when one fails, the trial is over for all of them, and for no others.
    pub group: u32,
    /// The steps of each phase, by [`Phase::ALL`].
    pub phases: [Vec<Step>; 4],
}

impl Host {
    /// The steps of a phase.
    pub fn steps(&self, phase: Phase) -> &[Step] {
        &self.phases[phase as usize]
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What a shell is given.
    pub command: String,
    /// Whether and how long it is waited for.
    pub mode: Mode,
    /// The command that undoes it, for a step of the set-up. It is run in reset if the step was started, whatever became of it.
    pub undo: Option<String>,
}

/// Whether and how long a step is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is waited for. One that takes longer than its limit and [`Rules::margin_ns`] is ended, and has failed.
    Waited {
        /// Its limit.
        limit_ns: u64,
    },
    /// It is waited for and ended at this time exactly, which is no failure.
    Timed {
        /// How long it is to run.
        limit_ns: u64,
    },
    /// It is not waited for. It is ended at its limit or with the trial, which is no failure.
    Background {
        /// Its limit, if it has one.
        limit_ns: Option<u64>,
    },
}

/// What a step that failed means in set-up and run. In collect and reset the next step follows in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It is noted, and the next step follows, as in Conductor.
    GoOn,
    /// The trial goes straight on to collect and reset for the host's group; what still runs in the foreground there is ended.
    EndTrial,
}

/// What a campaign keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// What a step that is waited for may take beyond its limit: `sleep 30` with a limit of 30 s has not failed.
    pub margin_ns: u64,
    /// How long a step that was told to end may take, before it is killed; and then, before it is given up.
    pub grace_ns: u64,
    /// The limit of a command that undoes a step.
    pub undo_limit_ns: u64,
    /// What a failed step means.
    pub failure: Failure,
    /// A host that was lost in so many trials one after the other is not tried again, and its group with it.
    pub give_up_after: u32,
    /// Bytes that are kept of the output of a step.
    pub most_output: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            margin_ns: 2 * SECOND_NS,
            grace_ns: 3 * SECOND_NS,
            undo_limit_ns: 30 * SECOND_NS,
            failure: Failure::EndTrial,
            give_up_after: 2,
            most_output: 1 << 20,
        }
    }
}
