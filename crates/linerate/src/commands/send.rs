//! `linerate send`: the generator by hand.

use super::port::{self, Allowed};
use crate::args::{AtInterface, count, pkt_gen_rate};
use crate::prelude::*;
use linerate_linux::host::{cpu, quota};
use linerate_linux::lab::addresses;
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::net::netlink::{LinkStats, Route};
use linerate_linux::net::registry::Registry;
use linerate_linux::net::sysfs;
use linerate_linux::ports::frame_source::FrameSource;
use linerate_linux::ports::{self, Port, Target, monotonic_ns};
use linerate_measure::audit::OFFERED_TOLERANCE;
use linerate_plan::Backend;
use linerate_plan::units::Rate;
use linerate_report::pages::{InterfaceCounts, Sent, Totals};
use linerate_wire::{
    FCS_LEN, Family, FlowOrder, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport,
    VlanTag, Writer,
};

#[derive(Args)]
#[command(
    after_help = "Examples (options that pkt-gen also has are spelled as in pkt-gen):
  sudo linerate lab up                          an embedded lab to send in
  sudo linerate send --namespace linerate-generator -i g1 -n 1000000
  sudo linerate send --namespace linerate-generator -i g1 -R 100k --duration 5s
  sudo linerate send -i ix0 --isolated-lab ix0 -D 00:1b:21:aa:bb:cc \\
    -s 198.18.10.1:2001-198.18.10.20 -d 198.19.10.1:2001-198.19.10.100 -l 60
  linerate send --write frames.pcap -n 1000     the same frames into a file: no interface, no privileges

linerate refuses an interface that has a default route or addresses outside 198.18.0.0/15 and 2001:2::/48,
or that is outside linerate's own namespaces, unless --isolated-lab names it (RFC 6815).
Loopback is always refused."
)]
pub struct Send {
    #[command(flatten)]
    at: AtInterface,
    /// Frame length without FCS, as pkt-gen and trafgen count
    #[arg(short = 'l', long = "len", value_name = "BYTES", conflicts_with = "size", value_parser = clap::value_parser!(u16).range(14..=16_000))]
    length: Option<u16>,

    /// Frame length with FCS, or a mix: 64, imix, genome:aaafg
    #[arg(long = "sizes", alias = "size", value_name = "SIZE")]
    size: Option<FrameMix>,

    /// Source addresses and ports: 198.18.10.1:2001-198.18.10.20
    #[arg(short = 's', long, value_name = "RANGE", requires = "destination")]
    source: Option<String>,

    /// Destination addresses and ports
    #[arg(short = 'd', long, value_name = "RANGE", requires = "source")]
    destination: Option<String>,

    /// Source Ethernet address [default: the interface's]
    #[arg(short = 'S', long, value_name = "MAC")]
    source_mac: Option<MacAddr>,

    /// Destination Ethernet address [default in a lab of linerate: the DUT's or the receiver's; required elsewhere]
    #[arg(short = 'D', long, value_name = "MAC")]
    destination_mac: Option<MacAddr>,

    /// Frames to send, all threads together [default: until --duration is over; 1000 with --write]
    #[arg(short = 'n', long, value_name = "N", value_parser = count)]
    count: Option<u64>,

    /// Offered load: max, 100k (frames/s), 1Gbit/s:l1, 50%
    #[arg(short = 'R', long, value_name = "RATE", default_value = "max", value_parser = pkt_gen_rate)]
    rate: Rate,

    /// Link speed that percentages of line rate refer to [default: the interface's speed]
    #[arg(long, value_name = "SPEED", value_parser = parse_link_speed)]
    link_speed: Option<f64>,

    /// Stop after this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,

    /// Number of frames that go to the kernel at once
    #[arg(short = 'b', long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=256))]
    batch: u32,

    /// CPUs to send from, one thread each
    #[arg(short = 'a', long, value_name = "LIST", value_parser = cpu_list, conflicts_with = "threads")]
    cpus: Option<Cpus>,

