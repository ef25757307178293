//! The times of a trial.

use serde::{Deserialize, Serialize};

/// The times of a trial, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Load that is offered, but not part of the measured window.
    pub warm_up_ns: u64,
    /// The measured window.
    pub run_ns: u64,
    /// Between two samples of the counters.
    pub interval_ns: u64,
    /// Where frames are missing after the stop, the receiver must have been quiet for this long…
    pub quiet_ns: u64,
    /// …and is waited for no longer than this.
    pub drain_ns: u64,
    /// Pause after the trial.
    pub settle_ns: u64,
}

impl Timing {
    /// A slice of the embedded lab: short, because slices of all variants alternate. Nothing is under way between
    /// namespaces a few milliseconds after the stop, so RFC 2544's two-second waits would only waste the budget.
    pub fn slice(run_ns: u64) -> Self {
        Timing {
            warm_up_ns: (run_ns / 10).min(100_000_000),
            run_ns,
            interval_ns: (run_ns / 10).clamp(10_000_000, 1_000_000_000),
            quiet_ns: 5_000_000,
            drain_ns: 500_000_000,
            settle_ns: 0,
        }
    }

    /// A trial over hosts: a card's queues and a router's take longer to fill and to empty. RFC 2544 (section 23) waits two seconds for
    /// the last frames.
    pub fn of_hosts(run_ns: u64) -> Self {
        Timing {
            warm_up_ns: (run_ns / 10).clamp(100_000_000, 2_000_000_000),
            run_ns,
            interval_ns: (run_ns / 20).clamp(20_000_000, 1_000_000_000),
            quiet_ns: 100_000_000,
            drain_ns: 2_000_000_000,
            settle_ns: 0,
        }
    }

    /// The same for another window: samples keep their share of it.
    pub fn lasting(self, run_ns: u64) -> Timing {
        let interval_ns = match self.run_ns {
            same if same == run_ns => self.interval_ns,
            then => (u128::from(self.interval_ns) * u128::from(run_ns) / u128::from(then.max(1))) as u64,
        };
        Timing { run_ns, interval_ns: interval_ns.max(1), ..self }
    }

    /// All time under load.
    pub fn load(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.load_ns())
    }

    /// The same, in nanoseconds.
    pub fn load_ns(&self) -> u64 {
        self.warm_up_ns + self.run_ns
    }
}
