//! `summary.json`: the results of slots, the answers to the plan's questions, and their limits.

use super::{
    Benchmarked, Bisected, Connections, Direction, Explanation, FloodRow, Goodput, HttpRow,
    KeptRow, LowLoad, ProgramTime, RulesPassed, SlotProfile, Stability, Stamped, UNSTABLE,
};
use crate::audit::Loss;
use crate::experiment::{Claim, Interest, Judgement};
use linerate_search::{Goal, Limits, Outcome};
use linerate_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `summary.json`: the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Format version: 2.
    pub version: u32,
    /// Why the campaign ended.
    pub stopped: Stopped,
    /// Time from the beginning of the first trial to the end of the last, in seconds; in a lab of hosts, until the hosts were
    /// restored.
    pub seconds: f64,
    /// How often the DUT was rebooted meanwhile.
    pub reboots: u32,
    /// Share of that time under load.
    pub load_share: f64,
    /// Share of that time in which trials waited for another linerate; absent: none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub waited_share: f64,
    /// Most memory that linerate itself held at once, in bytes.
    pub peak_memory: u64,
    /// One row per slot.
    pub rows: Vec<Row>,
    /// Ratios of interest, as the plan lists them.
    pub comparisons: Vec<Compared>,
    /// Factors with more than two levels, and those that set CPUs, as series.
    pub series: Vec<Series>,
    /// Results of the author's expectations.
    pub expectations: Vec<Expected>,
    /// Slots without a figure, or without a meaningful one.
    pub unmeasured: Vec<Unmeasured>,
    /// Limits of the results.
    pub warnings: Vec<Warning>,
    /// Where the time of frames went, of slots that were profiled.
    pub profiles: Vec<SlotProfile>,
    /// Other programs that used most CPU time meanwhile, in the embedded lab: on the CPUs of the threads that send and under load, where
    /// that was counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramTime>,
    /// How far frames go through rule files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RulesPassed>,
    /// Why slots forward no more frames.
    pub explanations: Vec<Explanation>,
    /// Results of searches, if rates were searched for.
    pub searches: Vec<Searched>,
    /// Results of RFC 2544's tests, if they were carried out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub benchmarks: Vec<Benchmarked>,
    /// Which element of a list made it slower, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bisection: Option<Bisected>,
}

/// Whether a share is 0: records leave it out.
fn is_none(share: &f64) -> bool {
    *share == 0.0
}

impl Summary {
    /// Makes the time longer, by seconds that are neither load nor a wait for another linerate.
    pub fn lengthen(&mut self, by: f64) {
        let before = self.seconds;
        self.seconds += by;
        if self.seconds > 0.0 {
            self.load_share *= before / self.seconds;
            self.waited_share *= before / self.seconds;
        }
    }
}

/// The search for the rate of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// The results, by goal.
    pub goals: Vec<SearchedGoal>,
    /// The loads that it could use.
    pub limits: Limits,
    /// Stalls of this machine a second: how often the tester alone lost frames at half of its rate. `None`: not measured.
    pub stalls: Option<f64>,
    /// Whether the DUT loses frames far below its rate. `None`: not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<Stability>,
    /// The trials at each load, in ascending order.
    pub loads: Vec<SearchedLoad>,
    /// Connections that the DUT's table holds, where a trial at a higher load would fill it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u64>,
    /// How it ended; `None`: the campaign ended first.
    pub ended: Option<Ended>,
}

impl Searched {
    /// The relevant lower bound of the first goal, in frames/s.
    pub fn throughput(&self) -> Option<f64> {
        self.goals.first()?.outcome.lower
    }

    /// The lowest load far below its rate for which the DUT is named unstable.
    pub fn unstable(&self) -> Option<&LowLoad> {
        self.stability.as_ref()?.unstable()
    }

    /// The share of trials of this length, in nanoseconds, that a stall disturbs, if stalls are independent of each other.
    pub fn disturbed(&self, trial_ns: u64) -> f64 {
        1.0 - (-self.stalls.unwrap_or(0.0) * trial_ns as f64 / 1e9).exp()
    }

