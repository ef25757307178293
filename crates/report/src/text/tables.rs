//! The figures of a verdict: rates, shares of line rate, comparisons, latency, losses.

use super::has_rate;
use super::names::Names;
use super::numbers::{
    counted, digits, grouped, number, percent, rate, rate_interval, rate_unit, share, time,
};
use super::results::words::{dropping, sentence};
use crate::document::{Cell, Document, Table, Tone};
use linerate_measure::record::{Campaign, Slot, Summary};
use linerate_measure::summary::{Comparison, Limit, Row};
use linerate_plan::settings::Mode;
use linerate_plan::units::LINK_SPEEDS;

/// One row per slot.
pub fn rates(page: &mut Document, campaign: &Campaign, summary: &Summary, names: &Names) {
    let valid = || summary.rows.iter().filter(|r| has_rate(r));
    let (scale, unit) = rate_unit(valid().map(|r| r.received.median.max(r.offered)).fold(0.0, f64::max));
    let figures = |r: &&Row| has_rate(r).then(|| digits(&r.received).clamp(4, 5));
    let table = Table::of(&summary.rows)
        .column("", "frame lengths with FCS", |r| names.get(r.slot))
        .column("offered", unit, |r| Some(rate(r.offered, scale, figures(r)?)))
        .column("received", unit, |r| Some(rate(r.received.median, scale, figures(r)?)))
        .column("95 %", "interval", |r| match figures(r) {
            Some(digits) => rate_interval(&r.received, scale, digits),
            None if r.valid_trials == 0 => "no valid trial".into(),
            None => "no window".into(),
        })
        .column("lost", "%", |r| figures(r).map(|_| share(r.loss_ratio)))
        .column("Gbit/s", "layer 1", |r| figures(r).map(|_| number(r.bits_layer_1 / 1e9, 3)))
        .column("Gbit/s", "layer 2", |r| figures(r).map(|_| number(r.bits_layer_2 / 1e9, 3)))
        .column("ns per", "frame", |r| {
            // The time between frames that were paced is no cost.
            let paced = campaign.slots.get(r.slot).is_some_and(|s| s.asked_fps.is_some());
            figures(r).filter(|_| !paced && r.ns_per_frame > 0.0).map(|_| number(r.ns_per_frame, 3))
        })
        .if_any("of it", "DUT", |r| r.dut_ns_per_frame.filter(|_| has_rate(r)).map(|ns| number(ns, 3)))
        .column("trials", "valid", |r| format!("{}/{}", r.valid_trials, r.trials))
        .column("", "limit", |r| limit(r.limit));
    page.table(table);
}

/// What the limit was, in a column.
pub fn limit(limit: Limit) -> Option<&'static str> {
    Some(match limit {
        Limit::Calibration => "no DUT",
        Limit::Dut => "DUT",
        Limit::DutDrops => "DUT drops",
        Limit::Tester => "tester",
        Limit::OfferedLoad => "as asked",
        Limit::Unknown => return None,
    })
}

/// How much of a link each slot fills, and would fill with simple IMIX at the same frame rate.
pub fn line_rates(page: &mut Document, campaign: &Campaign, summary: &Summary, names: &Names) {
    let with_dut = campaign.slots.iter().any(|s| !s.is_calibration());
    let shown = |r: &&Row| {
        let calibration = campaign.slots.get(r.slot).is_none_or(Slot::is_calibration);
        has_rate(r) && calibration != with_dut
    };
    let rows: Vec<&Row> = summary.rows.iter().filter(shown).collect();
    if rows.is_empty() {
        return;
    }
    let lines = rows.iter().flat_map(|row| {
        let imix = ("  simple IMIX, same frame rate", &row.line_share_imix);
        [(names.get(row.slot), &row.line_share), imix]
    });
    let table = Table::of(lines).column("% of line rate", "", |(name, _)| *name);
    page.table(LINK_SPEEDS.iter().fold(table, |table, (speed, _)| {
        table.column(speed, "", |(_, shares)| shares.get(*speed).map(|s| share(*s)))
    }));
}

