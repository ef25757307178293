//! Comparisons of rates: paired by block if both were measured side by side, and a verdict with its interval.

mod bounds;
mod select;

pub use bounds::{Beside, Bounds, Named, Sought, Unit, compare_searched, searched};
pub use select::{Rates, chosen, partners, same_traffic};

use crate::summary::is_noticeable;
use linerate_stats::analysis::{self, Paired, WarningKind, Words, paired as analyse_pairs};
use linerate_stats::distribution::t_critical;
use linerate_stats::effect::{self, holm};
use linerate_stats::ministat::{Dataset, Era, Summary};
use linerate_stats::rank::mann_whitney;
use linerate_stats::{Estimate, autocorrelation, median, sorted};
use serde::Serialize;

/// The fewest pairs for which order statistics can give 95 %.
const ENOUGH_FOR_ORDER: usize = 6;

/// A ratio of rates with its interval: 0.69 is 31 % slower.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    #[serde(flatten)]
    pub ratio: Estimate,
    /// Where estimate and interval come from.
    pub method: Method,
}

/// Where an interval comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Median of the paired ratios between two of them in order: assumes nothing of their distribution.
    OrderStatistics,
    /// Student's t on the logarithms of the paired ratios: assumes that these are near normal, for want of pairs.
    PairedT,
    /// Hodges and Lehmann's shift of the logarithms, interval from the Mann-Whitney distribution.
    HodgesLehmann,
    /// The bounds of two searches: what the ratio can be at least and at most.
    Bounds,
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The interval is above 1.
    Faster,
    /// The interval is below 1.
    Slower,
    /// The interval shows neither.
    NotShown,
}

/// A set or slot compared with its reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the reference.
    pub reference: String,
    /// Name of the set that is compared with the reference.
    pub other: String,
    /// Blocks in which both were measured side by side; `None`: unpaired.
    pub blocks: Option<usize>,
    /// Whether each value is the median of a campaign.
    pub campaigns: bool,
    /// Values of the reference, frames/s, in the order in which they were measured.
    pub reference_rates: Vec<f64>,
    /// Values of the other.
    pub other_rates: Vec<f64>,
    /// Change of the rate, relative to the reference.
    pub change: Change,
    /// The results with their bounds, if both are of searches.
    pub sought: Option<Sought>,
    /// Change of the share of the tester's own rate at the same time, if both campaigns measured their ceiling. It excludes the
    /// drift of the machine between the two campaigns.
    pub change_of_share: Option<Change>,
    /// Loss ratios (lost by sent frames) of the reference and of the other.
    pub lost: [f64; 2],
    /// Shares of the frames that reached the DUT and that it dropped, of the same two.
    pub dropped: [f64; 2],
    /// The change of handled frames/s (forwarded and dropped), if one of the two drops frames: then the forwarding rate alone does
    /// not show whether the DUT became slower.
    pub handled: Option<Change>,
    /// The ratios of the blocks, other over reference, if it is paired.
    pub pairs: Option<Paired>,
    /// The verdict: that of the rate's interval, and of the share's interval, if both agree.
    pub outcome: Outcome,
    /// Why there is no verdict, whatever the intervals are, and what to do.
    pub undecided: Option<String>,
    /// Campaigns of one side alone, half of it or more, that something else than the DUT made slower: such a slow-down is not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
    /// Two-sided p of Wilcoxon's signed-rank test where it is paired, of Mann and Whitney's where not; after [`correct`], by Holm.
    pub p: Option<f64>,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Limits of the comparison.
    pub warnings: Vec<String>,
}

impl Change {
    /// The result by its interval.
    pub fn outcome(&self) -> Outcome {
        match (self.ratio.low, self.ratio.high) {
            (Some(low), _) if low > 1.0 => Outcome::Faster,
            (_, Some(high)) if high < 1.0 => Outcome::Slower,
            _ => Outcome::NotShown,
        }
    }
}

