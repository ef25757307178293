//! Answers to the questions of a plan: ratios between cells, sweeps, and expectations.
//!
//! All references are numbers of cells, which are those of the record's slots.

mod expectations;
mod ministat;
mod sweeps;

use crate::experiment::{Claim, Comparison, Experiment, Interest, Judgement};
use crate::record::{Planned, Slot, Summary, TrialRecord};
use crate::summary::{Ratios, Row};
use linerate_stats::Estimate;
use serde::{Deserialize, Serialize};

pub use ministat::{Disagreement, Ministat};

/// A rate divided by another slot's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The other slot.
    pub than: usize,
    /// The ratio, paired by block, with `n` blocks; `None` where no block has both.
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
    /// Its rate divided by another's.
    #[serde(flatten)]
    pub against: Against,
    /// Why it is of interest.
    pub why: Interest,
    /// The judgement of ministat on the two sets of rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ministat: Option<Ministat>,
    /// Present if the ratios paired by block say something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreement: Option<Disagreement>,
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
    /// The rate divided by the first level's; `None` for that itself, and where no block has both.
    pub to_first: Option<Estimate>,
}

/// The result of an expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// In words.
    pub words: String,
    /// Why the author expects it.
    pub because: String,
    /// Line of the plan.
    pub line: usize,
    /// The expected result.
    pub claim: Claim,
    /// Each pair of cells that it is about.
    pub pairs: Vec<JudgedPair>,
    /// Met if all are that were measured, missed if one is; `None` where it is not judged.
    pub judgement: Option<Judgement>,
    /// Why it is not judged, or not for all of its pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// The result of an expectation, for two cells, or one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JudgedPair {
    /// The cell.
    pub of: usize,
    /// The reference cell; `None` for rates.
    pub than: Option<usize>,
    /// The ratio, or the rate in frames/s.
    pub estimate: Option<Estimate>,
    /// The judgement; `None` without a measurement.
    pub judgement: Option<Judgement>,
}

/// Whether an interval excludes 1.
pub fn proven(ratio: &Estimate) -> bool {
    matches!((ratio.low, ratio.high), (Some(low), Some(high)) if low > 1.0 || high < 1.0)
}

/// Adds the answers to a plan's questions.
pub(crate) fn add(
    summary: &mut Summary,
    planned: &Planned,
    slots: &[Slot],
    trials: &[TrialRecord],
    ratios: &Ratios<'_>,
) {
    let experiment = &planned.experiment;
    let found = Found { planned, experiment, slots, rows: &summary.rows, trials, ratios };
    let comparisons = experiment.comparisons.iter().map(|c| found.compared(c)).collect();
    let (series, expectations) = (sweeps::series(&found), expectations::expectations(&found));
    (summary.comparisons, summary.series, summary.expectations) = (comparisons, series, expectations);
}

/// Figures by slot. A recorded experiment may refer to slots that do not exist: they have no figures.
struct Found<'a> {
    planned: &'a Planned,
    experiment: &'a Experiment,
    slots: &'a [Slot],
    rows: &'a [Row],
    trials: &'a [TrialRecord],
    ratios: &'a Ratios<'a>,
}

impl<'a> Found<'a> {
    fn ratio(&self, of: usize, than: usize) -> Option<Estimate> {
        self.ratios.ratio(of, than)
    }

    fn estimate(&self, cell: usize) -> Estimate {
        self.rows.get(cell).map_or(Estimate::default(), |row| row.received)
    }

    fn compared(&self, c: &Comparison) -> Compared {
        let against = self.ratios.against(self.rows, c.of, c.than);
        let ministat = ministat::of(self.trials, c.of, c.than);
        let disagreement = ministat.zip(against.ratio).and_then(|(m, ratio)| m.disagreement(&ratio));
        Compared { of: c.of, against, why: c.why, ministat, disagreement }
    }
}
