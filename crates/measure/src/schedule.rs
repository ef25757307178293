//! Which slot runs next, and when enough is known: randomised blocks with a group-sequential stopping rule, sans-I/O.
//!
//! A block is one trial of every slot that is still needed, in an order drawn anew for each block from a recorded seed, so that
//! whatever the machine does in the meantime hits all of them alike. At set shares of the campaign the intervals are looked at;
//! what is known well enough then takes no more trials. All of it follows from the design and the recorded trials, so a campaign
//! can be replayed from its records, and taken up again where it was broken off.

mod comparison;
mod design;
mod order;
mod replay;

pub use comparison::{Known, State};
pub use design::{Design, Place, Stopping, Watched};
pub use replay::Mismatch;

use crate::record::TrialRecord;
use comparison::{Comparison, Look, Outcomes};
use linerate_plan::campaign::{Campaign, Order};
use linerate_plan::timetable::Timetable;
use linerate_stats::Estimate;
use order::RandomOrder;

/// The intervals are looked at when another of so many equal shares of the campaign is over. More looks would find the moment to
/// stop sooner, and make the last interval wider: by 4 % for 6 of them (docs/method.md).
const LOOKS: f64 = 6.0;

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

/// A schedule of trials: ask [`Schedule::next`] what to run, tell [`Schedule::observe`] what came out.
#[derive(Debug, Clone)]
pub struct Schedule {
    design: Design,
    turns: RandomOrder,
    comparisons: Vec<Comparison>,
    outcomes: Outcomes,
    /// By slot: after how many looks it was no longer needed.
    dropped: Vec<Option<usize>>,
    looks: Vec<Look>,
    /// The trial handed out last.
    last: Option<(u32, usize)>,
    /// When that was, since the first trial.
    elapsed_ns: u64,
    /// Blocks that are over.
    complete: u32,
}

impl Schedule {
    /// A schedule by this design. References to slots that do not exist are left out.
    pub fn new(design: Design) -> Schedule {
        let design = design.sound();
        let comparisons = design.watched.iter().map(|w| Comparison::new(*w, &design)).collect();
        let mut schedule = Schedule {
            turns: RandomOrder::new(&design),
            outcomes: Outcomes::new(design.slots.len()),
            dropped: design.slots.iter().map(|s| s.skipped.then_some(0)).collect(),
            comparisons,
            design,
            looks: Vec::new(),
            last: None,
            elapsed_ns: 0,
            complete: 0,
        };
        schedule.drop_slots();
        schedule
    }

    /// The next (block, slot) to run, or why to stop. `elapsed_ns` is the time since the first trial began; it must be what is
    /// recorded as the trial's beginning, or a replay will differ.
    ///
    /// # Errors
    /// The campaign is over.
    pub fn next(&mut self, elapsed_ns: u64) -> Result<(u32, usize), Stopped> {
        let next = match self.design.order {
            Order::Blocks => self.next_in_block(elapsed_ns),
            Order::Sequential => self.turns.next_in_sequence(&self.design, elapsed_ns),
        };
        match next {
            Ok((block, slot)) => {
                self.outcomes.begin(block);
                self.last = Some((block, slot));
                self.elapsed_ns = elapsed_ns;
            }
            Err(stopped) => self.finish(stopped),
        }
        next
    }

    fn next_in_block(&mut self, elapsed_ns: u64) -> Result<(u32, usize), Stopped> {
        if self.turns.block_is_over() {
            self.settle();
            if self.decided() {
                return Err(Stopped::Precise);
            }
            let (design, dropped) = (&self.design, &self.dropped);
            self.turns.begin_block(design, |slot| dropped[slot].is_none(), elapsed_ns)?;
        }
        Ok(self.turns.take())
    }

    /// Records the forwarding rate of a trial, or `None` if its audit failed.
    pub fn observe(&mut self, block: u32, slot: usize, rate: Option<f64>) {
        self.outcomes.set(block, slot, rate);
        if self.last == Some((block, slot)) && self.turns.block_is_over() {
            self.settle();
        }
    }

    /// Ends the campaign for this reason. Where it went to its bound, all of the error may now be spent: there is a last look.
    /// [`Schedule::next`] does this by itself; a replay needs to be told, since the end is in no trial.
    pub fn finish(&mut self, stopped: Stopped) {
        let at_its_bound = matches!(stopped, Stopped::Budget | Stopped::Trials);
        if at_its_bound && self.looks.last().is_none_or(|l| l.share < 1.0) {
            if self.design.order == Order::Sequential {
                self.complete = self.blocks();
            }
            self.look(1.0);
        }
    }

    /// After a block: the look that is due, if one is.
    fn settle(&mut self) {
        let blocks = self.turns.blocks();
        if self.design.order == Order::Sequential || self.complete == blocks {
            return;
        }
        self.complete = blocks;
        let share = self.design.stopping.share(blocks, self.elapsed_ns);
        let looked = self.looks.last().map_or(0.0, |l| (l.share * LOOKS).floor());
        if (share * LOOKS).floor() > looked {
            self.look(share);
        }
    }

