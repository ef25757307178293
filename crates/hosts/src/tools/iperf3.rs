//! iperf3, client and server: command lines, and the JSON documents that `-J` prints.
//!
//! A document comes whole at the end of a test. Messages of ssh, shells and iperf3 itself may stand beside it in plain text.

mod document;

use super::fault::{self, FaultKind};
use super::monitor::Parse;
use super::report::{Report, State};
use super::task::{Checked, Words};
use super::{Invocation, Side};
use document::Document;
use linerate_plan::backend::Unsuitable;
use linerate_wire::Transport;
use std::net::IpAddr;

/// `-P` takes no more (MAX_STREAMS).
const MOST_STREAMS: u32 = 128;
/// The shortest UDP payload (MIN_UDP_BLOCKSIZE: a sequence number and a time).
const LEAST_UDP: u32 = 16;
/// The shortest segment that FreeBSD and Linux both take.
const LEAST_MSS: u32 = 88;
/// A long TCP segment has 40 bytes of headers in IPv4; `-M` is without them.
const MOST_MSS: u32 = 9 * 1024;
/// Setting up and taking down the control connection.
const MARGIN_S: u32 = 15;

pub fn generator(wanted: &Checked<'_>) -> Result<Invocation, Unsuitable> {
    let [from, to] = ends(wanted)?;
    let (threads, payload, rate) = (wanted.task.threads, wanted.task.payload(), wanted.rate());
    let command = Words::new(["iperf3", "-J"])
        .option("-c", to)
        .option("-B", from)
        .option("-p", wanted.destination.first_port())
        .option("-t", wanted.seconds)
        .option("-i", 1)
        .option("-P", threads);
    let command = match wanted.transport() {
        Transport::Tcp if rate.is_some() => {
            return wanted.cannot("send TCP at a rate of frames: its segments are the kernel's business");
        }
        Transport::Tcp if !(LEAST_MSS..=MOST_MSS).contains(&payload) => {
            return wanted.cannot(format!("set a segment of {payload} bytes: {LEAST_MSS} to {MOST_MSS}"));
        }
        Transport::Tcp => command.option("-M", payload),
        _ if payload < LEAST_UDP => {
            return wanted.cannot(format!(
                "send frames of {} bytes with FCS: its datagrams have at least {LEAST_UDP} bytes",
                wanted.task.frame_len_fcs()
            ));
        }
        _ => {
            // Bits of payload for each stream; 0 is as fast as it can.
            let bits = rate.map(|pps| pps / f64::from(threads) * 8.0 * f64::from(payload));
            let bits = bits.map_or(0.0, |bits| bits.max(1.0));
            command.option("-l", payload).option("-b", format!("{bits:.0}")).word("-u")
        }
    };
    Ok(Invocation::bounded("INT", wanted.seconds + MARGIN_S, command))
}

/// A server for one test. It prints its document when the test is over.
pub fn receiver(wanted: &Checked<'_>) -> Result<Invocation, Unsuitable> {
    let [_, to] = ends(wanted)?;
    let command = Words::new(["iperf3", "-J", "-s", "-1", "-i", "1"]).option("-B", to);
    let command = command.option("-p", wanted.destination.first_port());
    let limit_s = wanted.seconds + wanted.task.link_wait_s + 2 * MARGIN_S;
    Ok(Invocation::bounded("INT", limit_s, command))
}

/// Both addresses. Streams differ in their source ports, which the kernel picks.
fn ends(wanted: &Checked<'_>) -> Result<[IpAddr; 2], Unsuitable> {
    let ends = wanted.through_the_stack()?;
    let (threads, flows) = (wanted.task.threads, wanted.flows());
    if threads > MOST_STREAMS {
        return wanted.cannot(format!("run {threads} streams: at most {MOST_STREAMS}"));
    }
    if flows != u64::from(threads) || wanted.destination.ports() > 1 {
        return wanted.cannot(format!(
            "make {flows} flows of {threads} stream(s): each stream is one flow to one port of the server"
        ));
    }
    Ok(ends)
}

/// Its own words, in lower case.
pub const FAULTS: [(&str, FaultKind); 16] = [
    ("server is busy", FaultKind::Busy),
    ("unable to start listener", FaultKind::Busy),
    ("connection refused", FaultKind::NoServer),
    ("no route to host", FaultKind::NoServer),
    ("connection timed out", FaultKind::NoServer),
    ("operation timed out", FaultKind::NoServer),
    ("name or service not known", FaultKind::NoServer),
    ("nodename nor servname", FaultKind::NoServer),
    ("control socket has closed unexpectedly", FaultKind::PeerGone),
    ("connection reset by peer", FaultKind::PeerGone),
    ("broken pipe", FaultKind::PeerGone),
    ("the server has terminated", FaultKind::PeerGone),
    ("the client has terminated", FaultKind::PeerGone),
    ("unrecognized option", FaultKind::BadArgument),
    ("parameter error", FaultKind::BadArgument),
    ("unable to receive", FaultKind::PeerGone),
];

/// The kind of an error.
fn kind(message: &[u8]) -> FaultKind {
    fault::find(&FAULTS, message).or_else(|| fault::common(message)).unwrap_or(FaultKind::Other)
}

/// A document of a day with ten streams has some 350 MB; without `streams`, which are not looked at, 30.
const LONGEST_DOCUMENT: usize = 64 << 20;

/// Parses the output of an iperf3.
pub struct Iperf3 {
    side: Side,
    /// A document that has begun, up to a byte more than its bound.
    document: Vec<u8>,
}

impl Iperf3 {
    pub fn new(side: Side) -> Self {
        Iperf3 { side, document: Vec::new() }
    }

    fn whole(&mut self, report: &mut Report) {
        let document = std::mem::take(&mut self.document);
        if document.len() > LONGEST_DOCUMENT {
            return report.fault(FaultKind::Garbled, b"a JSON document of more than 64 MiB");
        }
        match serde_json::from_slice::<Document>(&document) {
            Ok(document) => document.into_report(self.side, report),
            Err(error) => report.fault(FaultKind::Garbled, error.to_string().as_bytes()),
        }
    }
}

impl Parse for Iperf3 {
    fn line(&mut self, line: &[u8], _: bool, report: &mut Report) -> bool {
        let begins = self.document.is_empty();
        if begins && !line.starts_with(b"{") {
            return text(line.trim_ascii(), report);
        }
        report.moves(State::Up);
        let room = (LONGEST_DOCUMENT + 1).saturating_sub(self.document.len());
        self.document.extend_from_slice(&line[..line.len().min(room)]);
        // It is indented: its last brace stands alone. One that reports an error only may stand on one line.
        if line.starts_with(b"}") || begins && line.ends_with(b"}") {
            self.whole(report);
        }
        true
    }

    fn end(&mut self, report: &mut Report) {
        if !self.document.is_empty() {
            report.fault(FaultKind::Garbled, b"the JSON document is cut off");
        }
    }
}

/// A line of plain text; `false` where the system may have said it.
fn text(line: &[u8], report: &mut Report) -> bool {
    if line.starts_with(b"Server listening on") {
        report.moves(State::Up);
    } else if memchr::memmem::find(line, b"interrupt - the").is_some() {
        // It was asked to end, here or there; its document follows.
    } else if line.starts_with(b"iperf3: ") {
        report.fault(kind(line), line);
    } else {
        return false;
    }
    true
}
