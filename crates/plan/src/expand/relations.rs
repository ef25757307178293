//! Baselines, comparisons and expectations: which cells are held against each other.

use crate::campaign::{Campaign, Cell};
use crate::diagnostic::Lines;
use crate::draft::{Draft, Expected, Selector, Who};
use linerate_measure::experiment::{Comparison, Expectation, Interest, Levels};
use std::collections::HashMap;

/// Adds baselines, comparisons and expectations to a campaign whose cells are complete.
pub(super) fn relate(
    draft: &Draft,
    variants: &[usize],
    lines: &Lines<'_>,
    campaign: &mut Campaign,
) {
    let pairs = Pairs::new(draft, campaign);
    let baseline = if variants.contains(&draft.baseline) {
        Some(draft.baseline)
    } else {
        variants.first().copied()
    };
    let mut comparisons = Comparisons {
        draft,
        list: Vec::new(),
        at: HashMap::new(),
    };
    let mut baselines = vec![None; campaign.cells.len()];
    for (at, cell) in campaign
        .cells
        .iter()
        .enumerate()
        .filter(|(at, _)| pairs.variant[*at].is_some())
    {
        let with = baseline
            .filter(|b| Some(*b) != pairs.variant[at])
            .and_then(|b| pairs.like(b, &cell.levels, &[]));
        if let Some(than) = with {
            comparisons.add(at, than, Interest::Variants);
        }
        if let Some(ceiling) = cell.ceiling.filter(|_| draft.decides(Interest::Ceiling)) {
            comparisons.add(at, ceiling, Interest::Ceiling);
        }
        baselines[at] = with;
        for &(factor, _) in cell.levels.iter().filter(|(_, level)| *level > 0) {
            let variant = pairs.variant[at].expect("filtered");
            if let Some(than) = pairs.like(variant, &cell.levels, &[(factor, 0)]) {
                comparisons.add(at, than, Interest::Levels(factor));
                baselines[at] = baselines[at].or(Some(than));
            }
        }
    }
    let mut expectations = Vec::new();
    for expected in &draft.expected {
        let found = pairs.expected(expected);
        for (of, than) in found.iter().filter_map(|(of, than)| Some((*of, (*than)?))) {
            comparisons.add(of, than, Interest::Expectation(expectations.len()));
        }
        expectations.push(Expectation {
            words: expected.words.clone(),
            because: expected.because.clone(),
            claim: expected.claim,
            pairs: found,
            line: lines.place(expected.span.start).0,
        });
    }
    comparisons.decide(&campaign.cells);
    campaign
        .cells
        .iter_mut()
        .zip(baselines)
        .for_each(|(cell, baseline)| cell.baseline = baseline);
    campaign.experiment.comparisons = comparisons.list;
    campaign.experiment.expectations = expectations;
}

struct Comparisons<'d> {
    draft: &'d Draft,
    list: Vec<Comparison>,
    at: HashMap<(usize, usize), usize>,
}

impl Comparisons<'_> {
    /// Adds a comparison, unless it is there for another reason already.
    fn add(&mut self, of: usize, than: usize, why: Interest) {
        let decides = self.draft.decides(why);
        if let Some(&at) = self.at.get(&(of, than)) {
            self.list[at].decides |= decides;
            return;
        }
        self.at.insert((of, than), self.list.len());
        self.list.push(Comparison {
            of,
            than,
            why,
            decides,
        });
    }

    /// Chooses what `until` waits for, if the plan names nothing and has neither variants nor expectations to compare: changes between
    /// levels or, without levels, the ratios to the tester.
    fn decide(&mut self, cells: &[Cell]) {
        let decided = self.list.iter().any(|comparison| comparison.decides);
        if decided || !self.draft.named_interests().is_empty() {
            return;
        }
        for comparison in &mut self.list {
            comparison.decides = matches!(comparison.why, Interest::Levels(_));
        }
        if self.list.is_empty() && self.draft.has_until() {
            for (of, cell) in cells.iter().enumerate() {
                if let Some(than) = cell.ceiling {
                    let (why, decides) = (Interest::Ceiling, true);
                    self.list.push(Comparison {
                        of,
                        than,
                        why,
                        decides,
                    });
                }
            }
        }
    }
}

