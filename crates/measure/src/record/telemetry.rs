//! Findings about a DUT's kernel in trials beside those that give its rate: each look takes time from the frames.

use crate::collector::Counters;
use linerate_profile::Function;
use linerate_stats::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The profile of a slot, and what else was looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlotProfile {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// The event that it was sampled by: `cycles` or `cpu-clock`.
    pub event: String,
    /// Samples of the kernel.
    pub samples: u64,
    /// Samples that found a CPU in user space.
    pub user: u64,
    /// Samples that are not counted, because their stack found no room.
    pub lost: u64,
    /// Received frames/s of all these trials together.
    pub received: Option<f64>,
    /// Received frames/s of each of them.
    pub rates: Vec<f64>,
    /// Frames received in them.
    pub frames: u64,
    /// Events that the CPUs which forward counted in their kernel meanwhile: `cycles`, `instructions`, `cache-misses`.
    pub counted: Counters,
    /// The file of the folded stacks, below the campaign's folder.
    pub stacks: String,
    /// The functions with most samples of their own.
    pub functions: Vec<Function>,
    /// Times in the stack, of a trial of their own.
    pub stages: Option<Staged>,
    /// Drops and waits, of a trial of their own.
    pub events: Option<Events>,
    /// Parts that could not be looked at, each with its reason.
    pub missing: Vec<String>,
}

impl SlotProfile {
    /// The counted events for each received frame; empty without frames.
    pub fn counted_by_frame(&self) -> BTreeMap<String, f64> {
        let each = |n: u64| n as f64 / self.frames as f64;
        let counted = self.counted.iter().filter(|_| self.frames > 0);
        counted.map(|(name, n)| (name.clone(), each(*n))).collect()
    }
}

/// A program that used this machine's CPUs beside a campaign.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramTime {
    /// Name, as the system shows it.
    pub name: String,
    /// CPU time, in seconds.
    pub seconds: f64,
}

/// How far frames went through a rule file, in a trial of their own in which each rule had a counter in front of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulesPassed {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// Frames that the generator sent meanwhile.
    pub frames: u64,
    /// Number of times that a frame reached a rule, over all rules.
    pub looks: u64,
    /// Rules that are loaded.
    pub rules: u64,
    /// Rules that some frame reached.
    pub reached: u64,
    /// Number of times that a frame reached a rule that logs.
    pub logging: u64,
}

impl RulesPassed {
    /// Rules that a frame passes, in the mean, with the one that decides; `None` without frames.
    pub fn by_frame(&self) -> Option<f64> {
        (self.frames > 0).then(|| self.looks as f64 / self.frames as f64)
    }
}

/// Times of frames in the stack, with the rate of their trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staged {
    /// Received frames/s of this trial.
    pub received: Option<f64>,
    #[serde(flatten)]
    pub times: StackTimes,
}

/// Times of frames that were followed through the stack of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackTimes {
    /// Frames that were followed. Some are dropped, or delivered, and never sent.
    pub followed: u64,
    /// Nanoseconds that it takes to read the clock: each step has as much of its own measurement. 0 where it was not measured.
    pub clock_ns: u64,
    /// Nanoseconds from the entry of a frame into the stack until a driver is to send it.
    pub whole: Histogram,
    /// The steps between tracepoints of the kernel, in the order of the frames' way.
    pub steps: Vec<Step>,
}

impl StackTimes {
    /// Whether DTrace counted them, by powers of two, and did not measure the reading of its clock.
    pub fn is_of_dtrace(&self) -> bool {
        self.clock_ns == 0 && self.followed > 0
    }
}

/// A step on the way of frames.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The tracepoint where it begins; `entry` is the one at which frames come in.
    pub from: String,
    /// The tracepoint where it ends.
    pub to: String,
    /// Nanoseconds.
    pub times: Histogram,
}

/// Events in a kernel, with the rate of their trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    /// Received frames/s of this trial.
    pub received: Option<f64>,
    /// Frames sent in it.
    pub sent: u64,
    /// Frames that the DUT's kernel dropped, by `drop REASON in FUNCTION`.
    pub drops: Counters,
    /// Waits for locks; none if they could not be measured.
    pub waits: Option<Waits>,
}

/// Waits for locks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// Nanoseconds of all of them together.
    pub ns: u64,
    /// How often a CPU or a task waited.
    pub times: u64,
    /// Waits that are not counted, because they found no room.
    pub lost: u64,
    /// The file of the folded stacks, whose numbers are nanoseconds, below the campaign's folder; none if nothing waited.
    pub stacks: Option<String>,
    /// The functions that waited longest, with their callers, without the functions of the locks: their numbers are nanoseconds.
    pub functions: Vec<Function>,
    /// Waits that no frame had a part in: they are in none of the other numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Function>,
}
