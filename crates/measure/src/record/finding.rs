//! Why a slot forwards no more frames: findings with their evidence.

use super::OnPath;
use linerate_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a slot forwards no more frames, as far as its records tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// Causes that were found, the strongest first.
    pub findings: Vec<Finding>,
    /// Causes that were looked for and are not there.
    pub absent: Vec<String>,
    /// Causes that could not be looked for.
    pub not_examined: Vec<NotExamined>,
    /// Where the time of a frame goes: all stages, in the order of its way; empty where the slot was not profiled.
    pub stages: Vec<Stage>,
    /// Of a DUT that is two routers in a row, the parts of this time that are known to be the first one's and the second one's; the rest may
    /// be of either, or of the tester.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routers: Vec<Stage>,
    /// How frames are spread over receive queues, or over the CPUs of receive packet steering; empty where they come to one place.
    pub balance: Vec<Balance>,
    /// Things that frames meet beyond plain routing; `None` where the DUT was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<OnPath>,
}

/// A place that takes a share of the frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Balance {
    /// Kind of the place.
    pub place: Place,
    /// Number of the place.
    pub number: u32,
    /// Share of a trial's frames, 0..1: the least, the median and the greatest of all valid trials.
    pub shares: [f64; 3],
}

/// A kind of places for received frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A receive queue of the inside interface.
    Queue,
    /// A CPU, by the frames that entered its network stack.
    Cpu,
}

/// A cause that was not looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotExamined {
    /// The cause.
    pub cause: String,
    /// Reason: what was lacking.
    pub reason: String,
}

/// A part of a frame's way through the DUT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Name of the stage: `route lookup`.
    pub name: String,
    /// Nanoseconds of a frame, without the stages that it called.
    pub ns: f64,
    /// Standard error of `ns`, of the number of samples.
    pub error: f64,
}

/// A cause that holds the rate down, or may do so.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The rule that found it: `linear-rules`.
    pub cause: String,
    /// The finding in one sentence.
    pub statement: String,
    /// How it is known.
    pub strength: Strength,
    /// The figures that it rests on.
    pub evidence: Vec<String>,
    /// How the cause costs frames or time.
    pub mechanism: String,
    /// How to change it, for each system that it is known for.
    pub changes: Vec<Change>,
    /// The gain to expect, and where that figure comes from.
    pub gain: String,
    /// The part of the frames or of their time that it takes, 0..1. Findings of the same strength are ranked by it.
    pub weight: f64,
    /// The change as keys of a plan's variant (docs/plans.md), merged into those of the slot as `from` does it; `null` removes a
    /// key. `None` where a plan cannot make it.
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub patch: Option<Value>,
    /// Why a plan cannot make it; `None` with a patch.
    pub untried: Option<String>,
    /// The answer of the experiment with this change; `None` before it.
    pub proof: Option<Proof>,
}

/// The answer of an experiment that measures a DUT with a change beside the DUT without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The answer.
    pub verdict: Verdict,
    /// The rate with the change divided by that without, paired by block; `None` where it was not measured, or one is 0.
    pub ratio: Option<Estimate>,
    /// The folder of its records.
    pub records: Option<String>,
    /// Why it was not measured, or why the ratio does not decide; or the rates, where one is 0.
    pub reason: Option<String>,
}

/// The effect of a change on a cause, by an experiment that looked for it in the DUT as measured and in the DUT with the change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum After {
    /// The DUT as measured has it, with this part of the frames or of their time, and the DUT with the change does not.
    Gone(f64),
    /// The DUT with the change has it as well.
    StillThere,
    /// The DUT as measured does not show it.
    NotShown,
    /// Nothing tells.
    Unknown,
}

impl After {
    /// By the explanations of the DUT as measured and with the change.
    pub fn of(cause: &str, then: Option<&Explanation>, now: Option<&Explanation>) -> After {
        let (Some(then), Some(now)) = (then, now) else {
            return After::Unknown;
        };
        let is_absent = |of: &Explanation| of.absent.iter().any(|absent| absent == cause);
        match (then.weight(cause), now.weight(cause)) {
            (_, Some(_)) => After::StillThere,
            (Some(weight), None) if is_absent(now) => After::Gone(weight),
            (None, None) if is_absent(then) && is_absent(now) => After::NotShown,
            _ => After::Unknown,
        }
    }
}

impl Explanation {
    /// The part of the frames or of their time that a cause takes; `None` where it was not found.
    fn weight(&self, cause: &str) -> Option<f64> {
        let found = self.findings.iter().filter(|of| of.cause == cause);
        found.map(|finding| finding.weight).reduce(f64::max)
    }
}

/// Whether a change makes a DUT faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval of the ratio is above 1, and the cause is gone with the change.
    Proven,
    /// The whole interval is below a gain that matters, although the cause is gone.
    Refuted,
    /// The interval allows both, or the change did not remove the cause, or the experiment does not show it.
    Undecided,
    /// The change was not measured.
    NotRun,
}

/// A gain from which on a change matters.
const MATTERS: f64 = 0.02;

impl Proof {
    /// The answer of a ratio.
    pub fn of(ratio: Estimate, records: String) -> Proof {
        let verdict = match (ratio.low, ratio.high) {
            (Some(low), _) if low > 1.0 => Verdict::Proven,
            (_, Some(high)) if high < 1.0 + MATTERS => Verdict::Refuted,
            _ => Verdict::Undecided,
        };
        Proof {
            verdict,
            ratio: Some(ratio),
            records: Some(records),
            reason: None,
        }
    }

