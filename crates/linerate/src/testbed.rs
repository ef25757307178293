//! A testbed carries out trials: the embedded lab with real packets, hosts, or the in-memory port for tests of everything else.

mod collectors;
mod connections;
mod embedded;
pub mod hosts;
pub mod prepare;
mod simulated;

pub use embedded::{PACED_BATCH, SequentialLabs};
pub use simulated::{Simulated, parse_simulation};

use anyhow::Result;
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::lab::ledger::Account;
use linerate_linux::trial::Outcome;
use linerate_measure::collector::Collection;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Connections, LabKind, RuleCount};
use linerate_measure::trial::Timing;
use linerate_wire::Load;
use std::time::Duration;

/// A trial to be run.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The slot: a cell of the plan.
    pub slot: usize,
    /// Frames/s; `None` for as many as possible.
    pub rate: Option<f64>,
    pub timing: Timing,
}

impl Request {
    /// Its load, handed over in batches of this size.
    fn load(&self, batch: u32) -> Load {
        Load { rate: self.rate, batch, ..Load::lasting(self.timing.load()) }
    }
}

/// Result of a trial.
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
    /// Findings of the plan's collectors.
    pub collection: Collection,
    /// The DUT's connections after the trial, if it keeps states.
    pub connections: Option<Connections>,
    /// Counters of the rules of a user's file.
    pub rules: Vec<RuleCount>,
    /// Between the first generator's beginning and the last one's, where several hosts send.
    pub skew_ns: Option<u64>,
    /// How often the DUT was rebooted for it.
    pub reboots: u32,
}

impl TrialOutcome {
    /// A trial without a result.
    fn failed(why: String) -> TrialOutcome {
        TrialOutcome {
            outcome: Outcome { faults: vec![why], ..Outcome::default() },
            ..TrialOutcome::default()
        }
    }
}

/// Somewhere that trials can be run.
pub trait Testbed {
    /// Runs one trial, or a part of it if the user wants to stop.
    ///
    /// # Errors
    /// The trial could not run at all. A failure while it runs is a fault in its outcome.
    fn run(&mut self, request: &Request) -> Result<TrialOutcome>;

    /// Time that has passed on a simulated clock, on which no pause is waited for; `None` with the machine's clock.
    fn passed(&self) -> Option<Duration> {
        None
    }

    /// The names in records: of the lab, of its generator and of its receiver.
    fn names(&self) -> (LabKind, [String; 2]);

    /// The embedded lab that stands.
    fn lab(&self) -> Option<&EmbeddedLab> {
        None
    }

    /// Restores everything. Returns messages about failures to restore, and the number of reboots of the DUT for it.
    fn take_down(self: Box<Self>) -> (Vec<String>, u32) {
        (Vec::new(), 0)
    }
}
