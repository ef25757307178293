//! Two variants whose trials were interleaved by block: what their ratios say.

use super::verdict::{confidence, ratio_claim, ratio_interval};
use super::warnings::of_values;
use super::{Prepared, Settings, Warning, WarningKind, Words, p_value};
use crate::stats::hodges_lehmann::Shift;
use crate::stats::signed_rank::{SignedRank, centre, signed_rank};
use crate::stats::{Estimate, paired_ratio};
use serde::Serialize;

/// A comparison paired by block. All ratios are other over reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Pairs of which both values are above 0.
    pub n: usize,
    /// The median of the ratios with its interval by order statistics, which assumes nothing of their distribution.
    pub ratio: Option<Estimate>,
    /// The Hodges-Lehmann estimate of the ratios, narrower where their logarithms are symmetric about the median.
    pub hodges_lehmann: Option<Shift>,
    /// Wilcoxon's signed-rank test of the logarithms of the ratios.
    pub wilcoxon: Option<SignedRank>,
    /// Whether a difference is shown: the interval of the median ratio excludes 1.
    pub shown: bool,
    /// What to beware of.
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
    let shown = ratio.is_some_and(|r| matches!((r.low, r.high), (Some(l), Some(h)) if l > 1.0 || h < 1.0));
    Paired {
        n: kept.len(),
        ratio,
        hodges_lehmann: centre(&logs, settings.confidence).and_then(|s| s.map(f64::exp).finite()),
        wilcoxon: signed_rank(&logs),
        shown,
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

impl Paired {
    /// The answer in a sentence.
    pub fn verdict(&self, reference: &str, other: &str, settings: &Settings) -> String {
        let Some(ratio) = self.ratio else {
            return format!("{other} cannot be compared with {reference}: there is no pair of their values.");
        };
        let pairs = counted(self.n);
        let p = self.wilcoxon.map_or(String::new(), |w| format!(", p {}", p_value(w.p)));
        let ratio = Shift { value: ratio.median, low: ratio.low, high: ratio.high, exact: true };
        let (claim, interval) = ratio_claim(ratio, settings);
        if self.shown {
            return format!("{other} is {claim} {reference}{interval}, {pairs}{p}.");
        }
        match ratio_interval(ratio, settings) {
            Some(i) => format!("No difference shown between {reference} and {other} ({i}, {pairs}{p})."),
            None => {
                let are = if self.n == 1 { "is" } else { "are" };
                let so_far = if ratio.value == 1.0 {
                    String::new()
                } else {
                    format!("; so far {other} is {claim} {reference}")
                };
                format!("{pairs} {are} too few to show a difference between {reference} and {other}{so_far}.")
            }
        }
    }
}
