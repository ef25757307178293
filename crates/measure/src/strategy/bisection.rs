//! Which element of an ordered list made it slower? The list is the levels of a factor.
//!
//! First both ends take trials, until their difference is known. Then each block has both ends and one candidate, until the side of the
//! candidate is known; the next candidate halves the probability. At last, blocks have the culprit and the element before it as well: their
//! ratio is the size of the step. Trials that say nothing about a side, an element that cannot be measured, or a budget that is used up,
//! leave the rest undecided.

use super::blocks::{block_order, probably_over};
use super::{Design, Figure, History, Observed, Outcomes, Strategy, TrialRequest};
use crate::experiment::Interest;
use crate::record::{Bisected, BisectionVerdict, Culprit, Element, SecondStep, Stopped};
use linerate_stats::anytime::cut;
use linerate_stats::bisection::{evidence, halving, posterior, spread};
use linerate_stats::sequential::ERROR;
use linerate_stats::{Estimate, paired_ratio_between};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The probability of a culprit that is named.
pub const CERTAIN: f64 = 0.98;
/// Blocks of the ends before their spread is trusted.
const FIRST: usize = 10;
/// Blocks of a candidate before its side may be decided.
const LEAST: usize = 4;
/// Blocks of a candidate whose side is not known, before another one is asked: at least so many, and so many times those that an element like
/// one of the ends needs.
const MOST: usize = 60;
const AMPLE: f64 = 6.0;
/// Odds of a side that is told, as a logarithm: 19 to 1.
const SIDE: f64 = 2.944;
/// Blocks with the culprit and the element before it.
const LAST: usize = 30;
/// The error of each further step that is mentioned.
const MENTION: f64 = 0.01;
/// Trials of an element after which it counts as one that cannot be measured, if none was valid.
const IN_VAIN: usize = 5;

/// A bisection of the levels of a factor.
#[derive(Debug, Clone)]
pub struct Bisection {
    design: Design,
    factor: usize,
    /// The slots of all elements, in the order of the list.
    all: Vec<usize>,
    outcomes: Outcomes,
    /// Trials of each slot, valid or not.
    trials: BTreeMap<usize, usize>,
    /// The rest of the block, the next slot at the end.
    queue: Vec<usize>,
    begun: u32,
    handed_out: u64,
    /// The candidate that is asked, an index into the list of [`Known`].
    asked: Option<usize>,
    /// On which side of the good end the bad one is, once that is known.
    ends: Option<Ordering>,
    known: Known,
}

/// The answer of the trials.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The elements that can be measured.
    list: Vec<usize>,
    /// Odds of each element, as a logarithm; 0 without trials.
    odds: Vec<f64>,
    /// Blocks that have a contrast of each element.
    blocks: Vec<usize>,
    /// The probability of each element that the slow side begins with it.
    probability: Vec<f64>,
    /// Blocks of a candidate at most, before another one is asked.
    most: usize,
}

impl Known {
    /// The most probable beginning of the slow side.
    fn culprit(&self) -> Option<(usize, f64)> {
        let all = self.probability.iter().copied().enumerate().skip(1);
        all.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
    }

    /// Whether the trials of an element decide about its side.
    fn is_decided(&self, at: usize) -> bool {
        self.blocks[at] >= LEAST && self.odds[at].abs() >= enough(self.list.len())
    }

    /// The element to be asked next: one of the two at the median of the culprit. If both are decided, the one that is known least of all that
    /// were asked; if one of them decides nothing, another one whose side is not certain either.
    fn next(&self) -> Option<usize> {
        let mut before = 0.0;
        let slow: Vec<f64> = self
            .probability
            .iter()
            .map(|probability| {
                before += probability;
                before
            })
            .collect();
        let median = slow.iter().position(|slow| *slow >= 0.5)?;
        let is_open = |at: usize| !self.is_decided(at) && self.blocks[at] < self.most;
        let is_uncertain = |at: usize| (1.0 - CERTAIN..CERTAIN).contains(&slow[at]);
        let pair = [median.saturating_sub(1), median];
        let inner = 1..self.list.len() - 1;
        let exhausted = |at: &usize| inner.contains(at) && !self.is_decided(*at);
        let elsewhere = || halving(&self.probability, |at| is_open(at) && is_uncertain(at));
        let weakest = || {
            let asked = inner.clone().filter(|at| self.blocks[*at] > 0);
            asked.min_by(|a, b| self.odds[*a].abs().total_cmp(&self.odds[*b].abs()))
        };
        halving(&self.probability, |at| pair.contains(&at) && is_open(at))
            .or_else(|| elsewhere().filter(|_| pair.iter().any(exhausted)))
            .or_else(weakest)
    }
}

