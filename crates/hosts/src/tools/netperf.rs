//! netperf and netserver: command lines, and netperf's output with `-k` and `-D`.
//!
//! `-k` asks for lines `NAME=value`; `-D 1` for an interim result each second, if netperf was built with it. A UDP_STREAM test
//! has both ends' counts of calls, each a datagram: their difference is the loss.

use super::fault::{FaultKind, Signs};
use super::monitor::{Parse, Report, Sample, State};
use super::{Invocation, Refusable, Side, Task, Words};
use linerate_wire::{EndpointRange, Transport};
use std::net::IpAddr;

/// The values asked for.
const KEYS: &str = "ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS,LOCAL_SEND_CALLS,LOCAL_BYTES_SENT,REMOTE_RECV_CALLS,REMOTE_BYTES_RECVD";
const MARGIN_S: u32 = 15;

pub fn generator(task: &Task) -> Refusable {
    let [from, to] = one_flow(task)?;
    if task.load.rate.is_some() {
        let what =
            "send at a rate, as it is usually built: leave the rate out, or use iperf3 or pkt-gen";
        return Err(what.into());
    }
    let udp = task.traffic.frame.transport == Transport::Udp;
    let payload = task.payload();
    if udp && payload == 0 {
        return Err("send datagrams without payload".into());
    }
    let command = Words::new(["netperf"])
        .option("-H", to)
        .option("-L", from)
        .option("-t", if udp { "UDP_STREAM" } else { "TCP_STREAM" })
        .option("-l", task.seconds())
        .option("-D", 1)
        .option("-P", 0)
        .word("--");
    let command = match udp {
        // Without -R, netperf binds its socket to the interface's network and refuses to be routed.
        true => command.option("-m", payload).option("-R", 1),
        false => command.option("-G", payload),
    };
    let [source, destination] = task.ends().map(EndpointRange::first_port);
    let command = command
        .option("-P", format!("{source},{destination}"))
        .option("-k", KEYS);
    let limit_s = task.seconds() + MARGIN_S;
    Ok(Invocation::bounded("INT", 1, limit_s, command))
}

pub fn receiver(task: &Task) -> Refusable {
    let [_, to] = one_flow(task)?;
    // -D: not a daemon, so that it goes with its deadline.
    let command = Words::new(["netserver", "-D"]).option("-L", to);
    let limit_s = task.seconds() + task.link_wait_s + 2 * MARGIN_S;
    Ok(Invocation::bounded("TERM", 1, limit_s, command))
}

fn one_flow(task: &Task) -> Refusable<[IpAddr; 2]> {
    let ends = task.through_the_stack()?;
    match task.traffic.flows.len() == 1 && task.threads == 1 {
        true => Ok(ends),
        false => Err("send more than one flow: use iperf3, pkt-gen or trafgen".into()),
    }
}

/// Faults in netperf's own words, in lower case.
pub const FAULTS: &Signs = &[
    (
        FaultKind::NoServer,
        "are you sure there is a netserver listening|could not establish the control connection|\
         connection refused|connection timed out",
    ),
    (FaultKind::Busy, "unable to start netserver"),
    (
        FaultKind::PeerGone,
        "recv_response|connection reset by peer|broken pipe|netperf: remote error",
    ),
    (
        FaultKind::BadArgument,
        "unrecognized option|invalid option|unknown output selector",
    ),
    (FaultKind::LinkDown, "send_omni: connect_data_socket failed"),
];

/// Takes a running netperf's or netserver's lines.
pub struct Netperf {
    pub side: Side,
    /// Time of the first interim result, in seconds of the host's clock, less its interval.
    pub began: Option<f64>,
}

impl Parse for Netperf {
    fn line(&mut self, bytes: &[u8], _: bool, report: &mut Report) -> bool {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]);
        let text = text.trim();
        if let Some(sample) = text
            .strip_prefix("Interim result:")
            .and_then(|rest| self.interim(rest))
        {
            report.sample(sample);
            return true;
        }
        if text.starts_with("Starting netserver") && self.side == Side::Receiver {
            report.moves(State::Up);
            return true;
        }
        text.split_once('=')
            .is_some_and(|(key, value)| total(key, value, report))
    }
}

impl Netperf {
    /// ` 9412.34 10^6bits/s over 1.000 seconds ending at 1412345678.123`.
    fn interim(&mut self, rest: &str) -> Option<Sample> {
        let mut words = rest.split_ascii_whitespace();
        let figure = number(words.next()?)?;
        let bps = figure * bits(words.next()?)?;
        let mut after = |label: &str| {
            let found = words.by_ref().find(|w| *w == label)?;
            debug_assert_eq!(found, label);
            number(words.next()?)
        };
        let seconds = after("over")?;
        let ending = after("at");
        let began = self.began.or(ending.map(|e| e - seconds));
        self.began = began;
        let end = ending
            .zip(began)
            .map_or(0.0, |(end, began)| (end - began).max(0.0));
        Some(Sample {
            end_us: (end * 1e6).round() as u64,
            interval_us: (seconds * 1e6).round() as u64,
            bps: Some(bps),
            ..Sample::default()
        })
    }
}

/// Enters a line `NAME=value`; `false` for an unknown name.
fn total(key: &str, value: &str, report: &mut Report) -> bool {
    let count = || {
        number(value)
            .filter(|n| *n < 1e18)
            .map(|n| n.round() as u64)
    };
    if !report.totals.said && KEYS.split(',').any(|k| k == key) {
        // The tool's totals replace the sums of the samples.
        report.says(super::Totals::default());
    }
    let totals = &mut report.totals;
    match key {
        "ELAPSED_TIME" => totals.seconds = number(value),
        "LOCAL_SEND_CALLS" => totals.packets = count(),
        "LOCAL_BYTES_SENT" => totals.bytes = count(),
        "REMOTE_RECV_CALLS" => {
            totals.lost = totals
                .packets
                .zip(count())
                .map(|(sent, got)| sent.saturating_sub(got));
        }
        "THROUGHPUT" | "THROUGHPUT_UNITS" | "REMOTE_BYTES_RECVD" => {}
        _ => return false,
    }
    true
}

/// Bits/s of a unit of netperf's.
fn bits(unit: &str) -> Option<f64> {
    Some(match unit {
        "10^3bits/s" => 1e3,
        "10^6bits/s" => 1e6,
        "10^9bits/s" => 1e9,
        "KBytes/s" => 8.0 * 1024.0,
        "MBytes/s" => 8.0 * 1024.0 * 1024.0,
        "GBytes/s" => 8.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

/// A number that is 0 or more, and no time beyond reason.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|n| (0.0..1e18).contains(n))
}
