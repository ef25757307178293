//! What a campaign that carried out a plan came to: rates of cells, ratios between them, the papers' tables, sweeps, and whether what was expected is so.
//!
//! All references are numbers of cells, which are those of the record's slots.

mod expectations;
mod sweeps;
mod tables;

use crate::record::{Planned, TrialRecord};
use crate::summary::{Limit, Row};
use linerate_plan::campaign::{Campaign, Cell, Claim, Interest};
use linerate_plan::judge::Judgement;
use linerate_plan::settings::Dut;
use linerate_stats::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What became of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// One for each cell, by number.
    pub cells: Vec<CellResult>,
    /// All ratios of interest, as the plan lists them.
    pub comparisons: Vec<Compared>,
    /// Comparisons in the form in which papers print them.
    pub tables: Vec<Table>,
    /// Factors with more than two levels, as series.
    pub series: Vec<Series>,
    /// What more CPUs bring.
    pub speed_ups: Vec<SpeedUp>,
    /// What the author expected.
    pub expectations: Vec<Expected>,
    /// Cells that were not measured.
    pub skipped: Vec<SkippedCells>,
}

/// What a cell came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Its number.
    pub cell: usize,
    /// Its name.
    pub name: String,
    /// Received frames/s. Without a valid trial, its median is 0 and `n` is 0.
    pub rate: Estimate,
    /// Trials whose audit held.
    pub valid_trials: usize,
    /// All its trials.
    pub trials: usize,
    /// Its rate as a share of the tester's own; `None` for the tester itself, and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Against>,
    /// Its rate divided by its baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Against>,
    /// What kept it from being higher.
    pub limit: Limit,
}

/// A rate divided by another cell's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The other cell.
    pub cell: usize,
    /// The other cell's rate: median in frames/s; `None` where nothing valid was measured.
    pub rate: Option<f64>,
    /// The ratio, paired by block; `None` where no block has both.
    pub ratio: Option<Estimate>,
    /// Whether the interval of the ratio excludes 1.
    pub proven: bool,
    /// The ratio of the costs of a frame that the DUT handled, if one of the two variants drops frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Estimate>,
}

/// A ratio of interest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Numerator.
    pub of: usize,
    /// Denominator.
    pub than: usize,
    /// Why it is of interest.
    pub why: Interest,
    /// The ratio, paired by block, with `n` blocks; `None` where no block has both.
    pub ratio: Option<Estimate>,
    /// Whether its interval excludes 1.
    pub proven: bool,
    /// As [`Against::cost`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Estimate>,
}

/// A table as papers print them: setup, A, B, ministat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What is compared: a factor's name, or the baseline variant's.
    pub title: String,
    /// What A is: the baseline variant, or a factor's first level.
    pub a: String,
    /// What B is, where it is the same in all rows: then the setup does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
    /// Its rows.
    pub rows: Vec<TableRow>,
}

/// A row of a paper's table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// What is as it is on both sides; and what B is, where that differs between rows.
    pub setup: String,
    /// The cell of A.
    pub than: usize,
    /// The cell of B.
    pub of: usize,
    /// Median rate of A in frames/s.
    pub a: Option<f64>,
    /// Median rate of B in frames/s.
    pub b: Option<f64>,
    /// What ministat says of the two sets of rates.
    pub ministat: Option<Ministat>,
    /// Where that is not what the ratios paired by block say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreement: Option<Disagreement>,
}

/// ministat's verdict, at 95 % confidence, in the arithmetic of today's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ministat {
    /// Whether it is proven.
    pub proven: bool,
    /// The difference of the averages in percent of A's.
    pub percent: f64,
    /// Half the width of its interval, in percent.
    pub percent_error: f64,
}

/// How ministat and paired ratios disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disagreement {
    /// Pairs prove a difference that ministat does not see.
    OnlyPairs,
    /// ministat proves a difference that pairs do not.
    OnlyMinistat,
    /// Each proves the opposite of the other.
    Opposite,
}

/// A variant over the levels of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The factor's index.
    pub factor: usize,
    /// The variant, with the levels of the other factors.
    pub name: String,
    /// One for each level.
    pub points: Vec<Point>,
}

