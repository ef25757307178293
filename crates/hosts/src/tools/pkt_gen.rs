//! netmap's pkt-gen: its command lines, and the meaning of its lines while it runs.
//!
//! Facts used here, from its source (netmap, apps/pkt-gen) and from the logs of the public archive:
//! - `-l` is the length without FCS; `-n` is of all threads together; `-R` is of **each** thread: `-p 2 -R 10000000` sends 20 Mpps
//!   (Xeon_E5-2697Av4_16Cores/Mellanox_ConnectX-4/ipfw/results/fbsd13-r357572-…).
//! - Paced, it begins on a whole second, one to two seconds after the link's wait.
//! - Opening netmap resets most cards: `-w` seconds pass before the first frame.
//! - An IPv6 range varies one group of 16 bits.

use super::fault::{self, FaultKind, Signs};
use super::monitor::{Parse, Report, Sample, State, Totals};
use super::{Invocation, Refusable, Side, Task, Words};
use crate::pktgen::{self, Clock, Line, SummaryLine};
use linerate_wire::{EndpointRange, Family};
use std::net::{IpAddr, Ipv6Addr};

/// Seconds beyond link wait and load after which it is ended: a paced one begins up to two seconds late.
const MARGIN_S: u32 = 5;
/// The largest number that atoi reads into an int.
const MOST_PPS: f64 = i32::MAX as f64;

pub fn generator(task: &Task) -> Refusable {
    let (threads, [source, destination]) = (task.threads, task.ends());
    let mut command = begin(task, "tx");
    if let Some(pps) = task.load.rate {
        let each = (pps / f64::from(threads)).round();
        if !(1.0..=MOST_PPS).contains(&each) {
            return Err(format!(
                "send {pps} frames/s from {threads} thread(s): each can be asked for 1 to {MOST_PPS}"
            ));
        }
        command = command.option("-R", each);
    }
    let mut command = command
        .option("-n", task.frames().unwrap_or(0))
        .option("-l", task.frame_len_fcs() - 4)
        .word(if task.traffic.frame.family == Family::V6 {
            "-6"
        } else {
            "-4"
        })
        .option("-s", range(source)?)
        .option("-d", range(destination)?);
    if let Some(mac) = task.source_mac() {
        command = command.option("-S", mac);
    }
    let command = command.option("-D", task.destination_mac()?);
    Ok(invocation(
        task,
        command,
        task.seconds(),
        task.load.rate.is_some(),
    ))
}

pub fn receiver(task: &Task) -> Invocation {
    // The generator's link wait, its late start, and the frames that the DUT still holds when it has ended.
    let seconds = task.seconds() + task.link_wait_s + MARGIN_S;
    invocation(task, begin(task, "rx"), seconds, false)
}

fn begin(task: &Task, function: &str) -> Words {
    let Task {
        interface,
        threads,
        link_wait_s,
        ..
    } = task;
    // -N: figures without unit prefixes, so with all digits.
    let command = Words::new(["pkt-gen", "-N"])
        .option("-f", function)
        .option("-i", interface);
    let command = command.option("-w", link_wait_s);
    if *threads > 1 {
        command.option("-p", threads)
    } else {
        command
    }
}

fn invocation(task: &Task, command: Words, seconds: u32, paced: bool) -> Invocation {
    let link_wait_s = task.link_wait_s;
    // A count ends a paced one; the deadline only where the rate is not reached.
    let (late, margin) = if paced { (2, MARGIN_S) } else { (0, 0) };
    Invocation::bounded(
        "INT",
        link_wait_s + late + 1,
        link_wait_s + seconds + margin,
        command,
    )
}

/// `198.18.1.1:2000-198.18.1.255:2200`, `[2001:2::1]:2000-[2001:2::14]`.
fn range(ends: &EndpointRange) -> Refusable<String> {
    match (ends.first_address(), ends.last_address()) {
        (IpAddr::V6(first), IpAddr::V6(last)) if differing_groups(first, last) > 1 => Err(format!(
            "vary {first} to {last}: it varies one group of 16 bits of an IPv6 address"
        )),
        _ => Ok(ends.to_string()),
    }
}

