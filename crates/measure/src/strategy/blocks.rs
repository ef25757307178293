//! Randomised complete blocks with a group-sequential stopping rule.
//!
//! A block is one trial of every slot that is still needed, in an order drawn anew for each block from a recorded seed, so that
//! whatever the machine does in the meantime hits all of them alike. At set shares of the campaign the intervals are looked at;
//! slots whose ratios are known well enough then take no more trials.

use super::comparison::{self, Comparison, Look, State};
use super::{Design, Figure, History, Observed, Outcomes, Strategy, TrialRequest};
use crate::record::Stopped;
use linerate_stats::{Estimate, shuffle};
use linerate_wire::SplitMix64;
use std::collections::BTreeMap;

/// Number of looks at the intervals, after equal shares of the campaign. More looks would stop sooner, and make the last interval
/// wider: by 2.7 % for 6 of them on average (docs/method.md).
const LOOKS: f64 = 6.0;

/// Randomised complete blocks.
#[derive(Debug, Clone)]
pub struct Blocks {
    design: Design,
    /// The rest of the block, the next slot at the end.
    queue: Vec<usize>,
    /// Blocks begun.
    begun: u32,
    /// Trials handed out.
    trials: u64,
    comparisons: Vec<Comparison>,
    outcomes: Outcomes,
    /// By slot: after how many looks it was no longer needed.
    dropped: Vec<Option<usize>>,
    looks: Vec<Look>,
    /// When the trial handed out last was, since the first trial.
    elapsed_ns: u64,
    /// Blocks that are over.
    complete: u32,
}

impl Blocks {
    /// References to slots that do not exist are left out.
    pub fn new(design: Design) -> Blocks {
        let design = design.sound();
        let comparisons = design
            .comparisons
            .iter()
            .map(|c| Comparison::new(*c, &design))
            .collect();
        let mut blocks = Blocks {
            queue: Vec::new(),
            begun: 0,
            trials: 0,
            outcomes: Outcomes::default(),
            dropped: design
                .slots
                .iter()
                .map(|s| s.skipped.then_some(0))
                .collect(),
            comparisons,
            design,
            looks: Vec::new(),
            elapsed_ns: 0,
            complete: 0,
        };
        blocks.drop_slots();
        blocks
    }

    /// Begins the next block with the slots that are needed. The first is always run; a later one only if it will probably fit.
    fn begin_block(&mut self, elapsed_ns: u64) -> Result<(), Stopped> {
        if self.decided() {
            return Err(Stopped::Precise);
        }
        let trials = &self.design.trials;
        let mut queue = block_order(&self.design, self.begun);
        queue.retain(|slot| self.dropped[*slot].is_none());
        queue.reverse();
        if queue.is_empty() || trials.blocks.is_some_and(|most| self.begun >= most) {
            return Err(Stopped::Trials);
        }
        let over = probably_over(elapsed_ns, self.trials, queue.len() as u64);
        if self.begun > 0
            && trials
                .budget_ns
                .is_some_and(|budget| over > u128::from(budget))
        {
            return Err(Stopped::Budget);
        }
        (self.queue, self.begun) = (queue, self.begun + 1);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn block_is_over(&self) -> bool {
        self.queue.is_empty()
    }

    /// After a block: the look that is due, if one is.
    fn settle(&mut self) {
        self.complete = self.begun;
        let share = self.design.trials.share(self.begun, self.elapsed_ns);
        let looked = self.looks.last().map_or(0.0, |l| (l.share * LOOKS).floor());
        if (share * LOOKS).floor() > looked {
            self.look(share);
        }
    }

    fn look(&mut self, share: f64) {
        let look = Look {
            blocks: self.complete,
            share,
        };
        self.looks.push(look);
        for comparison in &mut self.comparisons {
            let (of, than) = comparison.slots();
            if self.dropped[of].is_none() && self.dropped[than].is_none() {
                comparison.look(look, &self.outcomes, self.design.trials.until);
            }
        }
        self.drop_slots();
    }

    /// Whether there was something to decide, and all of it is.
    fn decided(&self) -> bool {
        let mut deciding = self.comparisons.iter().filter(|c| c.decides()).peekable();
        deciding.peek().is_some() && deciding.all(|c| c.state == State::Precise)
    }

    /// Slots whose comparisons are all known well enough take no more trials.
    fn drop_slots(&mut self) {
        let needed = self.needed();
        for (dropped, needed) in self.dropped.iter_mut().zip(needed) {
            if !needed && dropped.is_none() {
                *dropped = Some(self.looks.len());
            }
        }
    }

    /// By slot, whether it is part of an open comparison that decides, or of none that decides, or the ceiling of one that is.
    fn needed(&self) -> Vec<bool> {
        let slots = &self.design.slots;
        let mut deciding = vec![false; slots.len()];
        let mut needed = vec![false; slots.len()];
        for comparison in self.comparisons.iter().filter(|c| c.decides()) {
            let open = comparison.state == State::Open;
            for slot in <[usize; 2]>::from(comparison.slots()) {
                deciding[slot] = true;
                needed[slot] |= open;
            }
        }
        let ceilings: Vec<usize> = slots
            .iter()
            .filter(|s| !s.skipped)
            .filter_map(|s| s.ceiling)
            .collect();
        for (slot, needed) in needed.iter_mut().enumerate() {
            *needed |= !deciding[slot] && !ceilings.contains(&slot);
            *needed &= !slots[slot].skipped;
        }
        // A ceiling has none of its own, so once is enough.
        let served: Vec<usize> = (0..slots.len())
            .filter(|s| needed[*s])
            .filter_map(|s| slots[s].ceiling)
            .collect();
        for ceiling in served {
            needed[ceiling] = !slots[ceiling].skipped;
        }
        needed
    }

    /// The looks at which both slots were still taking trials.
    fn looks_at(&self, of: usize, than: usize) -> &[Look] {
        let until = self.dropped[of]
            .into_iter()
            .chain(self.dropped[than])
            .min()
            .unwrap_or(self.looks.len());
        &self.looks[..until]
    }

    /// The comparisons that are watched: how far each has come, and its ratio as of the last look.
    #[cfg(test)]
    pub(super) fn watched(&self) -> impl Iterator<Item = (State, Option<Estimate>)> + '_ {
        self.comparisons.iter().map(|c| {
            let (of, than) = c.slots();
            (c.state, self.ratio(of, than, Figure::Received, &[]))
        })
    }

