//! The figures of the cells: load, cost and bandwidth, shares of line rate, latency, losses by place, and rules that met frames.

use super::pictures;
use super::shown::{Shown, has_rate};
use crate::prelude::*;
use linerate_measure::record::{DirectionRow, Stamped};
use linerate_wire::units::LINK_SPEEDS;

/// Most rows of the tables of load and latency. With more, a page shows only differences.
const MANY: usize = 40;

/// Most rows of the table of shares of line rates, which follow from the bit rate.
const FEW: usize = 12;

/// Figures of the cells other than rates.
pub fn figures(page: &mut Document, shown: &Shown<'_>) {
    let rows = rows(shown);
    if rows.len() <= FEW && !shown.is_of_end_hosts() && shown.sends_frames() {
        line_rates(page, shown, &rows);
    }
    if rows.len() <= MANY {
        latency(page, shown, &rows);
    }
    pictures::latencies(page, shown);
    losses(page, shown);
    hottest_rules(page, shown);
}

fn rows<'a>(shown: &Shown<'a>) -> Vec<&'a Row> {
    shown.rows().filter(|r| has_rate(r)).collect()
}

/// Offered load, loss, and cost of a frame.
pub fn load(page: &mut Document, shown: &Shown<'_>) {
    let rows = rows(shown);
    if rows.is_empty() || (rows.len() > MANY && !shown.loses()) {
        return;
    }
    let unit = shown.unit();
    let table = Table::of(rows.iter().copied())
        .column("cell", "", |r| shown.numbered(r.slot))
        .column("offered", unit.name, |r| {
            rate(r.offered, unit.scale, digits(&r.received))
        })
        .column("received", unit.name, |r| unit.median(&r.received))
        .column(shown.loss_head()[0], shown.loss_head()[1], |r| {
            share(r.loss_ratio)
        })
        .if_any("Gbit/s", "of objects", |r| {
            r.http.map(|http| number(http.payload / 1e9, 3))
        })
        .when(shown.sends_frames(), |table| {
            table
                .column("Gbit/s", "layer 1", |r| number(r.bits_layer_1 / 1e9, 3))
                .column("Gbit/s", "layer 2", |r| number(r.bits_layer_2 / 1e9, 3))
        })
        .if_any("ns per", shown.word(["frame", "conn.", "request"]), |r| {
            // The time between frames that were paced is no cost.
            let paced = shown.slot(r.slot).is_none_or(|s| s.asked_fps.is_some());
            (!paced && r.ns_per_frame > 0.0).then(|| number(r.ns_per_frame, 3))
        })
        .if_any("DUT's", "ns", |r| {
            r.dut_ns_per_frame
                .filter(|ns| *ns > 0.0)
                .map(|ns| number(ns, 3))
        })
        .column("", "limit", |r| limit(r.limit));
    page.section(
        shown.word([
            "Offered, received and lost; lengths with FCS",
            "Connections: offered (attempted), received (closed) and failed",
            "Requests: offered (made), received (answered) and failed",
        ]),
        table,
    );
    directions(page, shown, &rows);
    if shown.loses() && rows.iter().any(|row| row.ns_per_frame > 0.0) {
        page.note(
            shown.word([
                "ns per frame: the time divided by the frames that the DUT took in, forwarded or dropped.",
                "ns per connection: the time divided by the connections that the DUT took in, closed or failed.",
                "ns per request: the time divided by the requests that were made, answered or failed.",
            ]),
        );
    }
}

