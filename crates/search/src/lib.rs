//! Searches for a rate: the choice of the next load, and the result, which follows from the trials alone.
//!
//! A search requests trials and gets their results; it never sees a clock. The same results give the same requests, so a search
//! can continue from records. Loads are in frames/s, times in nanoseconds, loss ratios in shares of the intended frames.

#![forbid(unsafe_code)]

mod bisection;
mod bursts;
mod class;
mod curve;
mod goal;
mod grid;
mod interval;
mod mlr;
pub mod reference;

pub use bisection::Bisection;
pub use bursts::Bursts;
pub use class::{Class, Irregular, Outcome, class, outcome};
pub use curve::{Curve, STEPS};
pub use goal::{Goal, GoalError, PER_BILLION};
pub use interval::interval;
pub use mlr::Mlr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A trial that a search requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Frames/s.
    pub load: f64,
    /// Nanoseconds.
    pub duration_ns: u64,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The intended load, in frames/s.
    pub load: f64,
    /// The intended duration, in nanoseconds.
    pub duration_ns: u64,
    /// The duration that counts in sums, in nanoseconds: the intended duration, unless the tester gives another (RFC 9971, section 4.5.8).
    pub effective_ns: u64,
    /// The share of the intended frames that did not arrive, 0..=1. Frames that were not sent count as lost.
    pub loss: f64,
}

/// A search: chooses the loads of trials.
pub trait Search {
    /// The next trial, the same until it is observed; `None`: the search is over.
    fn next(&mut self) -> Option<Request>;

    /// Takes the result of the trial requested last.
    fn observe(&mut self, trial: Trial);

    /// The highest good load and the lowest bad one, in frames/s, if the search decides about each load at once. `None`: the bounds
    /// follow from a goal and all trials ([`outcome`]).
    fn bounds(&self) -> Option<(Option<f64>, Option<f64>)> {
        None
    }
}

/// The range of loads of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Frames/s, above 0.
    pub min: f64,
    /// Frames/s, above the minimum.
    pub max: f64,
}

impl Limits {
    /// # Errors
    /// One is not above 0 or not finite, or the minimum is not below the maximum.
    pub fn new(min: f64, max: f64) -> Result<Limits, GoalError> {
        if min.is_finite() && max.is_finite() && 0.0 < min && min < max {
            return Ok(Limits { min, max });
        }
        Err(GoalError::Limits { min, max })
    }
}