/// Odds of a side at which the next candidate is asked. All candidates together may err as often as the culprit may be wrong.
fn enough(elements: usize) -> f64 {
    let questions = f64::from(elements.max(2).ilog2() + 1);
    let error = (1.0 - CERTAIN) / questions;
    ((1.0 - error) / error).ln()
}

impl Bisection {
    /// The list is the first factor whose levels are compared with its first level.
    pub fn new(design: Design) -> Bisection {
        let design = design.sound();
        let level = |why| match why {
            Interest::Levels(factor) => Some(factor),
            _ => None,
        };
        let levels = || {
            let all = design.comparisons.iter();
            all.filter_map(|c| Some((c, level(c.why)?)))
        };
        let first = levels().next().map(|(c, factor)| (c.than, factor));
        let (mut all, factor) =
            first.map_or((Vec::new(), 0), |(slot, factor)| (vec![slot], factor));
        all.extend(
            levels()
                .filter(|(c, factor)| first == Some((c.than, *factor)))
                .map(|(c, _)| c.of),
        );
        let mut bisection = Bisection {
            design,
            factor,
            all,
            outcomes: Outcomes::default(),
            trials: BTreeMap::new(),
            queue: Vec::new(),
            begun: 0,
            handed_out: 0,
            asked: None,
            ends: None,
            known: Known::default(),
        };
        bisection.learn();
        bisection
    }

    /// Takes in the trials of a block that is over.
    fn learn(&mut self) {
        let measurable = |slot: &usize| {
            let tried = self.trials.get(slot).copied().unwrap_or_default();
            let lasts = tried < IN_VAIN || self.outcomes.of_slot(*slot).next().is_some();
            !self.design.slots[*slot].skipped && lasts
        };
        let list: Vec<usize> = self.all.iter().copied().filter(measurable).collect();
        if list != self.known.list {
            self.asked = None;
        }
        let [Some(&good), Some(&bad)] = [list.first(), list.last()] else {
            self.known = Known::default();
            return;
        };
        let contrasts: Vec<Vec<f64>> = list
            .iter()
            .map(|slot| self.contrasts(*slot, good, bad))
            .collect();
        let ends = self.outcomes.pairs((bad, good), u32::MAX);
        let ends: Vec<f64> = ends.iter().map(|(bad, good)| (bad / good).ln()).collect();
        // The difference of two trials, whose variance is 4/3 of that of a contrast.
        let of_ends = ends.iter().map(|ratio| ratio * 0.75f64.sqrt()).collect();
        let inner = || contrasts.iter().take(list.len() - 1).skip(1);
        let groups: Vec<Vec<f64>> = inner().cloned().chain([of_ends]).collect();
        let scale = spread(&groups);
        let half = -linerate_stats::median(&ends).unwrap_or_default() / 2.0;
        let odds = |(at, own): (usize, &Vec<f64>)| match half > 0.0 && at > 0 && at + 1 < list.len()
        {
            true => evidence(own, half, scale),
            false => 0.0,
        };
        let odds: Vec<f64> = contrasts.iter().enumerate().map(odds).collect();
        let evident: Vec<(usize, f64)> = odds.iter().copied().enumerate().collect();
        let ratio = self.estimate(bad, good, ERROR);
        self.ends = self.ends.or(ratio.and_then(|ratio| ratio.side_of(1.0)));
        // A block of an element like one of the ends is expected to add 2 (h / spread)^2 to its odds.
        let needed = enough(list.len()) * (scale / half).powi(2) / 2.0;
        self.known = Known {
            most: MOST.max((AMPLE * needed).min(1e6) as usize),
            blocks: contrasts.iter().map(Vec::len).collect(),
            probability: posterior(list.len(), &evident),
            odds,
            list,
        };
    }

