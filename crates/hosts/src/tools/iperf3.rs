//! iperf3, client and server: command lines, and the JSON documents that `-J` prints.
//!
//! A document comes whole at the end of a test. Messages of ssh, shells and iperf3 itself may stand beside it in plain text.

use super::fault::{self, FaultKind, Signs};
use super::monitor::{Parse, Report, Sample, State, Tcp, Totals};
use super::{Invocation, Refusable, Side, Task, Words};
use linerate_wire::Transport;
use serde::Deserialize;
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

pub fn generator(task: &Task) -> Refusable {
    let [from, to] = ends(task)?;
    let (threads, payload, rate) = (task.threads, task.payload(), task.load.rate);
    let command = Words::new(["iperf3", "-J"])
        .option("-c", to)
        .option("-B", from)
        .option("-p", task.traffic.flows.destination().first_port())
        .option("-t", task.seconds())
        .option("-i", 1)
        .option("-P", threads);
    let command = match task.traffic.frame.transport {
        Transport::Tcp if rate.is_some() => {
            return Err(
                "send TCP at a rate of frames: its segments are the kernel's business".into(),
            );
        }
        Transport::Tcp if !(LEAST_MSS..=MOST_MSS).contains(&payload) => {
            return Err(format!(
                "set a segment of {payload} bytes: {LEAST_MSS} to {MOST_MSS}"
            ));
        }
        Transport::Tcp => command.option("-M", payload),
        _ if payload < LEAST_UDP => {
            return Err(format!(
                "send frames of {} bytes with FCS: its datagrams have at least {LEAST_UDP} bytes",
                task.frame_len_fcs()
            ));
        }
        _ => {
            // Bits of payload for each stream; 0 is as fast as it can.
            let bits = rate.map(|pps| pps / f64::from(threads) * 8.0 * f64::from(payload));
            let bits = bits.map_or(0.0, |bits| bits.max(1.0));
            command
                .option("-l", payload)
                .option("-b", format!("{bits:.0}"))
                .word("-u")
        }
    };
    let limit_s = task.seconds() + MARGIN_S;
    Ok(Invocation::bounded("INT", 1, limit_s, command))
}

/// A server for one test. It prints its document when the test is over.
pub fn receiver(task: &Task) -> Refusable {
    let [_, to] = ends(task)?;
    let command = Words::new(["iperf3", "-J", "-s", "-1", "-i", "1"]).option("-B", to);
    let command = command.option("-p", task.traffic.flows.destination().first_port());
    let limit_s = task.seconds() + task.link_wait_s + 2 * MARGIN_S;
    Ok(Invocation::bounded("INT", 1, limit_s, command))
}

/// The command of either end for TCP from one host to another that linerate has made: this many connections for so many seconds, with
/// ten samples a second. The client ends after them, and both with the program that runs them. `control`: the sender's congestion control; the host's own if `None`.
pub fn between_end_hosts(
    side: Side,
    ends: [IpAddr; 2],
    port: u16,
    [connections, seconds]: [u32; 2],
    control: Option<&str>,
) -> Invocation {
    let [from, to] = ends;
    let common = Words::new(["iperf3", "-J", "-i", "0.1"]).option("-p", port);
    let command = match side {
        Side::Generator => {
            let client = common
                .option("-c", to)
                .option("-B", from)
                .option("-t", seconds)
                .option("-P", connections);
            match control {
                Some(name) => client.option("-C", name),
                None => client,
            }
        }
        Side::Receiver => common.word("-s").word("-1").option("-B", to),
    };
    Invocation {
        argv: command.0,
        limit_s: seconds + 2 * MARGIN_S,
        lead_s: 1,
        stop_signal: "INT",
    }
}

/// Both addresses. Streams differ in their source ports, which the kernel picks.
fn ends(task: &Task) -> Refusable<[IpAddr; 2]> {
    let ends = task.through_the_stack()?;
    let (threads, flows) = (task.threads, task.traffic.flows.len());
    if threads > MOST_STREAMS {
        return Err(format!("run {threads} streams: at most {MOST_STREAMS}"));
    }
    if flows != u64::from(threads) || task.traffic.flows.destination().ports() > 1 {
        return Err(format!(
            "make {flows} flows of {threads} stream(s): each stream is one flow to one port of the server"
        ));
    }
    Ok(ends)
}

/// Faults in iperf3's own words, in lower case.
pub const FAULTS: &Signs = &[
    (FaultKind::Busy, "server is busy|unable to start listener"),
    (
        FaultKind::NoServer,
        "connection refused|no route to host|connection timed out|operation timed out|\
         name or service not known|nodename nor servname",
    ),
    (
        FaultKind::PeerGone,
        "control socket has closed unexpectedly|connection reset by peer|broken pipe|\
         the server has terminated|the client has terminated|unable to receive",
    ),
    (
        FaultKind::BadArgument,
        "unrecognized option|parameter error",
    ),
];

/// The kind of an error.
fn kind(message: &[u8]) -> FaultKind {
    fault::find(FAULTS, message)
        .or_else(|| fault::common(message))
        .unwrap_or(FaultKind::Other)
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
    pub fn new(side: Side) -> Iperf3 {
        let document = Vec::new();
        Iperf3 { side, document }
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
        self.document
            .extend_from_slice(&line[..line.len().min(room)]);
        // The document is indented: its last brace stands alone. One that reports an error only may stand on one line.
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
        // iperf3 was asked to end, here or there; its document follows.
    } else if line.starts_with(b"iperf3: ") {
        report.fault(kind(line), line);
    } else {
        return false;
    }
    true
}

