//! A stand carries out trials: the embedded lab with real packets, or the in-memory port for tests of everything else.

mod embedded;
mod hosts;
mod simulated;
mod tester;
mod turns;

pub use embedded::{Embedded, EmbeddedPlan, PACED_BATCH, TrafficKind};
pub use hosts::{Agents, BATCH as HOSTS_BATCH, Device, Hosts, Tester as HostsTester, Tools};
pub use simulated::{Simulated, parse_simulation};
pub use tester::Means;
pub use turns::{Places, Turns};

use anyhow::Result;
use linerate_core::counters::PortCounters;
use linerate_core::record::{Collected, CpuShare};
use linerate_core::trial::Timing;
use linerate_sys::lab::ledger::Account;
use linerate_sys::trial::Outcome;
use std::sync::atomic::AtomicBool;

/// What a trial showed.
#[derive(Debug, Default)]
pub struct Shown {
    /// Samples and faults.
    pub outcome: Outcome,
    /// The generator's counters.
    pub generator: PortCounters,
    /// The receiver's counters.
    pub receiver: PortCounters,
    /// Where frames were lost, and the second counts.
    pub account: Account,
    /// How busy the CPUs were.
    pub cpus: Vec<CpuShare>,
    /// What the plan's commands said.
    pub collected: Vec<Collected>,
    /// Between the first generator's beginning and the last one's, where several hosts send.
    pub skew_ns: Option<u64>,
}

/// Somewhere that trials can be run.
pub trait Stand {
    /// Runs one trial of a slot.
    ///
    /// # Errors
    /// It could not be run at all; what went wrong while it ran is a fault in its outcome.
    fn run(&mut self, slot: usize, timing: Timing, interrupted: &AtomicBool) -> Result<Shown>;
}
