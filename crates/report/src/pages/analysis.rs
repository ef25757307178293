//! The page of `linerate stat --full`: verdicts, the figures of each set and comparison, and warnings.

use crate::prelude::*;
use linerate_stats::analysis::{
    Analysis, Comparison, Reach, SetAnalysis, Warning, figure, p_value,
};

/// An analysis for a person to read. ASCII only; no line exceeds the style's width.
pub fn analysis(analysis: &Analysis) -> Document {
    let mut page = Document::default();
    analysis
        .comparisons
        .iter()
        .for_each(|comparison| page.answer(&comparison.verdict));
    let confidence = format!("{} %", figure(100.0 * analysis.confidence, 4));
    page.table(sets(analysis, &confidence));
    if !analysis.comparisons.is_empty() {
        page.table(shifts(analysis, &confidence));
        page.table(tests(analysis, &confidence));
    }
    let reached = analysis.comparisons.iter().flat_map(|c| {
        let tests = [("ranks", &c.reach_of_ranks), ("means", &c.reach_of_means)];
        tests.map(|(test, reach)| {
            Some(format!(
                "{} by {test}: {}",
                c.other,
                reach_text(reach.as_ref()?)
            ))
        })
    });
    page.entries(
        "What so many values can show, and how many it would take",
        reached.flatten(),
    );
    let of_sets = analysis.sets.iter().map(|s| (s.name.clone(), &s.warnings));
    let of_comparisons = analysis
        .comparisons
        .iter()
        .map(|c| (format!("{} against {}", c.other, c.reference), &c.warnings));
    warnings(&mut page, of_sets.chain(of_comparisons));
    page
}

fn sets<'a>(analysis: &'a Analysis, confidence: &str) -> Rows<&'a SetAnalysis> {
    let median = |set: &&SetAnalysis| set.median.map(|m| m.median);
    let like = |set: &&SetAnalysis| median(set).or(set.mean).unwrap_or(0.0);
    let like_median = |set: &&SetAnalysis, value: Option<f64>| value.map(|v| number(v, like(set)));
    let interval = |set: &&SetAnalysis, of: Option<Estimate>| {
        of.and_then(|of| Some(range(of.low?, of.high?, like(set))))
            .unwrap_or("too few".into())
    };
    Table::of(&analysis.sets)
        .column("", "set", |set| set.name.as_str())
        .column("", "n", |set| count(set.n as u64))
        .column("", "min", |set| like_median(set, set.min))
        .column("", "median", |set| like_median(set, median(set)))
        .column(confidence, "interval", |set| interval(set, set.median))
        .column("", "max", |set| like_median(set, set.max))
        .column("", "mean", |set| like_median(set, set.mean))
        .column("", "stddev", |set| set.stddev.map(|v| number(v, v * 10.0)))
        .column(confidence, "bootstrap", |set| {
            interval(set, set.median_bootstrap)
        })
        .column("far", "out", |set| set.outliers.count)
}

/// How much each set differs from the first.
fn shifts<'a>(analysis: &'a Analysis, confidence: &str) -> Rows<&'a Comparison> {
    against(analysis)
        .column("Hodges-Lehmann", "shift", |c| c.shift.map(estimate))
        .column(confidence, "interval", |c| c.shift.map(interval))
        .column("in", "percent", |c| percent(c).map(estimate))
        .column(confidence, "interval", |c| percent(c).map(interval))
        .column("Cliff's", "delta", |c| {
            let delta = c.cliffs_delta?;
            Some(Cell::number(
                delta.delta,
                format!("{:+.2} {}", delta.delta, delta.magnitude.word()),
            ))
        })
}

/// The difference in percent, as in the verdict: by the ratio, or without a ratio in percent of the first set's median.
fn percent(c: &Comparison) -> Option<Estimate> {
    c.ratio
        .map(|r| r.map(|v| 100.0 * (v - 1.0)))
        .or(c.shift_percent)
}