/// Each slot against its baseline, in words.
pub fn comparisons(page: &mut Document, campaign: &Campaign, summary: &Summary, names: &Names) {
    let compared: Vec<_> = campaign.slots.iter().filter_map(|s| Some((s.id, s.baseline?))).collect();
    if compared.is_empty() {
        return;
    }
    page.heading("Comparisons, paired by block");
    for (slot, with) in compared {
        let found = summary.comparisons.iter().find(|c| (c.slot, c.with) == (slot, with));
        let text = match found {
            Some(c) => comparison(campaign, summary, c, names),
            None => format!(
                "{} and {} cannot be compared: no block in which both are valid",
                names.get(slot),
                names.get(with)
            ),
        };
        page.item("- ", &text, Tone::Plain);
    }
    let split = |c: &Comparison| {
        let row = summary.rows.iter().find(|r| r.slot == c.slot);
        c.proven_different() && row.is_some_and(|r| r.dut_ns_per_frame.is_some())
    };
    if summary.comparisons.iter().any(split) {
        let note =
            "The tester's own part is in both rates; between the DUTs alone the differences are larger.";
        page.paragraph(note, Tone::Note);
    }
}

fn comparison(campaign: &Campaign, summary: &Summary, c: &Comparison, names: &Names) -> String {
    let (slot, with) = (names.get(c.slot), names.get(c.with));
    let row = |slot: usize| summary.rows.iter().find(|r| r.slot == slot);
    match (c.cost, row(c.slot), row(c.with)) {
        (Some(cost), Some(of), Some(than)) => dropping((slot, of), (with, than), &cost, campaign.asked.mode),
        _ => {
            let text = sentence(slot, with, &c.ratio, c.proven_different());
            format!("{text}, {}", counted(c.ratio.n, "block"))
        }
    }
}

/// Latency of the stamped frames.
pub fn latency(page: &mut Document, campaign: &Campaign, summary: &Summary, names: &Names) {
    let rows: Vec<&Row> = summary.rows.iter().filter(|r| !r.latency_ns.is_empty()).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("Latency from generator to receiver");
    let table = Table::of(rows).column("", "", |r| names.get(r.slot));
    page.table(["p50", "p99", "p99.9"].into_iter().fold(table, |table, q| {
        table.column(q, "", |r| {
            let ns = *r.latency_ns.get(q)? as f64;
            Some(Cell::Number { value: ns, text: time(ns) })
        })
    }));
    let note = match campaign.asked.mode {
        Mode::Inline => format!(
            "Of stamped frames. Frames go in batches of {}: in inline mode the wait for the batch is part of it.",
            campaign.asked.batch
        ),
        Mode::Threaded | Mode::Hosts => {
            "Of stamped frames; what waits in the DUT's queues is part of it.".into()
        }
    };
    page.paragraph(&note, Tone::Note);
}

/// Where frames were lost, and the order they came in.
pub fn losses(page: &mut Document, summary: &Summary, names: &Names) {
    let valid: Vec<&Row> = summary.rows.iter().filter(|r| r.valid_trials > 0).collect();
    let lossy = |r: &&&Row| r.loss_ratio > 0.0 || r.losses.iter().any(|(_, n)| *n > 0);
    if valid.iter().any(|r| lossy(&r)) {
        page.heading("Losses by place, in valid trials");
    } else if !valid.is_empty() {
        page.gap();
        page.paragraph("No frame was lost in a valid trial.", Tone::Plain);
    }
    for row in valid.iter().filter(lossy) {
        let name = names.get(row.slot);
        page.item("", &format!("{name}: {} % of the sent frames", percent(row.loss_ratio)), Tone::Plain);
        for (place, frames) in row.losses.iter().filter(|(_, n)| *n > 0) {
            page.item(&format!("  {:>15}  ", grouped(*frames)), place, Tone::Plain);
        }
    }
    for row in valid.iter().filter(|r| r.reordered > 0) {
        let text = format!("{}: {} frames arrived out of order", names.get(row.slot), grouped(row.reordered));
        page.paragraph(&text, Tone::Plain);
    }
}