    /// Number of threads, each on a CPU of its own
    #[arg(short = 'p', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,

    /// pkt-gen's function: sending is tx
    #[arg(short = 'f', value_name = "tx", value_parser = ["tx"], hide = true)]
    function: Option<String>,

    /// Number of flows in the benchmark address ranges, without -s and -d
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    flows: u32,

    /// Order of flows: sequential, random, zipf:EXPONENT
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    order: FlowOrder,

    /// IPv4 frames
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,

    /// IPv6 frames
    #[arg(short = '6')]
    ipv6: bool,

    /// Protocol above IP: udp, tcp or icmp
    #[arg(long, default_value = "udp")]
    transport: Transport,

    /// 802.1Q VLAN identifier
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    vlan: Option<u16>,

    /// Send frames without linerate's signature, as pkt-gen does: they may be shorter, but a receiver can only count them
    #[arg(long)]
    unsigned: bool,

    /// Leave the UDP checksum of IPv4 frames zero
    #[arg(long)]
    no_udp_checksum: bool,

    /// One frame in N carries a time stamp
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    stamp_every: u32,

    /// Write the frames to a capture file instead of sending them
    #[arg(
        id = "file",
        long = "write",
        value_name = "FILE",
        conflicts_with = "interface"
    )]
    write: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not send.
pub fn run(args: &Send) -> Exit {
    interrupt::install();
    let traffic = traffic(args)?;
    if let Some(file) = &args.write {
        return write(args, &traffic, file);
    }
    let allowed = port::open(&args.at, "send test traffic by")?;
    let cpus = cpus(args)?;
    let load = Load {
        rate: rate(args, &allowed, &traffic.mix, cpus.len())?,
        frames: args.count,
        batch: args.batch,
        ..Load::lasting(args.duration)
    };
    let target = Target {
        ifindex: allowed.link.index,
        source: args.source_mac.unwrap_or(MacAddr(allowed.link.mac)),
        destination: destination(args, &allowed)?,
    };
    let backend = args.at.backend.unwrap_or(Backend::Linerate);
    let (mut port, why) =
        ports::generator_at(backend, &allowed.namespace, target, &traffic, &cpus)?;
    why.iter().for_each(tell);
    transmit(args, &allowed, &traffic, &load, port.as_mut())
}

fn traffic(args: &Send) -> Result<Traffic> {
    let flows = match (&args.source, &args.destination) {
        (Some(source), Some(destination)) => {
            FlowSpace::parse(source, destination).map_err(linerate_runner::messages::usage)?
        }
        _ => FlowSpace::benchmark(if args.ipv6 { Family::V6 } else { Family::V4 }, args.flows)
            .map_err(linerate_runner::messages::usage)?,
    };
    if (args.ipv6 && flows.family() == Family::V4) || (args.ipv4 && flows.family() == Family::V6) {
        bail_usage!(
            "-s and -d are {} addresses, and -4 or -6 says otherwise",
            flows.family()
        );
    }
    let nowhere = MacAddr([0; 6]);
    let mut frame = FrameSpec::new(nowhere, nowhere, flows.family(), args.transport);
    frame.vlan = args.vlan.map(|id| VlanTag { id, priority: 0 });
    frame.signed = !args.unsigned;
    frame.l4_checksum =
        !(args.no_udp_checksum && frame.family == Family::V4 && args.transport == Transport::Udp);
    let mix = match (&args.size, args.length) {
        (Some(mix), _) => mix.clone(),
        (None, Some(length)) => FrameMix::single(length + FCS_LEN as u16),
        (None, None) => FrameMix::single(frame.min_len_fcs()),
    };
    let traffic = Traffic {
        order: args.order,
        campaign: args.at.sender,
        stamp_every: args.stamp_every,
        ..Traffic::new(frame, mix, flows)
    };
    traffic.check().map_err(linerate_runner::messages::usage)?;
    Ok(traffic)
}

