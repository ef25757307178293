//! The table of cells, and comparisons in the form in which papers print them.

use super::super::numbers::{digits, interval, percent, rate, rate_interval};
use super::super::page::{Ink, Page, Table};
use super::super::tables::limit;
use super::Shown;
use super::sweeps::is_shown;
use super::words::{change, change_interval, verdict};
use linerate_measure::results::{self, CellResult, Disagreement, Ministat, TableRow};

const NONE: &str = "-";

/// On narrower pages ministat's sentence has no room.
const NARROW: usize = 92;

/// One row for each cell that was to be measured; the tester's rates stand beside them, unless the plan is about them.
pub fn cells(page: &mut Page, shown: &Shown<'_>) {
    let (scale, unit) = shown.unit();
    let compared = shown.results.cells.iter().any(|c| c.baseline.is_some());
    let has_ceiling = shown.results.cells.iter().any(|c| c.ceiling.is_some());
    let loses = shown.loses();
    let mut table = Table::default().column("cell", "").column("rate", unit).column("95 %", "interval");
    if loses {
        table = table.column("lost", "%");
    }
    if has_ceiling {
        table = table.column("baseline", unit).column("% of", "that").optional("95 %", "interval");
    }
    if compared {
        table = table
            .column("against", "cell")
            .column("change", "%")
            .column("95 %", "interval")
            .column("differ-", "ence");
    }
    table = table.optional("trials", "valid").optional("", "limit");
    let beside: Vec<usize> = shown.results.cells.iter().filter_map(|c| Some(c.ceiling?.cell)).collect();
    let measured = |c: &&CellResult| shown.planned.lacking(c.cell).is_empty() && !beside.contains(&c.cell);
    for cell in shown.results.cells.iter().filter(measured) {
        let mut row = vec![format!("{:>2} {}", cell.cell + 1, shown.name(cell.cell))];
        row.extend(rates(cell, scale));
        if loses {
            row.push(shown.lost(cell.cell));
        }
        if has_ceiling {
            row.extend(share(cell, scale));
        }
        if compared {
            row.extend(against(shown, cell));
        }
        row.extend([format!("{}/{}", cell.valid_trials, cell.trials), limit(cell.limit).into()]);
        table.row(row);
    }
    page.gap();
    page.table(&table);
}

fn rates(cell: &CellResult, scale: f64) -> [String; 2] {
    if cell.rate.n == 0 {
        let why = if cell.trials == 0 { "not run" } else { "no valid trial" };
        return [NONE.into(), why.into()];
    }
    let digits = digits(&cell.rate).clamp(3, 5);
    [
        rate(cell.rate.median, scale, digits),
        rate_interval(&cell.rate, scale, digits).unwrap_or_else(|| "too few".into()),
    ]
}

/// What the tester does alone, the share of that, and its interval.
fn share(cell: &CellResult, scale: f64) -> [String; 3] {
    let Some(ceiling) = &cell.ceiling else { return [NONE; 3].map(String::from) };
    let alone = ceiling.rate.map_or(NONE.into(), |r| rate(r, scale, 4));
    let Some(ratio) = &ceiling.ratio else { return [alone, NONE.into(), NONE.into()] };
    [alone, percent(ratio.median), interval(ratio, 0.01, 3).unwrap_or_else(|| NONE.into())]
}

fn against(shown: &Shown<'_>, cell: &CellResult) -> [String; 4] {
    let Some(baseline) = &cell.baseline else { return [NONE, NONE, NONE, ""].map(String::from) };
    let ratio = baseline.ratio.as_ref();
    [
        (baseline.cell + 1).to_string(),
        ratio.map_or(NONE.into(), change),
        ratio.and_then(change_interval).unwrap_or_else(|| NONE.into()),
        verdict(ratio, baseline.proven, shown.drops_more(cell.cell, baseline.cell, baseline.cost)).into(),
    ]
}

/// Setup, A, B, ministat. Factors that are shown as series are left out.
pub fn papers(page: &mut Page, shown: &Shown<'_>) {
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
        page.item(&format!("{} ", mark(note)), why(note), Ink::Dim);
    }
}

fn paper(page: &mut Page, shown: &Shown<'_>, paper: &results::Table) {
    let (scale, unit) = shown.unit();
    page.heading(&format!("As papers print it: {}", paper.title));
    let b = paper.b.as_deref().unwrap_or("this setup");
    let mut table =
        Table::default().column("setup", "").column(&paper.a, unit).column(b, unit).column("ministat", "");
    let rate = |fps: Option<f64>| fps.map_or(NONE.into(), |fps| rate(fps, scale, 4));
    for row in paper.rows.iter().filter(|r| r.a.is_some() && r.b.is_some()) {
        table.row(vec![shown.shortened(&row.setup), rate(row.a), rate(row.b), ministat(row, page.width())]);
    }
    page.table(&table);
}

/// As ministat words it, behind it the mark of a footnote.
fn ministat(row: &TableRow, width: usize) -> String {
    let mark = row.disagreement.map_or(String::new(), |d| format!(" {}", mark(d)));
    match &row.ministat {
        // Of what passes nothing there is a rate, and no noise.
        _ if row.a == Some(0.0) || row.b == Some(0.0) => "no frame passed".into(),
        None => "too few trials".into(),
        Some(Ministat { proven: false, .. }) if width < NARROW => format!("not proven{mark}"),
        Some(Ministat { proven: false, .. }) => format!("No difference proven at 95.0% confidence{mark}"),
        Some(m) => format!("{:.2}% +/- {:.2}%{mark}", m.percent, m.percent_error),
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
