//! The order of trials, and the bounds on blocks and time.

use super::{Design, Stopped};
use linerate_stats::shuffle;
use linerate_wire::SplitMix64;
use std::collections::BTreeMap;

/// Whose turn it is.
#[derive(Debug, Clone)]
pub(super) struct RandomOrder {
    /// What is left of the block, the next at the end.
    queue: Vec<usize>,
    /// Blocks begun; one after the other: trials of the slot whose turn it is.
    block: u32,
    /// Trials handed out.
    trials: u64,
    /// One after the other: the slots to come, the present one at the end, and how many there are in all.
    to_come: Vec<usize>,
    slots: usize,
    /// One after the other: whether time ended some slot's turn.
    cut: bool,
}

impl RandomOrder {
    pub(super) fn new(design: &Design) -> RandomOrder {
        let to_come: Vec<usize> =
            (0..design.slots.len()).rev().filter(|slot| !design.slots[*slot].skipped).collect();
        RandomOrder { queue: Vec::new(), block: 0, trials: 0, slots: to_come.len(), to_come, cut: false }
    }

    pub(super) fn block_is_over(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn blocks(&self) -> u32 {
        self.block
    }

    /// Begins the next block with the slots that are needed. The first is always run; a later one only if it will probably fit.
    pub(super) fn begin_block(
        &mut self,
        design: &Design,
        needed: impl Fn(usize) -> bool,
        elapsed_ns: u64,
    ) -> Result<(), Stopped> {
        let stopping = &design.stopping;
        let mut queue = block_order(design, self.block);
        queue.retain(|slot| needed(*slot));
        queue.reverse();
        if queue.is_empty() || stopping.most_blocks.is_some_and(|most| self.block >= most) {
            return Err(Stopped::Trials);
        }
        let probably_over = self.after(queue.len() as u64, elapsed_ns);
        if self.block > 0 && stopping.budget_ns.is_some_and(|budget| probably_over > u128::from(budget)) {
            return Err(Stopped::Budget);
        }
        (self.queue, self.block) = (queue, self.block + 1);
        Ok(())
    }

    /// The next trial of the block.
    pub(super) fn take(&mut self) -> (u32, usize) {
        self.trials += 1;
        (self.block - 1, self.queue.pop().expect("a block has at least one slot"))
    }

    /// When so many more trials will be over, if they take as long as those before.
    fn after(&self, more: u64, elapsed_ns: u64) -> u128 {
        let elapsed = u128::from(elapsed_ns);
        elapsed + elapsed * u128::from(more) / u128::from(self.trials.max(1))
    }

    /// All trials of one slot, then all of the next. Of a budget each has its equal share, and at least one trial.
    pub(super) fn next_in_sequence(
        &mut self,
        design: &Design,
        elapsed_ns: u64,
    ) -> Result<(u32, usize), Stopped> {
        while let Some(&slot) = self.to_come.last() {
            let full = design.stopping.most_blocks.is_some_and(|most| self.block >= most);
            let turn = (self.slots - self.to_come.len() + 1) as u128;
            let late = design.stopping.budget_ns.is_some_and(|budget| {
                self.after(1, elapsed_ns) > u128::from(budget) * turn / self.slots as u128
            });
            if !full && (!late || self.block == 0) {
                (self.block, self.trials) = (self.block + 1, self.trials + 1);
                return Ok((self.block - 1, slot));
            }
            self.cut |= !full;
            (self.block, _) = (0, self.to_come.pop());
        }
        Err(if self.cut { Stopped::Budget } else { Stopped::Trials })
    }
}

/// The order of a block: its groups in random order, and in each its slots. It depends on seed and block alone.
fn block_order(design: &Design, block: u32) -> Vec<usize> {
    let of_block = SplitMix64::new(u64::from(block)).next_u64();
    let mut random = SplitMix64::new(SplitMix64::new(design.seed).next_u64() ^ of_block);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (slot, place) in design.slots.iter().enumerate() {
        groups.entry(place.group).or_default().push(slot);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    shuffle(&mut groups, &mut random);
    groups.iter_mut().for_each(|slots| shuffle(slots, &mut random));
    groups.concat()
}