/// The parts of a document that are read, in all versions: unknown fields are ignored, missing ones stay unknown.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Document {
    start: Start,
    intervals: Vec<Interval>,
    end: End,
    error: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Start {
    test_start: TestStart,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TestStart {
    protocol: String,
    /// Bytes of a datagram, or of a write to a TCP stream.
    blksize: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Interval {
    sum: Sum,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct End {
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    streams: Vec<Stream>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Stream {
    sender: Sender,
}

/// A connection at the end of a test, on systems with TCP_INFO.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Sender {
    retransmits: Option<f64>,
    max_snd_cwnd: Option<f64>,
    max_rtt: Option<f64>,
    min_rtt: Option<f64>,
    mean_rtt: Option<f64>,
}

impl Sender {
    fn tcp(&self) -> Option<Tcp> {
        let rtt_us = [
            whole(self.min_rtt?)?,
            whole(self.mean_rtt?)?,
            whole(self.max_rtt?)?,
        ];
        let [retransmits, most_cwnd] =
            [self.retransmits, self.max_snd_cwnd].map(|n| n.and_then(whole).unwrap_or(0));
        // Systems that do not know it say 0.
        (rtt_us[1] > 0).then_some(Tcp {
            retransmits,
            rtt_us,
            most_cwnd,
        })
    }
}

/// Several connections as one: the mean of their means.
fn together(all: &[Tcp]) -> Option<Tcp> {
    let sum = |of: fn(&Tcp) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    let least = all.iter().map(|tcp| tcp.rtt_us[0]).min()?;
    let most = all.iter().map(|tcp| tcp.rtt_us[2]).max()?;
    let mean = sum(|tcp| tcp.rtt_us[1]) / all.len() as u64;
    Some(Tcp {
        retransmits: sum(|tcp| tcp.retransmits),
        rtt_us: [least, mean, most],
        most_cwnd: all.iter().map(|tcp| tcp.most_cwnd).max()?,
    })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Sum {
    end: Option<f64>,
    seconds: Option<f64>,
    bytes: Option<f64>,
    bits_per_second: Option<f64>,
    packets: Option<f64>,
    lost_packets: Option<f64>,
    omitted: bool,
}

impl Document {
    /// Enters it.
    fn into_report(self, side: Side, report: &mut Report) {
        let start = self.start.test_start;
        let is_udp = start.protocol.eq_ignore_ascii_case("udp");
        let datagram = start
            .blksize
            .and_then(whole)
            .filter(|bytes| is_udp && *bytes > 0);
        for interval in self.intervals.iter().filter(|i| !i.sum.omitted) {
            report.sample(interval.sum.sample(datagram));
        }
        match self.error {
            // Ended by a signal to itself: its samples count, its totals are of no whole test.
            Some(error)
                if error.starts_with("interrupt - ")
                    || error.starts_with("error - interrupt - ") => {}
            Some(error) => report.fault(kind(error.as_bytes()), error.as_bytes()),
            None => self.end.into_totals(side, datagram, report),
        }
        report.moves(State::Over);
    }
}

impl Sum {
    fn sample(&self, datagram: Option<u64>) -> Sample {
        let seconds = self
            .seconds
            .filter(|s| s.is_finite() && (0.0..1e9).contains(s));
        let packets = datagram
            .and(self.bytes)
            .and_then(whole)
            .zip(datagram)
            .map(|(bytes, of)| bytes / of);
        let end = self.end.filter(|s| (0.0..1e9).contains(s)).unwrap_or(0.0);
        Sample {
            end_us: (end * 1e6).round() as u64,
            interval_us: (seconds.unwrap_or(0.0) * 1e6).round() as u64,
            packets,
            bps: self.bits_per_second.filter(|b| b.is_finite() && *b >= 0.0),
        }
    }
}

impl End {
    /// Counts of the whole test. Those of a client's `sum` are the server's view: lost of those sent.
    fn into_totals(self, side: Side, datagram: Option<u64>, report: &mut Report) {
        let ours = match side {
            Side::Generator => self.sum_sent.as_ref().or(self.sum.as_ref()),
            Side::Receiver => self.sum_received.as_ref().or(self.sum.as_ref()),
        };
        let Some(ours) = ours else { return };
        let Some(bytes) = ours.bytes.and_then(whole) else {
            return;
        };
        let lost = |sum: &Option<Sum>| sum.as_ref().and_then(|s| s.lost_packets).and_then(whole);
        let counted = ours
            .packets
            .and_then(whole)
            .filter(|_| side == Side::Generator);
        let tcp: Vec<Tcp> = self
            .streams
            .iter()
            .filter_map(|stream| stream.sender.tcp())
            .collect();
        report.says(Totals {
            tcp: together(&tcp).filter(|_| side == Side::Generator),
            bytes: Some(bytes),
            packets: datagram.map(|of| bytes / of).or(counted),
            seconds: ours.seconds.filter(|s| (0.0..1e9).contains(s)),
            lost: lost(&self.sum_received).or(lost(&self.sum)),
            said: true,
        });
    }
}

/// A count, which JSON gives as any number.
fn whole(number: f64) -> Option<u64> {
    (0.0..1e18).contains(&number).then(|| number.round() as u64)
}
