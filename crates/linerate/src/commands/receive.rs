//! `linerate receive`: the receiver by hand.

use super::guard::{self, Allowed};
use super::tally::{self, Tally};
use crate::cli::Receive;
use crate::interrupt;
use crate::output::{FAILED, INTERRUPTED, print};
use anyhow::{Context, Result};
use linerate_linux::host::cpu;
use linerate_linux::ports::{self, Arrival, Port, monotonic_ns};
use linerate_measure::counters::{PortCounters, StreamCounters};
use linerate_plan::Backend;
use linerate_wire::{Filter, ForeignKind, Load, Reader, Recognised, SequenceWindow, recognise};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the verb.
///
/// # Errors
/// What kept it from counting.
pub fn run(args: &Receive) -> Result<ExitCode> {
    interrupt::install();
    if let Some(file) = &args.read {
        return read(args, file);
    }
    let interface = args.interface.as_deref().unwrap_or_default();
    let allowed = guard::open(
        args.netns.as_deref(),
        interface,
        &args.isolated_lab,
        Duration::from_secs(args.wait_link),
    )?;
    let mut port = open(args, &allowed)?;
    receive(args, port.as_mut())
}

fn open(args: &Receive, allowed: &Allowed) -> Result<Box<dyn Port>> {
    let filter = Filter {
        pass_foreign: !allowed.in_lab && args.port == Backend::Xdp,
        unsigned: args.unsigned,
        ..Filter::of_campaign(args.campaign)
    };
    let cpu = cpu::online_cpus().context("asking which CPUs this process may use")?.first().copied();
    let at = Arrival { ifindex: allowed.link.index, queues: allowed.link.num_rx_queues };
    Ok(ports::receiver(args.port, &allowed.namespace, at, filter, cpu)?)
}

fn receive(args: &Receive, port: &mut dyn Port) -> Result<ExitCode> {
    port.start(&Load::lasting(Duration::MAX))?;
    let began = monotonic_ns();
    let mut tally = Tally::new(args.json, args.normalize, args.report_ms);
    // The mean rate is over the time in which frames came, as far as polling sees it.
    let (mut first, mut last, mut seen) = (None, began, 0);
    let over = |seen: u64| {
        let long = args.duration.is_some_and(|d| monotonic_ns() - began >= d.as_nanos() as u64);
        long || args.count.is_some_and(|n| seen >= n) || interrupt::interrupted()
    };
    while !over(seen) {
        std::thread::sleep(Duration::from_millis(args.report_ms.min(5)));
        let frames = port.frames();
        if frames != seen {
            last = monotonic_ns();
            first.get_or_insert(last);
            seen = frames;
        }
        tally.tick("received", frames);
    }
    port.stop()?;
    let counters = port.counters();
    let seconds = first.map_or(0.0, |f| (last - f) as f64 / 1e9);
    report(args, &counters, seconds, port.foreign_sample());
    // Without a count or a duration to reach, Ctrl-C is how it is meant to end.
    let bounded = args.duration.is_some() || args.count.is_some();
    match (counters.frames, interrupt::interrupted() && bounded) {
        (_, true) => Ok(ExitCode::from(INTERRUPTED)),
        (0, _) => Ok(ExitCode::from(FAILED)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Frames missing from a stream by its sequence numbers, which begin at 0 with each `linerate send`.
fn missing(stream: &StreamCounters) -> u64 {
    stream.next_sequence.saturating_sub(stream.frames - stream.duplicates)
}

fn report(args: &Receive, counters: &PortCounters, seconds: f64, sample: Option<Vec<u8>>) {
    let lost: u64 = counters.streams.iter().map(missing).sum();
    if args.json {
        let mut document = tally::totals(counters, seconds);
        document["lost_by_sequence"] = lost.into();
        document["duplicates"] = counters.duplicates().into();
        document["reordered"] = counters.reordered().into();
        document["foreign"] = serde_json::json!(counters.foreign);
        document["counters"] = serde_json::to_value(counters).unwrap_or_default();
        print(&format!("{document:#}\n"));
        return;
    }
    print(&format!("Received {}\n", tally::sentence(counters, seconds)));
    if !args.unsigned {
        print(&format!(
            "{} stream{}: {lost} lost (by sequence numbers), {} duplicates, {} reordered, {} too late to judge\n",
            counters.streams.len(),
            if counters.streams.len() == 1 { "" } else { "s" },
            counters.duplicates(),
            counters.reordered(),
            counters.too_late(),
        ));
    }
    if counters.refused > 0 {
        print(&format!(
            "{} frames found the receiver's ring full: the receiver was too slow for them\n",
            counters.refused
        ));
    }
    let micro = |q| counters.latency.quantile(q).map(|ns| ns as f64 / 1e3);
    if let (Some(p50), Some(p99), Some(p999)) = (micro(0.5), micro(0.99), micro(0.999)) {
        print(&format!(
            "Latency of {} stamped frames: p50 {p50:.1} us, p99 {p99:.1} us, p99.9 {p999:.1} us (same clock only)\n",
            counters.latency.count()
        ));
    }
    for queue in &counters.queues {
        print(&format!("  CPU {} queue {}: {} frames\n", queue.cpu, queue.queue, queue.frames));
    }
    if counters.foreign_total() > 0 {
        let kinds: Vec<String> = counters.foreign.iter().map(|(k, n)| format!("{n} {k}")).collect();
        print(&format!("Other frames: {}\n", kinds.join(", ")));
    }
    if let Some(bytes) = sample {
        let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        print(&format!("  the first of them begins {}\n", hex.join(" ")));
    }
}

/// Counts the frames of a capture.
fn read(args: &Receive, file: &Path) -> Result<ExitCode> {
    let failed = || format!("reading {}", file.display());
    let input = linerate_linux::files::open(file).with_context(failed)?;
    let mut counters = PortCounters::default();
    let mut streams: BTreeMap<u16, (SequenceWindow, StreamCounters)> = BTreeMap::new();
    let (mut first, mut last) = (None, 0);
    for record in Reader::new(std::io::BufReader::new(input)).with_context(failed)? {
        let record = record.with_context(failed)?;
        if interrupt::interrupted() {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        match recognise(&record.data) {
            Recognised::Test { signature, .. } => {
                let (window, counters) = streams.entry(signature.stream).or_default();
                counters.stream = signature.stream;
                counters.count(window, signature.sequence);
            }
            Recognised::Foreign(_) if args.unsigned => {}
            Recognised::Foreign(kind) => {
                *counters.foreign.entry(foreign_name(kind).into()).or_default() += 1;
                continue;
            }
        }
        counters.frames += 1;
        counters.bytes += u64::from(record.orig_len);
        first.get_or_insert(record.ts_ns);
        last = record.ts_ns;
    }
    counters.streams = streams.into_values().map(|(_, counters)| counters).collect();
    let seconds = first.map_or(0.0, |f| last.saturating_sub(f) as f64 / 1e9);
    report(args, &counters, seconds, None);
    Ok(if counters.frames == 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn foreign_name(kind: ForeignKind) -> &'static str {
    match kind {
        ForeignKind::Arp => "ARP",
        ForeignKind::Ipv4 => "IPv4",
        ForeignKind::Ipv6 => "IPv6",
        ForeignKind::Icmpv6 => "ICMPv6",
        ForeignKind::Other(_) | ForeignKind::Runt => "other",
    }
}
