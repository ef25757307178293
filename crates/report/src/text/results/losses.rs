//! What was offered, what of it was lost and where, and what a frame cost the DUT.

use super::super::names::Names;
use super::super::numbers::{digits, rate, significant};
use super::super::page::{Page, Table};
use super::super::tables;
use super::Shown;

const NONE: &str = "-";

/// The sections; one sentence where nothing was lost.
pub fn losses(page: &mut Page, shown: &Shown<'_>) {
    if shown.loses() {
        table(page, shown);
    }
    let names = (0..shown.results.cells.len()).map(|cell| shown.name(cell)).collect();
    tables::losses(page, shown.summary, &Names::given(names));
}

fn table(page: &mut Page, shown: &Shown<'_>) {
    let (scale, unit) = shown.unit();
    let mut table = Table::default()
        .column("cell", "")
        .column("offered", unit)
        .column("received", unit)
        .column("lost", "%")
        .column("ns per", "frame")
        .column("", "limit");
    for row in shown.summary.rows.iter().filter(|r| r.valid_trials > 0) {
        let digits = digits(&row.received).clamp(3, 5);
        let paced = shown.campaign.slots.get(row.slot).is_none_or(|s| s.asked_fps.is_some());
        let cost = Some(row.ns_per_frame).filter(|ns| !paced && *ns > 0.0);
        table.row(vec![
            format!("{:>2} {}", row.slot + 1, shown.name(row.slot)),
            rate(row.offered, scale, digits),
            rate(row.received.median, scale, digits),
            shown.lost(row.slot),
            cost.map_or(NONE.into(), |ns| significant(ns, 3)),
            tables::limit(row.limit).into(),
        ]);
    }
    page.heading("Offered, received and lost");
    page.table(&table);
    let about =
        "Nanoseconds are those of a frame that the DUT took in, whether it passed it on or dropped it.";
    page.paragraph(about, super::Ink::Dim);
}
