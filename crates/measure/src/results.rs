//! Answers to the questions of a plan: ratios between cells, sweeps, and expectations.
//!
//! All references are numbers of cells, which are those of the record's slots.

use crate::experiment::{Comparison, Expectation, Experiment, Judgement, Levels};
use crate::record::{
    Against, Bisected, Campaign, Compared, Disagreement, Expected, JudgedPair, Ministat, Planned,
    Point, Row, Searched, Series, Stopped, Summary, TrialRecord,
};
use crate::strategy::{Benched, Design, Figure, List, Observed, Strategy, replay};
use linerate_stats::Estimate;
use linerate_stats::ministat::{Confidence, Dataset, Era, difference};
use std::collections::HashMap;

/// Whether an interval excludes 1.
pub fn proven(ratio: &Estimate) -> bool {
    ratio.side_of(1.0).is_some()
}

/// The strategy at the end of the campaign, whose intervals allow for having been looked at before.
pub(crate) struct Ratios<'a> {
    campaign: &'a Campaign,
    trials: &'a [TrialRecord],
    strategy: Box<dyn Strategy>,
    observed: Vec<Observed>,
}

impl<'a> Ratios<'a> {
    /// Of imported trials, and those of another linerate, another strategy chose the trials: then the intervals are those of a fixed list.
    pub fn new(campaign: &'a Campaign, trials: &'a [TrialRecord], stopped: Stopped) -> Ratios<'a> {
        let own = Design::of(campaign).and_then(|design| replay(design, trials).ok());
        let (mut strategy, observed) = own.unwrap_or_else(|| {
            let observed: Vec<Observed> = trials.iter().map(Observed::from).collect();
            (Box::new(List::of(&observed)), observed)
        });
        strategy.finish(stopped);
        Ratios {
            campaign,
            trials,
            strategy,
            observed,
        }
    }

    /// The results of searches, if rates were searched for.
    pub fn searches(&self) -> Vec<Searched> {
        self.strategy.searches()
    }

    /// Which element of a list made it slower, if that was asked.
    pub fn bisection(&self) -> Option<Bisected> {
        self.strategy.bisection()
    }

    /// The courses of RFC 2544's tests, if they were carried out.
    pub fn benchmarks(&self) -> Vec<Benched> {
        self.strategy.benchmarks()
    }

    /// The ratio of two slots' rates, if it is a number that a record can hold.
    pub fn ratio(&self, of: usize, than: usize) -> Option<Estimate> {
        self.figure(of, than, Figure::Received)
    }

    fn figure(&self, of: usize, than: usize, figure: Figure) -> Option<Estimate> {
        let finite = |e: &Estimate| {
            e.median.is_finite()
                && e.low.is_none_or(f64::is_finite)
                && e.high.is_none_or(f64::is_finite)
        };
        let exist = of.max(than) < self.campaign.slots.len();
        exist
            .then(|| self.strategy.ratio(of, than, figure, &self.observed))
            .flatten()
            .filter(finite)
    }

    /// Bounds of the ratio of two slots' rates: its interval or, with too few blocks for one, the least and the greatest ratio of a block.
    pub fn bounds(&self, of: usize, than: usize) -> Option<[f64; 2]> {
        let ratio = self.ratio(of, than)?;
        if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
            return Some([low, high]);
        }
        let rate = |slot: usize, block: u32| {
            let of = |trial: &&Observed| (trial.request.slot, trial.request.block) == (slot, block);
            self.observed.iter().rfind(of)?.received
        };
        let blocks = self
            .observed
            .iter()
            .filter(|trial| trial.request.slot == of);
        let of_block = |trial: &Observed| Some(trial.received? / rate(than, trial.request.block)?);
        let [mut low, mut high] = [ratio.median; 2];
        for ratio in blocks.filter_map(of_block) {
            (low, high) = (low.min(ratio), high.max(ratio));
        }
        Some([low, high])
    }

    /// Compares one slot with another.
    pub fn against(&self, rows: &[Row], of: usize, than: usize) -> Against {
        let ratio = self.ratio(of, than);
        let proven = ratio.as_ref().is_some_and(proven);
        Against {
            than,
            ratio,
            proven,
            cost: self.cost(rows, of, than),
        }
    }

    /// The cost of a frame in one slot, divided by the cost in another. `None` if neither drops frames, or if pacing, not cost,
    /// set the time between frames.
    fn cost(&self, rows: &[Row], of: usize, than: usize) -> Option<Estimate> {
        let row = |slot: usize| rows.get(slot).filter(|r| r.handled.median > 0.0);
        let paced = |slot: usize| self.campaign.slots[slot].asked_fps.is_some();
        let drops = row(of)?.drops() || row(than)?.drops();
        // The one that handles more frames a second has the lower cost.
        (drops && !paced(of) && !paced(than))
            .then(|| self.figure(than, of, Figure::Handled))
            .flatten()
    }
}