impl Comparison {
    /// ministat's rows of both.
    pub fn ministat(&self) -> [Summary; 2] {
        [&self.reference_rates, &self.other_rates]
            .map(|v| Dataset::new("", v.clone()).summary(Era::New))
    }
}

/// Compares `other` with `reference`. `paired`: both are of one campaign, whose trials were interleaved. `confidence` of the intervals,
/// 0..1. `None` if one of them has no rate above 0, or paired ones have no block in common.
pub fn compare(
    reference: &Rates,
    other: &Rates,
    paired: bool,
    confidence: f64,
) -> Option<Comparison> {
    let words = analysis::Settings {
        confidence,
        words: Words::RATES,
        ..analysis::Settings::default()
    };
    let by_block = |reference: &Rates, other: &Rates| {
        let pairs = other.paired_with(reference);
        let analysed = analyse_pairs(&pairs, &words);
        (of_pairs(&analysed, &pairs, confidence), analysed)
    };
    let (change, p, pairs) = match paired {
        true => {
            let (change, analysed) = by_block(reference, other);
            (change?, analysed.wilcoxon.map(|w| w.p), Some(analysed))
        }
        false => (
            unpaired(reference, other, confidence)?,
            p_unpaired(reference, other),
            None,
        ),
    };
    let dropped = [reference.dropped, other.dropped];
    let handled = dropped.into_iter().any(is_noticeable).then(|| {
        let (reference, other) = (reference.of_handled(), other.of_handled());
        if paired {
            by_block(&reference, &other).0
        } else {
            unpaired(&reference, &other, confidence)
        }
    });
    let mut found = Comparison {
        reference: reference.name.clone(),
        other: other.name.clone(),
        blocks: pairs.as_ref().map(|pairs| pairs.n),
        campaigns: false,
        reference_rates: reference.values.clone(),
        other_rates: other.values.clone(),
        outcome: change.outcome(),
        undecided: None,
        disturbed: None,
        change,
        sought: None,
        change_of_share: None,
        lost: [reference.lost, other.lost],
        dropped,
        handled: handled.flatten(),
        pairs,
        p,
        confidence,
        warnings: Vec::new(),
    };
    found.warnings = warnings(&found, [reference, other]);
    Some(found)
}

impl Comparison {
    /// Adds the change of the shares of the testers' ceilings. The machine drifts between two campaigns and changes the rate; other
    /// batches change the tester's rate and so the share. So a verdict needs both.
    #[must_use]
    pub fn with_shares(mut self, reference: &Rates, other: &Rates) -> Comparison {
        if let Some(change) = unpaired(reference, other, self.confidence) {
            if change.outcome() != self.outcome {
                self.outcome = Outcome::NotShown;
            }
            self.p = self
                .p
                .zip(p_unpaired(reference, other))
                .map(|(p, q)| p.max(q));
            self.change_of_share = Some(change);
        }
        self
    }

    /// Takes the verdict back, for this reason.
    #[must_use]
    pub fn without_verdict(mut self, why: String) -> Comparison {
        self.outcome = Outcome::NotShown;
        self.undecided = Some(why);
        self
    }
}

/// Corrects the p of comparisons that were asked for together (Holm 1979), and warns where one is not proven any more when all are
/// taken together.
pub fn correct(comparisons: &mut [Comparison]) {
    let given: Vec<f64> = comparisons.iter().filter_map(|c| c.p).collect();
    let together = given.len();
    let mut adjusted = holm(&given).into_iter();
    for comparison in comparisons.iter_mut().filter(|c| c.p.is_some()) {
        let p = adjusted.next().unwrap_or(1.0);
        let level = 1.0 - comparison.confidence;
        if comparison.outcome != Outcome::NotShown && comparison.p <= Some(level) && p > level {
            comparison.warnings.push(format!(
                "{}: of {together} comparisons one may look proven by chance; with Holm's correction for them p is {p:.2}",
                comparison.other
            ));
        }
        comparison.p = Some(p);
    }
}

