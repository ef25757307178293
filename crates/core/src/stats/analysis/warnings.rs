//! What to beware of in sets and comparisons.

use super::verdict::confidence;
use super::{Prepared, Settings, Warning, WarningKind, level, p_value};
use crate::stats::mann_whitney::MannWhitney;
use crate::stats::outliers::Outliers;

/// Of a set alone.
pub fn of_set(set: &Prepared, outliers: &Outliers, settings: &Settings) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut add = |kind, text: String| found.push(Warning { kind, text });
    let n = set.values.len();
    if set.median.is_some_and(|m| m.low.is_none()) {
        let text = format!(
            "{n} {} cannot give a {} interval of the median without assumptions",
            counted(n, settings),
            confidence(settings)
        );
        add(WarningKind::TooFew, text);
    }
    if outliers.count > 0 {
        let text = format!("{} far from the others; part of all figures", outliers.count);
        add(WarningKind::Outliers, text);
    }
    found
}

fn counted(n: usize, settings: &Settings) -> &'static str {
    if n == 1 { settings.words.one } else { settings.words.many }
}

/// Of a comparison.
pub fn of_comparison(
    first: &Prepared,
    other: &Prepared,
    test: Option<MannWhitney>,
    comparisons: usize,
    settings: &Settings,
) -> Vec<Warning> {
    let mut found = Vec::new();
    if let Some(test) = test
        && test.smallest_p > level(comparisons, settings)
    {
        let text = format!(
            "{} and {} {} cannot show a difference by ranks: the smallest p they can reach is {}",
            first.values.len(),
            other.values.len(),
            settings.words.many,
            p_value(test.smallest_p)
        );
        found.push(Warning { kind: WarningKind::TooFew, text });
    }
    found
}
