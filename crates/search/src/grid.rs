//! Loads on a logarithmic grid: a relative width is the same number of steps everywhere.

use crate::Limits;

/// Steps of the finest grid.
const MOST: i64 = 10_000_000;

/// A grid of loads, from 0 (the smallest load) to `steps` (the largest).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    limits: Limits,
    pub steps: i64,
}

impl Grid {
    /// The coarsest grid on which each width is nearly a whole number of steps, and not above it.
    pub fn new(limits: Limits, widths: &[f64]) -> Grid {
        let range = (limits.max / limits.min).ln();
        let fits = |steps: &i64| {
            widths.iter().all(|width| {
                let exact = -(-width).ln_1p() / range * *steps as f64;
                (0.99..=0.999_999).contains(&(exact.floor() / exact))
            })
        };
        Grid {
            limits,
            steps: (1..MOST).find(fits).unwrap_or(MOST),
        }
    }

    /// The whole steps within a relative width, at least one.
    pub fn width(&self, width: f64) -> i64 {
        let range = (self.limits.max / self.limits.min).ln();
        ((-(-width).ln_1p() / range * self.steps as f64).floor() as i64).max(1)
    }

    /// The load of a step, in frames/s.
    pub fn load(&self, step: i64) -> f64 {
        match step {
            ..=0 => self.limits.min,
            step if step >= self.steps => self.limits.max,
            step => {
                let share = step as f64 / self.steps as f64;
                self.limits.min * (share * (self.limits.max / self.limits.min).ln()).exp()
            }
        }
    }

    /// The highest step whose load is not above this one.
    pub fn step(&self, load: f64) -> i64 {
        if load <= self.limits.min {
            return 0;
        }
        let range = (self.limits.max / self.limits.min).ln();
        let near = ((load / self.limits.min).ln() / range * self.steps as f64).round() as i64;
        let near = near.clamp(0, self.steps);
        if self.load(near) > load {
            near - 1
        } else {
            near
        }
    }
}