/// The figures of each direction, for cells with both.
fn directions(page: &mut Document, shown: &Shown<'_>, rows: &[&Row]) {
    let ways: Vec<(&Row, &DirectionRow)> = rows
        .iter()
        .flat_map(|row| row.directions.iter().map(|way| (*row, way)))
        .collect();
    if ways.is_empty() {
        return;
    }
    let unit = shown.unit();
    let equal = |row: &&&Row| match &row.directions[..] {
        [there, back] => {
            (there.offered - back.offered).abs() <= 0.01 * there.offered.max(back.offered)
        }
        _ => true,
    };
    let loads = if rows.iter().all(|row| equal(&row)) {
        "Both directions have the same offered load at the same time (RFC 2544, section 14)"
    } else {
        "Each side sends at the same time as fast as it can, and the loads are not equal, as RFC 2544, section 14 wants them: ask for a rate"
    };
    let table = Table::of(ways)
        .column("cell", "", |(row, _)| shown.numbered(row.slot))
        .column("direction", "", |(_, way)| way.direction.to_string())
        .column("offered", unit.name, |(_, way)| {
            rate(way.offered, unit.scale, digits(&way.received))
        })
        .column("received", unit.name, |(_, way)| unit.median(&way.received))
        .column("95 %", "interval", |(_, way)| unit.interval(&way.received))
        .column("lost", "%", |(_, way)| share(way.loss_ratio));
    page.section("Each direction", table);
    page.note(format!("{loads}; other tables have the sum of both. A rate that is asked for, and the load of a search, are those of each direction."));
}

/// The limit, short enough for a column.
pub fn limit(limit: Limit) -> Option<&'static str> {
    Some(match limit {
        Limit::Calibration => "no DUT",
        Limit::Dut => "DUT",
        Limit::DutDrops => "DUT drops",
        Limit::Tester => "tester",
        Limit::Noisy => "too noisy to tell",
        Limit::OfferedLoad => "as asked",
        Limit::Path => "path",
        Limit::Unknown => return None,
    })
}

/// How much of a link each cell with a DUT fills, and would fill with simple IMIX at the same frame rate.
fn line_rates(page: &mut Document, shown: &Shown<'_>, rows: &[&Row]) {
    let tester = |r: &&&Row| shown.slot(r.slot).is_none_or(|slot| slot.is_calibration());
    if rows.is_empty() {
        return;
    }
    if shown.is_whole() {
        page.heading("Shares of line rates");
    }
    let alone = rows.iter().all(|r| tester(&r));
    let lines = rows.iter().filter(|r| alone || !tester(r)).flat_map(|row| {
        let imix = "   simple IMIX, same frame rate".to_string();
        [
            (shown.numbered(row.slot), &row.line_share),
            (imix, &row.line_share_imix),
        ]
    });
    let lines: Vec<_> = lines.collect();
    let above = lines
        .iter()
        .any(|(_, shares)| shares.values().any(|s| *s > 1.0));
    let table = Table::of(lines).column("% of line rate", "", |(name, _)| name.clone());
    page.table(LINK_SPEEDS.iter().fold(table, |table, (speed, _)| {
        table.column(speed, "", |(_, shares)| {
            shares.get(*speed).map(|s| share(*s))
        })
    }));
    if above {
        page.note("Above 100: more than a link of this speed carries.");
    }
}

