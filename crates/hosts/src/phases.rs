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
//! - With [`Rules::held`], the caller says when there is enough of a phase.
//! - Reset runs for every host: after failures, after Ctrl-C, and also for a host that was lost, in case it is back.

mod design;
mod machine;
mod supervision;
#[cfg(test)]
mod tests;

pub use design::{
    Action, Design, End, Event, Host, Mode, Phase, Report, Rules, Step, StepId, Undone, Verdict,
    place,
};
pub use machine::Machine;
pub use supervision::{Cause, Due, Outcome, Output, Signal, Status, Supervision};
