//! Goals of searches (RFC 9971, section 4.6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exceed ratio 1: exceed ratios are whole billionths.
pub const PER_BILLION: u32 = 1_000_000_000;
/// The longest time of a goal, in nanoseconds: sums of times stay exact.
const MOST_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;

/// A goal: at most the share `exceed` of the trials' time may be in trials that lose more than the share `loss` of their frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Goal {
    /// The highest loss ratio of a good trial, from 0 to below 1.
    pub loss: f64,
    /// The largest share of the time in bad trials, in billionths, below [`PER_BILLION`]. It is exact, because a load with as many good
    /// trials as bad ones lies on the limit.
    pub exceed: u32,
    /// The largest distance of the bounds at the end, relative to the upper bound, between 0 and 1.
    pub width: f64,
    /// Duration of the first trials, in nanoseconds.
    pub initial_ns: u64,
    /// Duration of a full trial, in nanoseconds.
    pub final_ns: u64,
    /// The total duration of trials that decides about a load, in nanoseconds.
    pub sum_ns: u64,
    /// Number of coarser goals on the way to this one; each has twice the width of the next.
    pub coarser: u32,
}

/// A goal or range of loads that is not possible.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum GoalError {
    #[error("the loss ratio {0} is not at least 0 and below 1")]
    Loss(f64),
    #[error("the exceed ratio {0} is not at least 0 and below 1")]
    Exceed(f64),
    #[error(
        "the width {0} is not above 0 and below 1: it is the distance of the bounds, relative to the upper bound"
    )]
    Width(f64),
    #[error("{0} lasts {1} s; allowed are 1 ms to 30 days")]
    Time(&'static str, f64),
    #[error(
        "the first trials last {initial} s and the final ones {last} s: first trials cannot be longer than final ones"
    )]
    Initial { initial: f64, last: f64 },
    #[error(
        "the lowest load, {min} frames/s, must be above 0 and below the highest, {max} frames/s"
    )]
    Limits { min: f64, max: f64 },
    #[error(
        "the step {0} is not from 0.001 to 0.5: it is the distance of loads as a share of the highest"
    )]
    Step(f64),
    #[error(
        "goals have final trials of {0} s and of {1} s: RFC 9971 requires one duration for all goals of a search"
    )]
    Durations(f64, f64),
    #[error("a search needs at least one goal")]
    None,
    #[error(
        "a trial of {seconds} s at {load} frames/s has less than one frame: use longer trials or a higher minimum"
    )]
    Frames { load: f64, seconds: f64 },
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Goal {
    /// A goal with the width 0.5 % and two coarser goals, whose trials all last `final_ns`.
    pub fn new(loss: f64, exceed: u32, final_ns: u64, sum_ns: u64) -> Goal {
        Goal {
            loss,
            exceed,
            width: 0.005,
            initial_ns: final_ns,
            final_ns,
            sum_ns,
            coarser: 2,
        }
    }

    /// Checks the attributes by RFC 9971.
    ///
    /// # Errors
    /// The first attribute out of range.
    pub fn check(&self) -> Result<(), GoalError> {
        if !(0.0..1.0).contains(&self.loss) {
            return Err(GoalError::Loss(self.loss));
        }
        if self.exceed >= PER_BILLION {
            return Err(GoalError::Exceed(self.exceed_ratio()));
        }
        if !(self.width > 0.0 && self.width < 1.0) {
            return Err(GoalError::Width(self.width));
        }
        let times = [
            ("a first trial", self.initial_ns),
            ("a final trial", self.final_ns),
            ("the sum", self.sum_ns),
        ];
        for (name, ns) in times {
            if !(1_000_000..=MOST_NS).contains(&ns) {
                return Err(GoalError::Time(name, seconds(ns)));
            }
        }
        if self.initial_ns > self.final_ns {
            return Err(GoalError::Initial {
                initial: seconds(self.initial_ns),
                last: seconds(self.final_ns),
            });
        }
        Ok(())
    }

    /// Checks the goals of one search within its limits.
    ///
    /// # Errors
    /// The first fault.
    pub fn check_all(goals: &[Goal], limits: super::Limits) -> Result<(), GoalError> {
        let first = goals.first().ok_or(GoalError::None)?;
        for goal in goals {
            goal.check()?;
            if goal.final_ns != first.final_ns {
                return Err(GoalError::Durations(
                    seconds(first.final_ns),
                    seconds(goal.final_ns),
                ));
            }
            if limits.min * seconds(goal.initial_ns) < 1.0 {
                return Err(GoalError::Frames {
                    load: limits.min,
                    seconds: seconds(goal.initial_ns),
                });
            }
        }
        Ok(())
    }

    /// The exceed ratio, from 0 to below 1.
    pub fn exceed_ratio(&self) -> f64 {
        f64::from(self.exceed) / f64::from(PER_BILLION)
    }
}
