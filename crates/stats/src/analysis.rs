//! Everything that can be said about sets of numbers: each set alone, each against the first, and in words.

mod reach;
mod verdict;
mod warnings;

use super::bootstrap;
use super::effect::{self, CliffsDelta, cliffs_delta, holm};
use super::means::{Moments, Welch, welch};
use super::outliers::{Outliers, outliers};
use super::rank::{RankTest, mann_whitney, signed_rank};
use super::{Estimate, interval_sorted, paired_ratio, sorted};
use serde::Serialize;

pub use reach::{Reach, ValuesNeeded};
pub use verdict::{figure, p_value, places, ratio_claim, ratio_interval};

/// Options of an analysis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Confidence of all intervals, and 1 minus the level of all tests: 0.95.
    pub confidence: f64,
    /// Start of the bootstrap's random numbers.
    pub seed: u64,
    /// A difference in percent of the first set's mean for which the number of values needed is asked; 1 if `None`.
    pub show_percent: Option<f64>,
    /// Words for the values.
    pub words: Words,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            confidence: 0.95,
            seed: 1,
            show_percent: None,
            words: Words::NUMBERS,
        }
    }
}

impl Settings {
    /// The level of the tests: 0.05.
    pub fn alpha(&self) -> f64 {
        1.0 - self.confidence
    }
}

/// Words for values and their differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// Of the larger: `higher`, as in "3 % higher than".
    pub more: &'static str,
    /// Of the smaller: `lower`.
    pub less: &'static str,
    /// Of a multiple: `high`, as in "2.5 times as high as".
    pub as_much: &'static str,
    /// A value: `point`.
    pub one: &'static str,
    /// Values: `points`.
    pub many: &'static str,
}

impl Words {
    /// For numbers of unknown meaning.
    pub const NUMBERS: Words = Words {
        more: "higher",
        less: "lower",
        as_much: "high",
        one: "point",
        many: "points",
    };
    /// For rates of forwarding.
    pub const RATES: Words = Words {
        more: "faster",
        less: "slower",
        as_much: "fast",
        one: "trial",
        many: "trials",
    };
}

/// The analysis of one or several sets. Numbers that do not exist or exceed the range of f64 are `null` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Confidence of all intervals.
    pub confidence: f64,
    /// Start of the bootstrap's random numbers.
    pub seed: u64,
    /// Each set alone, in the order given.
    pub sets: Vec<SetAnalysis>,
    /// Each further set against the first.
    pub comparisons: Vec<Comparison>,
}

/// One set alone. All but counts are in the values' own unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetAnalysis {
    /// The name given.
    pub name: String,
    /// Number of values.
    pub n: usize,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Median: the mean of the two middle values of an even count. Its interval by order statistics assumes nothing of the
    /// distribution; it is absent for too few values.
    pub median: Option<Estimate>,
    /// The median with its interval by the bootstrap (BCa).
    pub median_bootstrap: Option<Estimate>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Standard deviation with n - 1.
    pub stddev: Option<f64>,
    /// Values far from the others. They are part of all other figures.
    pub outliers: Outliers,
    /// Limits of the analysis.
    pub warnings: Vec<Warning>,
}

/// A limit of an analysis or comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The subject of the warning.
    pub kind: WarningKind,
    /// In words, without the set's name.
    pub text: String,
}

/// Subject of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Too few values for this analysis.
    TooFew,
    /// Values far from the others.
    Outliers,
    /// The values gather in two places.
    TwoModes,
    /// The values rise or fall in the order of the runs.
    Drift,
    /// Neighbours in the order of the runs resemble each other.
    Autocorrelation,
    /// Values above and below the median do not alternate by chance.
    Runs,
    /// The spreads of two sets differ.
    UnequalVariances,
    /// All values of a set are equal.
    NoSpread,
    /// Infinite values, or numbers too large to compute with.
    NotFinite,
}

