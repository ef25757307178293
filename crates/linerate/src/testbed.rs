//! A testbed carries out trials: the embedded lab with real packets, or the in-memory port for tests of everything else.

mod collectors;
mod connections;
mod embedded;
mod embedded_plan;
mod hosts;
mod sequential;
mod simulated;
mod tester;

pub use embedded::{Embedded, PACED_BATCH};
pub use embedded_plan::{EmbeddedPlan, SlotLoad, TrafficKind};
pub use hosts::{
    Agents, BATCH as HOSTS_BATCH, Device, HostSlot, Hosts, Tester as HostsTester, ToolTasks, Tools,
};
pub use sequential::{Places, SequentialLabs};
pub use simulated::{Simulated, parse_simulation};

use anyhow::Result;
use linerate_linux::lab::ledger::Account;
use linerate_linux::trial::Outcome;
use linerate_measure::collector::Collection;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::Connections;
use linerate_plan::rules::own::RuleCount;
use linerate_plan::settings::States;
use linerate_plan::timing::Timing;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a trial showed.
#[derive(Debug, Default)]
pub struct TrialOutcome {
    /// Samples and faults.
    pub outcome: Outcome,
    /// The generator's counters.
    pub generator: PortCounters,
    /// The receiver's counters.
    pub receiver: PortCounters,
    /// Where frames were lost, and the second counts.
    pub account: Account,
    /// What the plan's collectors found.
    pub collection: Collection,
    /// The DUT's connections after the trial, where it keeps states.
    pub connections: Option<Connections>,
    /// What the rules of a user's file counted.
    pub rules: Vec<RuleCount>,
    /// Between the first generator's beginning and the last one's, where several hosts send.
    pub skew_ns: Option<u64>,
    /// How often the DUT was rebooted for it.
    pub reboots: u32,
}

/// Somewhere that trials can be run.
pub trait Testbed {
    /// Runs one trial of a slot. `load`: frames/s, `None` for as many as possible.
    ///
    /// # Errors
    /// It could not be run at all; what went wrong while it ran is a fault in its outcome.
    fn run(
        &mut self,
        slot: usize,
        load: Option<f64>,
        timing: Timing,
        interrupted: &AtomicBool,
    ) -> Result<TrialOutcome>;

    /// What has passed on a clock of its own: no pause is waited for there. `None` where time is the machine's.
    fn passed(&self) -> Option<Duration> {
        None
    }
}
