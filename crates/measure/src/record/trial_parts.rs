//! Parts of a trial's record: clocks, stamps, directions, rules, collectors and CPUs.

use crate::audit::Loss;
use crate::trial::{Direction, Rates, Sample};
use linerate_stats::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The comparison of the generators' clocks with the receiver's, before the load and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// Nanoseconds that are added to each value of the receiver's `latency`, so that none is below 0.
    pub shift_ns: u64,
    /// By how much more or less at most, in nanoseconds; 0 where one clock stamps and receives.
    pub error_ns: u64,
}

/// The stamps that latencies were taken by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stamped {
    /// Frames that cards or drivers stamped at both ends; 0: latency is by the stamps of the generator's program.
    pub frames: u64,
    /// Whether cards stamped the frames that were sent, and those that arrived, and not their drivers.
    pub by_cards: [bool; 2],
    /// Why cards did not.
    pub why: Vec<String>,
}

impl Stamped {
    /// Stamps of several trials together.
    #[must_use]
    pub fn and(mut self, other: &Stamped) -> Stamped {
        self.frames += other.frames;
        (0..2).for_each(|end| self.by_cards[end] &= other.by_cards[end]);
        self.why.extend(other.why.iter().cloned());
        self.why.sort();
        self.why.dedup();
        self
    }
}

/// The frames of one direction in a trial with both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionCounts {
    pub direction: Direction,
    pub sent: u64,
    /// Received at least once.
    pub received: u64,
    pub lost: u64,
    /// Where they were lost.
    pub losses: Vec<Loss>,
    /// Frame rates in the window; `None` where it was too short.
    pub rates: Option<Rates>,
    /// Latency of the stamped frames, in nanoseconds.
    pub latency: Histogram,
    /// Raw samples of the window.
    pub samples: Vec<Sample>,
}

/// A rule with its counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleCount {
    /// Where it is, and the rule as its tool lists it.
    pub rule: String,
    /// Frames that met it.
    pub frames: u64,
}

/// Cost of a collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorCost {
    /// The plan's name for it.
    pub name: String,
    /// Time before, during and after the load together, in nanoseconds.
    pub took_ns: u64,
}

/// Output of a command after a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collected {
    /// The command.
    pub command: String,
    /// Output of the command, or the reason why there is none.
    pub output: Result<String, String>,
}

/// A thread that sent the frames of a trial, from the first frame to the end of the load, as the kernel's scheduler counts it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SenderTime {
    /// The CPU that it is bound to.
    pub cpu: u32,
    /// Time between the two readings, in nanoseconds.
    pub load_ns: u64,
    /// Time that it ran.
    pub ran_ns: u64,
    /// Time that it was ready to run while another task had its CPU.
    pub waited_ns: u64,
    /// Time slices that it ran in.
    pub slices: u64,
    /// Time that `others` were counted for: as long as the load, but for the moments between two readings. 0 where they were not counted.
    pub counted_ns: u64,
    /// Programs that had its CPU meanwhile, the longest time first; `None` where the kernel does not let linerate count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Vec<CpuHolder>>,
}

/// A program that had a CPU while frames were sent on it: none of linerate's own, nor the idle CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuHolder {
    /// Name, as the system shows it, without the CPU's number.
    pub name: String,
    /// Whether it is a thread of the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_kernel: bool,
    /// Time that it had the CPU, in nanoseconds.
    pub ns: u64,
}

/// How busy a CPU was during a trial, as shares of the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuShare {
    /// CPU number.
    pub cpu: u32,
    /// Not idle.
    pub busy: f64,
    /// In softirq context; on BSD, whose threads of the kernel forward, in the kernel.
    pub softirq: f64,
    /// Time that the hypervisor took, as far as the guest can see it.
    pub steal: f64,
    /// In user programs: linerate itself needs next to nothing of it where XDP does the work.
    pub user: f64,
    /// Used by others than linerate's threads, those of the embedded lab's devices, and softirqs; `None` where it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// Hz when the load ended, where the system shows it.
    pub frequency: Option<f64>,
}
