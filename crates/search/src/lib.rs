//! Searches for a rate: which load comes next, and the result that follows from the trials alone.
//!
//! A search is told of each trial that it asked for, and never sees a clock: the same answers give the same requests, so a search
//! continues from records. Loads are frames/s, times nanoseconds, loss ratios shares of the frames that should have been sent.

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

use serde::{Deserialize, Serialize};

/// A trial that a search asks for.
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
    /// The duration that counts in sums, in nanoseconds: the intended one unless the tester says otherwise (RFC 9971, section 4.5.8).
    pub effective_ns: u64,
    /// The share of the intended frames that did not arrive, 0..=1. Frames that were not sent are lost.
    pub loss: f64,
}

/// Which load comes next.
pub trait Search {
    /// The next trial, the same until it is observed; `None`: the search is over.
    fn next(&mut self) -> Option<Request>;

    /// Learns how the trial went that was asked for last.
    fn observe(&mut self, trial: Trial);

    /// The highest good load and the lowest bad one, in frames/s, of a search that decides about each load at once. `None`: the bounds
    /// follow from a goal and all trials.
    fn bounds(&self) -> Option<(Option<f64>, Option<f64>)> {
        None
    }
}

/// The range of loads that a search may use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
