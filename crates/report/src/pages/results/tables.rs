//! The table of cells, and comparisons in the form in which papers print them.

use super::super::numbers::{digits, interval, rate, rate_interval, share};
use super::changes::{change, change_interval, verdict};
use super::figures::limit;
use super::{Shown, has_rate};
use crate::document::{Cell, Document, Rows, Table, Tone};
use linerate_measure::experiment::Interest;
use linerate_measure::results::{Against, Compared, Disagreement, Ministat};
use linerate_measure::summary::Row;
use linerate_stats::Estimate;

/// One row for each cell that was to be measured; the tester's rates stand beside them, unless the plan is about them.
pub fn cells(page: &mut Document, shown: &Shown<'_>) {
    let (scale, unit) = shown.unit();
    let rows = &shown.summary.rows;
    let beside: Vec<usize> = rows.iter().filter_map(|r| Some(r.ceiling?.than)).collect();
    let measured = |r: &&Row| shown.planned.lacking(r.slot).is_empty() && !beside.contains(&r.slot);
    let table = Table::of(rows.iter().filter(measured))
        .column("cell", "", |r| shown.numbered(r.slot))
        .column("rate", unit, |r| median(&r.received, scale))
        .column("95 %", "interval", |r| match (has_rate(r), r.trials, r.valid_trials) {
            (true, ..) => rate_interval(&r.received, scale, digits(&r.received).clamp(3, 5)),
            (_, 0, _) => "not run".into(),
            (_, _, 0) => "no valid trial".into(),
            _ => "no window".into(),
        })
        .when(shown.loses(), |table| table.column("lost", "%", |r| shown.lost(r.slot)))
        .when(!beside.is_empty(), |table| beside_ceiling(table, shown))
        .when(rows.iter().any(|r| r.baseline.is_some()), |table| against_baseline(table, shown))
        .optional("trials", "valid", |r| format!("{}/{}", r.valid_trials, r.trials))
        .optional("", "limit", |r| limit(r.limit));
    page.table(table);
}

/// A rate with the digits that its interval deserves; `None` without trials.
pub fn median(estimate: &Estimate, scale: f64) -> Option<Cell> {
    (estimate.n > 0).then(|| rate(estimate.median, scale, digits(estimate).clamp(3, 5)))
}

/// The rate of the tester alone, the share of it, and its interval.
fn beside_ceiling<'a>(table: Rows<&'a Row>, shown: &Shown<'_>) -> Rows<&'a Row> {
    let (scale, unit) = shown.unit();
    let ratio = |r: &&Row| r.ceiling.and_then(|ceiling| ceiling.ratio);
    table
        .column("baseline", unit, |r| Some(rate(shown.rate(r.ceiling?.than)?, scale, 4)))
        .column("% of", "that", |r| ratio(r).map(|r| share(r.median)))
        .optional("95 %", "interval", |r| {
            let ratio = ratio(r)?;
            let (low, high) = (100.0 * ratio.low?, 100.0 * ratio.high?);
            Some(Cell::Interval { low, high, text: interval(&ratio, 0.01, 3)? })
        })
}

fn against_baseline<'a>(table: Rows<&'a Row>, shown: &Shown<'_>) -> Rows<&'a Row> {
    let ratio = |r: &&Row| r.baseline.and_then(|b| b.ratio);
    table
        .column("against", "cell", |r| Some(r.baseline?.than + 1))
        .column("change", "%", |r| Some(change(&ratio(r)?)))
        .column("95 %", "interval", |r| change_interval(&ratio(r)?))
        .column("differ-", "ence", |r| match &r.baseline {
            Some(b) => verdict(b.ratio.as_ref(), b.proven, drops_more(shown, r, b)),
            None => "",
        })
}

/// Whether a cell drops more frames than the other; `None` where that makes no difference.
fn drops_more(shown: &Shown<'_>, row: &Row, against: &Against) -> Option<bool> {
    against.cost.and(Some(row.dropped > shown.row(against.than)?.dropped))
}

