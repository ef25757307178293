//! Intervals of a median that stay valid under several looks at them.
//!
//! Whether a value lies below the true median is the toss of a fair coin, whatever the distribution. So the number of values
//! below it is a symmetric random walk, and the probability that it ever leaves given bounds can be computed exactly, without any
//! assumption on shape or spread. Bounds for each look are found from how much of the error of 5 % may have been spent by then
//! (K. K. G. Lan & D. L. DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983), with their function
//! of the O'Brien-Fleming type: next to nothing early, nearly everything at the end). All medians for which the walk has not left
//! its bounds at a look are an interval between two order statistics. The intervals of all looks together cover the median with
//! at least 95 %: C. Jennison & B. W. Turnbull, "Repeated confidence intervals for group sequential clinical trials", Controlled
//! Clinical Trials 5 (1984).

use super::distribution::{normal_quantile, normal_two_sided};
use super::ln_choose;

/// Error rate of all intervals of a campaign together: 5 %.
pub const ERROR: f64 = 0.05;

/// Mass below which a state at the edge is no longer followed. It counts as spent.
const NEGLIGIBLE: f64 = 1e-22;
/// Half width of the part of a stretch's binomial distribution that is followed, in half standard deviations. The rest is at most
/// [`BEYOND`] (Hoeffding's inequality: 2 exp(-2 * 4.5^2)), and counts as spent.
const REACH: f64 = 4.5;
const BEYOND: f64 = 6e-18;

/// How much of [`ERROR`] may have been spent when the share `t` (0..=1) of the campaign is over. Each side spends
/// 2 - 2 Phi(z / sqrt(t)) with z the quantile of 1 - [`ERROR`] / 4, which comes to [`ERROR`] / 2 at the end.
pub fn spendable(t: f64) -> f64 {
    if t >= 1.0 {
        return ERROR;
    }
    if t > 0.0 {
        2.0 * normal_two_sided(normal_quantile(1.0 - ERROR / 4.0) / t.sqrt())
    } else {
        0.0
    }
}

/// The bounds of the walk, look after look.
#[derive(Debug, Clone, PartialEq)]
pub struct Boundary {
    /// Values at the last look.
    n: usize,
    /// Probability of having left the bounds by now, if the hypothesis is true.
    spent: f64,
    /// The least number of values below the median that has not left the bounds.
    first: usize,
    /// Probabilities of `first`, `first + 1`, ... values below the median without having left the bounds. Symmetric.
    inside: Vec<f64>,
}

impl Default for Boundary {
    fn default() -> Self {
        Boundary {
            n: 0,
            spent: 0.0,
            first: 0,
            inside: vec![1.0],
        }
    }
}

impl Boundary {
    /// Returns the bound k at the next look, with `n` values so far and the share `t` of the campaign over: the interval reaches
    /// from the k-th smallest value to the k-th largest. 0 if there is no interval yet.
    ///
    /// `n` and `t` must not depend on the values, nor shrink from look to look. A walk of whole steps cannot spend exactly; the
    /// rest is kept for later looks. Values that equal the median can only make the walk stay longer.
    ///
    /// Costs the width of the walk times that of the stretch since the last look, both some nine standard deviations. Six looks
    /// at 2,000 values take 0.05 ms, at a million 17 ms, measured on a 2-CPU virtual machine.
    pub fn look(&mut self, n: usize, t: f64) -> usize {
        self.walk(n.saturating_sub(self.n));
        self.n = self.n.max(n);
        let may = spendable(t) * (1.0 + 1e-12);
        let mut outside = 0;
        // The state in the middle stays, so that an interval has a lower and an upper end.
        while outside < (self.inside.len() - 1) / 2
            && self.spent + 2.0 * self.inside[outside] <= may
        {
            self.spent += 2.0 * self.inside[outside];
            outside += 1;
        }
        self.narrow(outside);
        self.first
    }

    /// Probability of having left the bounds by now, for a median that is the true one.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Tosses `steps` coins.
    fn walk(&mut self, steps: usize) {
        if steps == 0 {
            return;
        }
        let (least, shares) = binomial_half(steps);
        let mut after = vec![0.0; self.inside.len() + shares.len() - 1];
        for (i, p) in self.inside.iter().enumerate() {
            for (sum, q) in after[i..].iter_mut().zip(&shares) {
                *sum += p * q;
            }
        }
        self.first += least;
        self.inside = after;
        self.spent += if least > 0 { BEYOND } else { 0.0 };
        let edge = self.inside.iter().take_while(|p| **p < NEGLIGIBLE).count();
        self.spent += 2.0 * self.inside[..edge].iter().sum::<f64>();
        self.narrow(edge);
    }

    /// Removes this number of states at each end.
    fn narrow(&mut self, states: usize) {
        self.inside.truncate(self.inside.len() - states);
        self.inside.drain(..states);
        self.first += states;
    }
}

/// Binomial(n, 1/2) around its middle: the first outcome and the probabilities from there on, symmetric, with sum 1.
pub(super) fn binomial_half(n: usize) -> (usize, Vec<f64>) {
    let middle = n / 2;
    let least = middle.saturating_sub((REACH * (n as f64).sqrt()).ceil() as usize);
    let mut upwards = vec![0.0; middle - least + 1];
    let mut share = (ln_choose(n, middle) - n as f64 * std::f64::consts::LN_2).exp();
    for (down, p) in upwards.iter_mut().rev().enumerate() {
        *p = share;
        let k = middle - down;
        share *= k as f64 / (n - k + 1) as f64;
    }
    // For even n the middle stands once.
    let mirrored = upwards
        .iter()
        .rev()
        .skip(1 - n % 2)
        .copied()
        .collect::<Vec<_>>();
    let mut all = upwards;
    all.extend(mirrored);
    let sum: f64 = all.iter().sum();
    all.iter_mut().for_each(|p| *p /= sum);
    (least, all)
}

#[cfg(test)]
#[path = "sequential/tests.rs"]
mod tests;
