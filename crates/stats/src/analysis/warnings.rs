//! Warnings about sets and comparisons.

use super::verdict::confidence;
use super::{Prepared, Settings, Warning, WarningKind, figure, level, p_value};
use crate::autocorrelation;
use crate::bootstrap::FEWEST;
use crate::mann_whitney::MannWhitney;
use crate::median;
use crate::modes::two_modes;
use crate::outliers::{Outliers, outliers};
use crate::spread::brown_forsythe;
use crate::trend::{mann_kendall, neighbours_alike, runs};

/// The level of the tests behind warnings: as many of them are made, one in a hundred is enough of false alarms from each.
const ALARM: f64 = 0.01;

/// So many outliers are named in a warning.
const NAMED: usize = 5;

type Found = Option<(WarningKind, String)>;

/// Of a set alone.
pub fn of_set(set: &Prepared, outliers: &Outliers, settings: &Settings) -> Vec<Warning> {
    let found = [
        not_finite(set),
        too_few(set, settings),
        no_spread(set, settings),
        far(outliers, settings),
        modes(set),
        order(set),
    ];
    found.into_iter().flatten().map(|(kind, text)| Warning { kind, text }).collect()
}

/// Warnings about the shape and order of values that are themselves figures of a comparison.
pub fn of_values(set: &Prepared, settings: &Settings) -> Vec<Warning> {
    let outliers = outliers(set.values, &set.sorted);
    let found = [far(&outliers, settings), modes(set), order(set)];
    found.into_iter().flatten().map(|(kind, text)| Warning { kind, text }).collect()
}

/// `5 points`.
fn counted(n: usize, settings: &Settings) -> String {
    format!("{n} {}", if n == 1 { settings.words.one } else { settings.words.many })
}

fn not_finite(set: &Prepared) -> Found {
    let infinite = set.values.iter().filter(|v| v.is_infinite()).count();
    let text = match (infinite, set.moments) {
        (0, Some(m)) if m.stddev.is_none_or(f64::is_finite) && m.mean.is_finite() => return None,
        (0, None) => return None,
        (0, _) => "the numbers are too large for some figures, which are left out".into(),
        (1, _) => "1 value is infinite: figures that it would enter are left out".into(),
        (n, _) => format!("{n} values are infinite: figures that they would enter are left out"),
    };
    Some((WarningKind::NotFinite, text))
}

fn too_few(set: &Prepared, settings: &Settings) -> Found {
    let n = set.values.len();
    if n == 0 {
        return Some((WarningKind::TooFew, "no values".into()));
    }
    // [smallest, largest] covers the median with 1 - 2^(1-n).
    let needed = (1.0 - settings.alpha().log2()).ceil();
    set.median.is_some_and(|m| m.low.is_none()).then(|| {
        let bootstrap = if n < FEWEST { "" } else { "; the bootstrap's covers it less often" };
        let text = format!(
            "{} cannot give a {} interval of the median without assuming a distribution, {needed} can{bootstrap}",
            counted(n, settings),
            confidence(settings)
        );
        (WarningKind::TooFew, text)
    })
}

fn no_spread(set: &Prepared, settings: &Settings) -> Found {
    let n = set.sorted.len();
    (n > 1 && set.sorted[0] == set.sorted[n - 1]).then(|| {
        (WarningKind::NoSpread, format!("all {} are equal: their spread is not known", counted(n, settings)))
    })
}

fn far(outliers: &Outliers, settings: &Settings) -> Found {
    if outliers.count == 0 {
        return None;
    }
    let mut farthest = outliers.farthest.clone();
    farthest.sort_by(|a, b| b.score.abs().total_cmp(&a.score.abs()));
    let named: Vec<String> = farthest
        .iter()
        .take(NAMED)
        .map(|o| {
            format!("{} {} = {} (score {:+.1})", settings.words.one, o.point, figure(o.value, 5), o.score)
        })
        .collect();
    let more = if outliers.count > named.len() { ", ..." } else { "" };
    let text = format!(
        "{} far from the others, part of all figures (score beyond {}): {}{more}",
        counted(outliers.count, settings),
        figure(outliers.limit, 2),
        named.join(", ")
    );
    Some((WarningKind::Outliers, text))
}