    /// Whether trials were made, and no frame came through in any of them.
    pub fn is_silent(&self) -> bool {
        !self.loads.is_empty() && self.loads.iter().all(|load| load.loss >= 1.0)
    }

    /// Why the search has no regular result. `campaign`: why the campaign ended.
    pub fn stopped(&self, campaign: Stopped) -> &'static str {
        match self.ended {
            Some(Ended::Tester) if self.limits.max <= self.limits.min => {
                "the tester is too slow: it cannot keep the lowest load"
            }
            Some(Ended::Tester) => {
                "the tester was the cause: in three successive trials it could not keep the load, or lost frames itself"
            }
            Some(Ended::Table) => {
                "the DUT's table of connections (nf_conntrack_max) was full in three successive trials: use a shorter --duration, or a larger nf_conntrack_max"
            }
            Some(Ended::Silent) => SILENT,
            Some(Ended::Unstable) => UNSTABLE,
            Some(Ended::Known) => "the loss changes with time, so the bounds contradict each other",
            None if campaign == Stopped::Budget => "the time ran out",
            None => "the campaign ended before the search was complete",
        }
    }
}

/// The result of a search for one goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedGoal {
    /// As it was asked for.
    pub name: String,
    pub goal: Goal,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// 95 % interval, in frames/s, of the load where the goal begins to be missed; see [`linerate_search::interval`].
    pub interval: [Option<f64>; 2],
}

/// The trials of a search at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedLoad {
    /// Frames/s.
    pub load: f64,
    /// Trials, and those without loss.
    pub trials: usize,
    pub clean: usize,
    /// Median and largest loss ratio.
    pub loss: f64,
    pub most: f64,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All goals are known.
    Known,
    /// Three successive trials failed their audit, or the tester is slower than the lowest load.
    Tester,
    /// Three successive trials filled the DUT's table of connections.
    Table,
    /// Frames passed, and then none in three successive trials.
    Silent,
    /// No goal is left: the DUT loses frames far below its rate, and all goals are without loss.
    Unstable,
}

/// Message about a DUT through which no frame passed.
pub const NOTHING_PASSES: &str =
    "no frame comes through at any load: check whether the DUT forwards these frames";

/// Message about a DUT through which no more frames pass.
pub(super) const SILENT: &str =
    "frames passed at first, and then none in three successive trials: the DUT or a link went down";

/// A limit of the results, or of one figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// The slot that it is about; none where it is about all of them.
    pub slot: Option<usize>,
    /// In words.
    pub text: String,
    /// If it distorts the DUT's rate: the cause in a few words, which stand beside the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoils: Option<String>,
}