/// Writes the frames that would be sent into a capture file.
fn write(args: &Send, traffic: &Traffic, file: &Path) -> Exit {
    let failed = || format!("writing {}", file.display());
    let traffic = traffic.addressed(
        args.source_mac.unwrap_or(MacAddr(addresses::mac(1, 1))),
        args.destination_mac
            .unwrap_or(MacAddr(addresses::mac(1, 2))),
    );
    let frames = args.count.unwrap_or(1000);
    let output = std::fs::File::create(file).with_context(failed)?;
    let mut writer = Writer::new(std::io::BufWriter::new(output)).with_context(failed)?;
    let mut source = FrameSource::new(&traffic, 0, 1)?;
    let mut buffer = vec![0; usize::from(traffic.mix.max_len_fcs())];
    for number in 0..frames {
        if interrupted() {
            bail!(
                "interrupted after {number} of {frames} frames: {} is incomplete",
                file.display()
            );
        }
        let length = source.fill(&mut buffer, 0);
        writer
            .write(number * 1000, &buffer[..length])
            .with_context(failed)?;
    }
    let file_written = writer
        .finish()
        .with_context(failed)?
        .into_inner()
        .with_context(failed)?;
    file_written.sync_all().with_context(failed)?;
    all_of(&format!(
        "{} written to {}\n",
        counted(frames as usize, "frame"),
        file.display()
    ))
}

fn cpus(args: &Send) -> Result<Vec<u32>> {
    let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
    let cpus = match &args.cpus {
        None if args.threads as usize > online.len() => {
            bail_usage!(
                "-p {} threads want as many CPUs, and there are {}",
                args.threads,
                online.len()
            )
        }
        // From the last on: the first has the machine's interrupts.
        None => online
            .into_iter()
            .rev()
            .take(args.threads as usize)
            .collect(),
        Some(cpus) => match cpus.0.iter().find(|c| !online.contains(c)) {
            Some(cpu) => bail_usage!("CPU {cpu} is not online, or not allowed to this process"),
            None => cpus.0.clone(),
        },
    };
    quota::suffices_for(&cpus).map_err(linerate_runner::messages::usage)?;
    Ok(cpus)
}

/// In a lab of ours the next hop is known; elsewhere the user must name it, because a wrong one floods a switch.
fn destination(args: &Send, allowed: &Allowed) -> Result<MacAddr> {
    if let Some(mac) = args.destination_mac {
        return Ok(mac);
    }
    let lane = allowed
        .link
        .name
        .strip_prefix('g')
        .and_then(|n| n.parse::<usize>().ok());
    match (allowed.in_lab, lane) {
        (true, Some(lane)) if routes(allowed, lane) => Ok(MacAddr(addresses::mac(lane, 2))),
        (true, Some(lane)) => Ok(MacAddr(addresses::mac(lane, 4))),
        _ => bail_usage!(
            "-D MAC is needed: the Ethernet address of the DUT's (or receiver's) interface"
        ),
    }
}

/// Whether the DUT of a lane of our lab routes.
fn routes(allowed: &Allowed, lane: usize) -> bool {
    let records = Registry::of_this_host()
        .list()
        .map(|l| l.records)
        .unwrap_or_default();
    let inode = allowed.namespace.inode();
    let lab = records
        .iter()
        .find(|r| r.namespaces.values().any(|n| n.inode == inode));
    lab.and_then(|lab| lab.duts.get(lane))
        .is_some_and(|dut| dut.routes())
}

fn rate(args: &Send, allowed: &Allowed, mix: &FrameMix, threads: usize) -> Result<Option<f64>> {
    let speed = || {
        // The kernel refuses to answer while the link is down, and says -1 where a driver does not know.
        let speed = sysfs::read(
            &allowed.namespace,
            &format!("class/net/{}/speed", allowed.link.name),
        );
        Some(f64::from(speed.ok()?.parse::<u32>().ok()?) * 1e6)
    };
    let link = args.link_speed.or_else(speed);
    args.rate
        .frames_per_second(mix.average_len_fcs(), link, threads)
        .map_err(usage)
}