fn p_unpaired(reference: &Rates, other: &Rates) -> Option<f64> {
    mann_whitney(
        &sorted(reference.values.iter().copied()),
        &sorted(other.values.iter().copied()),
    )
    .map(|t| t.p)
}

fn logs_of_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs
        .iter()
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .map(|(a, b)| (a / b).ln())
        .collect()
}

fn of_pairs(analysed: &Paired, pairs: &[(f64, f64)], confidence: f64) -> Option<Change> {
    let ratio = analysed.ratio?;
    if ratio.n < ENOUGH_FOR_ORDER {
        return Some(of_few(&logs_of_ratios(pairs), confidence));
    }
    Some(Change {
        ratio,
        method: Method::OrderStatistics,
    })
}

/// The mean of a few logarithms with Student's interval: exact for normal ones, and all there is for fewer than six pairs.
fn of_few(logs: &[f64], confidence: f64) -> Change {
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let half = (logs.len() > 1).then(|| {
        let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0);
        t_critical(1.0 - confidence, n - 1.0) * (variance / n).sqrt()
    });
    let [low, high] = [-1.0, 1.0].map(|sign| half.map(|half| mean + sign * half));
    let ratio = Estimate {
        median: mean,
        low,
        high,
        n: logs.len(),
    }
    .map(f64::exp);
    Change {
        ratio,
        method: Method::PairedT,
    }
}

fn unpaired(reference: &Rates, other: &Rates, confidence: f64) -> Option<Change> {
    let positive = |rates: &Rates| sorted(rates.values.iter().copied().filter(|v| *v > 0.0));
    let ratio = effect::ratio(&positive(reference), &positive(other), confidence)?;
    Some(Change {
        ratio,
        method: Method::HodgesLehmann,
    })
}

fn warnings(comparison: &Comparison, sides: [&Rates; 2]) -> Vec<String> {
    let mut out = Vec::new();
    for rates in sides {
        if rates.left_out > 0 {
            out.push(format!(
                "{}: {} of {} trials are left out, because they are invalid or have no rate",
                rates.name,
                rates.left_out,
                rates.left_out + rates.values.len()
            ));
        }
        let zeros = rates.values.iter().filter(|v| **v <= 0.0).count();
        if zeros > 0 {
            out.push(format!(
                "{}: {zeros} values are not above 0; a ratio leaves them out: look at what failed",
                rates.name
            ));
        }
        if comparison.blocks.is_none()
            && rates.values.len() >= 8
            && autocorrelation(&rates.values) > 0.5
        {
            out.push(format!(
                "{}: successive values resemble each other (autocorrelation {:.2}): the machine drifted, and the interval is too narrow",
                rates.name,
                autocorrelation(&rates.values)
            ));
        }
    }
    out.extend(about_intervals(comparison));
    // A clearer warning about too few sets comes first: these have intervals, too.
    let pairs = comparison
        .pairs
        .iter()
        .flat_map(|p| &p.warnings)
        .filter(|w| w.kind != WarningKind::TooFew);
    out.extend(pairs.map(|w| {
        format!(
            "{}, ratios to {}: {}",
            comparison.other, comparison.reference, w.text
        )
    }));
    out
}

fn about_intervals(comparison: &Comparison) -> Option<String> {
    let Comparison {
        other,
        confidence,
        reference_rates,
        other_rates,
        change,
        ..
    } = comparison;
    match (change.ratio.low, change.method) {
        (None, _) => Some(format!(
            "{other}: {} values are too few for a {} % interval: nothing is proven",
            reference_rates.len().min(other_rates.len()),
            100.0 * confidence
        )),
        (Some(_), Method::PairedT) => Some(format!(
            "{other}: fewer than {ENOUGH_FOR_ORDER} blocks: the change is the mean of the ratios (`linerate show` has their median), and the interval assumes that they are near normal; more blocks need no such assumption",
        )),
        _ => None,
    }
}

/// The median of a set of rates; 0 for an empty set.
pub fn middle(rates: &[f64]) -> f64 {
    median(rates).unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
