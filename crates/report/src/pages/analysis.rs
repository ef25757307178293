//! The page of `linerate stat --full`: verdicts, the figures of each set and comparison, and warnings.

use super::numbers::{count, decimals, grouped};
use super::words::together;
use crate::document::{Cell, Document, Rows, Table, Tone};
use linerate_stats::analysis::{Analysis, Comparison, Reach, SetAnalysis, Warning, figure, p_value};
use linerate_stats::hodges_lehmann::Shift;

/// An analysis for a person to read. ASCII only; no line exceeds the style's width.
pub fn analysis(analysis: &Analysis) -> Document {
    let mut page = Document::default();
    for comparison in &analysis.comparisons {
        page.paragraph(&comparison.verdict, Tone::Strong);
    }
    sets(&mut page, analysis);
    if !analysis.comparisons.is_empty() {
        shifts(&mut page, analysis);
        tests(&mut page, analysis);
        reach(&mut page, analysis);
    }
    let of_sets = analysis.sets.iter().map(|s| (s.name.clone(), &s.warnings));
    let of_comparisons =
        analysis.comparisons.iter().map(|c| (format!("{} against {}", c.other, c.reference), &c.warnings));
    warnings(&mut page, of_sets.chain(of_comparisons));
    page
}

fn percents(confidence: f64) -> String {
    format!("{} %", figure(100.0 * confidence, 4))
}

fn sets(page: &mut Document, analysis: &Analysis) {
    let confidence = percents(analysis.confidence);
    let like = |set: &&SetAnalysis| set.median.or(set.mean).unwrap_or(0.0);
    let interval = |set: &&SetAnalysis, low_high: Option<(f64, f64)>| match low_high {
        Some((low, high)) => range(low, high, like(set)),
        None => "too few".into(),
    };
    let table = Table::of(&analysis.sets)
        .column("", "set", |set| set.name.as_str())
        .column("", "n", |set| count(set.n as u64))
        .column("", "min", |set| set.min.map(|v| number(v, like(set))))
        .column("", "median", |set| set.median.map(|v| number(v, like(set))))
        .column(&confidence, "interval", |set| interval(set, set.median_interval.map(|i| (i.low, i.high))))
        .column("", "max", |set| set.max.map(|v| number(v, like(set))))
        .column("", "mean", |set| set.mean.map(|v| number(v, like(set))))
        .column("", "stddev", |set| set.stddev.map(|v| number(v, v * 10.0)))
        .column(&confidence, "bootstrap", |set| interval(set, set.median_bootstrap.map(|b| (b.low, b.high))))
        .column("far", "out", |set| set.outliers.count);
    page.table(table);
}

/// How much each set differs from the first.
fn shifts(page: &mut Document, analysis: &Analysis) {
    let confidence = percents(analysis.confidence);
    let table = against(analysis)
        .column("Hodges-Lehmann", "shift", |c| c.shift.map(estimate))
        .column(&confidence, "interval", |c| c.shift.map(interval))
        .column("in", "percent", |c| percent(c).map(estimate))
        .column(&confidence, "interval", |c| percent(c).map(interval))
        .column("Cliff's", "delta", |c| {
            let delta = c.cliffs_delta?;
            let text = format!("{:+.2} {}", delta.delta, delta.magnitude.word());
            Some(Cell::Number { value: delta.delta, text })
        });
    page.table(table);
}

/// The difference in percent, as in the verdict: by the ratio, or without a ratio in percent of the first set's median.
fn percent(c: &Comparison) -> Option<Shift> {
    c.ratio.map(|r| r.map(|v| 100.0 * (v - 1.0))).or(c.shift_percent)
}

