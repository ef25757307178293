//! Bisection: the common habit, and the search that RFC 9004 asks for.

use crate::goal::GoalError;
use crate::{Limits, Request, Search, Trial};

/// Halves the range between the highest load without loss and the lowest with loss, with one trial for each load.
///
/// With retries it is the binary search with loss verification of RFC 9004, section 6.2: a load counts as lossy if N further trials lose
/// frames as well.
#[derive(Debug, Clone, Copy)]
pub struct Bisection {
    limits: Limits,
    /// The highest loss ratio of a good trial.
    loss: f64,
    /// The largest distance of the bounds at the end, relative to the upper bound.
    width: f64,
    duration_ns: u64,
    /// Further trials of a load with loss.
    retries: u32,
    low: f64,
    high: Option<f64>,
    /// Trials at the present load that lost too much.
    lossy: u32,
}

impl Bisection {
    /// # Errors
    /// A loss ratio or width out of range.
    pub fn new(
        limits: Limits,
        loss: f64,
        width: f64,
        duration_ns: u64,
        retries: u32,
    ) -> Result<Bisection, GoalError> {
        if !(0.0..1.0).contains(&loss) {
            return Err(GoalError::Loss(loss));
        }
        if !(width > 0.0 && width < 1.0) {
            return Err(GoalError::Width(width));
        }
        Ok(Bisection {
            limits,
            loss,
            width,
            duration_ns,
            retries,
            low: 0.0,
            high: None,
            lossy: 0,
        })
    }

    fn load(&self) -> Option<f64> {
        let Some(high) = self.high else {
            return Some(self.limits.max).filter(|max| self.low < *max);
        };
        let done = (high - self.low) / high <= self.width || high <= self.limits.min;
        (!done).then_some(((self.low + high) / 2.0).max(self.limits.min))
    }
}

impl Search for Bisection {
    fn next(&mut self) -> Option<Request> {
        Some(Request {
            load: self.load()?,
            duration_ns: self.duration_ns,
        })
    }

    fn observe(&mut self, trial: Trial) {
        let Some(load) = self.load() else { return };
        if trial.loss <= self.loss {
            (self.low, self.lossy) = (load, 0);
        } else if self.lossy == self.retries {
            (self.high, self.lossy) = (Some(load), 0);
        } else {
            self.lossy += 1;
        }
    }

    fn bounds(&self) -> Option<(Option<f64>, Option<f64>)> {
        Some((Some(self.low).filter(|low| *low > 0.0), self.high))
    }
}