/// The result of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// Name of the slot.
    pub name: String,
    /// Trials whose audit held, and all of them.
    pub valid_trials: usize,
    /// All trials of this slot.
    pub trials: usize,
    /// Median offered load in frames/s; by the counts of the whole trials, where more came within their windows. 0 where it is not
    /// known, as in some imported records.
    pub offered: f64,
    /// Forwarding rate: received frames/s, median over valid trials with its 95 % interval.
    pub received: Estimate,
    /// Frames/s that the DUT took in, whether it passed them on or dropped them: equal to `received` if it drops nothing, and in
    /// a lab of hosts, where drops and overload cannot be distinguished.
    pub handled: Estimate,
    /// Lost share of the sent frames, over all valid trials together.
    pub loss_ratio: f64,
    /// Share of the frames that reached the DUT and that it dropped, over all valid trials together; 0 in a lab of hosts.
    pub dropped: f64,
    /// The results of each direction, if frames go in both; the other figures cover both directions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<DirectionRow>,
    /// Bit/s at layer 1 of the forwarding rate.
    pub bits_layer_1: f64,
    /// Bit/s at layer 2.
    pub bits_layer_2: f64,
    /// Nanoseconds per frame that the DUT took in, and CPU: CPUs of the generator / `handled` in inline mode, 1 / `handled` otherwise; 0 in simulations, at a rate that was asked for, and for connections in threaded mode.
    pub ns_per_frame: f64,
    /// Nanoseconds per frame without the tester's own part, if that is known (inline mode with a calibrated ceiling).
    pub dut_ns_per_frame: Option<f64>,
    /// Share of the line rate for this frame length, by link speed; with both directions, of the line rate of both.
    pub line_share: BTreeMap<String, f64>,
    /// Share of the line rate for simple IMIX at the same frame rate, by link speed.
    pub line_share_imix: BTreeMap<String, f64>,
    /// The limit of the rate.
    pub limit: Limit,
    /// Rate as a share of the tester's own; `None` for the tester itself, and where that is not known.
    pub ceiling: Option<Against>,
    /// Rate divided by the baseline's.
    pub baseline: Option<Against>,
    /// CPUs that were at least 95 % busy in the median trial, to the tick: the kernel counts in hundredths of a second.
    pub full_cpus: Vec<u32>,
    /// Latency of stamped frames in nanoseconds: min, p50, p99, p99.9, and p99.99 of 100,000 frames or more; pdv: p99.9 beyond the least
    /// of the same trial (RFC 5481, section 4.2). Empty where none arrived.
    pub latency_ns: BTreeMap<String, u64>,
    /// The largest error of the clocks in `latency_ns`, but not in pdv: on hosts, 0 where they have one clock; `None` in the embedded lab.
    pub clock_error_ns: Option<u64>,
    /// Whether `latency_ns` has the times to open to the SYN/ACK at the client, and not to the ACK at the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_by_client: bool,
    /// Whose stamps the latencies are of, where the plan asks for those of cards.
    pub stamped: Option<Stamped>,
    /// Frames that arrived more than once, and out of order, over valid trials.
    pub duplicates: u64,
    /// See `duplicates`.
    pub reordered: u64,
    /// Losses by place, over valid trials, largest first.
    pub losses: Vec<Loss>,
    /// The rules of a rule file that met most frames, the ten first, each with its frames in each frame that was sent, over valid trials.
    pub rules: Vec<(String, f64)>,
    /// Drift and noise of this slot, for the warnings.
    pub variation: f64,
    /// Of the tester alone: its 10th and its 90th percentile in frames/s, where they are further apart than on a quiet machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteady: Option<[f64; 2]>,
    /// How far the connections were in the last valid trial, where the DUT keeps states and could be asked.
    pub connections: Option<Connections>,
    /// Connections that were kept open at the same time, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptRow>,
    /// The flood that came with the connections, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood: Option<FloodRow>,
    /// Requests of HTTP, where they are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpRow>,
    /// Throughput and latency of TCP, where end hosts are measured.
    pub tcp: Option<Goodput>,
}

/// The result of one direction of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionRow {
    pub direction: Direction,
    /// Median offered load in frames/s.
    pub offered: f64,
    /// Received frames/s, median over valid trials with its 95 % interval.
    pub received: Estimate,
    /// Lost share of the sent frames, over all valid trials together.
    pub loss_ratio: f64,
}

/// The limit of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The tester itself: this is the ceiling that the others are compared with.
    Calibration,
    /// The DUT: the tester could have done clearly more, or the DUT's queues were full.
    Dut,
    /// The DUT dropped frames that it had taken in: the rate is the number of frames that pass, and does not give the cost of a
    /// frame.
    DutDrops,
    /// The tester, near its own ceiling or in an open loop whose frames all arrived: the DUT may be faster.
    Tester,
    /// The trials scatter too much to tell whether the DUT or the tester was the limit.
    Noisy,
    /// The rate that was asked for.
    OfferedLoad,
    /// The path between the end hosts: TCP fills its rate.
    Path,
    /// Nothing valid was measured, or a simulated DUT was offered no more than it takes.
    Unknown,
}

/// A slot that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmeasured {
    /// Number of the slot.
    pub slot: usize,
    /// Name of the slot.
    pub name: String,
    /// Why, as a sentence that lacks its name: `could not be measured: ...`.
    pub why: String,
}

/// A rate divided by another slot's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// The other slot.
    pub than: usize,
    /// The ratio, paired by block, with `n` blocks; `None` where no block has both.
    pub ratio: Option<Estimate>,
    /// Whether the interval of the ratio excludes 1.
    pub proven: bool,
    /// The ratio of the costs of a frame that the DUT handled, if one of the two variants drops frames.
    pub cost: Option<Estimate>,
}