fn differing_groups(a: Ipv6Addr, b: Ipv6Addr) -> usize {
    a.segments()
        .iter()
        .zip(b.segments())
        .filter(|(a, b)| **a != *b)
        .count()
}

/// Takes a running pkt-gen's lines.
pub struct PktGen {
    side: Side,
    clock: Clock,
    summed: bool,
}

/// pkt-gen's own messages that are faults, in lower case. Its first words count before the system's, which may follow them.
pub const FAULTS: &Signs = &[
    (
        FaultKind::RingStalled,
        "poll error/timeout on queue|poll error on queue",
    ),
    (
        FaultKind::Crashed,
        "ioctl error on queue|poll err|poll() error|fd error|ouch, thread",
    ),
    (FaultKind::NoMemory, "unable to create thread"),
    (
        FaultKind::BadArgument,
        "bad nthreads|bad option|bad pktsize|bad pktminsize|missing ifname|ifname too long|\
         cpus is too high|unrecognised function|illegal option|invalid option",
    ),
    (FaultKind::FrameTooLong, "must be <= mtu"),
    (
        FaultKind::NotOpened,
        "unable to open|failed to open|cannot open|could not open|niocregif failed|aborting",
    ),
];

/// pkt-gen's own messages that are no faults although they contain a word of one.
const HARMLESS: [&[u8]; 3] = [
    b"Unable to get virtio-net header length",
    b"failed to install ^C handler",
    b"Unable to retrieve source mac",
];

impl Parse for PktGen {
    fn line(&mut self, bytes: &[u8], last: bool, report: &mut Report) -> bool {
        match pktgen::parse(bytes) {
            Line::Sample(sample) => self.sample(sample, true, report),
            Line::ScaledSample(sample) => self.sample(sample, false, report),
            Line::Summary(summary) => self.summary(summary, bytes, report),
            Line::Message | Line::Crash(_) => match embedded(bytes) {
                Some((sample, exact)) => self.sample(sample, exact, report),
                // A tool that is killed leaves a line cut off, and that is no fault.
                None if is_cut_sample(bytes) && last => {}
                None if is_cut_sample(bytes) => report.fault(FaultKind::Garbled, bytes),
                None => message(bytes, report),
            },
            Line::Unknown => self.foreign(bytes, report),
            // A shell's trace names commands, which may have any word in them.
            Line::Command(..) | Line::Shell => {}
        }
        true
    }
}

impl PktGen {
    pub fn new(side: Side) -> Self {
        PktGen {
            side,
            clock: Clock::default(),
            summed: false,
        }
    }

    fn sample(&mut self, sample: pktgen::Sample, exact: bool, report: &mut Report) {
        if !consistent(&sample, exact) {
            return report.fault(
                FaultKind::Garbled,
                b"a sample whose rate is not its frames by its time",
            );
        }
        report.sample(Sample {
            end_us: self.clock.unwrapped(sample.time_us),
            interval_us: sample.interval_us,
            packets: Some(sample.packets),
            bps: sample.bps.map(|b| b as f64),
        });
    }

    /// A log of two programs may have both summaries: ours is `Sent` or `Received`.
    fn summary(&mut self, summary: SummaryLine, bytes: &[u8], report: &mut Report) {
        match summary {
            SummaryLine::Total {
                packets,
                length,
                seconds,
            } => {
                let ours: &[u8] = if self.side == Side::Generator {
                    b"Sent"
                } else {
                    b"Received"
                };
                if !bytes.starts_with(ours) {
                    return;
                }
                if seconds < 0.0 {
                    return report.fault(FaultKind::Crashed, bytes);
                }
                let (packets, seconds) = (Some(packets), Some(seconds));
                let bytes = length
                    .zip(packets)
                    .and_then(|(l, n)| l.checked_mul(n))
                    .or(report.totals.bytes);
                report.says(Totals {
                    packets,
                    bytes,
                    seconds,
                    ..report.totals
                });
                self.summed = true;
            }
            SummaryLine::Speed { pps, .. } if pps.is_sign_negative() => {
                report.fault(FaultKind::Crashed, bytes)
            }
            SummaryLine::Speed { .. } => {}
        }
    }

