//! The loss at falling loads (RFC 2544, section 26.3).

use crate::{Request, Search, Trial};

/// The steps that a loss curve can have, as shares of the highest load.
pub const STEPS: std::ops::RangeInclusive<f64> = 0.001..=0.5;

/// Trials at the highest load and at each load a step below, until two successive ones lose nothing.
#[derive(Debug, Clone, Copy)]
pub struct Curve {
    max: f64,
    /// The step, as a share of the highest load.
    step: f64,
    duration_ns: u64,
    made: u32,
    /// Successive trials without loss.
    good: u32,
}

impl Curve {
    /// `max`: frames/s. `step`: as a share of it; RFC 2544 allows at most 0.1.
    pub fn new(max: f64, step: f64, duration_ns: u64) -> Curve {
        Curve {
            max,
            step: step.clamp(*STEPS.start(), *STEPS.end()),
            duration_ns,
            made: 0,
            good: 0,
        }
    }

    /// This curve from another load downwards.
    pub fn from(&self, max: f64) -> Curve {
        Curve::new(max, self.step, self.duration_ns)
    }
}

impl Search for Curve {
    fn next(&mut self) -> Option<Request> {
        let share = 1.0 - f64::from(self.made) * self.step;
        // The rest of a step that divides the whole is a rounding error.
        (self.good < 2 && share > self.step / 2.0).then_some(Request {
            load: self.max * share,
            duration_ns: self.duration_ns,
        })
    }

    fn observe(&mut self, trial: Trial) {
        self.made += 1;
        self.good = if trial.loss > 0.0 { 0 } else { self.good + 1 };
    }
}