    /// The answer about a cause. One that is still there, or may be, is not refuted by a rate that stays the same. Nor is it proven by a
    /// gain, and neither is one that the experiment does not show.
    #[must_use]
    pub fn about(self, after: After) -> Proof {
        let high = self.ratio.and_then(|ratio| ratio.high);
        let reason = match (after, self.verdict) {
            (_, Verdict::NotRun | Verdict::Undecided) => return self,
            (After::StillThere, _) => "the change did not remove the cause here",
            (After::NotShown, _) => {
                "the experiment does not show the cause, with the change or without it"
            }
            (After::Unknown, _) => "nothing tells whether the change removed the cause",
            // Half of the gain that the cause's part of the time would bring.
            (After::Gone(weight), Verdict::Refuted)
                if high.is_some_and(|high| high >= 1.0 + weight / (1.0 - weight) / 2.0) =>
            {
                "the cause takes so little that a gain as small as this may be its own"
            }
            (After::Gone(_), _) => return self,
        };
        Proof {
            verdict: Verdict::Undecided,
            reason: Some(reason.into()),
            ..self
        }
    }

    /// The answer where the DUT forwards nothing without the change: both rates, received frames/s. `None` unless their intervals
    /// say so, or their medians where the trials are too few for intervals.
    pub fn of_nothing(before: Estimate, after: Estimate, records: String) -> Option<Proof> {
        let most = before.high.unwrap_or(before.median);
        let proven = before.n > 0 && most == 0.0 && after.low.unwrap_or(after.median) > 0.0;
        let rate = after.median;
        let reason = format!(
            "the DUT forwards no frame as measured, and {rate:.0} frames/s with the change"
        );
        let of = |records| Proof {
            verdict: Verdict::Proven,
            ratio: None,
            records,
            reason: Some(reason),
        };
        proven.then(|| of(Some(records)))
    }

    /// No answer.
    pub fn not_run(reason: impl Into<String>) -> Proof {
        Proof {
            verdict: Verdict::NotRun,
            ratio: None,
            records: None,
            reason: Some(reason.into()),
        }
    }
}

/// How a cause is known.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// The DUT is set up so, and others lost rate by it: nothing measured here shows it.
    #[default]
    Possible,
    /// Counters or settings imply it.
    Inferred,
    /// The cost was measured here.
    Observed,
}

/// How to change a setting, and how to undo that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The system: `Linux`.
    pub system: String,
    /// The commands.
    pub commands: String,
    /// The commands that undo them.
    pub undo: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_decide() {
        let verdict = |low: Option<f64>, high: Option<f64>| {
            Proof::of(
                Estimate {
                    median: 1.01,
                    low,
                    high,
                    n: 9,
                },
                String::new(),
            )
            .verdict
        };
        assert_eq!(verdict(Some(1.001), Some(1.01)), Verdict::Proven);
        assert_eq!(verdict(Some(0.9), Some(0.99)), Verdict::Refuted);
        assert_eq!(verdict(Some(0.99), Some(1.019)), Verdict::Refuted);
        assert_eq!(verdict(Some(0.99), Some(1.03)), Verdict::Undecided);
        assert_eq!(verdict(None, None), Verdict::Undecided);
    }

    #[test]
    fn a_cause_that_is_still_there_is_neither_proven_nor_refuted() {
        let about = |range: [f64; 2], after| {
            let [low, high] = range.map(Some);
            Proof::of(
                Estimate {
                    median: 1.0,
                    low,
                    high,
                    n: 9,
                },
                String::new(),
            )
            .about(after)
            .verdict
        };
        use After::{Gone, NotShown, StillThere, Unknown};
        use Verdict::{Proven, Refuted, Undecided};
        let (gain, none) = ([1.1, 1.2], [0.99, 1.01]);
        assert_eq!(
            [Gone(0.2), StillThere, NotShown, Unknown].map(|after| about(gain, after)),
            [Proven, Undecided, Undecided, Undecided]
        );
        assert_eq!(
            [Gone(0.2), StillThere, NotShown, Unknown].map(|after| about(none, after)),
            [Refuted, Undecided, Undecided, Undecided]
        );
        // A cause of 1.5 % of the time cannot bring a gain of 2 %.
        assert_eq!(about(none, Gone(0.015)), Undecided);
        assert_eq!(about([0.99, 1.005], Gone(0.015)), Refuted);
        let explained = |found: &[&str], absent: &[&str]| Explanation {
            findings: found
                .iter()
                .map(|cause| Finding {
                    cause: (*cause).into(),
                    weight: 0.4,
                    ..Finding::default()
                })
                .collect(),
            absent: absent.iter().map(|cause| (*cause).into()).collect(),
            ..Explanation::default()
        };
        let then = explained(&["bridge", "logging", "steal"], &["bridge-netfilter"]);
        let now = explained(&["bridge"], &["logging", "bridge-netfilter"]);
        let after = |cause| After::of(cause, Some(&then), Some(&now));
        assert_eq!(
            ["bridge", "logging", "bridge-netfilter", "steal"].map(after),
            [StillThere, Gone(0.4), NotShown, Unknown]
        );
        assert_eq!(After::of("logging", Some(&then), None), Unknown);
    }
}
