//! Trials over hosts that do not all have linerate: their tools send and count, each as a supervised command on its host.
//!
//! The receiver begins and is up before any generator begins; generators begin together. Opening netmap takes the link down, and
//! a device may need a while before it forwards: so the window begins when all generators send and the receiver counts, not when
//! commands begin. The device itself gets no questions.
//!
//! Every load has its own end three times over: in the tool's arguments (a count or a time), in the timeout(1) in front of it,
//! and in the supervising shell, which ends it when it has not heard of linerate for [`crate::ExecutionTarget::silence`].
//!
//! Tools are steps that [`crate::Driver`] carries out: the receiver is set up, and is up, generators run, and what is under way then is
//! collected. `trial_run` says when there is enough of each. `running` is one tool on one host, `account` the place of tools' seconds on our
//! clock, and the use of their totals. docs/tools.md explains the figures.

mod account;
mod running;
mod trial_run;
mod window;

pub use running::ToolHost;
pub use trial_run::{NOTHING_ARRIVED, ToolTrial};