/// How sure that is.
fn tests(page: &mut Document, analysis: &Analysis) {
    let means = |c: &&Comparison| {
        let w = c.welch?;
        Some(Shift { value: w.difference, low: Some(w.low), high: Some(w.high), exact: false })
    };
    let several = analysis.comparisons.len() > 1;
    let table = against(analysis)
        .column("Mann-Whitney", "p", |c| c.mann_whitney.map(|t| p_cell(t.p, if t.exact { "" } else { "~" })))
        .when(several, |table| table.column("p after", "Holm", |c| c.p_holm.map(|p| p_cell(p, ""))))
        .column("difference", "of means", |c| means(c).map(estimate))
        .column(&percents(analysis.confidence), "interval", |c| means(c).map(interval))
        .column("Welch's", "t", |c| c.welch.map(|w| Cell::Number { value: w.t, text: figure(w.t, 4) }))
        .column("degrees of", "freedom", |c| {
            c.welch.map(|w| Cell::Number { value: w.df, text: figure(w.df, 4) })
        })
        .column("Welch's", "p", |c| c.welch.map(|w| p_cell(w.p, "")));
    page.table(table);
}

fn against(analysis: &Analysis) -> Rows<&Comparison> {
    let reference = analysis.comparisons.first().map_or("", |c| &c.reference);
    Table::of(&analysis.comparisons).column("against", reference, |c| c.other.as_str())
}

/// The smallest difference that these data could have shown, and the trials that a smaller one needs.
fn reach(page: &mut Document, analysis: &Analysis) {
    let lines: Vec<String> = analysis
        .comparisons
        .iter()
        .flat_map(|c| {
            let tests = [("ranks", &c.reach_of_ranks), ("means", &c.reach_of_means)];
            tests.map(|(what, reach)| Some(format!("{} by {what}: {}", c.other, reach_text(reach.as_ref()?))))
        })
        .flatten()
        .collect();
    page.list("What so many values can show, and how many it would take", "- ", lines, Tone::Plain);
}

fn reach_text(reach: &Reach) -> String {
    let share = |percent: Option<f64>, difference: f64| match percent {
        Some(p) => format!("{} %", figure(p.abs(), 2)),
        None => figure(difference.abs(), 2),
    };
    let smallest = share(reach.smallest_percent, reach.smallest_difference);
    let mut text = format!("{smallest} with {:.0} % probability", 100.0 * reach.power);
    for (i, needed) in reach.values_needed.iter().enumerate() {
        let (start, unit) = if i == 0 { ("; it takes ", " values in each set") } else { (", ", "") };
        let which = if needed.observed { "the observed " } else { "" };
        let size = share(needed.percent, needed.difference);
        text += &format!("{start}{}{unit} to show {which}{size}", grouped(needed.per_set));
    }
    text
}

/// Warnings. A text that applies to several sets appears once, with all their names.
fn warnings<'a>(page: &mut Document, of: impl Iterator<Item = (String, &'a Vec<Warning>)>) {
    let said = of.flat_map(|(name, all)| all.iter().map(move |w| (w.text.as_str(), name.clone())));
    page.warnings(together(said).iter().map(|(text, names)| format!("{}: {text}", names.join(", "))));
}

/// An estimate with as many decimals as the width of its interval deserves.
fn estimate(shift: Shift) -> Cell {
    match width(shift) {
        Some(width) => number(shift.value, width),
        None => Cell::Number { value: shift.value, text: figure(shift.value, 3) },
    }
}

fn interval(shift: Shift) -> Cell {
    match (shift.low, shift.high, width(shift)) {
        (Some(low), Some(high), Some(width)) => range(low, high, width),
        _ => "too few".into(),
    }
}

fn width(shift: Shift) -> Option<f64> {
    Some((shift.high? - shift.low?).abs().max(shift.value.abs() / 1000.0) * 10.0)
}

/// A p value; `mark` marks an approximation.
fn p_cell(p: f64, mark: &str) -> Cell {
    Cell::Number { value: p, text: format!("{mark}{}", p_value(p)) }
}

fn range(low: f64, high: f64, like: f64) -> Cell {
    Cell::Interval { low, high, text: format!("{}..{}", alike(low, like), alike(high, like)) }
}

fn number(value: f64, like: f64) -> Cell {
    Cell::Number { value, text: alike(value, like) }
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