/// A set against the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the first set.
    pub reference: String,
    /// Name of the other.
    pub other: String,
    /// The answer in words, a sentence.
    pub verdict: String,
    /// Whether a difference is shown: the Mann-Whitney test's p after Holm's correction is at most 1 - confidence.
    pub shown: bool,
    /// Hodges-Lehmann shift, other minus reference, in the values' unit.
    pub shift: Option<Estimate>,
    /// The shift in percent of the first set's median.
    pub shift_percent: Option<Estimate>,
    /// Hodges-Lehmann ratio, other over reference; absent unless all values are above 0.
    pub ratio: Option<Estimate>,
    /// The Mann-Whitney test.
    pub mann_whitney: Option<RankTest>,
    /// The Mann-Whitney test's p after Holm's correction for the number of comparisons.
    pub p_holm: Option<f64>,
    /// Difference of means by Welch's t test.
    pub welch: Option<Welch>,
    /// How much the sets overlap.
    pub cliffs_delta: Option<CliffsDelta>,
    /// Smallest difference that the Mann-Whitney test of such sets can show; in percent of the first set's median.
    pub reach_of_ranks: Option<Reach>,
    /// Smallest difference that Welch's test of such sets can show; in percent of the first set's mean.
    pub reach_of_means: Option<Reach>,
    /// Limits of the comparison.
    pub warnings: Vec<Warning>,
}

/// A comparison paired by block. All ratios are other over reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Pairs with both values above 0.
    pub n: usize,
    /// The median of the ratios with its interval by order statistics, which assumes nothing of their distribution.
    pub ratio: Option<Estimate>,
    /// The Hodges-Lehmann estimate of the ratios, narrower where their logarithms are symmetric about the median.
    pub hodges_lehmann: Option<Estimate>,
    /// Wilcoxon's signed-rank test of the logarithms of the ratios.
    pub wilcoxon: Option<RankTest>,
    /// Limits of the comparison.
    pub warnings: Vec<Warning>,
}

/// A set, with values that several steps share.
struct Prepared<'a> {
    name: &'a str,
    values: &'a [f64],
    sorted: Vec<f64>,
    moments: Option<Moments>,
    median: Option<Estimate>,
}

impl<'a> Prepared<'a> {
    fn of(name: &'a str, values: &'a [f64], settings: &Settings) -> Self {
        let sorted = sorted(values.iter().copied());
        let median = interval_sorted(&sorted, settings.confidence);
        Prepared {
            name,
            values,
            moments: Moments::of(values),
            median,
            sorted,
        }
    }
}

/// A set against the first, one of several comparisons.
struct Pair<'a> {
    first: &'a Prepared<'a>,
    other: &'a Prepared<'a>,
    comparisons: usize,
    settings: &'a Settings,
}

/// Analyses sets of values, each in the order of the runs. NaN must not be among them.
pub fn analyse(sets: &[(&str, &[f64])], settings: &Settings) -> Analysis {
    let prepared: Vec<Prepared> = sets
        .iter()
        .map(|(name, v)| Prepared::of(name, v, settings))
        .collect();
    let comparisons = prepared
        .split_first()
        .map(|(first, others)| compare_all(first, others, settings));
    Analysis {
        confidence: settings.confidence,
        seed: settings.seed,
        sets: prepared.iter().map(|p| analyse_set(p, settings)).collect(),
        comparisons: comparisons.unwrap_or_default(),
    }
}