    /// The widest relative interval of the comparisons that decide, or of all that are watched where none does. `None` without
    /// any, infinite before each has an interval.
    pub(super) fn widest(&self) -> Option<f64> {
        let some_decide = self.comparisons.iter().any(Comparison::decides);
        self.comparisons
            .iter()
            .filter(|c| c.state != State::Nothing && (c.decides() || !some_decide))
            .map(|c| c.known.map_or(f64::INFINITY, |e| e.relative_width()))
            .max_by(f64::total_cmp)
    }
}

impl Strategy for Blocks {
    fn next(&mut self, history: &History<'_>) -> Result<TrialRequest, Stopped> {
        if self.queue.is_empty() {
            self.begin_block(history.elapsed_ns)
                .inspect_err(|stopped| self.finish(*stopped))?;
        }
        let slot = self.queue.pop().ok_or(Stopped::Trials)?;
        (self.trials, self.elapsed_ns) = (self.trials + 1, history.elapsed_ns);
        Ok(self.design.request(self.begun - 1, slot))
    }

    fn observe(&mut self, trial: &Observed) {
        self.outcomes.add(trial, Figure::Received);
        if self.queue.is_empty() {
            self.settle();
        }
    }

    /// Where it went to its bound, all of the error may now be spent: there is a last look.
    fn finish(&mut self, stopped: Stopped) {
        let at_its_bound = matches!(stopped, Stopped::Budget | Stopped::Trials);
        if at_its_bound && self.looks.last().is_none_or(|l| l.share < 1.0) {
            self.look(1.0);
        }
    }

    fn progress(&self) -> Option<String> {
        let width = self.widest().filter(|width| width.is_finite())?;
        Some(format!("ratios known to {:.1} %", 100.0 * width))
    }

    /// The repeated interval that is valid now: that of the last look at which both slots were still taking trials, and none before the
    /// first look.
    fn ratio(
        &self,
        of: usize,
        than: usize,
        figure: Figure,
        trials: &[Observed],
    ) -> Option<Estimate> {
        let slots = (of, than);
        if of.max(than) >= self.dropped.len() {
            return None;
        }
        if figure == Figure::Handled {
            return comparison::repeated(
                &Outcomes::of(figure, trials),
                slots,
                self.looks_at(of, than),
            );
        }
        let known = self
            .comparisons
            .iter()
            .find(|c| c.slots() == slots)
            .and_then(|c| c.known);
        known.or_else(|| comparison::repeated(&self.outcomes, slots, self.looks_at(of, than)))
    }
}

/// The probable end of `more` further trials, if they take as long as those before.
pub(super) fn probably_over(elapsed_ns: u64, trials: u64, more: u64) -> u128 {
    let elapsed = u128::from(elapsed_ns);
    elapsed + elapsed * u128::from(more) / u128::from(trials.max(1))
}

/// The order of a block: its groups in random order, and in each its slots. It depends on seed and block alone.
pub(super) fn block_order(design: &Design, block: u32) -> Vec<usize> {
    let of_block = SplitMix64::new(u64::from(block)).next_u64();
    let mut random = SplitMix64::new(SplitMix64::new(design.seed).next_u64() ^ of_block);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (slot, place) in design.slots.iter().enumerate() {
        groups.entry(place.group).or_default().push(slot);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    shuffle(&mut groups, &mut random);
    groups
        .iter_mut()
        .for_each(|slots| shuffle(slots, &mut random));
    groups.concat()
}