    fn look(&mut self, share: f64) {
        let look = Look { blocks: self.complete, share };
        self.looks.push(look);
        for comparison in &mut self.comparisons {
            let (of, than) = comparison.slots();
            if self.dropped[of].is_none() && self.dropped[than].is_none() {
                comparison.look(look, &self.outcomes, self.design.stopping.relative_width);
            }
        }
        self.drop_slots();
    }

    /// Whether there was something to decide, and all of it is.
    fn decided(&self) -> bool {
        let mut deciding = self.comparisons.iter().filter(|c| c.decides()).peekable();
        deciding.peek().is_some() && deciding.all(|c| c.state() == State::Precise)
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
            let open = comparison.state() == State::Open;
            for slot in <[usize; 2]>::from(comparison.slots()) {
                deciding[slot] = true;
                needed[slot] |= open;
            }
        }
        let ceilings: Vec<usize> = slots.iter().filter(|s| !s.skipped).filter_map(|s| s.ceiling).collect();
        for (slot, needed) in needed.iter_mut().enumerate() {
            *needed |= !deciding[slot] && !ceilings.contains(&slot);
            *needed &= !slots[slot].skipped;
        }
        // A ceiling has none of its own, so once is enough.
        let served: Vec<usize> =
            (0..slots.len()).filter(|s| needed[*s]).filter_map(|s| slots[s].ceiling).collect();
        for ceiling in served {
            needed[ceiling] = !slots[ceiling].skipped;
        }
        needed
    }

    /// The median of the ratios of two slots paired by block, with the repeated interval that is valid now: that of the last
    /// look at which both slots were still taking trials, and no interval before the first. `None` without pairs.
    pub fn ratio(&self, of: usize, than: usize) -> Option<Estimate> {
        let slots = self.dropped.len();
        if of >= slots || than >= slots {
            return None;
        }
        if let Some(known) = self.comparisons.iter().find(|c| c.slots() == (of, than)).and_then(|c| c.known())
        {
            return Some(known);
        }
        comparison::repeated(&self.outcomes, (of, than), self.looks_at(of, than))
    }

    /// As [`Schedule::ratio`], of another figure of the trials that it was told of.
    pub fn ratio_by(
        &self,
        of: usize,
        than: usize,
        trials: &[TrialRecord],
        figure: impl Fn(&TrialRecord) -> Option<f64>,
    ) -> Option<Estimate> {
        let slots = self.dropped.len();
        if of >= slots || than >= slots {
            return None;
        }
        let mut outcomes = Outcomes::new(slots);
        for trial in trials {
            outcomes.begin(trial.block);
            outcomes.set(trial.block, trial.slot, Some(trial).filter(|t| t.audit.valid).and_then(&figure));
        }
        comparison::repeated(&outcomes, (of, than), self.looks_at(of, than))
    }

    /// The looks at which both slots were still taking trials.
    fn looks_at(&self, of: usize, than: usize) -> &[Look] {
        let until = self.dropped[of].into_iter().chain(self.dropped[than]).min().unwrap_or(self.looks.len());
        &self.looks[..until]
    }

    /// The comparisons that are watched, and what is known of each.
    pub fn watched(&self) -> impl Iterator<Item = Known> + '_ {
        self.comparisons.iter().map(|c| {
            let (of, than) = c.slots();
            Known { of, than, decides: c.decides(), state: c.state(), ratio: self.ratio(of, than) }
        })
    }

    /// The widest relative interval of the comparisons that decide, or of all that are watched where none does. `None` without
    /// any, infinite before each has an interval.
    pub fn widest(&self) -> Option<f64> {
        let some_decide = self.comparisons.iter().any(Comparison::decides);
        self.comparisons
            .iter()
            .filter(|c| c.state() != State::Nothing && (c.decides() || !some_decide))
            .map(|c| c.known().map_or(f64::INFINITY, |e| e.relative_width()))
            .max_by(f64::total_cmp)
    }

    /// Blocks begun so far.
    pub fn blocks(&self) -> u32 {
        self.outcomes.blocks()
    }

    /// The group of a slot.
    pub fn group(&self, slot: usize) -> usize {
        self.design.slots[slot].group
    }
}

/// The cells of the first blocks, in the order of their trials. With [`Order::Sequential`] each inner list is one cell's trials.
pub fn first_blocks(campaign: &Campaign, seed: u64, blocks: u32) -> Vec<Vec<usize>> {
    let cells = campaign.cells.len();
    if campaign.trials.order == Order::Sequential {
        let trials = Timetable::new(campaign).blocks.min(u64::from(blocks)) as usize;
        return (0..cells).map(|cell| vec![cell; trials]).collect();
    }
    let most_blocks = Timetable::new(campaign).blocks.min(u64::from(blocks)) as u32;
    let stopping = Stopping { most_blocks: Some(most_blocks), ..Stopping::default() };
    let mut schedule = Schedule::new(Design { stopping, ..Design::of_plan(campaign, |_| false, seed) });
    let mut order: Vec<Vec<usize>> = Vec::new();
    while let Ok((block, cell)) = schedule.next(0) {
        order.resize(block as usize + 1, Vec::new());
        order[block as usize].push(cell);
    }
    order
}

#[cfg(test)]
mod tests;
