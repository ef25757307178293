//! Which slot runs next, and when enough is known: randomised complete blocks, sans-I/O.
//!
//! A block is one trial of every slot, in an order drawn anew for each block from a recorded seed, so that whatever the
//! machine does in the meantime hits all of them alike.

use crate::stats::{Estimate, paired_ratio, shuffle};
use linerate_wire::SplitMix64;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stopping {
    /// Stop once the 95 % interval of every comparison is narrower than this share (0.02 = 2 %).
    pub relative_width: f64,
    /// Blocks to run at least before the intervals are looked at.
    pub least_blocks: u32,
    /// Blocks to run at most.
    pub most_blocks: u32,
    /// Time for trials, in nanoseconds; a block is not begun that would probably exceed it.
    pub budget_ns: u64,
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

/// A schedule of trials: ask [`Schedule::next`] what to run, tell [`Schedule::observe`] what came out.
#[derive(Debug, Clone)]
pub struct Schedule {
    slots: usize,
    /// Pairs (numerator, denominator) of slots whose ratio is of interest.
    comparisons: Vec<(usize, usize)>,
    stopping: Stopping,
    random: SplitMix64,
    queue: Vec<usize>,
    block: u32,
    /// Once the intervals are narrow enough: when to stop.
    enough: Option<u32>,
    /// Rates by block and slot; `None` where the trial was not valid.
    outcomes: Vec<Vec<Option<f64>>>,
}

impl Schedule {
    /// A schedule over slots 0..`slots`, which compares the given pairs of them.
    pub fn new(slots: usize, comparisons: Vec<(usize, usize)>, stopping: Stopping, seed: u64) -> Self {
        Schedule {
            slots,
            comparisons,
            stopping,
            random: SplitMix64::new(seed),
            queue: Vec::new(),
            block: 0,
            enough: None,
            outcomes: Vec::new(),
        }
    }

    /// The next (block, slot) to run, or why to stop. `elapsed_ns` is the time since the first trial began.
    pub fn next(&mut self, elapsed_ns: u64) -> Result<(u32, usize), Stopped> {
        if self.queue.is_empty() {
            if let Some(stopped) = self.stopped(elapsed_ns) {
                return Err(stopped);
            }
            self.queue = (0..self.slots).collect();
            shuffle(&mut self.queue, &mut self.random);
            self.outcomes.push(vec![None; self.slots]);
            self.block += 1;
        }
        let slot = self.queue.pop().expect("a block has at least one slot");
        Ok((self.block - 1, slot))
    }

    /// Records the forwarding rate of a trial, or `None` if its audit failed.
    pub fn observe(&mut self, block: u32, slot: usize, rate: Option<f64>) {
        if let Some(outcome) = self.outcomes.get_mut(block as usize).and_then(|b| b.get_mut(slot)) {
            *outcome = rate;
        }
    }

    fn stopped(&mut self, elapsed_ns: u64) -> Option<Stopped> {
        let s = self.stopping;
        if self.slots == 0 || self.block >= s.most_blocks {
            return Some(Stopped::Trials);
        }
        let block_ns = elapsed_ns / u64::from(self.block.max(1));
        if self.block > 0 && elapsed_ns + block_ns > s.budget_ns {
            return Some(Stopped::Budget);
        }
        if self.enough.is_none() && self.block >= s.least_blocks && self.precise() {
            self.enough = Some(self.block + self.block.div_ceil(4));
        }
        self.enough.is_some_and(|enough| self.block >= enough).then_some(Stopped::Precise)
    }

    /// Whether every interval is narrow enough. Looking after each block would pick out the moments at which an interval is
    /// narrow by chance, and err too often; so a quarter more blocks follow, which had no part in the decision
    /// (docs/method.md has the error rates).
    fn precise(&self) -> bool {
        let narrow = |c: &(usize, usize)| {
            self.ratio(*c).is_some_and(|e| e.relative_width() < self.stopping.relative_width)
        };
        !self.comparisons.is_empty() && self.comparisons.iter().all(narrow)
    }

    /// The paired ratio of two slots so far.
    pub fn ratio(&self, (numerator, denominator): (usize, usize)) -> Option<Estimate> {
        let pairs: Vec<(f64, f64)> =
            self.outcomes.iter().filter_map(|b| Some((b[numerator]?, b[denominator]?))).collect();
        paired_ratio(&pairs, 0.95)
    }

    /// The widest relative interval of all comparisons so far; `None` without comparisons.
    pub fn widest(&self) -> Option<f64> {
        let widths =
            self.comparisons.iter().map(|c| self.ratio(*c).map_or(f64::INFINITY, |e| e.relative_width()));
        widths.max_by(f64::total_cmp)
    }

    /// Blocks begun so far.
    pub fn blocks(&self) -> u32 {
        self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOPPING: Stopping =
        Stopping { relative_width: 0.02, least_blocks: 6, most_blocks: 1000, budget_ns: 30_000_000_000 };

    #[test]
    fn every_block_has_every_slot_once_and_orders_differ() {
        let mut schedule = Schedule::new(4, vec![], Stopping { most_blocks: 50, ..STOPPING }, 1);
        let mut orders = Vec::new();
        for block in 0..50 {
            let mut order = Vec::new();
            for _ in 0..4 {
                let (b, slot) = schedule.next(0).unwrap();
                assert_eq!(b, block);
                order.push(slot);
            }
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            orders.push(order);
        }
        assert_eq!(schedule.next(0), Err(Stopped::Trials));
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 10, "{} orders", orders.len());
    }

    #[test]
    fn stops_when_the_interval_is_narrow() {
        let mut schedule = Schedule::new(2, vec![(1, 0)], STOPPING, 3);
        let mut trials = 0;
        while let Ok((block, slot)) = schedule.next(0) {
            let noise = 1.0 + 0.02 * ((trials * 7919) % 13) as f64 / 13.0;
            schedule.observe(block, slot, Some(if slot == 0 { 10.0 } else { 7.0 } * noise));
            trials += 1;
        }
        assert!(schedule.widest().unwrap() < 0.02 && schedule.blocks() >= 6 && schedule.blocks() < 100);
    }

    #[test]
    fn stops_at_the_budget_and_ignores_invalid_trials() {
        let mut schedule = Schedule::new(2, vec![(1, 0)], STOPPING, 3);
        let mut elapsed = 0;
        let stopped = loop {
            match schedule.next(elapsed) {
                Ok((block, slot)) => schedule.observe(block, slot, (slot == 0).then_some(1.0)),
                Err(stopped) => break stopped,
            }
            elapsed += 250_000_000;
        };
        assert_eq!(stopped, Stopped::Budget);
        assert!(elapsed <= 30_000_000_000 && elapsed > 29_000_000_000);
        assert_eq!(schedule.widest(), Some(f64::INFINITY));
    }
}

#[cfg(test)]
mod error_rate {
    use super::*;

    /// Two slots that are the same, with noise: how often does the campaign end with an interval that excludes 1?
    fn told_apart(noise: f64, campaigns: u64) -> f64 {
        let mut random = SplitMix64::new(42);
        let mut uniform = move || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut wrong = 0;
        for seed in 0..campaigns {
            let stopping =
                Stopping { relative_width: 0.02, least_blocks: 12, most_blocks: 36, budget_ns: u64::MAX / 2 };
            let mut schedule = Schedule::new(2, vec![(1, 0)], stopping, seed);
            while let Ok((block, slot)) = schedule.next(0) {
                let normal =
                    (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
                schedule.observe(block, slot, Some((noise * normal).exp()));
            }
            let e = schedule.ratio((1, 0)).unwrap();
            wrong += u64::from(e.low > Some(1.0) || e.high < Some(1.0));
        }
        wrong as f64 / campaigns as f64
    }

    #[test]
    fn identical_variants_are_told_apart_in_no_more_than_one_campaign_in_twenty() {
        for noise in [0.004, 0.01, 0.02, 0.1] {
            let rate = told_apart(noise, 2000);
            assert!(rate <= 0.05, "noise {noise}: {rate}");
        }
    }
}
