//! What `linerate stat --full` prints: verdicts, the figures of each set and comparison, and what to beware of.

use super::numbers::{decimals, grouped};
use super::page::{Ink, Page, Style, Table};
use linerate_stats::analysis::{Analysis, Comparison, Reach, SetAnalysis, Warning, figure, p_value};
use linerate_stats::hodges_lehmann::Shift;

const NONE: &str = "-";

/// An analysis for a person to read. ASCII only; no line exceeds the style's width.
pub fn analysis(analysis: &Analysis, style: Style) -> String {
    let mut page = Page::new(style);
    for comparison in &analysis.comparisons {
        page.paragraph(&comparison.verdict, Ink::Bold);
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
    page.finish()
}

fn percents(confidence: f64) -> String {
    format!("{} %", figure(100.0 * confidence, 4))
}

fn sets(page: &mut Page, analysis: &Analysis) {
    let confidence = percents(analysis.confidence);
    let mut table = Table::default()
        .column("", "set")
        .column("", "n")
        .column("", "min")
        .column("", "median")
        .column(&confidence, "interval")
        .column("", "max")
        .column("", "mean")
        .column("", "stddev")
        .column(&confidence, "bootstrap")
        .column("far", "out");
    for set in &analysis.sets {
        table.row(set_cells(set));
    }
    page.gap();
    page.table(&table);
}

fn set_cells(set: &SetAnalysis) -> Vec<String> {
    let like = set.median.or(set.mean).unwrap_or(0.0);
    let one = |v: Option<f64>| v.map_or(NONE.into(), |v| number(v, like));
    let range = |low: f64, high: f64| format!("{}..{}", number(low, like), number(high, like));
    vec![
        set.name.clone(),
        grouped(set.n as u64),
        one(set.min),
        one(set.median),
        set.median_interval.map_or("too few".into(), |i| range(i.low, i.high)),
        one(set.max),
        one(set.mean),
        set.stddev.map_or(NONE.into(), |v| number(v, v * 10.0)),
        set.median_bootstrap.map_or("too few".into(), |b| range(b.low, b.high)),
        set.outliers.count.to_string(),
    ]
}

/// How much each set differs from the first.
fn shifts(page: &mut Page, analysis: &Analysis) {
    let confidence = percents(analysis.confidence);
    let mut table = against(analysis)
        .column("Hodges-Lehmann", "shift")
        .column(&confidence, "interval")
        .column("in", "percent")
        .column(&confidence, "interval")
        .column("Cliff's", "delta");
    for c in &analysis.comparisons {
        let mut cells = vec![c.other.clone()];
        cells.extend([c.shift, percent(c)].into_iter().flat_map(estimate));
        let delta = c.cliffs_delta.map_or(NONE.into(), |d| format!("{:+.2} {}", d.delta, d.magnitude.word()));
        cells.push(delta);
        table.row(cells);
    }
    page.gap();
    page.table(&table);
}

/// The difference in percent, as the verdict has it: by the ratio, or where there is none of the first set's median.
fn percent(c: &Comparison) -> Option<Shift> {
    c.ratio.map(|r| r.map(|v| 100.0 * (v - 1.0))).or(c.shift_percent)
}

/// How sure that is.
fn tests(page: &mut Page, analysis: &Analysis) {
    let mut table = against(analysis).column("Mann-Whitney", "p");
    let several = analysis.comparisons.len() > 1;
    if several {
        table = table.column("p after", "Holm");
    }
    table = table
        .column("difference", "of means")
        .column(&percents(analysis.confidence), "interval")
        .column("Welch's", "t")
        .column("degrees of", "freedom")
        .column("Welch's", "p");
    for c in &analysis.comparisons {
        let mut cells = vec![c.other.clone()];
        cells.push(c.mann_whitney.map_or(NONE.into(), |t| p_cell(t.p, t.exact)));
        if several {
            cells.push(c.p_holm.map_or(NONE.into(), p_value));
        }
        cells.extend(welch_cells(c));
        table.row(cells);
    }
    page.gap();
    page.table(&table);
}

fn against(analysis: &Analysis) -> Table {
    let reference = analysis.comparisons.first().map_or("", |c| &c.reference);
    Table::default().column("against", reference)
}

fn welch_cells(c: &Comparison) -> [String; 5] {
    let Some(w) = c.welch else { return [NONE; 5].map(String::from) };
    let [difference, interval] =
        estimate(Some(Shift { value: w.difference, low: Some(w.low), high: Some(w.high), exact: false }));
    [difference, interval, figure(w.t, 4), figure(w.df, 4), p_value(w.p)]
}

/// What these data could have shown, and what it would take.
fn reach(page: &mut Page, analysis: &Analysis) {
    let lines: Vec<String> = analysis
        .comparisons
        .iter()
        .flat_map(|c| {
            let tests = [("ranks", &c.reach_of_ranks), ("means", &c.reach_of_means)];
            tests.map(|(what, reach)| Some(format!("{} by {what}: {}", c.other, reach_text(reach.as_ref()?))))
        })
        .flatten()
        .collect();
    if lines.is_empty() {
        return;
    }
    page.heading("What so many values can show, and how many it would take");
    for line in lines {
        page.item("- ", &line, Ink::Plain);
    }
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

/// What several have in common is said once.
fn warnings<'a>(page: &mut Page, of: impl Iterator<Item = (String, &'a Vec<Warning>)>) {
    let mut by_text: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, warning) in of.flat_map(|(name, all)| all.iter().map(move |w| (name.clone(), w))) {
        match by_text.iter_mut().find(|(text, _)| *text == warning.text) {
            Some((_, names)) => names.push(name),
            None => by_text.push((&warning.text, vec![name])),
        }
    }
    if !by_text.is_empty() {
        page.heading("Warnings");
    }
    for (text, names) in by_text {
        page.item("! ", &format!("{}: {text}", names.join(", ")), Ink::Warning);
    }
}

/// The estimate and its interval, with as many decimals as the interval's width deserves.
fn estimate(shift: Option<Shift>) -> [String; 2] {
    let Some(shift) = shift else { return [NONE; 2].map(String::from) };
    let Some((low, high)) = shift.low.zip(shift.high) else {
        return [figure(shift.value, 3), "too few".into()];
    };
    let like = (high - low).abs().max(shift.value.abs() / 1000.0) * 10.0;
    [number(shift.value, like), format!("{}..{}", number(low, like), number(high, like))]
}

/// A p value, with a mark where it is an approximation.
fn p_cell(p: f64, exact: bool) -> String {
    format!("{}{}", if exact { "" } else { "~" }, p_value(p))
}

/// A number with the decimals that give `like` four significant digits, or with an exponent where it is huge or tiny.
fn number(value: f64, like: f64) -> String {
    let size = value.abs().max(like.abs());
    if value != 0.0 && !(1e-5..1e12).contains(&size) {
        return figure(value, 5);
    }
    format!("{value:.*}", decimals(like, 4))
}

#[cfg(test)]
mod tests;