impl Against {
    /// Nanoseconds that a frame takes longer than in the other slot, where it takes so many.
    pub fn longer_ns(&self, other_ns: f64) -> Option<Estimate> {
        longer_ns(other_ns, self.cost.or(self.ratio.map(Estimate::inverse))?)
    }
}

/// Nanoseconds that a frame takes longer, by the ratio of the times of a frame. `than_ns`: the time that the ratio is to.
pub fn longer_ns(than_ns: f64, ratio: Estimate) -> Option<Estimate> {
    ratio.map(|times| than_ns * (times - 1.0)).finite()
}

/// A ratio of interest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Numerator.
    pub of: usize,
    /// Rate divided by another's.
    #[serde(flatten)]
    pub against: Against,
    /// Why it is of interest.
    pub why: Interest,
    /// The judgement of ministat on the two sets of rates.
    pub ministat: Option<Ministat>,
    /// Present if the ratios paired by block say something else.
    pub disagreement: Option<Disagreement>,
}

/// ministat's verdict, at 95 % confidence, in the arithmetic of today's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ministat {
    /// Whether it is proven.
    pub proven: bool,
    /// The difference of the averages in percent of A's.
    pub percent: f64,
    /// Half the width of its interval, in percent.
    pub percent_error: f64,
}

/// How ministat and paired ratios disagree.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Disagreement {
    /// Pairs prove a difference that ministat does not see.
    OnlyPairs,
    /// ministat proves a difference that pairs do not.
    OnlyMinistat,
    /// Each proves the opposite of the other.
    Opposite,
}

/// A variant over the levels of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// The factor's index.
    pub factor: usize,
    /// The variant, with the levels of the other factors.
    pub name: String,
    /// One for each level.
    pub points: Vec<Point>,
}

/// A point of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Cell of the point.
    pub cell: usize,
    /// The level.
    pub level: String,
    /// The level as a number, where all of the factor are.
    pub number: Option<f64>,
    /// The rate divided by the first level's; `None` for that itself, and where no block has both.
    pub to_first: Option<Estimate>,
}

/// The result of an expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// In words.
    pub words: String,
    /// Why the author expects it.
    pub because: String,
    /// Line of the plan.
    pub line: usize,
    /// The expected result.
    pub claim: Claim,
    /// Each pair of cells that it is about.
    pub pairs: Vec<JudgedPair>,
    /// Met if all are that were measured, missed if one is; `None` where it is not judged.
    pub judgement: Option<Judgement>,
    /// Why it is not judged, or not for all of its pairs.
    pub reasons: Vec<String>,
}

/// The result of an expectation, for two cells, or one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedPair {
    /// The cell.
    pub of: usize,
    /// The reference cell; `None` for rates.
    pub than: Option<usize>,
    /// The ratio, or the rate in frames/s.
    pub estimate: Option<Estimate>,
    /// The judgement; `None` without a measurement.
    pub judgement: Option<Judgement>,
}

impl Summary {
    /// Causes outside the DUT that distorted the rates of all slots, in a few words each.
    pub fn disturbances(&self) -> impl Iterator<Item = &str> {
        let of_all = self
            .warnings
            .iter()
            .filter(|warning| warning.slot.is_none());
        of_all.filter_map(|warning| warning.spoils.as_deref())
    }

    /// Why the campaign ended, in words.
    pub fn ended(&self) -> &'static str {
        match self.stopped {
            Stopped::Precise if !self.benchmarks.is_empty() => "all tests are complete",
            Stopped::Precise if !self.searches.is_empty() => "all searches are complete",
            Stopped::Precise if self.bisection.is_some() => "the bisection is complete",
            Stopped::Precise => "all intervals are narrow enough",
            Stopped::Budget => "the time is used up",
            Stopped::Trials => "all trials are done",
            Stopped::Interrupted => "it was interrupted",
            Stopped::Failed => "something failed",
        }
    }
}

/// Why a campaign ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// All intervals are narrow enough.
    Precise,
    /// The time is used up.
    Budget,
    /// The number of trials asked for has been run.
    Trials,
    /// The user interrupted it.
    Interrupted,
    /// Something failed.
    Failed,
}
