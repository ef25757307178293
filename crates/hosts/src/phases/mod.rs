//! A campaign over hosts as a pure state machine: set-up, run, collect and reset on all hosts at once, with barriers between
//! them.
//!
//! [`Machine`] takes events ([`Event`]) and gives orders ([`Action`]): which command to start on which host, and which to end.
//! [`Supervision`] says when a command has to be ended, and how. Neither holds a connection or reads a clock.
//!
//! - A phase begins on all hosts at once, when the last step of the one before has ended on all of them.
//! - On each host, the steps of a phase run one after the other. One in the background is started and not waited for; those that
//!   still run when the trial's last phase is over are ended.
//! - Every step that is waited for has a limit, and a step that does not end on request is given up. So every trial ends,
//!   whatever hosts do.
//! - Reset runs for every host: after failures, after Ctrl-C, and also for a host that was lost, in case it is back.

mod design;
mod event;
mod machine;
mod output;
mod supervision;

#[cfg(test)]
mod tests;

pub use design::{Design, Host, Mode, Rules, Step, place};
pub use event::{Action, End, Event, Outcome, Report, Status, StepId, Undone, Verdict};
pub use machine::Machine;
pub use output::Output;
pub use supervision::{Cause, Due, Signal, Supervision};

use serde::{Deserialize, Serialize};

/// The phases of a trial, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Hosts are prepared.
    SetUp,
    /// Load is offered and counted.
    Run,
    /// Results are fetched.
    Collect,
    /// Hosts are restored.
    Reset,
}

impl Phase {
    pub const ALL: [Phase; 4] = [Phase::SetUp, Phase::Run, Phase::Collect, Phase::Reset];

    pub fn name(self) -> &'static str {
        match self {
            Phase::SetUp => "set-up",
            Phase::Run => "run",
            Phase::Collect => "collect",
            Phase::Reset => "reset",
        }
    }
}
