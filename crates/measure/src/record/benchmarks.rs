//! Results of the tests of RFC 2544 and later RFCs. Times are in nanoseconds unless a name says otherwise, rates in frames/s. With frames
//! in both directions, rates are the mean of the directions, and counts of frames cover both.

use super::verdict::SILENT;
use super::{DutEvent, UNSTABLE};
use crate::experiment::Benchmark;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tests of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Benchmarked {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// The load that is 100 %.
    pub maximum: Option<Maximum>,
    pub tests: Vec<Tested>,
}

/// The load that is 100 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Maximum {
    pub fps: f64,
    /// Whether it is the theoretical rate of a medium. Otherwise it is the highest load that the tester keeps, because virtual links have
    /// no medium.
    pub medium: bool,
    /// The highest load that the tester keeps.
    pub tester_fps: f64,
    /// Where the tester did not keep 95 % of its own rate beside the busy DUT: the least rate that it offered in three failed trials.
    /// The highest load is then 95 % of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<f64>,
}

impl Maximum {
    /// Whether it is the rate of a medium that the tester can fill.
    pub fn is_line(self) -> bool {
        self.medium && self.tester_fps >= self.fps
    }
}

/// A test of a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    pub test: Benchmark,
    /// Why it was not run, or is not complete; `None`: it is complete.
    pub why: Option<Why>,
    /// Valid trials, and all.
    pub valid_trials: usize,
    pub trials: usize,
    pub figures: Figures,
}

/// Why a test was not run, or is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The campaign ended before it.
    Unfinished,
    /// Three successive trials failed their audit, or the tester has no rate.
    Tester,
    /// Even the lowest load loses frames.
    NoThroughput,
    /// The highest load loses nothing: no burst is too long, no load is too high (RFC 9004, section 6.1).
    AtMaximum,
    /// The plan has no event.
    NoEvent,
    /// A trial at this load has less than one frame.
    NoFrame,
    /// Frames passed, and then none in three successive trials.
    Silent,
    /// The DUT loses frames far below its rate.
    Unstable,
}

impl Why {
    /// The reason in words.
    pub fn words(self, test: Benchmark) -> &'static str {
        match (self, test) {
            (Why::Unfinished, _) => "the campaign ended before this test was complete",
            (Why::Tester, _) => {
                "the tester was the cause: in three successive trials it could not keep the load, or lost frames itself; lower the load with --link-speed, or use a faster generator"
            }
            (Why::NoThroughput, Benchmark::Throughput) => {
                "even the lowest load loses frames: check whether the DUT forwards these frames and, with bursts, whether its queues hold a burst"
            }
            (Why::NoThroughput, _) => {
                "even the lowest load loses frames, so the test has no throughput to run at: check whether the DUT forwards these frames"
            }
            (Why::AtMaximum, Benchmark::Recovery) => {
                "the highest load loses nothing: no load is too high for this DUT; the test needs a faster link or tester"
            }
            (Why::AtMaximum, _) => {
                "the highest load loses nothing: no burst is too long for this DUT (RFC 9004, section 6.1); the test needs a faster link or tester"
            }
            (Why::NoEvent, _) => "the test needs an event: name one with --event, or in the plan",
            (Why::Silent, _) => SILENT,
            (Why::Unstable, _) => UNSTABLE,
            (Why::NoFrame, _) => "a trial at this load has less than one frame: use longer trials",
        }
    }
}

/// The results of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Figures {
    #[default]
    None,
    Throughput(Throughput),
    Latency(Latency),
    DelayVariation(DelayVariation),
    FrameLoss(Vec<AtLoad>),
    BackToBack(BackToBack),
    Recovery(Recovery),
    Reset(Reset),
    ForwardingRate(ForwardingRate),
}

/// Section 26.1. The search with its bounds is in [`super::Searched`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// The highest load without loss.
    pub fps: f64,
    /// The lowest load with loss; `None`: the highest load lost nothing.
    pub upper: Option<f64>,
    /// Frames of the longest trial at the throughput, and its seconds.
    pub frames: u64,
    pub seconds: f64,
    /// Mean time of one of its bursts, in seconds, where it came in bursts (section 21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_s: Option<f64>,
}

