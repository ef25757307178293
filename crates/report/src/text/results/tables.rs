//! The table of cells, and comparisons in the form in which papers print them.

use super::super::numbers::{digits, interval, rate, rate_interval, share};
use super::super::tables::limit;
use super::Shown;
use super::sweeps::is_shown;
use super::words::{change, change_interval, verdict};
use crate::document::{Cell, Document, Rows, Table, Tone};
use linerate_measure::results::{self, CellResult, Disagreement, Ministat, TableRow};
use linerate_stats::Estimate;

/// One row for each cell that was to be measured; the tester's rates stand beside them, unless the plan is about them.
pub fn cells(page: &mut Document, shown: &Shown<'_>) {
    let (scale, unit) = shown.unit();
    let compared = shown.results.cells.iter().any(|c| c.baseline.is_some());
    let has_ceiling = shown.results.cells.iter().any(|c| c.ceiling.is_some());
    let beside: Vec<usize> = shown.results.cells.iter().filter_map(|c| Some(c.ceiling?.cell)).collect();
    let measured = |c: &&CellResult| shown.planned.lacking(c.cell).is_empty() && !beside.contains(&c.cell);
    let table = Table::of(shown.results.cells.iter().filter(measured))
        .column("cell", "", |c| format!("{:>2} {}", c.cell + 1, shown.name(c.cell)))
        .column("rate", unit, |c| median(&c.rate, scale))
        .column("95 %", "interval", |c| match (c.rate.n, c.trials) {
            (0, 0) => "not run".into(),
            (0, _) => "no valid trial".into(),
            _ => rate_interval(&c.rate, scale, digits(&c.rate).clamp(3, 5)),
        })
        .when(shown.loses(), |table| table.column("lost", "%", |c| shown.lost(c.cell)))
        .when(has_ceiling, |table| beside_ceiling(table, scale, unit))
        .when(compared, |table| against_baseline(table, shown))
        .optional("trials", "valid", |c| format!("{}/{}", c.valid_trials, c.trials))
        .optional("", "limit", |c| limit(c.limit));
    page.table(table);
}

/// A rate with the digits that its interval deserves; nothing where there is none.
pub fn median(rate: &Estimate, scale: f64) -> Option<Cell> {
    (rate.n > 0).then(|| super::super::numbers::rate(rate.median, scale, digits(rate).clamp(3, 5)))
}

type Cells<'a> = Rows<&'a CellResult>;

/// What the tester does alone, the share of that, and its interval.
fn beside_ceiling<'a>(table: Cells<'a>, scale: f64, unit: &str) -> Cells<'a> {
    let ratio = |c: &&CellResult| c.ceiling.and_then(|ceiling| ceiling.ratio);
    table
        .column("baseline", unit, |c| Some(rate(c.ceiling?.rate?, scale, 4)))
        .column("% of", "that", |c| ratio(c).map(|r| share(r.median)))
        .optional("95 %", "interval", |c| {
            let ratio = ratio(c)?;
            let (low, high) = (100.0 * ratio.low?, 100.0 * ratio.high?);
            Some(Cell::Interval { low, high, text: interval(&ratio, 0.01, 3)? })
        })
}

fn against_baseline<'a>(table: Cells<'a>, shown: &Shown<'_>) -> Cells<'a> {
    let ratio = |c: &&CellResult| c.baseline.as_ref().and_then(|b| b.ratio);
    table
        .column("against", "cell", |c| Some(c.baseline.as_ref()?.cell + 1))
        .column("change", "%", |c| Some(change(&ratio(c)?)))
        .column("95 %", "interval", |c| change_interval(&ratio(c)?))
        .column("differ-", "ence", |c| match &c.baseline {
            Some(b) => verdict(b.ratio.as_ref(), b.proven, shown.drops_more(c.cell, b.cell, b.cost)),
            None => "",
        })
}

/// Setup, A, B, ministat. Factors that are shown as series are left out.
pub fn papers(page: &mut Document, shown: &Shown<'_>) {
    let factors = &shown.planned.plan.factors;
    let swept = |t: &results::Table| {
        let series = shown.results.series.iter().filter(|s| is_shown(shown, s));
        series.filter_map(|s| factors.get(s.factor)).any(|f| f.name == t.title)
    };
    let measured = |t: &&results::Table| t.rows.iter().any(|r| r.a.is_some() && r.b.is_some());
    let tables: Vec<_> = shown.results.tables.iter().filter(measured).filter(|t| !swept(t)).collect();
    let mut notes: Vec<Disagreement> = Vec::new();
    for table in &tables {
        paper(page, shown, table);
        notes.extend(table.rows.iter().filter_map(|r| r.disagreement));
    }
    notes.sort();
    notes.dedup();
    for note in notes {
        page.item(&format!("{} ", mark(note)), why(note), Tone::Note);
    }
}

fn paper(page: &mut Document, shown: &Shown<'_>, paper: &results::Table) {
    let (scale, unit) = shown.unit();
    page.heading(&format!("As papers print it: {}", paper.title));
    let b = paper.b.as_deref().unwrap_or("this setup");
    let rows = paper.rows.iter().filter(|r| r.a.is_some() && r.b.is_some());
    let table = Table::of(rows)
        .column("setup", "", |row| shown.shortened(&row.setup))
        .column(&paper.a, unit, |row| Some(rate(row.a?, scale, 4)))
        .column(b, unit, |row| Some(rate(row.b?, scale, 4)))
        .column("ministat", "", ministat);
    page.table(table);
}

/// As ministat words it, behind it the mark of a footnote.
fn ministat(row: &&TableRow) -> Cell {
    let mark = row.disagreement.map_or(String::new(), |d| format!(" {}", mark(d)));
    match &row.ministat {
        // Of what passes nothing there is a rate, and no noise.
        _ if row.a == Some(0.0) || row.b == Some(0.0) => "no frame passed".into(),
        None => "too few trials".into(),
        Some(Ministat { proven: false, .. }) => Cell::Long {
            text: format!("No difference proven at 95.0% confidence{mark}"),
            short: format!("not proven{mark}"),
        },
        Some(m) => format!("{:.2}% +/- {:.2}%{mark}", m.percent, m.percent_error).into(),
    }
}

fn mark(disagreement: Disagreement) -> &'static str {
    match disagreement {
        Disagreement::OnlyPairs => "(a)",
        Disagreement::OnlyMinistat => "(b)",
        Disagreement::Opposite => "(c)",
    }
}

fn why(disagreement: Disagreement) -> &'static str {
    match disagreement {
        Disagreement::OnlyPairs => {
            "ministat holds the averages of the two sets against each other, and the machine's drift is in both. The ratios of trials of one block, moments apart, prove the difference (table of cells)."
        }
        Disagreement::OnlyMinistat => {
            "ministat takes the trials for independent and normally distributed. The interval of the ratios paired by block assumes neither, allows for having been looked at several times, and includes 0 %: believe that one."
        }
        Disagreement::Opposite => {
            "ministat and the ratios paired by block prove opposite differences: the machine's drift is in ministat's averages, so believe the ratios (table of cells)."
        }
    }
}
