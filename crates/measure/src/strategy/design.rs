//! Input of a strategy: the slots, the ratios of interest, and how trials are run.

use super::TrialRequest;
use crate::experiment::{Comparison, Experiment, Trials};
use crate::record::{Campaign, Slot};

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

impl Trials {
    /// The share of the campaign that is over, 0..=1, by blocks and time. It does not depend on rates.
    pub(super) fn share(&self, blocks: u32, elapsed_ns: u64) -> f64 {
        let used = |used: f64, of: f64| if used >= of { 1.0 } else { used / of };
        let of_blocks = self.blocks.map_or(0.0, |most| used(f64::from(blocks), f64::from(most)));
        let of_time = self.budget_ns.map_or(0.0, |budget| used(elapsed_ns as f64, budget as f64));
        of_blocks.max(of_time)
    }
}

impl Design {
    /// The design of a campaign's experiment, if it has one.
    pub fn of(campaign: &Campaign) -> Option<Design> {
        let planned = campaign.planned.as_ref()?;
        let slot = |slot: &Slot| DesignSlot {
            group: slot.group,
            ceiling: slot.ceiling,
            load: slot.asked_fps,
            skipped: !planned.lacking(slot.id).is_empty(),
        };
        let slots = campaign.slots.iter().map(slot).collect();
        Some(Design::new(&planned.experiment, slots, campaign.asked.seed))
    }

    /// The design of an experiment with these slots.
    pub fn new(experiment: &Experiment, slots: Vec<DesignSlot>, seed: u64) -> Design {
        let Experiment { comparisons, trials, .. } = experiment.clone();
        Design { slots, comparisons, trials, seed }
    }

    /// The request for a slot's trial as the design has it.
    pub(super) fn request(&self, block: u32, slot: usize) -> TrialRequest {
        TrialRequest { slot, block, load: self.slots[slot].load, duration_ns: self.trials.duration_ns }
    }

    /// Without references to slots that do not exist: records can hold anything.
    pub(super) fn sound(mut self) -> Design {
        let slots = self.slots.len();
        self.comparisons.retain(|c| c.of < slots && c.than < slots && c.of != c.than);
        for (number, slot) in self.slots.iter_mut().enumerate() {
            slot.ceiling = slot.ceiling.filter(|c| *c < slots && *c != number);
        }
        self
    }
}
