//! What was offered, what of it was lost and where, and what a frame cost the DUT.

use super::super::names::Names;
use super::super::numbers::{digits, number, rate};
use super::super::tables;
use super::Shown;
use crate::document::{Document, Table, Tone};
use linerate_measure::summary::Row;

/// The sections; one sentence where nothing was lost.
pub fn losses(page: &mut Document, shown: &Shown<'_>) {
    if shown.loses() {
        table(page, shown);
    }
    let names = (0..shown.results.cells.len()).map(|cell| shown.name(cell)).collect();
    tables::losses(page, shown.summary, &Names::given(names));
}

fn table(page: &mut Document, shown: &Shown<'_>) {
    let (scale, unit) = shown.unit();
    let digits = |r: &&Row| digits(&r.received).clamp(3, 5);
    let table = Table::of(shown.summary.rows.iter().filter(|r| r.valid_trials > 0))
        .column("cell", "", |r| format!("{:>2} {}", r.slot + 1, shown.name(r.slot)))
        .column("offered", unit, |r| rate(r.offered, scale, digits(r)))
        .column("received", unit, |r| rate(r.received.median, scale, digits(r)))
        .column("lost", "%", |r| shown.lost(r.slot))
        .column("ns per", "frame", |r| {
            let paced = shown.campaign.slots.get(r.slot).is_none_or(|s| s.asked_fps.is_some());
            (!paced && r.ns_per_frame > 0.0).then(|| number(r.ns_per_frame, 3))
        })
        .column("", "limit", |r| tables::limit(r.limit));
    page.heading("Offered, received and lost");
    page.table(table);
    let about =
        "Nanoseconds are those of a frame that the DUT took in, whether it passed it on or dropped it.";
    page.paragraph(about, Tone::Note);
}
