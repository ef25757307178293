//! Whether a DUT loses frames far below its rate: trials before its search.
//!
//! The first trial has the highest load, and shows the rate that the DUT forwards. The others have shares of that rate, from the least
//! on. A load whose trial lost frames is tried again, until a trial loses none or six have lost some. If a DUT loses frames in at most
//! half of its trials, as NDR allows, and the machine disturbs no more, that happens with the probability 1/64.

use super::Observed;
use super::goals::ATTEMPTS;
use crate::record::{LowLoad, Stability};
use linerate_search::Request;
use linerate_stats::median_interval;

/// Loads, as shares of the DUT's rate.
const SHARES: [f64; 3] = [0.01, 0.1, 0.5];
/// Successive trials with loss that name a DUT unstable.
const LOSSY: usize = 6;

/// The trials before the search of a slot.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    duration_ns: u64,
    /// Whether loss says something about the DUT, and not about the machine.
    tells: bool,
    /// Frames/s of each direction, once the first trial is over.
    rate: Option<f64>,
    /// Loss ratios of the valid trials at each of [`SHARES`].
    losses: [Vec<f64>; SHARES.len()],
    /// The share whose turn it is, and its invalid trials in succession.
    at: usize,
    failed: usize,
}

impl Probe {
    /// `tells`: whether the machine leaves half of the trials of this length undisturbed.
    pub fn new(duration_ns: u64, tells: bool) -> Probe {
        Probe {
            duration_ns,
            tells,
            rate: None,
            losses: Default::default(),
            at: 0,
            failed: 0,
        }
    }

    /// The next trial; `highest`: the highest load of the search, in frames/s.
    pub fn next(&self, highest: f64) -> Option<Request> {
        let load = match self.rate {
            Some(rate) => rate * SHARES.get(self.at)?,
            None => highest,
        };
        Some(Request {
            load,
            duration_ns: self.duration_ns,
        })
    }

    pub fn knows_rate(&self) -> bool {
        self.rate.is_some()
    }

    pub fn is_over(&self) -> bool {
        self.at >= SHARES.len()
    }

    /// Takes a trial: a valid one until the rate is known, then any.
    pub fn observe(&mut self, trial: &Observed) {
        match (self.rate, trial.received) {
            (None, received) => self.rate = received,
            (Some(_), None) => {
                self.failed += 1;
                if self.failed >= ATTEMPTS {
                    self.go_on();
                }
            }
            (Some(_), Some(_)) => {
                self.failed = 0;
                let losses = &mut self.losses[self.at];
                losses.push(trial.loss_ratio);
                if trial.loss_ratio <= 0.0 || losses.len() >= LOSSY {
                    self.go_on();
                }
            }
        }
        // A trial needs a frame.
        let has_frame = |load: f64| load * self.duration_ns as f64 >= 1e9;
        while self
            .next(0.0)
            .is_some_and(|trial| self.rate.is_some() && !has_frame(trial.load))
        {
            self.at += 1;
        }
    }

    fn go_on(&mut self) {
        (self.at, self.failed) = (self.at + 1, 0);
    }

    fn loses(&self, losses: &[f64]) -> bool {
        self.tells && losses.len() >= LOSSY && losses.iter().all(|loss| *loss > 0.0)
    }

    pub fn is_unstable(&self) -> bool {
        self.losses.iter().any(|losses| self.loses(losses))
    }

    /// The results; frames are counted by the records. `None` before the rate is known.
    pub fn found(&self) -> Option<Stability> {
        let rate = self.rate?;
        let tried = SHARES.iter().zip(&self.losses);
        let load = |(share, losses): (&f64, &Vec<f64>)| {
            Some(LowLoad {
                share: *share,
                load: rate * share,
                trials: losses.len(),
                lossy: losses.iter().filter(|loss| **loss > 0.0).count(),
                sent: 0,
                lost: 0,
                loss: median_interval(losses, 0.95)?,
                losses: Vec::new(),
                unstable: self.loses(losses),
            })
        };
        Some(Stability {
            rate,
            loads: tried.filter_map(load).collect(),
        })
    }
}
