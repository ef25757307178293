//! Two variants whose trials were interleaved by block: the analysis of their ratios.

use super::verdict::confidence;
use super::warnings::of_values;
use super::{Prepared, Settings, Warning, WarningKind, Words};
use crate::hodges_lehmann::Shift;
use crate::signed_rank::{SignedRank, centre, signed_rank};
use crate::{Estimate, paired_ratio};
use serde::Serialize;

/// A comparison paired by block. All ratios are other over reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Pairs with both values above 0.
    pub n: usize,
    /// The median of the ratios with its interval by order statistics, which assumes nothing of their distribution.
    pub ratio: Option<Estimate>,
    /// The Hodges-Lehmann estimate of the ratios, narrower where their logarithms are symmetric about the median.
    pub hodges_lehmann: Option<Shift>,
    /// Wilcoxon's signed-rank test of the logarithms of the ratios.
    pub wilcoxon: Option<SignedRank>,
    /// Limits of the comparison.
    pub warnings: Vec<Warning>,
}

/// Compares pairs `(other, reference)` in the order of their blocks. Pairs with a value that is not above 0 or infinite
/// are left out. NaN must not be among them.
pub fn paired(pairs: &[(f64, f64)], settings: &Settings) -> Paired {
    let usable = |v: f64| v > 0.0 && v.is_finite();
    let kept: Vec<(f64, f64)> = pairs.iter().copied().filter(|(a, b)| usable(*a) && usable(*b)).collect();
    let logs: Vec<f64> = kept.iter().map(|(a, b)| a.ln() - b.ln()).collect();
    let fits = |e: &Estimate| [Some(e.median), e.low, e.high].into_iter().flatten().all(f64::is_finite);
    let ratio = paired_ratio(&kept, settings.confidence).filter(fits);
    Paired {
        n: kept.len(),
        ratio,
        hodges_lehmann: centre(&logs, settings.confidence).and_then(|s| s.map(f64::exp).finite()),
        wilcoxon: signed_rank(&logs),
        warnings: warnings(pairs.len(), &logs, ratio, settings),
    }
}

fn warnings(given: usize, logs: &[f64], ratio: Option<Estimate>, settings: &Settings) -> Vec<Warning> {
    let mut found = Vec::new();
    let n = logs.len();
    if n < given {
        let text = format!("{} of {given} pairs left out: a value is not above 0 or infinite", given - n);
        found.push(Warning { kind: WarningKind::NotFinite, text });
    }
    if ratio.is_some_and(|r| r.low.is_none()) {
        let text = format!("{} cannot give a {} interval", counted(n), confidence(settings));
        found.push(Warning { kind: WarningKind::TooFew, text });
    }
    let ratios: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
    let settings = Settings { words: Words { one: "pair", many: "pairs", ..settings.words }, ..*settings };
    found.extend(of_values(&Prepared::of("", &ratios, &settings), &settings));
    found
}

fn counted(n: usize) -> String {
    if n == 1 { "1 pair".into() } else { format!("{n} pairs") }
}