    /// ln of an element's rate less the mean ln of both ends' rates, of each block that has all three.
    fn contrasts(&self, slot: usize, good: usize, bad: usize) -> Vec<f64> {
        let contrast = |(block, rate): (u32, f64)| {
            let [good, bad] = [good, bad].map(|end| self.outcomes.at(end, block));
            Some(rate.ln() - f64::midpoint(good?.ln(), bad?.ln()))
        };
        self.outcomes.of_slot(slot).filter_map(contrast).collect()
    }

    /// The ratio of two slots, with an interval that is valid at every moment.
    fn estimate(&self, of: usize, than: usize, error: f64) -> Option<Estimate> {
        let pairs = self.outcomes.pairs((of, than), u32::MAX);
        paired_ratio_between(&pairs, |n| cut(n, error))
    }

    /// The culprit that is certain, as an index, with the ratio to the element before it.
    fn certain(&self) -> Option<(usize, Option<Estimate>)> {
        let (at, probability) = self.known.culprit()?;
        let slots = &self.known.list;
        let ratio = || self.estimate(slots[at], slots[at - 1], ERROR);
        (self.ends == Some(Ordering::Less) && probability >= CERTAIN).then(|| (at, ratio()))
    }

    /// Whether the culprit is certain, and its step is known.
    fn is_found(&self) -> bool {
        self.certain().is_some_and(|(_, ratio)| {
            ratio.is_some_and(|ratio| ratio.n >= LAST && ratio.side_of(1.0) == Some(Ordering::Less))
        })
    }

    /// The elements of the next block, as indices; none at the end.
    fn wanted(&mut self) -> Vec<usize> {
        let known = &self.known;
        let last = known.list.len().saturating_sub(1);
        let blocks = known.blocks.first().copied().unwrap_or_default();
        if last == 0 || self.ends == Some(Ordering::Greater) || self.is_found() {
            return Vec::new();
        }
        if self.ends.is_none() || blocks < FIRST {
            return vec![0, last];
        }
        if let Some((at, _)) = self.certain() {
            self.asked = None;
            let mut all = vec![0, at - 1, at, last];
            all.dedup();
            return all;
        }
        let goes_on = |at: usize| !known.is_decided(at) && known.blocks[at] < known.most;
        if !self.asked.is_some_and(goes_on) {
            self.asked = known.next();
        }
        [0].into_iter().chain(self.asked).chain([last]).collect()
    }

    /// Begins the next block. The first is always run; a later one only if it will probably fit.
    fn begin_block(&mut self, elapsed_ns: u64) -> Result<(), Stopped> {
        let wanted = self.wanted();
        if wanted.is_empty() {
            return Err(Stopped::Precise);
        }
        let slots: Vec<usize> = wanted.iter().map(|at| self.known.list[*at]).collect();
        let trials = &self.design.trials;
        if trials.blocks.is_some_and(|most| self.begun >= most) {
            return Err(Stopped::Trials);
        }
        let over = probably_over(elapsed_ns, self.handed_out, slots.len() as u64);
        let time = trials.time_ns().map(u128::from);
        if self.begun > 0 && time.is_some_and(|time| over > time) {
            return Err(Stopped::Budget);
        }
        let mut queue = block_order(&self.design, self.begun);
        queue.retain(|slot| slots.contains(slot));
        queue.reverse();
        (self.queue, self.begun) = (queue, self.begun + 1);
        Ok(())
    }

    fn verdict(&self) -> BisectionVerdict {
        match self.ends {
            _ if self.known.list.len() < 2 => BisectionVerdict::NothingToCompare,
            None | Some(Ordering::Equal) => BisectionVerdict::UndecidedEnds,
            Some(Ordering::Greater) => BisectionVerdict::Faster,
            Some(Ordering::Less) if self.is_found() => BisectionVerdict::Found,
            Some(Ordering::Less) => BisectionVerdict::UndecidedCulprit,
        }
    }

