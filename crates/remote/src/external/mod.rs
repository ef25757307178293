//! Trials over hosts that do not all have linerate: their tools send and count, each as a supervised command on its host.
//!
//! The receiver begins and is up before any generator begins; generators begin together. Opening netmap takes the link down, and
//! a device may need a while before it forwards: so the window begins when all generators send and the receiver counts, not when
//! commands begin. The device itself gets no questions.
//!
//! Every load has its own end three times over: in the tool's arguments (a count or a time), in the timeout(1) in front of it,
//! and in the supervising shell, which ends it when it has not heard of linerate for [`ExecutionTarget::silence`].
//!
//! docs/tools.md explains the figures. `running` is one tool on one host, `streams` its output, `trial` the order of steps,
//! `window` the place of tools' seconds on our clock, `account` the use of their totals.

mod account;
mod running;
mod streams;
mod trial;
mod window;

pub use trial::NOTHING_ARRIVED;

use crate::agents::Flown;
use crate::{ExecutionTarget, RemoteError};
use linerate_hosts::tools::Task;
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A host, and its tool that sends or counts.
#[derive(Debug, Clone)]
pub struct ToolHost {
    /// How it is reached. Its silence is how long a load goes on there without linerate: about a second is right.
    pub place: Arc<ExecutionTarget>,
    /// The tool.
    pub tool: Backend,
    /// Whether it is run by `sudo -n`.
    pub sudo: bool,
}

/// A trial to be run.
#[derive(Debug)]
pub struct ToolTrial<'a> {
    /// The generators, with their tasks. The trial sets the duration of their loads.
    pub generators: &'a [(ToolHost, Task)],
    /// The receiver; its task is that of the generators, with its own interface. Without one, the generators report the received
    /// frames (iperf3 and netperf do).
    pub receiver: Option<(&'a ToolHost, Task)>,
    /// Its times. Tools count by the second, so a window of less than three is not precise.
    pub timing: Timing,
    /// How long the first frame may take to be counted once all generators send: a device that was just booted forwards nothing for
    /// a while. After it, the trial is over, with 0 frames received and a fault ([`NOTHING_ARRIVED`]).
    pub patience: Duration,
}

impl ToolTrial<'_> {
    /// Runs it. Ends early when `interrupted` becomes true. Loads that can be reached are stopped; the others end by themselves.
    ///
    /// Failures under load are in the faults of the result: the trial is not valid, and the next one may be.
    ///
    /// # Errors
    /// A tool cannot send this traffic or does not come up, or a host is lost.
    pub fn run(&self, interrupted: &AtomicBool) -> Result<Flown, RemoteError> {
        trial::run(self, interrupted)
    }
}