/// Finds cells by variant and levels.
struct Pairs<'d> {
    draft: &'d Draft,
    campaign: &'d Campaign,
    /// The variant of each cell; none for ceilings.
    variant: Vec<Option<usize>>,
    by_levels: HashMap<(usize, Levels), usize>,
}

impl<'d> Pairs<'d> {
    fn new(draft: &'d Draft, campaign: &'d Campaign) -> Self {
        let number = |cell: &Cell| draft.variants.iter().position(|v| v.name == cell.variant);
        let variant: Vec<Option<usize>> = campaign.cells.iter().map(number).collect();
        let entry = |(at, cell): (usize, &Cell)| Some(((variant[at]?, sorted(&cell.levels)), at));
        let by_levels = campaign
            .cells
            .iter()
            .enumerate()
            .filter_map(entry)
            .collect();
        Pairs {
            draft,
            campaign,
            variant,
            by_levels,
        }
    }

    /// The cell of a variant that is like one with `levels`, except for `other` levels. Factors that do not vary this variant do
    /// not count.
    fn like(&self, variant: usize, levels: &Levels, other: &[(usize, usize)]) -> Option<usize> {
        let varies = |factor: usize| self.draft.factors[factor].variants.contains(&variant);
        let replaced = |factor: usize| other.iter().any(|(f, _)| *f == factor);
        let kept = levels.iter().filter(|(f, _)| varies(*f) && !replaced(*f));
        let all: Levels = kept.chain(other).copied().collect();
        self.by_levels.get(&(variant, sorted(&all))).copied()
    }

    /// The cells that an expectation is about, each with its partner.
    fn expected(&self, expected: &Expected) -> Vec<(usize, Option<usize>)> {
        let partner = |at: usize| {
            expected
                .than
                .as_ref()
                .and_then(|than| self.partner(at, than))
        };
        let Some(levels) = self.levels(&expected.of) else {
            return Vec::new();
        };
        let cells =
            (0..self.campaign.cells.len()).filter(|at| self.meant(*at, expected.of.who, &levels));
        let pairs = cells.map(|at| (at, partner(at)));
        pairs
            .filter(|(at, than)| !expected.claim.compares() || than.is_some_and(|than| than != *at))
            .collect()
    }

    fn meant(&self, at: usize, who: Who, levels: &Levels) -> bool {
        let is = match who {
            Who::Any => self.variant[at].is_some(),
            Who::Variant(variant) => self.variant[at] == Some(variant),
            Who::Ceiling => self.variant[at].is_none(),
        };
        is && levels
            .iter()
            .all(|l| self.campaign.cells[at].levels.contains(l))
    }

    fn partner(&self, at: usize, than: &Selector) -> Option<usize> {
        let levels = self.levels(than)?;
        let variant = match than.who {
            Who::Any => self.variant[at]?,
            Who::Variant(variant) => variant,
            Who::Ceiling => return self.campaign.cells[at].ceiling,
        };
        self.like(variant, &self.campaign.cells[at].levels, &levels)
    }

    /// The levels of a selector as indices; none if this form does not have one of them.
    fn levels(&self, selector: &Selector) -> Option<Levels> {
        let index = |(factor, label): &(usize, String)| {
            Some((
                *factor,
                self.campaign.experiment.factors[*factor]
                    .levels
                    .iter()
                    .position(|l| l == label)?,
            ))
        };
        selector.levels.iter().map(index).collect()
    }
}

fn sorted(levels: &Levels) -> Levels {
    let mut sorted = levels.clone();
    sorted.sort_unstable();
    sorted
}