    fn foreign(&mut self, bytes: &[u8], report: &mut Report) {
        if let Some((sample, exact)) = embedded(bytes) {
            return self.sample(sample, exact, report);
        }
        let harmless = HARMLESS
            .iter()
            .any(|h| memchr::memmem::find(bytes, h).is_some());
        let kind = match bytes.starts_with(b"Usage:") {
            true => Some(FaultKind::BadArgument),
            false => fault::common(bytes)
                .or_else(|| fault::find(FAULTS, bytes))
                .or_else(|| netmap(bytes)),
        };
        // Text behind the summary comes from the shell.
        if let Some(kind) = kind.filter(|_| !harmless && !self.summed) {
            report.fault(kind, bytes);
        }
    }
}

/// Errors of netmap's library have no time stamp: `/dev/netmap: No such file or directory`, `igb9: Invalid argument`.
fn netmap(bytes: &[u8]) -> Option<FaultKind> {
    let errors: [&[u8]; 4] = [
        b": Invalid argument",
        b": No such file or directory",
        b": Operation not supported",
        b": Inappropriate ioctl",
    ];
    let named = errors.iter().find_map(|error| {
        let at = memchr::memmem::find(bytes, error)?;
        Some(&bytes[..at])
    })?;
    // One word before it: a device or a port.
    (!named.is_empty() && !named.contains(&b' ')).then_some(FaultKind::NotOpened)
}

/// A message with its time stamp: its state or its fault.
fn message(bytes: &[u8], report: &mut Report) {
    let text = match memchr::memchr(b']', bytes) {
        Some(end) => bytes[end + 1..].trim_ascii_start(),
        None => bytes,
    };
    if HARMLESS.iter().any(|h| text.starts_with(h)) {
        return;
    }
    if text.starts_with(b"Wait ") {
        // Opening the interface has taken its link down.
    } else if text.starts_with(b"Ready...") || text.starts_with(b"waiting for initial packets") {
        report.moves(State::Up);
    } else if let Some(kind) = opening(text).or_else(|| fault::find(FAULTS, text)) {
        report.fault(kind, text);
    } else if text == b"exiting" || text.starts_with(b"exiting ") {
        report.fault(FaultKind::Crashed, text);
    }
}

/// The reason why it cannot open the interface, if the system gives one.
fn opening(text: &[u8]) -> Option<FaultKind> {
    let opens = fault::find(FAULTS, text) == Some(FaultKind::NotOpened);
    let known = fault::common(text)?;
    // `cannot find interface` stands alone; the system's word counts behind one of pkt-gen's.
    (opens || known == FaultKind::NoInterface || known == FaultKind::LinkDown).then_some(known)
}

/// The beginning of a sample without its end.
fn is_cut_sample(bytes: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(bytes, b" main_thread [") else {
        return false;
    };
    let text = memchr::memchr(b']', &bytes[at..])
        .map_or(&b"0"[..], |end| bytes[at + end + 1..].trim_ascii_start());
    text.first().is_none_or(u8::is_ascii_digit)
}

/// A whole sample at the end of a line into which two programs or threads wrote.
fn embedded(bytes: &[u8]) -> Option<(pktgen::Sample, bool)> {
    let at = memchr::memmem::rfind(bytes, b" main_thread [")?
        .checked_sub(10)
        .filter(|at| *at > 0)?;
    match pktgen::parse(&bytes[at..]) {
        Line::Sample(sample) => Some((sample, true)),
        Line::ScaledSample(sample) => Some((sample, false)),
        _ => None,
    }
}

/// pkt-gen divides with whole numbers, so a sample's rate follows from its frames and its time. It does in all 60,211 lines
/// of the corpus; figures of two lines run into each other do not. Those with prefixes are rounded.
fn consistent(sample: &pktgen::Sample, exact: bool) -> bool {
    let Some(frames) = sample.packets.checked_mul(1_000_000) else {
        return false;
    };
    if sample.interval_us == 0 {
        return sample.pps == 0;
    }
    let rate = (frames.saturating_add(sample.interval_us / 2)) / sample.interval_us;
    let off = rate.abs_diff(sample.pps);
    if exact {
        off <= 1
    } else {
        off as f64 <= 2.0 + 0.02 * rate as f64
    }
}
