//! The figures of a verdict: rates, shares of line rate, comparisons, latency, losses.

use super::has_rate;
use super::names::Names;
use super::numbers::{counted, digits, grouped, percent, rate, rate_interval, rate_unit, significant, time};
use super::page::{Ink, Page, Table};
use super::results::words::dropping;
use linerate_measure::record::{Campaign, Slot, Summary};
use linerate_measure::summary::{Comparison, Limit, Row};
use linerate_plan::settings::Mode;
use linerate_plan::units::LINK_SPEEDS;
use linerate_stats::Estimate;

const NONE: &str = "-";

/// One row per slot.
pub fn rates(page: &mut Page, campaign: &Campaign, summary: &Summary, names: &Names) {
    let valid = || summary.rows.iter().filter(|r| has_rate(r));
    let (scale, unit) = rate_unit(valid().map(|r| r.received.median.max(r.offered)).fold(0.0, f64::max));
    let with_dut = valid().any(|r| r.dut_ns_per_frame.is_some());
    let mut table = Table::default()
        .column("", "frame lengths with FCS")
        .column("offered", unit)
        .column("received", unit)
        .column("95 %", "interval")
        .column("lost", "%")
        .column("Gbit/s", "layer 1")
        .column("Gbit/s", "layer 2")
        .column("ns per", "frame");
    if with_dut {
        table = table.column("of it", "DUT");
    }
    table = table.column("trials", "valid").column("", "limit");
    for row in &summary.rows {
        let mut cells = vec![names.get(row.slot).to_string()];
        cells.extend(rate_cells(row, campaign.slots.get(row.slot), scale));
        if with_dut {
            cells.push(
                row.dut_ns_per_frame.filter(|_| has_rate(row)).map_or(NONE.into(), |ns| significant(ns, 3)),
            );
        }
        cells.extend([format!("{}/{}", row.valid_trials, row.trials), limit(row.limit).into()]);
        table.row(cells);
    }
    page.gap();
    page.table(&table);
}

fn rate_cells(row: &Row, slot: Option<&Slot>, scale: f64) -> [String; 7] {
    if !has_rate(row) {
        let why = if row.valid_trials == 0 { "no valid trial" } else { "no window" };
        return [NONE, NONE, why, NONE, NONE, NONE, NONE].map(String::from);
    }
    let paced = slot.is_some_and(|s| s.asked_fps.is_some());
    let digits = digits(&row.received).clamp(4, 5);
    [
        rate(row.offered, scale, digits),
        rate(row.received.median, scale, digits),
        rate_interval(&row.received, scale, digits).unwrap_or_else(|| "too few".into()),
        percent(row.loss_ratio),
        significant(row.bits_layer_1 / 1e9, 3),
        significant(row.bits_layer_2 / 1e9, 3),
        // The time between frames that were paced is no cost.
        if paced || row.ns_per_frame <= 0.0 { NONE.into() } else { significant(row.ns_per_frame, 3) },
    ]
}

/// What the limit was, in a column.
pub fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Calibration => "no DUT",
        Limit::Dut => "DUT",
        Limit::DutDrops => "DUT drops",
        Limit::Tester => "tester",
        Limit::OfferedLoad => "as asked",
        Limit::Unknown => NONE,
    }
}

/// How much of a link each slot fills, and would fill with simple IMIX at the same frame rate.
pub fn line_rates(page: &mut Page, campaign: &Campaign, summary: &Summary, names: &Names) {
    let with_dut = campaign.slots.iter().any(|s| !s.is_calibration());
    let shown = |r: &&Row| {
        let calibration = campaign.slots.get(r.slot).is_none_or(Slot::is_calibration);
        has_rate(r) && calibration != with_dut
    };
    let rows: Vec<&Row> = summary.rows.iter().filter(shown).collect();
    if rows.is_empty() {
        return;
    }
    let mut table = Table::default().column("% of line rate", "");
    for (speed, _) in LINK_SPEEDS {
        table = table.column(speed, "");
    }
    for row in rows {
        for (name, shares) in
            [(names.get(row.slot), &row.line_share), ("  simple IMIX, same frame rate", &row.line_share_imix)]
        {
            let share = |speed: &str| shares.get(speed).map_or(NONE.into(), |s| percent(*s));
            let mut cells = vec![name.to_string()];
            cells.extend(LINK_SPEEDS.iter().map(|(speed, _)| share(speed)));
            table.row(cells);
        }
    }
    page.gap();
    page.table(&table);
}