/// How sure that is.
fn tests<'a>(analysis: &'a Analysis, confidence: &str) -> Rows<&'a Comparison> {
    let means = |c: &&Comparison| {
        let w = c.welch?;
        Some(Estimate {
            median: w.difference,
            low: Some(w.low),
            high: Some(w.high),
            n: 0,
        })
    };
    let four = |value: f64| Cell::number(value, figure(value, 4));
    // An approximation is marked.
    let p = |p: f64, exact: bool| Cell::number(p, format!("{}{}", when(!exact, "~"), p_value(p)));
    against(analysis)
        .column("Mann-Whitney", "p", |c| {
            c.mann_whitney.map(|test| p(test.p, test.exact))
        })
        .when(analysis.comparisons.len() > 1, |table| {
            table.column("p after", "Holm", |c| c.p_holm.map(|holm| p(holm, true)))
        })
        .column("difference", "of means", |c| means(c).map(estimate))
        .column(confidence, "interval", |c| means(c).map(interval))
        .column("Welch's", "t", |c| c.welch.map(|w| four(w.t)))
        .column("degrees of", "freedom", |c| c.welch.map(|w| four(w.df)))
        .column("Welch's", "p", |c| c.welch.map(|w| p(w.p, true)))
}

fn against(analysis: &Analysis) -> Rows<&Comparison> {
    let reference = analysis.comparisons.first().map_or("", |c| &c.reference);
    Table::of(&analysis.comparisons).column("against", reference, |c| c.other.as_str())
}

/// The smallest difference that these data could have shown, and the trials that a smaller one needs.
fn reach_text(reach: &Reach) -> String {
    let share = |percent: Option<f64>, difference: f64| match percent {
        Some(p) => format!("{} %", figure(p.abs(), 2)),
        None => figure(difference.abs(), 2),
    };
    let smallest = share(reach.smallest_percent, reach.smallest_difference);
    let mut text = format!("{smallest} with {:.0} % probability", 100.0 * reach.power);
    for (i, needed) in reach.values_needed.iter().enumerate() {
        let (start, unit) = if i == 0 {
            ("; it takes ", " values in each set")
        } else {
            (", ", "")
        };
        let which = when(needed.observed, "the observed ");
        let size = share(needed.percent, needed.difference);
        text += &format!(
            "{start}{}{unit} to show {which}{size}",
            grouped(needed.per_set)
        );
    }
    text
}

/// Warnings. A text that applies to several sets appears once, with all their names.
fn warnings<'a>(page: &mut Document, of: impl Iterator<Item = (String, &'a Vec<Warning>)>) {
    let said = of.flat_map(|(name, all)| all.iter().map(move |w| (w.text.as_str(), name.clone())));
    page.warnings(
        together(said)
            .iter()
            .map(|(text, names)| format!("{}: {text}", names.join(", "))),
    );
}

/// An estimate with as many decimals as the width of its interval deserves.
fn estimate(shift: Estimate) -> Cell {
    match width(shift) {
        Some(width) => number(shift.median, width),
        None => Cell::number(shift.median, figure(shift.median, 3)),
    }
}

fn interval(shift: Estimate) -> Cell {
    match (shift.low, shift.high, width(shift)) {
        (Some(low), Some(high), Some(width)) => range(low, high, width),
        _ => "too few".into(),
    }
}

fn width(shift: Estimate) -> Option<f64> {
    Some(
        (shift.high? - shift.low?)
            .abs()
            .max(shift.median.abs() / 1000.0)
            * 10.0,
    )
}

fn range(low: f64, high: f64, like: f64) -> Cell {
    Cell::range(
        low,
        high,
        format!("{}..{}", alike(low, like), alike(high, like)),
    )
}

fn number(value: f64, like: f64) -> Cell {
    Cell::number(value, alike(value, like))
}

/// A number with the decimals that give `like` four significant digits, or with an exponent where it is huge or tiny.
fn alike(value: f64, like: f64) -> String {
    let size = value.abs().max(like.abs());
    if value != 0.0 && !(1e-5..1e12).contains(&size) {
        return figure(value, 5);
    }
    format!("{value:.*}", decimals(like, 4))
}

#[cfg(test)]
mod tests;