fn analyse_set(set: &Prepared, settings: &Settings) -> SetAnalysis {
    let outliers = outliers(set.values, &set.sorted);
    let bootstrap = bootstrap::median_bca(
        &set.sorted,
        settings.confidence,
        bootstrap::REPLICATES,
        settings.seed,
    );
    SetAnalysis {
        name: set.name.to_string(),
        n: set.values.len(),
        min: set.sorted.first().copied().and_then(finite),
        max: set.sorted.last().copied().and_then(finite),
        median: set.median.and_then(|m| {
            m.finite().or(Estimate {
                low: None,
                high: None,
                ..m
            }
            .finite())
        }),
        median_bootstrap: bootstrap,
        mean: set.moments.map(|m| m.mean),
        stddev: set.moments.and_then(|m| m.stddev).and_then(finite),
        warnings: warnings::of_set(set, &outliers, settings),
        outliers,
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn compare_all(first: &Prepared, others: &[Prepared], settings: &Settings) -> Vec<Comparison> {
    let test = |other: &Prepared| mann_whitney(&first.sorted, &other.sorted);
    let tests: Vec<Option<RankTest>> = others.iter().map(test).collect();
    let p: Vec<f64> = tests.iter().flatten().map(|t| t.p).collect();
    let mut adjusted = holm(&p).into_iter();
    let compare = |(other, test): (&Prepared, Option<RankTest>)| {
        let p_holm = test.and_then(|_| adjusted.next());
        Pair {
            first,
            other,
            comparisons: p.len(),
            settings,
        }
        .compare(test, p_holm)
    };
    others.iter().zip(tests).map(compare).collect()
}

impl Pair<'_> {
    fn compare(&self, test: Option<RankTest>, p_holm: Option<f64>) -> Comparison {
        let Pair {
            first,
            other,
            settings,
            ..
        } = self;
        let (a, b, confidence) = (&first.sorted, &other.sorted, settings.confidence);
        let shift = effect::shift(a, b, confidence);
        // A median may be below 0: then a rise is still a rise.
        let whole = first
            .median
            .map(|m| m.median.abs())
            .filter(|m| *m != 0.0 && m.is_finite());
        let percent = |(shift, whole): (Estimate, f64)| shift.map(|v| v / whole * 100.0).finite();
        let mut comparison = Comparison {
            reference: first.name.to_string(),
            other: other.name.to_string(),
            verdict: String::new(),
            shown: p_holm.is_some_and(|p| p <= settings.alpha() * (1.0 + 1e-12)),
            shift,
            shift_percent: shift.zip(whole).and_then(percent),
            ratio: effect::ratio(a, b, confidence),
            mann_whitney: test,
            p_holm,
            welch: self.moments().and_then(|(a, b)| welch(a, b, confidence)),
            cliffs_delta: cliffs_delta(a, b),
            reach_of_ranks: self.reach_of_ranks(shift),
            reach_of_means: self.reach_of_means(),
            warnings: self.warnings(test),
        };
        comparison.verdict = self.verdict(&comparison);
        comparison
    }

    fn moments(&self) -> Option<(&Moments, &Moments)> {
        self.first.moments.as_ref().zip(self.other.moments.as_ref())
    }

    /// Numbers of values.
    fn counts(&self) -> (usize, usize) {
        (self.first.values.len(), self.other.values.len())
    }

    /// The level of one of several tests: that of Holm's first step, so that the confidence holds for each of them.
    fn level(&self) -> f64 {
        self.settings.alpha() / self.comparisons.max(1) as f64
    }
}

/// Compares pairs `(other, reference)` in the order of their blocks. Pairs with a value that is not above 0 or infinite
/// are left out. NaN must not be among them.
pub fn paired(pairs: &[(f64, f64)], settings: &Settings) -> Paired {
    let usable = |v: f64| v > 0.0 && v.is_finite();
    let kept: Vec<(f64, f64)> = pairs
        .iter()
        .copied()
        .filter(|(a, b)| usable(*a) && usable(*b))
        .collect();
    let logs: Vec<f64> = kept.iter().map(|(a, b)| a.ln() - b.ln()).collect();
    let ratio = paired_ratio(&kept, settings.confidence).and_then(Estimate::finite);
    Paired {
        n: kept.len(),
        ratio,
        hodges_lehmann: effect::centre(&logs, settings.confidence)
            .and_then(|s| s.map(f64::exp).finite()),
        wilcoxon: signed_rank(&logs),
        warnings: warnings::of_pairs(pairs.len(), &logs, ratio, settings),
    }
}