/// Each slot against its baseline, in words.
pub fn comparisons(page: &mut Page, campaign: &Campaign, summary: &Summary, names: &Names) {
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
        page.item("- ", &text, Ink::Plain);
    }
    let split = |c: &Comparison| {
        let row = summary.rows.iter().find(|r| r.slot == c.slot);
        c.proven_different() && row.is_some_and(|r| r.dut_ns_per_frame.is_some())
    };
    if summary.comparisons.iter().any(split) {
        let note =
            "The tester's own part is in both rates; between the DUTs alone the differences are larger.";
        page.paragraph(note, Ink::Dim);
    }
}

fn comparison(campaign: &Campaign, summary: &Summary, c: &Comparison, names: &Names) -> String {
    let (slot, with) = (names.get(c.slot), names.get(c.with));
    let row = |slot: usize| summary.rows.iter().find(|r| r.slot == slot);
    if let (Some(cost), Some(of), Some(than)) = (c.cost, row(c.slot), row(c.with)) {
        return dropping((slot, of), (with, than), &cost, campaign.asked.mode);
    }
    let blocks = counted(c.ratio.n, "block");
    let Estimate { median, low, high, .. } = c.ratio;
    let percents = |r: f64| 100.0 * (r - 1.0);
    let (Some(low), Some(high)) = (low, high) else {
        let median = percents(median);
        return format!(
            "{slot} against {with}: {median:+.1} % in {blocks}, too few for an interval; nothing proven"
        );
    };
    let places = match 100.0 * (high - low) {
        w if w >= 10.0 => 0,
        w if w >= 0.5 => 1,
        w if w >= 0.05 => 2,
        _ => 3,
    };
    let [m, l, h] = [median, low, high].map(percents);
    match c.proven_different() {
        false => {
            format!(
                "no difference proven between {slot} and {with} ({l:+.places$}..{h:+.places$} %), {blocks}"
            )
        }
        true if median >= 2.0 => {
            format!(
                "{slot} is {median:.2} times as fast as {with}, 95 % interval {low:.2}..{high:.2} times, {blocks}"
            )
        }
        true => {
            let (m, l, h, word) = if m < 0.0 { (-m, -h, -l, "slower") } else { (m, l, h, "faster") };
            format!(
                "{slot} is {m:.places$} % {word} than {with}, 95 % interval {l:.places$}..{h:.places$} %, {blocks}"
            )
        }
    }
}

/// Latency of the stamped frames.
pub fn latency(page: &mut Page, campaign: &Campaign, summary: &Summary, names: &Names) {
    let mut table = Table::default().column("", "").column("p50", "").column("p99", "").column("p99.9", "");
    let rows: Vec<&Row> = summary.rows.iter().filter(|r| !r.latency_ns.is_empty()).collect();
    for row in &rows {
        let value = |q: &str| row.latency_ns.get(q).map_or(NONE.into(), |ns| time(*ns as f64));
        table.row(vec![names.get(row.slot).into(), value("p50"), value("p99"), value("p99.9")]);
    }
    if rows.is_empty() {
        return;
    }
    page.heading("Latency from generator to receiver");
    page.table(&table);
    let note = match campaign.asked.mode {
        Mode::Inline => format!(
            "Of stamped frames. Frames go in batches of {}: in inline mode the wait for the batch is part of it.",
            campaign.asked.batch
        ),
        Mode::Threaded | Mode::Hosts => {
            "Of stamped frames; what waits in the DUT's queues is part of it.".into()
        }
    };
    page.paragraph(&note, Ink::Dim);
}

/// Where frames were lost, and the order they came in.
pub fn losses(page: &mut Page, summary: &Summary, names: &Names) {
    let valid: Vec<&Row> = summary.rows.iter().filter(|r| r.valid_trials > 0).collect();
    let lossy = |r: &&&Row| r.loss_ratio > 0.0 || r.losses.iter().any(|(_, n)| *n > 0);
    if valid.iter().any(|r| lossy(&r)) {
        page.heading("Losses by place, in valid trials");
    } else if !valid.is_empty() {
        page.gap();
        page.paragraph("No frame was lost in a valid trial.", Ink::Plain);
    }
    for row in valid.iter().filter(lossy) {
        let name = names.get(row.slot);
        page.item("", &format!("{name}: {} % of what was sent", percent(row.loss_ratio)), Ink::Plain);
        for (place, frames) in row.losses.iter().filter(|(_, n)| *n > 0) {
            page.item(&format!("  {:>15}  ", grouped(*frames)), place, Ink::Plain);
        }
    }
    for row in valid.iter().filter(|r| r.reordered > 0) {
        let text = format!("{}: {} frames arrived out of order", names.get(row.slot), grouped(row.reordered));
        page.paragraph(&text, Ink::Plain);
    }
}