/// Latency of the stamped frames.
fn latency(page: &mut Document, shown: &Shown<'_>, rows: &[&Row]) {
    let stamped = rows
        .iter()
        .filter_map(|r| r.stamped.clone())
        .reduce(|all, one| all.and(&one));
    let rows: Vec<&&Row> = rows.iter().filter(|r| !r.latency_ns.is_empty()).collect();
    if rows.is_empty() {
        return;
    }
    page.heading(shown.word([
        "Latency from generator to receiver",
        "Time to establish a connection",
        "Time from a request to its answer",
    ]));
    let table = Table::of(rows.iter().copied()).column("", "", |r| shown.numbered(r.slot));
    let cell = |ns: u64| span(ns as f64);
    let table = ["p50", "p99", "p99.9", "p99.99"]
        .into_iter()
        .fold(table, |table, q| {
            table.if_any(q, "", |r| r.latency_ns.get(q).map(|ns| cell(*ns)))
        });
    page.table(
        table
            .if_any("clocks", "+/-", |r| compared(r).map(cell))
            .if_any("PDV", "p99.9", |r| {
                r.latency_ns.get("pdv").map(|ns| cell(*ns))
            }),
    );
    if let Some(note) = answers(shown) {
        return page.note(note);
    }
    let two_clocks = rows.iter().any(|r| compared(r).is_some());
    let clocks = if two_clocks {
        "two clocks, compared before and after each trial"
    } else {
        "one clock"
    };
    let part = match shown.campaign.asked.mode {
        Mode::Inline => format!(
            "Frames go in batches of {}{}; in inline mode, the latency includes the wait for the batch.",
            shown.campaign.asked.batch,
            when(
                shown.campaign.asked.batch > 1,
                " (smaller where a frame takes more than 30 us)"
            )
        ),
        Mode::Threaded | Mode::Hosts | Mode::EndHosts => {
            "The latency includes the wait in the DUT's queues.".into()
        }
    };
    let by = stamped
        .as_ref()
        .filter(|stamped| stamped.frames > 0)
        .map(stamped_by);
    let by = by.as_deref().unwrap_or(if rows.iter().any(|r| r.timed_by_client) {
        "Of one connection in 64, from its SYN to the SYN/ACK that reaches the client, because the server is another machine, or from a datagram to its answer"
    } else {
        shown.word(["Frames with a time stamp", "Of one connection in 64, from its SYN to the ACK that reaches the server (RFC 3511, appendix B), or from a datagram to its answer", ""])
    });
    let pdv = match shown.opens_connections() {
        true => "a connection's time minus the least time of the trial",
        false => "a frame's latency minus the least latency of the trial",
    };
    page.note(format!("{by}, {clocks}. PDV (RFC 5481) is {pdv}. {part}"));
    let shorter = |r: &&&Row| {
        r.latency_ns
            .get("p50")
            .is_some_and(|ns| *ns > 0 && (*ns as f64) < r.ns_per_frame)
    };
    let closed_loop = shown.campaign.asked.mode == Mode::Inline && shown.sends_frames();
    if closed_loop && rows.iter().any(shorter) {
        page.note("The time per frame is longer than this latency: the tester works before it stamps a frame and after the frame has arrived.");
    }
    for why in stamped.iter().flat_map(|stamped| &stamped.why) {
        page.note(format!("No stamps of hardware: {why}."));
    }
    if two_clocks {
        clock_errors(page, shown, &rows);
    }
}

/// How the times of answers were found, with what else both ends counted.
fn answers(shown: &Shown<'_>) -> Option<String> {
    let rows: Vec<_> = shown.rows().filter_map(|row| row.http).collect();
    let late: u64 = rows.iter().map(|row| row.errors.late).sum();
    let again = [0, 1].map(|end| rows.iter().map(|row| row.again[end]).sum::<u64>());
    let [client, server] = again.map(grouped);
    let late = grouped(late);
    (!rows.is_empty()).then(|| format!("By wrk, from a request to the last byte of its answer, without the handshake: medians of the trials. wrk adds requests that it would have made meanwhile to answers that took long. Of all answers {late} took longer than 2 s. Segments of TCP sent again: {client} by clients, {server} by servers."))
}

/// The error of two clocks that were compared.
fn compared(row: &Row) -> Option<u64> {
    row.clock_error_ns.filter(|ns| *ns > 0)
}

fn stamped_by(stamped: &Stamped) -> String {
    let frames = stamped.frames;
    match stamped.by_cards {
        [true, true] => format!("Of {frames} frames that the cards stamped at both ends"),
        [false, false] => {
            format!("Of {frames} frames that the cards' drivers stamped at both ends")
        }
        [sent, _] => {
            let card = if sent { "sending" } else { "receiving" };
            format!("Of {frames} frames, stamped by the {card} card and by the other one's driver")
        }
    }
}

