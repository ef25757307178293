//! Which trial comes next, and when enough is known. Sans-I/O: all of it follows from the design and the trials before, so a campaign can
//! be replayed from its records, and resumed where it was stopped.

mod blocks;
mod comparison;
mod design;
mod list;
mod sequential;
mod step;

pub use blocks::Blocks;
pub use design::{Design, DesignSlot};
pub use list::List;
pub use sequential::Sequential;
pub use step::{Figure, History, Observed, Strategy, TrialRequest};

use crate::experiment::{Order, Trials};
use crate::record::{Stopped, TrialRecord};
use step::Outcomes;

/// The strategy of an order.
pub struct Entry {
    /// Its description for a reader.
    pub about: &'static str,
    /// Whether the order comes from the seed: then trials are shown by block, and otherwise by slot.
    pub randomised: bool,
    make: fn(Design) -> Box<dyn Strategy>,
}

/// The names of all orders, with their meanings for authors of plans.
pub static ORDERS: [(&str, &str); 2] = [
    ("blocks", "randomised complete blocks: drift hits everything alike"),
    (
        "sequential",
        "one variant after the other, as shell scripts do; it measures the drift as well, and is there to show that",
    ),
];

/// The strategy of an order.
pub fn entry(order: Order) -> Entry {
    match order {
        Order::Blocks => Entry {
            about: "randomised complete blocks",
            randomised: true,
            make: |design| Box::new(Blocks::new(design)),
        },
        Order::Sequential => Entry {
            about: "one cell after the other, which measures the drift as well",
            randomised: false,
            make: |design| Box::new(Sequential::new(design)),
        },
    }
}

/// The strategy of a design.
pub fn strategy(design: Design) -> Box<dyn Strategy> {
    (entry(design.trials.order).make)(design)
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
    let order = entry(design.trials.order);
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