/// Adds the answers to a plan's questions.
pub(crate) fn add(summary: &mut Summary, planned: &Planned, ratios: &Ratios<'_>) {
    let found = Found {
        planned,
        rows: &summary.rows,
        ratios,
    };
    let Experiment {
        comparisons,
        expectations,
        ..
    } = &planned.experiment;
    let comparisons = comparisons.iter().map(|c| found.compared(c)).collect();
    let (series, expectations) = (
        series(&found),
        expectations.iter().map(|e| expected(&found, e)).collect(),
    );
    (summary.comparisons, summary.series, summary.expectations) =
        (comparisons, series, expectations);
}

/// Figures by slot. A recorded experiment may refer to slots that do not exist: they have no figures.
struct Found<'a> {
    planned: &'a Planned,
    rows: &'a [Row],
    ratios: &'a Ratios<'a>,
}

impl Found<'_> {
    fn compared(&self, c: &Comparison) -> Compared {
        let against = self.ratios.against(self.rows, c.of, c.than);
        let ministat = ministat(self.ratios.trials, c.of, c.than);
        let disagreement = ministat
            .zip(against.ratio)
            .and_then(|(m, ratio)| m.disagreement(&ratio));
        Compared {
            of: c.of,
            against,
            why: c.why,
            ministat,
            disagreement,
        }
    }
}

/// `None` for fewer than two rates on a side, and where the arithmetic overflows.
fn ministat(trials: &[TrialRecord], of: usize, than: usize) -> Option<Ministat> {
    let set = |slot: usize| {
        let valid = trials.iter().filter(|t| t.slot == slot && t.audit.valid);
        let rates: Vec<f64> = valid.filter_map(|t| Some(t.rates?.received)).collect();
        (rates.len() >= 2).then(|| Dataset::new("", rates).summary(Era::default()))
    };
    let d = difference(
        &set(than)?,
        &set(of)?,
        Confidence::default(),
        Era::default(),
    );
    let verdict = Ministat {
        proven: d.proven,
        percent: d.percent,
        percent_error: d.percent_error,
    };
    (d.percent.is_finite() && d.percent_error.is_finite()).then_some(verdict)
}

impl Ministat {
    /// Without an interval, pairs say nothing yet, which is no disagreement.
    fn disagreement(&self, ratio: &Estimate) -> Option<Disagreement> {
        ratio.low?;
        match (self.proven, proven(ratio)) {
            (false, true) => Some(Disagreement::OnlyPairs),
            (true, false) => Some(Disagreement::OnlyMinistat),
            (true, true) if (self.percent > 0.0) != (ratio.median > 1.0) => {
                Some(Disagreement::Opposite)
            }
            _ => None,
        }
    }
}

/// For each factor with more than two levels, and each that sets CPUs: a series for each variant, at each combination of the other
/// levels.
fn series(found: &Found<'_>) -> Vec<Series> {
    let factors = found.planned.experiment.factors.iter().enumerate();
    let swept = factors.filter(|(_, f)| f.levels.len() > 2 || f.sets_cpus());
    swept
        .flat_map(|(factor, _)| of_factor(found, factor))
        .collect()
}

