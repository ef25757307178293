//! `linerate receive`: the receiver by hand.

use super::port;
use crate::args::{AtInterface, count};
use crate::prelude::*;
use linerate_linux::host::cpu;
use linerate_linux::ports::user_receiver::{FOREIGN, foreign_index};
use linerate_linux::ports::{self, Arrival, monotonic_ns};
use linerate_measure::counters::{PortCounters, StreamCounters};
use linerate_plan::Backend;
use linerate_report::pages::Received;
use linerate_wire::{Filter, Load, Reader, Recognised, SequenceWindow, recognise};

/// Count test frames at an interface, or in a capture file.
#[derive(Args)]
#[command(mut_arg("isolated_lab", |arg| arg.help("Confirms that this interface is part of an isolated lab; all frames that arrive there are hidden from the host")))]
#[command(after_help = "Examples:
  sudo linerate receive --namespace linerate-receiver -i r1
  sudo linerate receive -i ix1 --isolated-lab ix1 --duration 60s --json
  sudo linerate receive -i ix1 --isolated-lab ix1 --unsigned    count what pkt-gen or trafgen sends
  linerate receive --read capture.pcap                          count in a capture: no privileges")]
pub struct Receive {
    #[command(flatten)]
    at: AtInterface,
    /// End after this many test frames
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    count: Option<u64>,

    /// End after this long [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// Count every UDP, TCP and ICMP frame, also those of pkt-gen and trafgen
    #[arg(long)]
    unsigned: bool,

    /// pkt-gen's function: receiving is rx
    #[arg(short = 'f', value_name = "rx", value_parser = ["rx"], hide = true)]
    function: Option<String>,

    /// Count the frames of a capture file (pcap or pcapng) instead
    #[arg(
        id = "file",
        long = "read",
        value_name = "FILE",
        conflicts_with = "interface"
    )]
    read: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not count.
pub fn run(args: &Receive) -> Exit {
    interrupt::install();
    let received = match &args.read {
        Some(file) => read(args, file)?,
        None => receive(args)?,
    };
    // Without an end to reach, Ctrl-C is how it is meant to end.
    let bounded = args.read.is_some() || args.duration.is_some() || args.count.is_some();
    let code = port::status(received.totals.frames, interrupted() && bounded);
    result(
        &args.at.printed,
        || &received,
        || pages::received(&received),
    )?;
    exit(code)
}

/// Counts the frames that arrive at an interface.
fn receive(args: &Receive) -> Result<Received> {
    let allowed = port::open(&args.at, "take all frames that arrive at")?;
    let backend = args.at.backend.unwrap_or(Backend::Xdp);
    let filter = Filter {
        pass_foreign: !allowed.in_lab && backend == Backend::Xdp,
        unsigned: args.unsigned,
        ..Filter::of_campaign(args.at.sender)
    };
    let cpu = cpu::online_cpus()
        .context("asking which CPUs this process may use")?
        .first()
        .copied();
    let at = Arrival {
        ifindex: allowed.link.index,
        queues: allowed.link.num_rx_queues,
    };
    let mut port = ports::receiver(backend, &allowed.namespace, at, filter, cpu)?;
    port.start(&Load::lasting(Duration::MAX))?;
    let began = monotonic_ns();
    // The mean rate is over the time in which frames came, as far as polling sees it.
    let (mut first, mut last, mut seen) = (None, began, 0);
    port::watch(&args.at, port.as_ref(), "received", 5, |frames| {
        if frames != seen {
            (last, seen) = (monotonic_ns(), frames);
            first.get_or_insert(last);
        }
        let long = args
            .duration
            .is_some_and(|d| monotonic_ns() - began >= d.as_nanos() as u64);
        long || args.count.is_some_and(|n| frames >= n)
    });
    let counters = port.counters();
    port.stop()?;
    let seconds = first.map_or(0.0, |first| (last - first) as f64 / 1e9);
    Ok(Received::new(
        counters,
        seconds,
        args.unsigned,
        port.foreign_sample(),
    ))
}

/// Counts the frames of a capture.
fn read(args: &Receive, file: &Path) -> Result<Received> {
    let failed = || format!("reading {}", file.display());
    let input = files::open(file).with_context(failed)?;
    let mut counters = PortCounters::default();
    let mut streams: BTreeMap<u16, (SequenceWindow, StreamCounters)> = BTreeMap::new();
    let (mut first, mut last) = (None, 0);
    for record in Reader::new(std::io::BufReader::new(input)).with_context(failed)? {
        let record = record.with_context(failed)?;
        if interrupted() {
            break;
        }
        match recognise(&record.data) {
            Recognised::Test { signature, .. } => {
                let (window, counters) = streams.entry(signature.stream).or_default();
                counters.stream = signature.stream;
                counters.count(window, signature.sequence);
            }
            Recognised::Foreign(_) if args.unsigned => {}
            Recognised::Foreign(kind) => {
                *counters
                    .foreign
                    .entry(FOREIGN[foreign_index(kind)].into())
                    .or_default() += 1;
                continue;
            }
        }
        counters.frames += 1;
        counters.bytes += u64::from(record.orig_len);
        first.get_or_insert(record.ts_ns);
        last = record.ts_ns;
    }
    counters.streams = streams
        .into_values()
        .map(|(_, counters)| counters)
        .collect();
    let seconds = first.map_or(0.0, |f| last.saturating_sub(f) as f64 / 1e9);
    Ok(Received::new(counters, seconds, args.unsigned, None))
}
