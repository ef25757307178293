//! Input of a strategy: the slots, the ratios of interest, and when to stop.

use super::TrialRequest;
use crate::experiment::{Comparison, Experiment};
use crate::record;

/// Input of a strategy. Together with the recorded trials it determines every step of the strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// The slots, by number.
    pub slots: Vec<DesignSlot>,
    /// Ratios of interest.
    pub watched: Vec<Watched>,
    /// The strategy's name.
    pub strategy: String,
    /// The measured window of a trial, in nanoseconds.
    pub duration_ns: u64,
    /// When to stop.
    pub stopping: Stopping,
    /// Seed of the order.
    pub seed: u64,
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
}

/// Two slots whose ratio is of interest: the rate of `of` divided by that of `than`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched {
    /// Numerator.
    pub of: usize,
    /// Denominator.
    pub than: usize,
    /// Whether the stopping rule waits for it.
    pub decides: bool,
}

/// When to stop. Blocks or time must be bounded: looks come at shares of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stopping {
    /// A comparison is known well enough once its 95 % interval is narrower than this share of its ratio (0.02 = 2 %).
    pub relative_width: Option<f64>,
    /// Blocks to run at most.
    pub most_blocks: Option<u32>,
    /// Time for trials, in nanoseconds; a block is not begun that would probably exceed it.
    pub budget_ns: Option<u64>,
}

impl Stopping {
    /// The share of the campaign that is over, 0..=1, by blocks and time. It does not depend on rates.
    pub(super) fn share(&self, blocks: u32, elapsed_ns: u64) -> f64 {
        let used = |used: f64, of: f64| if used >= of { 1.0 } else { used / of };
        let of_blocks = self.most_blocks.map_or(0.0, |most| used(f64::from(blocks), f64::from(most)));
        let of_time = self.budget_ns.map_or(0.0, |budget| used(elapsed_ns as f64, budget as f64));
        of_blocks.max(of_time)
    }
}

impl Design {
    /// The design of a campaign's experiment, if it has one.
    pub fn of(campaign: &record::Campaign) -> Option<Design> {
        let planned = campaign.planned.as_ref()?;
        let slot = |slot: &record::Slot| DesignSlot {
            group: slot.group,
            ceiling: slot.ceiling,
            load: slot.asked_fps,
            skipped: !planned.lacking(slot.id).is_empty(),
        };
        let slots = campaign.slots.iter().map(slot).collect();
        let design = Design::new(&planned.experiment, slots, campaign.asked.seed);
        Some(Design { duration_ns: campaign.asked.timing.run_ns, ..design })
    }

    /// The design of an experiment with these slots.
    pub fn new(experiment: &Experiment, slots: Vec<DesignSlot>, seed: u64) -> Design {
        let watched = |c: &Comparison| Watched { of: c.of, than: c.than, decides: c.decides };
        let trials = &experiment.trials;
        Design {
            slots,
            watched: experiment.comparisons.iter().map(watched).collect(),
            strategy: trials.order.clone(),
            duration_ns: trials.duration_ns,
            stopping: Stopping {
                relative_width: trials.until,
                most_blocks: trials.blocks,
                budget_ns: trials.budget_ns,
            },
            seed,
        }
    }

    /// The request for a slot's trial as the design has it.
    pub(super) fn request(&self, block: u32, slot: usize) -> TrialRequest {
        TrialRequest { slot, block, load: self.slots[slot].load, duration_ns: self.duration_ns }
    }

    /// Without references to slots that do not exist: records can hold anything.
    pub(super) fn sound(mut self) -> Design {
        let slots = self.slots.len();
        self.watched.retain(|w| w.of < slots && w.than < slots && w.of != w.than);
        for (number, slot) in self.slots.iter_mut().enumerate() {
            slot.ceiling = slot.ceiling.filter(|c| *c < slots && *c != number);
        }
        self
    }
}
