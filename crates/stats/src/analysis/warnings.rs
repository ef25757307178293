//! Warnings about sets and comparisons.

use super::verdict::confidence;
use super::{Pair, Prepared, Settings, Warning, WarningKind, Words, figure, p_value};
use crate::bootstrap::FEWEST;
use crate::means::brown_forsythe;
use crate::modes::two_modes;
use crate::outliers::{Outliers, outliers};
use crate::rank::RankTest;
use crate::trend::{mann_kendall, neighbours_alike, runs};
use crate::{Estimate, autocorrelation, median};
use linerate_wire::words::when;

/// The level of the tests behind warnings: as many of them are made, one in a hundred is enough of false alarms from each.
const ALARM: f64 = 0.01;

/// So many outliers are named in a warning.
const NAMED: usize = 5;

type Found = Option<Warning>;

fn found(kind: WarningKind, text: impl Into<String>) -> Found {
    Some(Warning {
        kind,
        text: text.into(),
    })
}

/// Of a set alone.
pub fn of_set(set: &Prepared, outliers: &Outliers, settings: &Settings) -> Vec<Warning> {
    let alone = [
        not_finite(set),
        too_few(set, settings),
        no_spread(set, settings),
    ];
    alone
        .into_iter()
        .chain(shape(set, outliers, settings))
        .flatten()
        .collect()
}

/// Of the shape and order of values.
fn shape(set: &Prepared, outliers: &Outliers, settings: &Settings) -> [Found; 3] {
    [far(outliers, settings), modes(set), order(set)]
}

/// Of the ratios of pairs, which are given by their logarithms; `given` is the number of pairs with those left out.
pub fn of_pairs(
    given: usize,
    logs: &[f64],
    ratio: Option<Estimate>,
    settings: &Settings,
) -> Vec<Warning> {
    let settings = Settings {
        words: Words {
            one: "pair",
            many: "pairs",
            ..settings.words
        },
        ..*settings
    };
    let n = logs.len();
    let left_out = format!(
        "{} of {given} pairs left out: a value is not above 0 or infinite",
        given - n
    );
    let left_out = found(WarningKind::NotFinite, left_out).filter(|_| n < given);
    let few = format!(
        "{} cannot give a {} interval",
        counted(n, &settings),
        confidence(&settings)
    );
    let few = found(WarningKind::TooFew, few).filter(|_| ratio.is_some_and(|r| r.low.is_none()));
    let ratios: Vec<f64> = logs.iter().map(|l| l.exp()).collect();
    let set = Prepared::of("", &ratios, &settings);
    let shape = shape(&set, &outliers(set.values, &set.sorted), &settings);
    [left_out, few].into_iter().chain(shape).flatten().collect()
}

/// `5 points`.
fn counted(n: usize, settings: &Settings) -> String {
    format!(
        "{n} {}",
        if n == 1 {
            settings.words.one
        } else {
            settings.words.many
        }
    )
}

fn not_finite(set: &Prepared) -> Found {
    let infinite = set.values.iter().filter(|v| v.is_infinite()).count();
    let text: String = match (infinite, set.moments) {
        (0, Some(m)) if m.stddev.is_none_or(f64::is_finite) && m.mean.is_finite() => return None,
        (0, None) => return None,
        (0, _) => "the numbers are too large for some figures, which are left out".into(),
        (n, _) => format!("infinite values ({n}): figures that they would enter are left out"),
    };
    found(WarningKind::NotFinite, text)
}

fn too_few(set: &Prepared, settings: &Settings) -> Found {
    let n = set.values.len();
    if n == 0 {
        return found(WarningKind::TooFew, "no values");
    }
    set.median.filter(|m| m.low.is_none())?;
    // [smallest, largest] covers the median with 1 - 2^(1-n).
    let needed = (1.0 - settings.alpha().log2()).ceil();
    let bootstrap = if n < FEWEST {
        ""
    } else {
        "; the bootstrap's covers it less often"
    };
    let (n, confidence) = (counted(n, settings), confidence(settings));
    let text = format!(
        "{n} cannot give a {confidence} interval of the median without assuming a distribution, {needed} can{bootstrap}"
    );
    found(WarningKind::TooFew, text)
}