/// Setup, A, B, ministat: a table of the variants, and one for each factor that is not shown as a series.
pub fn papers(page: &mut Document, shown: &Shown<'_>) {
    let factors = 0..shown.planned.experiment.factors.len();
    let swept = |factor: &usize| shown.series().any(|s| s.factor == *factor);
    let mut notes: Vec<Disagreement> = Vec::new();
    for why in std::iter::once(Interest::Variants).chain(factors.filter(|f| !swept(f)).map(Interest::Levels))
    {
        let known = |c: &&Compared| {
            c.why == why && shown.rate(c.of).is_some() && shown.rate(c.against.than).is_some()
        };
        let rows: Vec<&Compared> = shown.summary.comparisons.iter().filter(known).collect();
        if !rows.is_empty() {
            paper(page, shown, why, &rows);
            notes.extend(rows.iter().filter_map(|c| c.disagreement));
        }
    }
    notes.sort();
    notes.dedup();
    for note in notes {
        let (mark, text) = footnote(note);
        page.item(&format!("{mark} "), text, Tone::Note);
    }
}

fn paper(page: &mut Document, shown: &Shown<'_>, why: Interest, rows: &[&Compared]) {
    let (scale, unit) = shown.unit();
    let (slots, experiment) = (&shown.campaign.slots, &shown.planned.experiment);
    let factor = match why {
        Interest::Levels(factor) => Some(factor),
        _ => None,
    };
    let title = factor.and_then(|f| experiment.factors.get(f)).map_or("variants", |f| &f.name);
    // The name of one side.
    let side = |cell: usize| -> String {
        let Some(slot) = slots.get(cell) else { return String::new() };
        match slot.levels.iter().find(|(f, _)| factor == Some(*f)) {
            Some(level) => experiment.level(*level),
            None => slot.plan_variant.clone(),
        }
    };
    let b = side(rows[0].of);
    let same_b = rows.iter().all(|c| side(c.of) == b);
    // Levels that both sides share; with B's own part, unless the column's heading has it.
    let setup = |c: &&&Compared| -> String {
        let Some(slot) = slots.get(c.of).filter(|_| same_b) else { return shown.name(c.of) };
        if factor.is_some() {
            return shown.shortened(&experiment.name_without(slot, factor));
        }
        let levels: Vec<String> = slot.levels.iter().map(|level| experiment.level(*level)).collect();
        if levels.is_empty() { experiment.system.to_string() } else { levels.join(", ") }
    };
    let table = Table::of(rows)
        .column("setup", "", setup)
        .column(&side(rows[0].against.than), unit, |c| Some(rate(shown.rate(c.against.than)?, scale, 4)))
        .column(if same_b { &b } else { "this setup" }, unit, |c| Some(rate(shown.rate(c.of)?, scale, 4)))
        .column("ministat", "", |c| ministat(shown, c));
    page.section(format!("As papers print it: {title}"), table);
}

/// As ministat words it, behind it the mark of a footnote.
fn ministat(shown: &Shown<'_>, c: &Compared) -> Cell {
    let mark = c.disagreement.map_or(String::new(), |d| format!(" {}", footnote(d).0));
    match &c.ministat {
        // A rate of 0 has no noise to compare.
        _ if [c.of, c.against.than].iter().any(|cell| shown.rate(*cell) == Some(0.0)) => {
            "no frame passed".into()
        }
        None => "too few trials".into(),
        Some(Ministat { proven: false, .. }) => Cell::Long {
            text: format!("No difference proven at 95.0% confidence{mark}"),
            short: format!("not proven{mark}"),
        },
        Some(m) => format!("{:.2}% +/- {:.2}%{mark}", m.percent, m.percent_error).into(),
    }
}

/// The mark of a footnote, and its text.
fn footnote(disagreement: Disagreement) -> (&'static str, &'static str) {
    match disagreement {
        Disagreement::OnlyPairs => (
            "(a)",
            "ministat holds the averages of the two sets against each other, and the machine's drift is in both. The ratios of trials of one block, moments apart, prove the difference (table of cells).",
        ),
        Disagreement::OnlyMinistat => (
            "(b)",
            "ministat takes the trials for independent and normally distributed. The interval of the ratios paired by block assumes neither, allows for having been looked at several times, and includes 0 %: believe that one.",
        ),
        Disagreement::Opposite => (
            "(c)",
            "ministat and the ratios paired by block prove opposite differences: the machine's drift is in ministat's averages, so believe the ratios (table of cells).",
        ),
    }
}
