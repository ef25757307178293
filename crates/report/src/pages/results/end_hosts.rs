//! TCP between end hosts: throughput and latency, in the vocabulary of RFC 6349.

use super::figures::limit;
use super::shown::Shown;
use crate::prelude::*;
use linerate_measure::record::{Goodput, PathOf};

/// Cells with a path and a valid trial.
fn cells<'a>(shown: &Shown<'a>) -> Vec<(&'a Row, &'a Slot, &'a PathOf, &'a Goodput)> {
    let rows = shown.rows();
    let of = |row: &'a Row| {
        let slot = shown.slot(row.slot)?;
        Some((row, slot, slot.path.as_ref()?, row.tcp.as_ref()?))
    };
    rows.filter_map(of).collect()
}

/// `941 Mbit/s`.
pub fn bits(bits: f64, digits: usize) -> String {
    format!("{} Mbit/s", significant(bits / 1e6, digits))
}

/// Throughput, latency and limit of the first cell.
pub fn sentence(shown: &Shown<'_>) -> String {
    let all = cells(shown);
    let Some((row, slot, path, tcp)) = all.iter().find(|(_, slot, ..)| !slot.is_calibration())
    else {
        return "No valid trial of the end hosts, so no figure.".into();
    };
    let few = || {
        format!(
            "{}, too few for an interval",
            counted(row.valid_trials, "valid trial")
        )
    };
    let of = interval(&tcp.bits, 1e6, digits(&tcp.bits));
    let of = of.map_or_else(few, |interval| format!("95 % interval {interval}"));
    let product = path.product().map_or(String::new(), |bytes| {
        format!(", a bandwidth-delay product of {}", size(bytes))
    });
    let why = match row.limit {
        Limit::Path => "The path was the limit: TCP fills it.".to_string(),
        Limit::Dut => "The hosts were the limit, not the path.".into(),
        Limit::Tester => {
            "Without delay and rate they carry little more: the tester may be the limit.".into()
        }
        Limit::Noisy => {
            "The trials scatter too much to tell whether the tester was the limit.".into()
        }
        _ => String::new(),
    };
    let over = path
        .rate
        .map_or("no set rate".into(), |rate| bits(rate, 3) + " of layer 1");
    format!(
        "{}: TCP carries {} of payload ({of}) over {over} at {}{product}{}. {why}",
        shown.name(slot.id),
        bits(tcp.bits.median, digits(&tcp.bits)),
        time(path.rtt_ns as f64),
        shown.spoiled(slot.id, [" (", ")"]),
    )
}

/// The answer, and whether the tester can show it.
pub fn answer(page: &mut Document, shown: &Shown<'_>) {
    page.answer(sentence(shown));
    let all = cells(shown);
    let Some((.., path, _)) = all.iter().find(|(_, slot, ..)| !slot.is_calibration()) else {
        return;
    };
    let most = path
        .achievable()
        .map_or(f64::INFINITY, |frames| path.goodput(frames));
    let alone = all.iter().find(|(_, slot, ..)| slot.is_calibration());
    match alone {
        Some((.., alone)) if alone.bits.median < most => page.warn(format!(
            "The path without delay and rate carries {} of payload between these hosts, less than the {} that would fill the path: this machine cannot show whether TCP fills it.",
            bits(alone.bits.median, 3),
            bits(most, 3)
        )),
        _ => {}
    }
}

/// Bytes as people say them.
fn size(bytes: f64) -> String {
    match bytes {
        v if v >= 1e6 => format!("{} MB", significant(v / 1e6, 3)),
        v => format!("{} kB", significant(v / 1e3, 3)),
    }
}

/// Throughput and latency in a few columns.
pub fn short(shown: &Shown<'_>) -> Table {
    let rows = cells(shown);
    Table::of(&rows)
        .column("", "", |(row, ..)| shown.name(row.slot))
        .column("TCP", "Mbit/s", |(.., tcp)| {
            number(tcp.bits.median / 1e6, 4)
        })
        .column("95 %", "interval", |(.., tcp)| {
            rate_interval(&tcp.bits, 1e6, digits(&tcp.bits))
        })
        .column("of the", "most %", |(.., tcp)| {
            tcp.achievable.map(|most| share(tcp.bits.median / most))
        })
        .column("RTT", "no load", |(.., tcp)| span(tcp.idle_ns))
        .if_any("RTT", "loaded", |(.., tcp)| tcp.loaded_ns.map(span))
        .into()
}

/// The table of throughput and latency.
pub fn tcp(page: &mut Document, shown: &Shown<'_>) {
    let rows = cells(shown);
    if rows.is_empty() {
        return;
    }
    let megabits = |bits: f64| number(bits / 1e6, 4);
    let table = Table::of(&rows)
        .column("cell", "", |(row, ..)| shown.numbered(row.slot))
        .column("path", "RTT set", |(_, _, path, _)| {
            span(path.rtt_ns as f64)
        })
        .column("RTT", "no load", |(.., tcp)| span(tcp.idle_ns))
        .if_any("RTT", "loaded", |(.., tcp)| tcp.loaded_ns.map(span))
        .if_any("buffer", "delay %", |(.., tcp)| {
            tcp.buffer_delay
                .map(|share| Cell::number(100.0 * share, percent(share.max(0.0))))
        })
        .column("path", "Mb/s L1", |(_, _, path, _)| path.rate.map(megabits))
        .column("most", "Mb/s L4", |(.., tcp)| tcp.achievable.map(megabits))
        .column("TCP", "Mb/s L4", |(.., tcp)| megabits(tcp.bits.median))
        .column("of", "most %", |(.., tcp)| {
            tcp.achievable.map(|most| share(tcp.bits.median / most))
        })
        .if_any("in", "flight", |(.., tcp)| {
            tcp.in_flight.map(|bytes| Cell::number(bytes, size(bytes)))
        })
        .if_any("effi-", "cient %", |(.., tcp)| tcp.efficiency.map(share))
        .column("path", "late by", |(.., tcp)| span(tcp.late_ns))
        .optional("", "limit", |(row, ..)| limit(row.limit));
    page.section("TCP: throughput and latency", table);
    page.note("L1: with preamble, FCS and gap. L4: payload of TCP, which is goodput; the most is that of full segments (RFC 6349, section 4.1.1). RTT without load: handshakes; under load: as the sender's kernel smooths it. Buffer delay and efficiency: RFC 6349, sections 4.2 and 4.3. Late: after the time at which the path should have let a frame go.");
}
