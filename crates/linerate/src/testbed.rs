//! A testbed carries out trials: the embedded lab with real packets, hosts, or the in-memory port for tests of everything else.

mod collectors;
mod connections;
mod embedded;
pub mod hosts;
pub mod prepare;
mod sequential;
mod simulated;
mod tester;

pub use embedded::{Embedded, PACED_BATCH};
pub use sequential::SequentialLabs;
pub use simulated::{Simulated, parse_simulation};

use anyhow::Result;
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::lab::ledger::Account;
use linerate_linux::trial::Outcome;
use linerate_measure::collector::Collection;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Connections, LabKind};
use linerate_plan::rules::own::RuleCount;
use linerate_plan::timing::Timing;
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

impl TrialOutcome {
    /// A trial that came to nothing.
    fn failed(why: String) -> TrialOutcome {
        TrialOutcome {
            outcome: Outcome { faults: vec![why], ..Outcome::default() },
            ..TrialOutcome::default()
        }
    }
}

/// Somewhere that trials can be run.
pub trait Testbed {
    /// Runs one trial, or a part of it where the user wants to stop.
    ///
    /// # Errors
    /// It could not be run at all; what went wrong while it ran is a fault in its outcome.
    fn run(&mut self, request: &Request) -> Result<TrialOutcome>;

    /// What has passed on a clock of its own: no pause is waited for there. `None` where time is the machine's.
    fn passed(&self) -> Option<Duration> {
        None
    }

    /// What records call the lab, its generator and its receiver.
    fn names(&self) -> (LabKind, [String; 2]);

    /// The embedded lab that stands.
    fn lab(&self) -> Option<&EmbeddedLab> {
        None
    }

    /// Puts everything back; what could not be, and how often the DUT was rebooted for it.
    fn take_down(self: Box<Self>) -> (Vec<String>, u32) {
        (Vec::new(), 0)
    }
}
