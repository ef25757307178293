//! iperf3, client and server: command lines, and the JSON documents that `-J` prints.
//!
//! A document comes whole at the end of a test (`-J`), or line by line as events (`--json-stream`, from 3.17 on). Between
//! documents may stand what ssh, shells and iperf3 itself say in plain text.

mod document;

use super::fault::{self, FaultKind, Table};
use super::lines::Lines;
use super::monitor::Parse;
use super::report::{Report, State};
use super::task::{Checked, Words};
use super::{Invocation, Side};
use document::Document;
use linerate_plan::backend::Unsuitable;
use linerate_wire::Transport;
use std::net::IpAddr;
use std::sync::LazyLock;

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
    let (command, offered_pps) = match wanted.transport() {
        Transport::Tcp if rate.is_some() => {
            return wanted.cannot("send TCP at a rate of frames: its segments are the kernel's business");
        }
        Transport::Tcp if !(LEAST_MSS..=MOST_MSS).contains(&payload) => {
            return wanted.cannot(format!("set a segment of {payload} bytes: {LEAST_MSS} to {MOST_MSS}"));
        }
        Transport::Tcp => (command.option("-M", payload), None),
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
            (command.option("-l", payload).option("-b", format!("{bits:.0}")).word("-u"), rate)
        }
    };
    let limit_s = wanted.seconds + MARGIN_S;
    Ok(Invocation { offered_pps, ..Invocation::bounded("INT", limit_s, command) })
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
const FAULTS: [(&str, FaultKind); 16] = [
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

static FAULT_TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&FAULTS));

/// What an error means.
fn kind(message: &[u8]) -> FaultKind {
    FAULT_TABLE.find(message).or_else(|| fault::common(message)).unwrap_or(FaultKind::Other)
}

/// A document of a day with ten streams has some 350 MB; without `streams`, which are not looked at, 30.
const LONGEST_DOCUMENT: usize = 64 << 20;

/// Takes what an iperf3 prints.
pub struct Iperf3 {
    side: Side,
    lines: Lines,
    document: Vec<u8>,
    /// Braces and brackets open; 0 outside of a document.
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// Only blanks since the last line's end.
    at_line_start: bool,
    /// Events of a stream: bytes of a datagram, once told.
    datagram: Option<u64>,
}

impl Iperf3 {
    pub fn new(side: Side) -> Self {
        Iperf3 {
            side,
            lines: Lines::default(),
            document: Vec::new(),
            depth: 0,
            in_string: false,
            escaped: false,
            at_line_start: true,
            datagram: None,
        }
    }

    /// Text up to a line that begins with a brace. Gives the bytes taken.
    fn outside(&mut self, bytes: &[u8], report: &mut Report) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'{' if self.at_line_start => {
                    self.lines.feed(&bytes[..at], |line| text(line, report));
                    // Blanks before the brace.
                    self.lines = Lines::default();
                    self.depth = 1;
                    self.document.clear();
                    self.document.push(b'{');
                    report.moves(State::Running);
                    return at + 1;
                }
                b'\n' => self.at_line_start = true,
                b' ' | b'\t' | b'\r' => {}
                _ => self.at_line_start = false,
            }
        }
        self.lines.feed(bytes, |line| text(line, report));
        bytes.len()
    }

    /// A document up to its last brace. Gives the bytes taken.
    fn inside(&mut self, bytes: &[u8], report: &mut Report) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            if self.depth == 0 {
                self.keep(&bytes[..=at]);
                self.whole(report);
                self.at_line_start = true;
                return at + 1;
            }
        }
        self.keep(bytes);
        bytes.len()
    }

    fn keep(&mut self, bytes: &[u8]) {
        // One byte beyond the bound tells that it was exceeded.
        let room = (LONGEST_DOCUMENT + 1).saturating_sub(self.document.len());
        self.document.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn whole(&mut self, report: &mut Report) {
        let document = std::mem::take(&mut self.document);
        if document.len() > LONGEST_DOCUMENT {
            return report.fault(FaultKind::Garbled, b"a JSON document of more than 64 MiB");
        }
        match Document::parse(&document) {
            Ok(document) => document.into_report(self.side, &mut self.datagram, report),
            Err(error) => report.fault(FaultKind::Garbled, error.to_string().as_bytes()),
        }
    }
}

impl Parse for Iperf3 {
    fn feed(&mut self, bytes: &[u8], report: &mut Report) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = if self.depth > 0 { self.inside(rest, report) } else { self.outside(rest, report) };
            rest = &rest[taken..];
        }
    }

    fn end(&mut self, report: &mut Report) {
        self.lines.end(|line| text(line, report));
        if self.depth > 0 {
            self.depth = 0;
            report.fault(FaultKind::Garbled, b"the JSON document is cut off");
        }
    }
}

/// A line of plain text.
fn text(line: &[u8], report: &mut Report) {
    let line = line.trim_ascii();
    let foreign = |report: &mut Report| report.foreign_lines = report.foreign_lines.saturating_add(1);
    if line.is_empty() || line.iter().all(|b| *b == b'-') {
        return;
    }
    if line.starts_with(b"Server listening on") {
        report.moves(State::Ready);
    } else if memchr::memmem::find(line, b"interrupt - the").is_some() {
        // It was asked to end, here or there; its document follows.
    } else if line.starts_with(b"iperf3: ") {
        report.fault(kind(line), line);
    } else {
        match fault::common(line) {
            Some(kind) => report.fault(kind, line),
            None => foreign(report),
        }
    }
}
