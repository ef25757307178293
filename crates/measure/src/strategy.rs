//! The choice of the next trial, and of the end. Sans-I/O: both follow from the design and the earlier trials, so a campaign can be
//! replayed from its records, and resumed.

mod benchmarks;
mod bisection;
mod blocks;
mod comparison;
mod goals;
mod list;
mod searches;
mod sequential;
mod stability;
mod step;

pub use benchmarks::{Benched, Estimated, Rfc2544, estimate};
pub use bisection::{Bisection, CERTAIN};
pub use blocks::Blocks;
pub use goals::LEAST_FPS;
pub use list::List;
pub use searches::Searches;
pub use sequential::Sequential;
pub use step::{Figure, FullTable, History, Observed, Strategy, TrialRequest};

use crate::experiment::{Comparison, Experiment, Levels, Measure, Order, Trials};
use crate::record::{Campaign, Direction, Slot, Stopped, TrialRecord};
use crate::trial::Shape;
use linerate_wire::units::line_rate;
use step::Outcomes;

/// Input of a strategy. Together with the recorded trials it determines every step of the strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The slots, by number.
    pub slots: Vec<DesignSlot>,
    /// Ratios of interest.
    pub comparisons: Vec<Comparison>,
    /// How trials are run. Blocks or time must be bounded: looks come at shares of them.
    pub trials: Trials,
    /// Seed of the order.
    pub seed: u64,
    /// The links' speed in bit/s, where the plan names one.
    pub link_speed: Option<f64>,
}

/// A slot of a design.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DesignSlot {
    /// Slots of one group stand side by side; a block goes from group to group.
    pub group: usize,
    /// The slot that runs whenever this one does.
    pub ceiling: Option<usize>,
    /// Frames/s asked for; `None`: as fast as possible.
    pub load: Option<f64>,
    /// Whether it never runs.
    pub skipped: bool,
    /// Whether it is the tester without a DUT.
    pub tester: bool,
    /// Mean length of its frames in bytes, with FCS.
    pub len_fcs: f64,
    /// Whether its frames are the shortest among the slots that differ only in frame length.
    pub shortest: bool,
    /// Whether the plan has an event for its DUT.
    pub event: bool,
    /// Direction of its frames; a load is that of each direction.
    pub direction: Direction,
}

impl Trials {
    /// Time for all trials, in nanoseconds: the budget, or the larger one with which a search continued.
    pub fn time_ns(&self) -> Option<u64> {
        self.extended_ns.or(self.budget_ns)
    }

    /// Whether the time of a search is over.
    fn is_over(&self, elapsed_ns: u64) -> bool {
        self.time_ns().is_some_and(|time| elapsed_ns >= time)
    }

    /// The share of the campaign that is over, 0..=1, by blocks and time. It does not depend on rates.
    fn share(&self, blocks: u32, elapsed_ns: u64) -> f64 {
        let used = |used: f64, of: f64| if used >= of { 1.0 } else { used / of };
        let of_blocks = self
            .blocks
            .map_or(0.0, |most| used(f64::from(blocks), f64::from(most)));
        let of_time = self
            .budget_ns
            .map_or(0.0, |budget| used(elapsed_ns as f64, budget as f64));
        of_blocks.max(of_time)
    }
}

impl Design {
    /// The design of a campaign's experiment, if it has one.
    pub fn of(campaign: &Campaign) -> Option<Design> {
        let planned = campaign.planned.as_ref()?;
        let cells: Vec<(&str, &Levels, f64)> = campaign
            .slots
            .iter()
            .map(|slot| {
                (
                    slot.plan_variant.as_str(),
                    &slot.levels,
                    slot.average_len_fcs(),
                )
            })
            .collect();
        let shortest = planned.experiment.shortest(&cells);
        let slot = |(slot, shortest): (&Slot, bool)| DesignSlot {
            len_fcs: slot.average_len_fcs(),
            shortest,
            group: slot.group,
            ceiling: slot.ceiling,
            load: slot.asked_fps,
            skipped: !planned.lacking(slot.id).is_empty(),
            tester: slot.is_calibration(),
            event: slot.event.is_some(),
            direction: slot.direction,
        };
        let slots = campaign.slots.iter().zip(shortest).map(slot).collect();
        Some(Design::new(&planned.experiment, slots, campaign.asked.seed))
    }

    /// The design of an experiment with these slots.
    pub fn new(experiment: &Experiment, slots: Vec<DesignSlot>, seed: u64) -> Design {
        let Experiment {
            comparisons,
            trials,
            link_speed,
            ..
        } = experiment.clone();
        Design {
            slots,
            comparisons,
            trials,
            seed,
            link_speed,
        }
    }

    /// Line rate of a slot's frames, in frames/s.
    fn line_rate(&self, slot: usize) -> Option<f64> {
        self.link_speed
            .map(|speed| line_rate(speed, self.slots[slot].len_fcs))
    }