fn of_factor(found: &Found<'_>, factor: usize) -> Vec<Series> {
    // Ceilings appear beside the slots that they belong to, unless the plan is about them.
    let duts = found
        .ratios
        .campaign
        .slots
        .iter()
        .any(|slot| !slot.is_calibration());
    let mut groups: Vec<(String, Vec<(usize, usize)>)> = Vec::new();
    let mut at: HashMap<(&str, Levels), usize> = HashMap::new();
    for slot in found
        .ratios
        .campaign
        .slots
        .iter()
        .filter(|slot| !(duts && slot.is_calibration()))
    {
        let Some(&(_, level)) = slot.levels.iter().find(|(f, _)| *f == factor) else {
            continue;
        };
        let others = slot
            .levels
            .iter()
            .filter(|(f, _)| *f != factor)
            .copied()
            .collect();
        let group = *at.entry((&slot.plan_variant, others)).or_insert_with(|| {
            groups.push((
                found.planned.experiment.name_without(
                    &slot.plan_variant,
                    &slot.levels,
                    Some(factor),
                ),
                Vec::new(),
            ));
            groups.len() - 1
        });
        groups[group].1.push((level, slot.id));
    }
    let least = if found.planned.experiment.factors[factor].sets_cpus() {
        2
    } else {
        3
    };
    let whole = groups.into_iter().filter(|(_, slots)| slots.len() >= least);
    whole
        .map(|(name, slots)| Series {
            factor,
            name,
            points: points(found, factor, slots),
        })
        .collect()
}

/// `cells`: level and number of each.
fn points(found: &Found<'_>, factor: usize, mut cells: Vec<(usize, usize)>) -> Vec<Point> {
    cells.sort_unstable();
    let factor = &found.planned.experiment.factors[factor];
    let numbers = factor.numbers.as_deref().unwrap_or_default();
    let first = cells
        .first()
        .filter(|(level, _)| *level == 0)
        .map(|(_, cell)| *cell);
    let point = |&(level, cell): &(usize, usize)| Point {
        cell,
        level: factor.levels.get(level).cloned().unwrap_or_default(),
        number: numbers.get(level).copied(),
        to_first: first
            .filter(|f| *f != cell)
            .and_then(|f| found.ratios.ratio(cell, f)),
    };
    cells.iter().map(point).collect()
}

fn expected(found: &Found<'_>, expectation: &Expectation) -> Expected {
    let pairs: Vec<JudgedPair> = expectation
        .pairs
        .iter()
        .map(|p| judged(found, expectation, *p))
        .collect();
    Expected {
        words: expectation.words.clone(),
        because: expectation.because.clone(),
        line: expectation.line,
        claim: expectation.claim,
        judgement: overall(&pairs),
        reasons: reasons(found, &pairs),
        pairs,
    }
}

fn judged(
    found: &Found<'_>,
    expectation: &Expectation,
    (of, than): (usize, Option<usize>),
) -> JudgedPair {
    let estimate = match than {
        _ if expectation.claim.is_of_share() => found.rows.get(of).and_then(Row::passed),
        Some(than) => found.ratios.ratio(of, than),
        None => found
            .rows
            .get(of)
            .map(|row| row.received)
            .filter(|e| e.n > 0),
    };
    let judgement = estimate.map(|e| expectation.claim.judge(&e));
    JudgedPair {
        of,
        than,
        estimate,
        judgement,
    }
}

/// Missed if one pair is, met if all are that were measured.
fn overall(pairs: &[JudgedPair]) -> Option<Judgement> {
    let mut judgements = pairs.iter().filter_map(|p| p.judgement).peekable();
    judgements.peek()?;
    Some(
        judgements.fold(Judgement::Met, |all, one| match (all, one) {
            (Judgement::Missed, _) | (_, Judgement::Missed) => Judgement::Missed,
            (Judgement::Undecided, _) | (_, Judgement::Undecided) => Judgement::Undecided,
            _ => Judgement::Met,
        }),
    )
}

/// Why pairs are not judged, each reason once.
fn reasons(found: &Found<'_>, pairs: &[JudgedPair]) -> Vec<String> {
    if pairs.is_empty() {
        let form = if found.planned.experiment.quick {
            "the quick form"
        } else {
            "the plan on this system"
        };
        return vec![format!("{form} has no such cells")];
    }
    let mut reasons: Vec<String> = Vec::new();
    for pair in pairs.iter().filter(|p| p.judgement.is_none()) {
        let cells = std::iter::once(pair.of).chain(pair.than);
        let mut lacking: Vec<String> = cells
            .flat_map(|cell| found.planned.lacking(cell))
            .cloned()
            .collect();
        if lacking.is_empty() {
            lacking.push("no block has a valid trial of each of its cells".into());
        }
        reasons.extend(lacking);
    }
    reasons.sort();
    reasons.dedup();
    reasons
}
