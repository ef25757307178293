//! Which trial comes next, and when enough is known. Sans-I/O: all of it follows from the design and the trials before, so a campaign can
//! be replayed from its records, and resumed where it was stopped.

mod blocks;
mod comparison;
mod design;
mod list;
mod sequential;

pub use blocks::Blocks;
pub use design::{Design, DesignSlot};
pub use list::List;
pub use sequential::Sequential;

use crate::experiment::Trials;
use crate::record::TrialRecord;
use comparison::Outcomes;
use linerate_stats::{Estimate, paired_ratio};
use std::fmt;

/// A strategy that plans can name.
pub struct Entry {
    /// Its name: `trials.order` of a plan.
    pub name: &'static str,
    /// Its meaning, for authors of plans.
    pub meaning: &'static str,
    /// Its description for a reader.
    pub about: &'static str,
    /// Whether the order comes from the seed: then trials are shown by block, and otherwise by slot.
    pub randomised: bool,
    make: fn(Design) -> Box<dyn Strategy>,
}

/// Every strategy that plans can name. The first is the default.
pub static STRATEGIES: [Entry; 2] = [
    Entry {
        name: "blocks",
        meaning: "randomised complete blocks: drift hits everything alike",
        about: "randomised complete blocks",
        randomised: true,
        make: |design| Box::new(Blocks::new(design)),
    },
    Entry {
        name: "sequential",
        meaning: "one variant after the other, as shell scripts do; it measures the drift as well, and is there to show that",
        about: "one cell after the other, which measures the drift as well",
        randomised: false,
        make: |design| Box::new(Sequential::new(design)),
    },
];

/// The strategy of this name. Plans and records with other names are refused when they are read.
pub fn by_name(name: &str) -> &'static Entry {
    let found = STRATEGIES.iter().find(|entry| entry.name == name);
    found.unwrap_or_else(|| unreachable!("there is no strategy '{name}'"))
}

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
}

impl fmt::Display for TrialRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}, slot {}", self.block, self.slot)?;
        self.load.map_or(Ok(()), |load| write!(f, " at {load} frames/s"))?;
        write!(f, " for {} ms", self.duration_ns / 1_000_000)
    }
}

/// The part of a trial that a strategy sees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The trial that was asked for.
    pub request: TrialRequest,
    /// Received frames/s; `None` where the audit failed.
    pub received: Option<f64>,
    /// Frames/s that the DUT handled, forwarded or dropped; `None` where the audit failed.
    pub handled: Option<f64>,
    /// Lost share of the sent frames.
    pub loss_ratio: f64,
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
            },
            received: valid.map(|rates| rates.received),
            handled: valid.and_then(|_| trial.handled()),
            loss_ratio: trial.loss_ratio,
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

    /// Learns how the trial went that was asked for last.
    fn observe(&mut self, _trial: &Observed) {}

    /// Reports the end of the campaign and its reason. [`Strategy::next`] does not need it; a replay does, since no trial records
    /// the end.
    fn finish(&mut self, _stopped: Stopped) {}

    /// How far it is, for the progress line: `ratios known to 2.1 %`.
    fn progress(&self) -> Option<String> {
        None
    }

    /// The median of the ratios of two slots paired by block. Its interval must allow for all looks at the rates by which the strategy
    /// decided; this one is for those that decide by none. `None` without pairs.
    fn ratio(&self, of: usize, than: usize, figure: Figure, trials: &[Observed]) -> Option<Estimate> {
        paired_ratio(&Outcomes::of(figure, trials).pairs((of, than), u32::MAX), 0.95)
    }
}

/// Why a campaign ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// All intervals are narrow enough.
    Precise,
    /// The time is used up.
    Budget,
    /// The number of trials asked for has been run.
    Trials,
    /// The user interrupted it.
    Interrupted,
    /// Something failed.
    Failed,
}

/// The strategy of a design.
pub fn strategy(design: Design) -> Box<dyn Strategy> {
    (by_name(&design.trials.order).make)(design)
}

/// Recorded trials that this design would not have run.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("trial {trial} is recorded as {recorded}; by the strategy it would be {}", expected(.due))]
pub struct Mismatch {
    /// Number of the first trial that differs.
    pub trial: u64,
    /// It in the records.
    pub recorded: TrialRequest,
    /// The trial that the strategy would have asked for, or why it would have stopped.
    pub due: Result<TrialRequest, Stopped>,
}

fn expected(due: &Result<TrialRequest, Stopped>) -> String {
    due.map_or("none, since the campaign was over".into(), |request| request.to_string())
}

/// The strategy after these trials, and its observations. If the campaign ended, call [`Strategy::finish`] with the reason.
///
/// # Errors
/// The trials are not those that this design runs: other settings, another order, another program.
pub fn replay(
    design: Design,
    trials: &[TrialRecord],
) -> Result<(Box<dyn Strategy>, Vec<Observed>), Mismatch> {
    let mut strategy = strategy(design);
    let all: Vec<Observed> = trials.iter().map(Observed::from).collect();
    for (number, trial) in all.iter().enumerate() {
        let history = History { elapsed_ns: trials[number].began_ns, trials: &all[..number] };
        let due = strategy.next(&history);
        if due != Ok(trial.request) {
            return Err(Mismatch { trial: trials[number].trial, recorded: trial.request, due });
        }
        strategy.observe(trial);
    }
    Ok((strategy, all))
}

/// The slots of the first blocks, in the order of their trials. Where the order is not randomised, each inner list is one slot's trials.
pub fn first_blocks(design: Design, blocks: u32) -> Vec<Vec<usize>> {
    let order = by_name(&design.trials.order);
    let most = design.slots.len() * blocks as usize;
    let trials = Trials { blocks: Some(blocks), budget_ns: None, until: None, ..design.trials };
    let mut strategy = (order.make)(Design { trials, ..design });
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for _ in 0..most {
        let Ok(request) = strategy.next(&History { elapsed_ns: 0, trials: &[] }) else { break };
        let row = if order.randomised { request.block as usize } else { request.slot };
        rows.resize(rows.len().max(row + 1), Vec::new());
        rows[row].push(request.slot);
    }
    rows
}

#[cfg(test)]
mod tests;