    /// The most probable culprit.
    fn culprit(&self) -> Option<Culprit> {
        let (at, probability) = self.known.culprit()?;
        let [slot, after] = [at, at - 1].map(|at| self.known.list[at]);
        let until = self.all.iter().skip_while(|other| **other != after).skip(1);
        Some(Culprit {
            slot,
            after,
            between: until.copied().take_while(|other| *other != slot).collect(),
            probability,
            ratio: self.estimate(slot, after, ERROR),
        })
    }

    /// Changes before and after the culprit.
    fn second(&self) -> Vec<SecondStep> {
        let list = &self.known.list;
        let Some((at, _)) = self.certain() else {
            return Vec::new();
        };
        let step = |(after, until): (usize, usize)| {
            let [after, until] = [list[after], list[until]];
            let ratio = self.estimate(until, after, MENTION)?;
            ratio.side_of(1.0).map(|_| SecondStep {
                after,
                until,
                ratio,
            })
        };
        let sides = [(0, at - 1), (at, list.len() - 1)].into_iter();
        sides
            .filter(|(from, to)| from < to)
            .filter_map(step)
            .collect()
    }
}

impl Strategy for Bisection {
    fn next(&mut self, history: &History<'_>) -> Result<TrialRequest, Stopped> {
        if self.queue.is_empty() {
            self.begin_block(history.elapsed_ns)?;
        }
        let slot = self.queue.pop().ok_or(Stopped::Trials)?;
        self.handed_out += 1;
        Ok(self.design.request(self.begun - 1, slot))
    }

    fn observe(&mut self, trial: &Observed) {
        *self.trials.entry(trial.request.slot).or_default() += 1;
        // A DUT through which nothing passes has no rate that could be compared.
        let passes = Observed {
            received: trial.received.filter(|rate| *rate > 0.0),
            ..*trial
        };
        self.outcomes.add(&passes, Figure::Received);
        if self.queue.is_empty() {
            self.learn();
        }
    }

    fn progress(&self) -> Option<String> {
        let list = &self.known.list;
        match (self.ends, self.known.culprit()?) {
            (Some(Ordering::Less), (_, probability)) => {
                let open = self
                    .known
                    .probability
                    .iter()
                    .filter(|p| **p > 1.0 - CERTAIN);
                Some(format!(
                    "{} of {} elements left, the best at {:.0} %",
                    open.count(),
                    list.len() - 1,
                    100.0 * probability
                ))
            }
            _ => Some("both ends".into()),
        }
    }

    /// All intervals are valid at every moment, so the trials by which the strategy decided do not matter.
    fn ratio(
        &self,
        of: usize,
        than: usize,
        figure: Figure,
        trials: &[Observed],
    ) -> Option<Estimate> {
        let pairs = Outcomes::of(figure, trials).pairs((of, than), u32::MAX);
        paired_ratio_between(&pairs, |n| cut(n, ERROR))
    }

    fn bisection(&self) -> Option<Bisected> {
        let known = &self.known;
        let is_decided = self.ends == Some(Ordering::Less);
        let ends = || Some([*known.list.first()?, *known.list.last()?]);
        let element = |slot: &usize| {
            let at = known.list.iter().position(|other| other == slot);
            let inner = at.filter(|at| *at > 0 && at + 1 < known.list.len());
            let slow = inner.filter(|at| known.odds[*at].abs() >= SIDE);
            let probability = at.filter(|_| is_decided).map(|at| known.probability[at]);
            let than = ends().map(|[good, _]| good).filter(|good| good != slot);
            Element {
                slot: *slot,
                trials: self.trials.get(slot).copied().unwrap_or_default(),
                ratio: than.and_then(|good| self.estimate(*slot, good, ERROR)),
                slow: slow.map(|at| known.odds[at] > 0.0),
                probability: probability.unwrap_or_default(),
            }
        };
        Some(Bisected {
            factor: self.factor,
            verdict: self.verdict(),
            ends: ends().and_then(|[good, bad]| self.estimate(bad, good, ERROR)),
            elements: self.all.iter().map(element).collect(),
            culprit: self.culprit().filter(|_| is_decided),
            second: self.second(),
        })
    }
}