fn no_spread(set: &Prepared, settings: &Settings) -> Found {
    let [first, .., last] = set.sorted[..] else {
        return None;
    };
    let n = counted(set.sorted.len(), settings);
    found(
        WarningKind::NoSpread,
        format!("all {n} are equal: their spread is not known"),
    )
    .filter(|_| first == last)
}

fn far(outliers: &Outliers, settings: &Settings) -> Found {
    if outliers.count == 0 {
        return None;
    }
    let mut farthest = outliers.farthest.clone();
    farthest.sort_by(|a, b| b.score.abs().total_cmp(&a.score.abs()));
    let one = settings.words.one;
    let named = farthest.iter().take(NAMED);
    let named = named.map(|o| {
        format!(
            "{one} {} = {} ({:+.1})",
            o.point,
            figure(o.value, 5),
            o.score
        )
    });
    let named: Vec<String> = named.collect();
    let more = when(outliers.count > named.len(), ", ...");
    let text = format!(
        "{} far from the others, and part of all figures (more than {} robust standard deviations from the median): {}{more}",
        counted(outliers.count, settings),
        figure(outliers.limit, 2),
        named.join(", ")
    );
    found(WarningKind::Outliers, text)
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
    found(WarningKind::TwoModes, text)
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
    found(WarningKind::Drift, text)
}

fn alike(set: &Prepared) -> Found {
    let p = neighbours_alike(set.values).filter(|p| *p <= ALARM)?;
    let r = autocorrelation(set.values);
    let r = when(r.is_finite(), format!("autocorrelation {r:.2}, "));
    let text = format!(
        "neighbours in the order of the runs resemble each other ({r}p {}): intervals are narrower than the truth",
        p_value(p)
    );
    found(WarningKind::Autocorrelation, text)
}

fn in_runs(set: &Prepared) -> Found {
    let runs = runs(set.values, set.median?.median).filter(|r| r.p <= ALARM)?;
    let (many, what) = if (runs.count as f64) < runs.expected {
        ("few", "the machine changes between states")
    } else {
        ("many", "high and low alternate")
    };
    let text = format!(
        "{} runs above and below the median are too {many} for chance, which makes {:.0} (p {}): {what}",
        runs.count,
        runs.expected,
        p_value(runs.p)
    );
    found(WarningKind::Runs, text)
}

impl Pair<'_> {
    /// Of a comparison.
    pub(super) fn warnings(&self, test: Option<RankTest>) -> Vec<Warning> {
        [self.too_few_for_ranks(test), self.unequal()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn too_few_for_ranks(&self, test: Option<RankTest>) -> Found {
        let smallest = test.map(|t| t.smallest_p).filter(|p| *p > self.level())?;
        let comparisons = self.comparisons;
        let several = when(comparisons > 1, format!(", of {comparisons} comparisons,"));
        let ((n, m), many, p) = (self.counts(), self.settings.words.many, p_value(smallest));
        let text = format!(
            "{n} and {m} {many} cannot show a difference by their ranks: the smallest p they can reach{several} is {p}"
        );
        found(WarningKind::TooFew, text)
    }

    fn unequal(&self) -> Found {
        let p = brown_forsythe(&self.first.sorted, &self.other.sorted).filter(|p| *p <= ALARM)?;
        let deviation = |p: &Prepared| {
            p.moments
                .and_then(|m| m.stddev)
                .map_or("?".into(), |s| figure(s, 3))
        };
        let text = format!(
            "the spreads differ (standard deviations {} and {}, p {}): ranks may then tell the sets apart though their middles agree",
            deviation(self.first),
            deviation(self.other),
            p_value(p)
        );
        found(WarningKind::UnequalVariances, text)
    }
}