/// A point of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its cell.
    pub cell: usize,
    /// The level.
    pub level: String,
    /// The level as a number, where all of the factor are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// Received frames/s, as in [`CellResult::rate`].
    pub rate: Estimate,
    /// The rate divided by the first level's; `None` for that itself, and where no block has both.
    pub to_first: Option<Estimate>,
    /// What the tester does alone with these frames: median in frames/s.
    pub ceiling: Option<f64>,
}

/// What more CPUs bring: the rate on so many CPUs divided by that on the factor's first number of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpeedUp {
    /// The factor's index.
    pub factor: usize,
    /// The variant, with the levels of the other factors.
    pub name: String,
    /// The first level: `1`.
    pub from_level: String,
    /// The other: `all`.
    pub to_level: String,
    /// Cell with the first number of CPUs.
    pub from: usize,
    /// Cell with the other.
    pub to: usize,
    /// Median rates in frames/s.
    pub from_rate: Option<f64>,
    /// See `from_rate`.
    pub to_rate: Option<f64>,
    /// The speed-up.
    pub ratio: Option<Estimate>,
}

/// What became of an expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// In words.
    pub words: String,
    /// Why the author expects it.
    pub because: String,
    /// Line of the plan.
    pub line: usize,
    /// What is expected.
    pub claim: Claim,
    /// Each pair of cells that it is about.
    pub pairs: Vec<JudgedPair>,
    /// Met if all are that were measured, missed if one is; `None` where it is not judged.
    pub judgement: Option<Judgement>,
    /// Why it is not judged, or not for all of its pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// What became of an expectation, for two cells, or one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JudgedPair {
    /// The cell.
    pub of: usize,
    /// What it is held against; none for rates.
    pub than: Option<usize>,
    /// The ratio, or the rate in frames/s.
    pub estimate: Option<Estimate>,
    /// What that says; `None` where nothing was measured.
    pub judgement: Option<Judgement>,
}

/// Cells that were not measured, for the same reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedCells {
    /// What is lacking, or what would have to be allowed.
    pub reasons: Vec<String>,
    /// Their numbers.
    pub cells: Vec<usize>,
}

/// Whether an interval excludes 1.
pub fn proven(ratio: &Estimate) -> bool {
    matches!((ratio.low, ratio.high), (Some(low), Some(high)) if low > 1.0 || high < 1.0)
}

/// A ratio of a figure of two slots, with its interval.
type Ratio<'a> = &'a dyn Fn(usize, usize) -> Option<Estimate>;

/// The results of a plan. `rows` by slot; `ratio` compares rates; `cost` compares the nanoseconds of a handled frame, if one of the two variants drops frames.
pub fn results(
    planned: &Planned,
    rows: &[Row],
    trials: &[TrialRecord],
    ratio: Ratio<'_>,
    cost: Ratio<'_>,
) -> Results {
    let found = Found::new(planned, rows, trials, ratio, cost);
    Results {
        cells: (0..found.plan.cells.len()).map(|cell| found.cell(cell)).collect(),
        comparisons: found.plan.comparisons.iter().map(|c| found.compared(c)).collect(),
        tables: tables::tables(&found),
        series: sweeps::series(&found),
        speed_ups: sweeps::speed_ups(&found),
        expectations: expectations::expectations(&found),
        skipped: skipped(planned),
    }
}

/// What was found, by cell. A plan out of a record may refer to what does not exist: then there is nothing.
struct Found<'a> {
    planned: &'a Planned,
    plan: &'a Campaign,
    rows: BTreeMap<usize, &'a Row>,
    /// Valid rates in frames/s, in the order of trials.
    rates: BTreeMap<usize, Vec<f64>>,
    ratio: Ratio<'a>,
    cost: Ratio<'a>,
}