    /// The trial with the mean rates of its directions, in the unit of its load.
    fn of_each(&self, trial: &Observed) -> Observed {
        let ways = self
            .slots
            .get(trial.request.slot)
            .map_or(1, |slot| slot.direction.ways().len());
        let each = |rates: f64| rates / ways as f64;
        Observed {
            received: trial.received.map(each),
            offered: trial.offered.map(each),
            ..*trial
        }
    }

    /// The request for a slot's trial as the design has it.
    fn request(&self, block: u32, slot: usize) -> TrialRequest {
        let (load, duration_ns) = (self.slots[slot].load, self.trials.duration_ns);
        TrialRequest {
            slot,
            block,
            load,
            duration_ns,
            shape: Shape::Constant,
            benchmark: None,
        }
    }

    /// Without references to slots that do not exist: records can hold anything.
    fn sound(mut self) -> Design {
        let slots = self.slots.len();
        self.comparisons
            .retain(|c| c.of < slots && c.than < slots && c.of != c.than);
        for (number, slot) in self.slots.iter_mut().enumerate() {
            slot.ceiling = slot.ceiling.filter(|c| *c < slots && *c != number);
        }
        self
    }
}

/// The names of all orders in plans, in the order of the enum, each with its description for a reader.
pub static ORDERS: [(&str, &str); 3] = [
    ("blocks", "randomised complete blocks"),
    (
        "sequential",
        "one cell after the other, which measures the drift as well",
    ),
    (
        "bisection",
        "the elements that the search needs, in its order",
    ),
];

impl Order {
    pub fn about(self) -> &'static str {
        ORDERS[self as usize].1
    }

    /// Whether the order comes from the seed: then trials are shown by block, and otherwise by slot.
    pub fn is_randomised(self) -> bool {
        self != Order::Sequential
    }
}

/// The strategy of a design.
pub fn strategy(design: Design) -> Box<dyn Strategy> {
    match design.trials.order {
        _ if design.trials.measure == Measure::Rfc2544 => Box::new(Rfc2544::new(design)),
        _ if design.trials.measure != Measure::Rate => Box::new(Searches::new(design)),
        Order::Blocks => Box::new(Blocks::new(design)),
        Order::Sequential => Box::new(Sequential::new(design)),
        Order::Bisection => Box::new(Bisection::new(design)),
    }
}

/// Recorded trials that this design would not have run.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("trial {trial} is recorded as {recorded}; by the strategy it would be {}", expected(.due))]
pub struct Mismatch {
    /// Number of the first trial that differs.
    pub trial: u64,
    /// The recorded trial.
    pub recorded: TrialRequest,
    /// The trial that the strategy would have asked for, or why it would have stopped.
    pub due: Result<TrialRequest, Stopped>,
}

fn expected(due: &Result<TrialRequest, Stopped>) -> String {
    due.map_or("none, since the campaign was over".into(), |request| {
        request.to_string()
    })
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
        let history = History {
            elapsed_ns: spent_ns(trials[number].began_ns, &trials[..number]),
            trials: &all[..number],
        };
        let due = strategy.next(&history);
        if due != Ok(trial.request) {
            return Err(Mismatch {
                trial: trials[number].trial,
                recorded: trial.request,
                due,
            });
        }
        strategy.observe(trial);
    }
    Ok((strategy, all))
}

/// Nanoseconds of a campaign's budget that are spent after so many since its beginning. Waits for other linerates do not count, nor the
/// questions to a DUT about its configuration, which take many seconds on a busy machine.
pub fn spent_ns(elapsed_ns: u64, trials: &[TrialRecord]) -> u64 {
    let waited: u64 = trials.iter().map(|trial| trial.waited_ns).sum();
    let costs = trials.iter().flat_map(|trial| &trial.collectors);
    let asked = costs.filter(|cost| cost.name == CONFIGURATION);
    let asked: u64 = asked.map(|cost| cost.took_ns).sum();
    elapsed_ns.saturating_sub(waited + asked)
}

/// The name of the collector that asks a DUT for its configuration.
pub const CONFIGURATION: &str = "configuration";

/// The slots of the first blocks, in the order of their trials. Where the order is not randomised, each inner list is one slot's trials.
pub fn first_blocks(design: Design, blocks: u32) -> Vec<Vec<usize>> {
    let order = design.trials.order;
    let most = design.slots.len() * blocks as usize;
    let trials = Trials {
        blocks: Some(blocks),
        budget_ns: None,
        until: None,
        ..design.trials
    };
    let mut strategy = self::strategy(Design { trials, ..design });
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for _ in 0..most {
        let Ok(request) = strategy.next(&History {
            elapsed_ns: 0,
            trials: &[],
        }) else {
            break;
        };
        let row = if order.is_randomised() {
            request.block as usize
        } else {
            request.slot
        };
        rows.resize(rows.len().max(row + 1), Vec::new());
        rows[row].push(request.slot);
    }
    rows
}

#[cfg(test)]
mod tests;
