//! The interface of a strategy: it observes trials and requests the next one.

use super::Benched;
use crate::experiment::Benchmark;
use crate::record::{Bisected, Searched, Stopped, TrialRecord};
use crate::trial::Shape;
use linerate_stats::{Estimate, paired_ratio};
use std::collections::BTreeMap;
use std::fmt;

/// The trial that a strategy asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialRequest {
    /// The slot.
    pub slot: usize,
    /// Trials of one block are paired in comparisons.
    pub block: u32,
    /// Frames/s; `None`: as fast as possible.
    pub load: Option<f64>,
    /// The measured window, in nanoseconds.
    pub duration_ns: u64,
    pub shape: Shape,
    /// The test that it belongs to, where a campaign carries out several.
    pub benchmark: Option<Benchmark>,
}

impl fmt::Display for TrialRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}, slot {}", self.block, self.slot)?;
        self.load
            .map_or(Ok(()), |load| write!(f, " at {load} frames/s"))?;
        write!(f, " for {} ms", self.duration_ns / 1_000_000)
    }
}

/// The part of a trial that a strategy sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The trial that was asked for.
    pub request: TrialRequest,
    /// Whether its audit held.
    pub valid: bool,
    /// Received frames/s; `None` where the audit failed.
    pub received: Option<f64>,
    /// Frames/s that the DUT handled, forwarded or dropped; `None` where the audit failed.
    pub handled: Option<f64>,
    /// Offered frames/s, of invalid trials as well; `None` without a window.
    pub offered: Option<f64>,
    /// Lost share of the sent frames.
    pub loss_ratio: f64,
    /// The DUT's table of connections, if the trial filled it.
    pub full: Option<FullTable>,
}

/// A table of connections that a trial filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FullTable {
    /// Connections that it holds.
    pub limit: u64,
    /// The load before the window, whose connections are in the table as well, in nanoseconds.
    pub warm_up_ns: u64,
}

impl From<&TrialRecord> for Observed {
    fn from(trial: &TrialRecord) -> Observed {
        let valid = trial.rates.filter(|_| trial.audit.valid);
        Observed {
            request: TrialRequest {
                slot: trial.slot,
                block: trial.block,
                load: trial.asked_fps,
                duration_ns: trial.timing.run_ns,
                shape: trial.shape,
                benchmark: trial.benchmark,
            },
            valid: trial.audit.valid,
            received: valid.map(|rates| rates.received),
            handled: valid.and_then(|_| trial.handled()),
            offered: trial.rates.map(|rates| rates.offered),
            loss_ratio: trial.loss_ratio,
            full: trial
                .connections
                .and_then(|connections| connections.full())
                .map(|limit| FullTable {
                    limit,
                    warm_up_ns: trial.timing.warm_up_ns,
                }),
        }
    }
}

/// The facts that a strategy may use to decide.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// Time since the first trial began, in nanoseconds: the recorded beginning of the next trial, so that a replay uses the same
    /// value.
    pub elapsed_ns: u64,
    /// The trials until now.
    pub trials: &'a [Observed],
}

/// A figure of a trial that comparisons are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Received frames/s.
    Received,
    /// Frames/s that the DUT handled, forwarded or dropped.
    Handled,
}

impl Figure {
    fn of(self, trial: &Observed) -> Option<f64> {
        match self {
            Figure::Received => trial.received,
            Figure::Handled => trial.handled,
        }
    }
}

/// Decides which trial comes next.
pub trait Strategy {
    /// The next trial, or why the campaign is over.
    ///
    /// # Errors
    /// The campaign is over.
    fn next(&mut self, history: &History<'_>) -> Result<TrialRequest, Stopped>;

    /// Takes the result of the trial requested last.
    fn observe(&mut self, _trial: &Observed) {}

    /// Reports the end of the campaign and its reason. [`Strategy::next`] does not need it; a replay does, since no trial records
    /// the end.
    fn finish(&mut self, _stopped: Stopped) {}

    /// How far it is, for the progress line: `ratios known to 2.1 %`.
    fn progress(&self) -> Option<String> {
        None
    }

    /// The results of searches, of a strategy that searches.
    fn searches(&self) -> Vec<Searched> {
        Vec::new()
    }

    /// The highest load of a slot, in frames/s, once the tester is known, of a strategy that searches.
    fn highest(&self, _slot: usize) -> Option<f64> {
        None
    }

    /// Which element of a list made it slower, of a strategy that bisects.
    fn bisection(&self) -> Option<Bisected> {
        None
    }

    /// The courses of RFC 2544's tests, of a strategy that carries them out.
    fn benchmarks(&self) -> Vec<Benched> {
        Vec::new()
    }

    /// The median of the ratios of two slots paired by block. Its interval must allow for all looks at the rates by which the strategy
    /// decided; this one is for those that decide by none. `None` without pairs.
    fn ratio(
        &self,
        of: usize,
        than: usize,
        figure: Figure,
        trials: &[Observed],
    ) -> Option<Estimate> {
        paired_ratio(
            &Outcomes::of(figure, trials).pairs((of, than), u32::MAX),
            0.95,
        )
    }
}

/// A figure of the valid trials, by slot and block.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcomes(BTreeMap<(usize, u32), f64>);

impl Outcomes {
    pub(super) fn of(figure: Figure, trials: &[Observed]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        trials.iter().for_each(|trial| outcomes.add(trial, figure));
        outcomes
    }

    pub(super) fn add(&mut self, trial: &Observed, figure: Figure) {
        let at = (trial.request.slot, trial.request.block);
        match figure.of(trial).filter(|value| value.is_finite()) {
            Some(value) => self.0.insert(at, value),
            None => self.0.remove(&at),
        };
    }

    /// The figures of a slot, each with its block.
    pub(super) fn of_slot(&self, slot: usize) -> impl Iterator<Item = (u32, f64)> {
        let own = self.0.range((slot, 0)..=(slot, u32::MAX));
        own.map(|((_, block), value)| (*block, *value))
    }

    /// The figure of a slot in a block.
    pub(super) fn at(&self, slot: usize, block: u32) -> Option<f64> {
        self.0.get(&(slot, block)).copied()
    }

    /// The pairs of the first blocks, `blocks` in number.
    pub(super) fn pairs(&self, (of, than): (usize, usize), blocks: u32) -> Vec<(f64, f64)> {
        let numerators = self.0.range((of, 0)..(of, blocks));
        numerators
            .filter_map(|((_, block), a)| Some((*a, *self.0.get(&(than, *block))?)))
            .collect()
    }
}