/// How far the latencies by two clocks can be believed.
fn clock_errors(page: &mut Document, shown: &Shown<'_>, rows: &[&&Row]) {
    page.note("clocks, +/-: error of the comparison, and so of the latencies. PDV does not depend on the offset of the clocks, only on their drift within a trial.");
    let is_unknown = |r: &&&&Row| compared(r) >= r.latency_ns.get("p50").copied();
    let unknown = rows.iter().filter(is_unknown);
    let unknown = unknown.map(|r| shown.numbered(r.slot)).joined(", ");
    if !unknown.is_empty() {
        page.warn(format!(
            "The error of the clocks is as large as the latency of {unknown}: only PDV is meaningful there."
        ));
    }
}

/// Where frames were lost, and the order they came in.
fn losses(page: &mut Document, shown: &Shown<'_>) {
    let valid: Vec<&Row> = shown.rows().filter(|r| r.valid_trials > 0).collect();
    let lossy = |r: &&&Row| r.loss_ratio > 0.0 || r.losses.iter().any(|l| l.frames > 0);
    if valid.iter().any(|r| lossy(&r)) {
        page.heading(shown.word([
            "Losses by place, in valid trials",
            "Failed connections by the frame that did not arrive, in valid trials",
            "Failed requests by the client's error, in valid trials",
        ]));
    } else if !valid.is_empty() {
        page.gap();
        page.say(shown.word([
            "No frame was lost in a valid trial.",
            "No connection failed in a valid trial.",
            "No request failed in a valid trial.",
        ]));
    }
    for row in valid.iter().filter(lossy) {
        let of = shown.word(["sent frames", "attempted connections", "requests made"]);
        let (name, lost) = (shown.name(row.slot), percent(row.loss_ratio));
        page.entry("", format!("{name}: {lost} % of the {of}"));
        for loss in row.losses.iter().filter(|l| l.frames > 0) {
            page.entry(&format!("  {:>15}  ", grouped(loss.frames)), &loss.place);
        }
    }
    for row in valid.iter().filter(|r| r.reordered > 0) {
        let (name, frames) = (shown.name(row.slot), grouped(row.reordered));
        page.say(format!("{name}: {frames} frames arrived out of order"));
    }
}

/// The rules of users' files that matched the most frames, for each cell that has such a file.
fn hottest_rules(page: &mut Document, shown: &Shown<'_>) {
    let valid = shown.rows().filter(|row| row.valid_trials > 0);
    let with_files = valid.filter_map(|row| Some((row, shown.slot(row.slot)?.rule_counters?)));
    let passed = passed(shown);
    let heading = "Rules that matched the most frames, in % of the frames sent";
    page.each(heading, with_files, |page, (row, counters)| {
        let passed = passed.iter().find(|(_, slots)| slots.contains(&row.slot));
        let passed = passed.map_or(String::new(), |(text, _)| format!(", rules: {text}"));
        page.say(format!("{}{passed}", shown.name(row.slot)));
        for (rule, share) in &row.rules {
            page.entry(&format!("{:>8.2}  ", 100.0 * share), rule);
        }
        if row.rules.is_empty() {
            let counters = if counters {
                "no rule with a counter matched a frame"
            } else {
                "the file has no counters"
            };
            page.entry("          ", counters);
        }
    });
}

/// How far frames go through rule files, with the results that it holds for.
pub fn passed(shown: &Shown<'_>) -> Vec<(String, Vec<usize>)> {
    let each = shown.word(["per frame", "per connection", "per request"]);
    let known = shown.summary.rules.iter().filter_map(|of| {
        let mean = significant(of.by_frame()?, 3);
        let strays = shown
            .slot(of.slot)?
            .connections()
            .is_some_and(|spec| spec.has_strays());
        let [reached, rules] = [of.reached, of.rules].map(grouped);
        let share = percent(of.reached as f64 / of.rules.max(1) as f64);
        let text = match of.looks {
            0 => format!("none of {rules} rules reached"),
            // Rules are checked for the SYNs of no connection as well.
            _ if strays => format!("{reached} of {rules} rules reached ({share} %)"),
            _ => format!(
                "{mean} rules checked {each}; {reached} of {rules} rules reached ({share} %)"
            ),
        };
        Some((text, of.slot))
    });
    together(known)
}
