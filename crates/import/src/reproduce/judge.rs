//! A row of a table against the data: both medians and their difference, and possible causes of a wrong one.

use super::evidence::Evidence;
use super::mapping::{Table, TableRow};
use super::printed::{Printed, says_no_difference};
use super::{Figure, State};
use linerate_stats::ministat::{Confidence, Dataset, Difference, Era, difference, format_g};

/// The three figures of a row.
pub fn row(table: &Table, row: &TableRow, era: Era, evidence: &Evidence) -> Vec<Figure> {
    let sets: Vec<Option<Dataset>> = row.sources.iter().map(|s| evidence.set(s)).collect();
    let set = |side: usize| sets.get(side).and_then(Option::as_ref);
    let mut figures: Vec<Figure> =
        [0, 1].map(|side| median(table, row, side, set(side), era, evidence)).into_iter().collect();
    if !row.difference.is_empty() {
        let both = set(0).zip(set(1)).filter(|(a, b)| a.sorted().len() >= 3 && b.sorted().len() >= 3);
        let computed =
            both.map(|(a, b)| difference(&a.summary(era), &b.summary(era), Confidence::default(), era));
        let of_row = of_difference(
            table,
            row,
            computed.as_ref(),
            sets.iter().flatten().any(|s| s.sorted().is_empty()),
        );
        if of_row.state != State::WrongInPrint && of_row.state != State::NoData {
            figures.iter_mut().filter(|f| f.state == State::WrongInPrint).for_each(|f| {
                let note = f.note.take().unwrap_or_default();
                f.note = Some(format!("{note}; the printed difference was computed with the data"));
            });
        }
        figures.push(of_row);
    }
    figures
}

fn figure(table: &Table, row: &TableRow, column: &str, printed: &str, sources: Vec<String>) -> Figure {
    let of = Figure::new((&table.illustration, &table.caption), &row.setup, column, printed);
    Figure { note: row.missing.clone(), sources, ..of }
}

fn median(
    table: &Table,
    row: &TableRow,
    side: usize,
    set: Option<&Dataset>,
    era: Era,
    evidence: &Evidence,
) -> Figure {
    let text = &row.printed[side];
    let source = row.sources.get(side);
    let mut figure = figure(table, row, &table.columns[side], text, source.cloned().into_iter().collect());
    let Some((set, printed)) = set.zip(Printed::rate(text)) else {
        if figure.note.is_none() {
            figure.note = Some("not in this archive".into());
        }
        return figure;
    };
    let found = if set.sorted().is_empty() { 0.0 } else { set.summary(era).median };
    figure.computed = Some(rate(found, &printed));
    figure.state = printed.fits(found);
    figure.note = match (figure.state, source) {
        (State::WrongInPrint, Some(source)) => Some(explain(&printed, found, set, source, era, evidence)),
        _ if set.sorted().is_empty() => Some("no run gave a figure".into()),
        _ => None,
    };
    figure
}

/// Possible sources of the printed figure: a slip of the last digit, another figure of the same runs, or the median of other runs
/// of the same hardware, most likely those of the same experiment.
fn explain(
    printed: &Printed,
    found: f64,
    set: &Dataset,
    source: &str,
    era: Era,
    evidence: &Evidence,
) -> String {
    let is = |value: f64| printed.fits(value) != State::WrongInPrint;
    let summary = set.summary(era);
    let mut may_be = Vec::new();
    if ((found - printed.value) / printed.step).abs() < 2.0 {
        may_be.push("a slip in the last digit".to_string());
    }
    let own = [("maximum", summary.max), ("minimum", summary.min), ("average", summary.avg)];
    may_be.extend(own.iter().filter(|(_, v)| is(*v)).map(|(what, _)| format!("the {what} of the runs")));
    let folder = |path: &str| path.rsplit_once('/').map(|p| p.0.to_string());
    let others: Vec<_> = evidence.siblings(source).filter(|(_, s)| is(s.summary(era).median)).collect();
    let near = others.iter().find(|(path, _)| folder(path) == folder(source));
    let far = others.first().filter(|_| may_be.is_empty());
    may_be.extend(near.or(far).map(|(path, _)| format!("the median of {path}")));
    let median = rate(found, printed);
    match may_be.is_empty() {
        true => format!("the median is {median}"),
        false => format!("the median is {median}; the printed figure may be {}", may_be.join(", or ")),
    }
}

fn of_difference(table: &Table, row: &TableRow, found: Option<&Difference>, empty: bool) -> Figure {
    let text = &row.difference;
    let mut figure = figure(table, row, "difference", text, row.sources.clone());
    let Some(found) = found else {
        if empty {
            // Without a figure on one side there is nothing to compare, and the document says so.
            let said = Printed::difference(text).is_none() && !says_no_difference(text);
            figure.state = if said { State::Agrees } else { State::WrongInPrint };
            figure.computed = Some("none".into());
            figure.note = Some("a set without a figure cannot be compared".into());
        } else if figure.note.is_none() {
            figure.note = Some("not in this archive".into());
        }
        return figure;
    };
    let told = match found.proven {
        true => format!("{}% +/- {}%", format_g(found.percent, 6), format_g(found.percent_error, 6)),
        false => "No difference proven".into(),
    };
    figure.note = None;
    figure.state = match Printed::difference(text) {
        Some(printed) if found.proven => {
            // The worse of the two.
            printed[0].fits(found.percent).max(printed[1].fits(found.percent_error))
        }
        None if !found.proven && says_no_difference(text) => State::Agrees,
        _ => State::WrongInPrint,
    };
    if figure.state == State::WrongInPrint {
        figure.note = Some(format!("the data give {told}"));
    }
    figure.computed = Some(told);
    figure
}

/// A rate in the unit of the printed one, with two digits more.
fn rate(value: f64, printed: &Printed) -> String {
    let (scale, unit) =
        if printed.value >= 1e6 || printed.step >= 1e4 { (1e6, "Mpps") } else { (1e3, "Kpps") };
    let decimals = ((scale / printed.step).log10().round() as i32 + 2).clamp(0, 6) as usize;
    format!("{:.decimals$} {unit}", value / scale)
}