fn transmit(
    args: &Send,
    allowed: &Allowed,
    traffic: &Traffic,
    load: &Load,
    port: &mut dyn Port,
) -> Exit {
    let route = Route::open(&allowed.namespace)?;
    let before = route.link_by_index(allowed.link.index)?.stats;
    let before_by_driver = by_driver(allowed);
    if args.at.printed.is_text() {
        announce(allowed, traffic, load, port);
    }
    port.start(load)?;
    port::watch(&args.at, port, "sent", 10, |_| port.finished());
    let ended = monotonic_ns();
    let began = port.began_ns().unwrap_or(ended);
    port.stop()?;
    // The last batch is handed over after the last frame was written.
    std::thread::sleep(Duration::from_millis(20));
    let mut after = route.link_by_index(allowed.link.index)?.stats;
    let counted = |after: &LinkStats| {
        let sent = after.tx_packets - before.tx_packets;
        InterfaceCounts {
            sent,
            refused: after.tx_dropped - before.tx_dropped,
        }
    };
    while counted(&after).sent + counted(&after).refused < port.frames()
        && monotonic_ns() < ended + COUNTED_NS
    {
        std::thread::sleep(Duration::from_millis(50));
        after = route.link_by_index(allowed.link.index)?.stats;
    }
    let (counters, code) = (port.counters(), port::status(port.frames(), interrupted()));
    let frames = counters.frames;
    let seconds = port.active_ns().unwrap_or(ended - began) as f64 / 1e9;
    let interface = counted(&after);
    let sent = Sent {
        totals: Totals::new(counters, seconds),
        interface,
    };
    result(&args.at.printed, || &sent, || pages::sent(&sent))?;
    warn_of_rate(load.rate, frames, seconds);
    if frames > 0 && interface.sent == 0 && by_driver(allowed) <= before_by_driver {
        let (name, backend) = (&allowed.link.name, port.backend());
        bail!(
            "{name} has sent none of these frames by its own counters: its driver or the other end drops what {backend} hands over; --backend names another way"
        );
    }
    exit(code)
}

/// Some drivers read their card's counters every two seconds.
const COUNTED_NS: u64 = 2_500_000_000;

/// Frames of XDP that a driver has sent, by its own statistics: some drivers leave these frames out of the interface's counters.
fn by_driver(allowed: &Allowed) -> u64 {
    let stats =
        Ethtool::open(&allowed.namespace).and_then(|ethtool| ethtool.stats(&allowed.link.name));
    let of_xdp = |name: &str| {
        let has = |word| name.contains(word);
        has("xdp") && (has("tx") || has("xmit")) && !has("err") && !has("drop") && !has("full")
    };
    stats
        .unwrap_or_default()
        .iter()
        .filter(|(name, _)| of_xdp(name))
        .map(|(_, frames)| frames)
        .sum()
}

fn announce(allowed: &Allowed, traffic: &Traffic, load: &Load, port: &dyn Port) {
    let rate = load
        .rate
        .map_or("as fast as possible".into(), |r| format!("{r:.1} frames/s"));
    print(&format!(
        "{} {} frames of {} bytes with FCS, {} flows ({}), {rate}, from {} by {}, sender {}\n",
        traffic.frame.family,
        traffic.frame.transport,
        traffic.mix.name,
        traffic.flows.len(),
        traffic.order,
        allowed.link.name,
        port.backend(),
        traffic.campaign,
    ));
}

/// Warns if the offered rate, which is always measured, differs from the requested one.
fn warn_of_rate(asked: Option<f64>, frames: u64, seconds: f64) {
    let Some(asked) = asked.filter(|_| seconds > 0.0) else {
        return;
    };
    let offered = frames as f64 / seconds;
    // A frame at each end of a short run is no error.
    if (offered - asked).abs() > OFFERED_TOLERANCE * asked + 2.0 / seconds {
        let off = 100.0 * (offered / asked - 1.0);
        tell(format!(
            "warning: {asked:.1} frames/s were asked for, and {offered:.1} were sent ({off:+.2} %)"
        ));
    }
}