/// Section 26.2, and RFC 8219, section 7.2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    pub load: f64,
    pub runs: Vec<LatencyRun>,
    /// Mean over the runs of the first tagged frame's latency (RFC 2544).
    pub mean_ns: f64,
    /// Medians over the runs of typical and worst-case latency (RFC 8219).
    pub typical_ns: f64,
    pub worst_ns: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRun {
    /// Frames that were tagged in the second half, and the latency of the first.
    pub tags: usize,
    pub first_ns: u64,
    /// Median, and 99.9th percentile.
    pub typical_ns: f64,
    pub worst_ns: f64,
}

/// RFC 8219, section 7.3: packet delay variation, and inter-packet delay variation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayVariation {
    pub load: f64,
    pub runs: Vec<VariationRun>,
    /// Medians over the runs.
    pub pdv_ns: f64,
    /// Of the least, the median and the largest difference of successive delays.
    pub ipdv_ns: [f64; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariationRun {
    pub frames: u64,
    /// 99.9th percentile less the least.
    pub pdv_ns: f64,
    /// The least, the median and the largest difference of successive delays.
    pub ipdv_ns: [f64; 3],
    /// Pairs that were left out because a frame between them was lost.
    pub broken: u64,
}

/// The loss and the forwarding rate at a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AtLoad {
    /// As asked for, and as a share of the maximum.
    pub load: f64,
    pub share: f64,
    /// As measured.
    pub offered: f64,
    pub forwarded: f64,
    pub sent: u64,
    pub lost: u64,
}

/// Section 26.4, and RFC 9004.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackToBack {
    /// The longest burst without loss, in frames, of each search.
    pub bursts: Vec<u64>,
    pub mean: f64,
    pub least: u64,
    pub most: u64,
    /// `None` for one search.
    pub deviation: Option<f64>,
    /// Buffer time in seconds by the length of the burst, and corrected for the frames that the DUT forwards meanwhile.
    pub implied_s: f64,
    pub corrected_s: f64,
    /// Corrected by the measured rate of the bursts, if the tester knows it.
    pub actual_s: Option<f64>,
    pub throughput: f64,
    /// Longest burst allowed, and the distance of the two lengths that ended a search, in frames.
    pub limit: u64,
    pub step: u64,
}

/// Section 26.5.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    pub throughput: f64,
    /// The load before the rate falls, and after it.
    pub overload: f64,
    pub reduced: f64,
    pub runs: Vec<RecoveryRun>,
    /// Mean over the runs that recovered.
    pub mean_ns: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryRun {
    /// Lost frames of the whole trial.
    pub lost: u64,
    /// From the fall of the rate to the last lost frame; 0 if none was lost after the fall. `None`: frames were lost until the end.
    pub ns: Option<u64>,
}

/// Section 26.6, and RFC 6201.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reset {
    /// The event of the first run.
    pub event: DutEvent,
    pub load: f64,
    pub runs: Vec<ResetRun>,
    /// Means over the runs in which frames passed again.
    pub by_loss_ns: Option<f64>,
    pub by_stamps_ns: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResetRun {
    pub lost: u64,
    /// Lost frames divided by the offered rate.
    pub by_loss_ns: f64,
    /// From the last frame before the outage to the first after it; `None`: no outage was seen.
    pub by_stamps_ns: Option<u64>,
    /// Whether frames passed again before the load ended.
    pub back: bool,
}

/// RFC 2889, section 5.1 (terms of RFC 2285).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingRate {
    /// The forwarding rate at the maximum offered load, and that load.
    pub frmol: f64,
    pub frmol_offered: f64,
    /// The highest forwarding rate at any offered load, and that load.
    pub mfr: f64,
    pub mfr_offered: f64,
    pub loads: Vec<AtLoad>,
}