impl<'a> Found<'a> {
    fn new(
        planned: &'a Planned,
        rows: &'a [Row],
        trials: &[TrialRecord],
        ratio: Ratio<'a>,
        cost: Ratio<'a>,
    ) -> Self {
        let mut rates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for trial in trials.iter().filter(|t| t.audit.valid) {
            rates.entry(trial.slot).or_default().extend(trial.rates.map(|r| r.received));
        }
        let rows = rows.iter().map(|row| (row.slot, row)).collect();
        Found { planned, plan: &planned.plan, rows, rates, ratio, cost }
    }

    /// The ratio of two cells' rates, where it is a number that a record can hold.
    fn ratio(&self, of: usize, than: usize) -> Option<Estimate> {
        self.sound(self.ratio, of, than)
    }

    /// The ratio of the costs of a handled frame.
    fn cost(&self, of: usize, than: usize) -> Option<Estimate> {
        self.sound(self.cost, of, than)
    }

    fn sound(&self, ratio: Ratio<'_>, of: usize, than: usize) -> Option<Estimate> {
        let finite = |e: &Estimate| {
            e.median.is_finite() && e.low.is_none_or(f64::is_finite) && e.high.is_none_or(f64::is_finite)
        };
        let exist = of.max(than) < self.plan.cells.len();
        exist.then(|| ratio(of, than)).flatten().filter(finite)
    }

    fn estimate(&self, cell: usize) -> Estimate {
        self.rows.get(&cell).map_or(Estimate::default(), |row| row.received)
    }

    /// The median rate of a cell that has one.
    fn rate(&self, cell: usize) -> Option<f64> {
        Some(self.estimate(cell)).filter(|e| e.n > 0).map(|e| e.median)
    }

    fn against(&self, of: usize, than: usize) -> Against {
        let ratio = self.ratio(of, than);
        let proven = ratio.as_ref().is_some_and(proven);
        Against { cell: than, rate: self.rate(than), ratio, proven, cost: None }
    }

    fn cell(&self, number: usize) -> CellResult {
        let cell = &self.plan.cells[number];
        let row = self.rows.get(&number);
        CellResult {
            cell: number,
            name: cell.name.clone(),
            rate: self.estimate(number),
            valid_trials: row.map_or(0, |r| r.valid_trials),
            trials: row.map_or(0, |r| r.trials),
            ceiling: cell.ceiling.map(|than| self.against(number, than)),
            baseline: cell
                .baseline
                .map(|than| Against { cost: self.cost(number, than), ..self.against(number, than) }),
            limit: row.map_or(Limit::Unknown, |r| r.limit),
        }
    }

    fn compared(&self, comparison: &linerate_plan::campaign::Comparison) -> Compared {
        let (of, than) = (comparison.of, comparison.than);
        let Against { ratio, proven, .. } = self.against(of, than);
        Compared { of, than, why: comparison.why, ratio, proven, cost: self.cost(of, than) }
    }

    /// Whether a cell is the tester alone.
    fn is_ceiling(&self, cell: &Cell) -> bool {
        self.plan.lanes.get(cell.lane).is_some_and(|lane| lane.settings.dut == Dut::TesterBaseline)
    }

    /// `nft-stateful, rules 1000` without what one of the factors is at.
    fn name_without(&self, cell: &Cell, factor: Option<usize>) -> String {
        let mut name = cell.variant.clone();
        for (f, label) in self.labels(cell).filter(|(f, _)| Some(*f) != factor) {
            name += &format!(", {} {label}", self.plan.factors[f].name);
        }
        name
    }

    /// The levels of a cell: factor and label.
    fn labels(&self, cell: &'a Cell) -> impl Iterator<Item = (usize, &'a str)> {
        let factors = &self.plan.factors;
        cell.levels.iter().filter_map(|(f, l)| Some((*f, factors.get(*f)?.levels.get(*l)?.as_str())))
    }
}

fn skipped(planned: &Planned) -> Vec<SkippedCells> {
    let mut groups: Vec<SkippedCells> = Vec::new();
    for skipped in &planned.skipped {
        match groups.iter_mut().find(|g| g.reasons == skipped.reasons) {
            Some(group) => group.cells.push(skipped.cell),
            None => groups.push(SkippedCells { reasons: skipped.reasons.clone(), cells: vec![skipped.cell] }),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