fn modes(set: &Prepared) -> Found {
    let modes = two_modes(&set.sorted)?;
    let share = 100.0 * modes.low_share;
    let text = format!(
        "two modes, {share:.0} % of the values around {} and {:.0} % around {}: no single figure stands for both",
        figure(modes.low, 3),
        100.0 - share,
        figure(modes.high, 3)
    );
    Some((WarningKind::TwoModes, text))
}

/// The order of the runs. Only the first of drift, autocorrelation and runs is reported, because each explains the next.
fn order(set: &Prepared) -> Found {
    drift(set).or_else(|| alike(set)).or_else(|| in_runs(set))
}

fn drift(set: &Prepared) -> Found {
    let trend = mann_kendall(set.values).filter(|t| t.p <= ALARM)?;
    let third = set.values.len().div_ceil(3);
    let middle = |part: &[f64]| median(part).map_or(String::new(), |m| figure(m, 4));
    let text = format!(
        "the values {} in the order of the runs, from {} in the first third to {} in the last (Kendall's tau {:+.2}, p {})",
        if trend.tau > 0.0 { "rise" } else { "fall" },
        middle(&set.values[..third]),
        middle(&set.values[set.values.len() - third..]),
        trend.tau,
        p_value(trend.p)
    );
    Some((WarningKind::Drift, text))
}

fn alike(set: &Prepared) -> Found {
    let p = neighbours_alike(set.values).filter(|p| *p <= ALARM)?;
    let r = autocorrelation(set.values);
    let r = if r.is_finite() { format!("autocorrelation {r:.2}, ") } else { String::new() };
    let text = format!(
        "neighbours in the order of the runs resemble each other ({r}p {}): intervals are narrower than the truth",
        p_value(p)
    );
    Some((WarningKind::Autocorrelation, text))
}

fn in_runs(set: &Prepared) -> Found {
    let runs = runs(set.values, set.median?.median).filter(|r| r.p <= ALARM)?;
    let (many, what) = match (runs.count as f64) < runs.expected {
        true => ("few", "the machine changes between states"),
        false => ("many", "high and low alternate"),
    };
    let text = format!(
        "{} runs above and below the median are too {many} for chance, which makes {:.0} (p {}): {what}",
        runs.count,
        runs.expected,
        p_value(runs.p)
    );
    Some((WarningKind::Runs, text))
}

/// Of a comparison.
pub fn of_comparison(
    first: &Prepared,
    other: &Prepared,
    test: Option<MannWhitney>,
    comparisons: usize,
    settings: &Settings,
) -> Vec<Warning> {
    let found = [too_few_for_ranks(first, other, test, comparisons, settings), unequal(first, other)];
    found.into_iter().flatten().map(|(kind, text)| Warning { kind, text }).collect()
}

fn too_few_for_ranks(
    first: &Prepared,
    other: &Prepared,
    test: Option<MannWhitney>,
    comparisons: usize,
    settings: &Settings,
) -> Found {
    let smallest = test.map(|t| t.smallest_p).filter(|p| *p > level(comparisons, settings))?;
    let several = if comparisons > 1 { format!(", of {comparisons} comparisons,") } else { String::new() };
    let text = format!(
        "{} and {} {} cannot show a difference by their ranks: the smallest p they can reach{several} is {}",
        first.values.len(),
        other.values.len(),
        settings.words.many,
        p_value(smallest)
    );
    Some((WarningKind::TooFew, text))
}

fn unequal(first: &Prepared, other: &Prepared) -> Found {
    let p = brown_forsythe(&first.sorted, &other.sorted).filter(|p| *p <= ALARM)?;
    let deviation = |p: &Prepared| p.moments.and_then(|m| m.stddev).map_or("?".into(), |s| figure(s, 3));
    let text = format!(
        "the spreads differ (standard deviations {} and {}, p {}): ranks may then tell the sets apart though their middles agree",
        deviation(first),
        deviation(other),
        p_value(p)
    );
    Some((WarningKind::UnequalVariances, text))
}
