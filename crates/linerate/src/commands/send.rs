//! `linerate send`: the generator by hand.

use super::guard::{self, Allowed};
use super::tally::{self, Tally};
use crate::cli::Send;
use crate::interrupt;
use crate::output::{FAILED, INTERRUPTED, print, usage};
use anyhow::{Context, Result, bail};
use linerate_linux::host::cpu;
use linerate_linux::lab::addresses;
use linerate_linux::net::ethtool::Ethtool;
use linerate_linux::net::netlink::Route;
use linerate_linux::net::registry::{DEFAULT_ROOT, Registry};
use linerate_linux::ports::user_generator::FrameSource;
use linerate_linux::ports::{self, Port, Target, monotonic_ns};
use linerate_measure::audit::OFFERED_TOLERANCE;
use linerate_measure::counters::PortCounters;
use linerate_wire::{
    FCS_LEN, Family, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport, VlanTag, Writer,
};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the verb.
///
/// # Errors
/// What kept it from sending.
pub fn run(args: &Send) -> Result<ExitCode> {
    interrupt::install();
    let traffic = traffic(args)?;
    if let Some(file) = &args.write {
        return write(args, &traffic, file);
    }
    let interface = args.interface.as_deref().unwrap_or_default();
    let allowed = guard::open(
        args.netns.as_deref(),
        interface,
        &args.isolated_lab,
        Duration::from_secs(args.wait_link),
    )?;
    guard::check_mtu(&allowed.link, traffic.mix.max_len_fcs(), args.vlan.is_some())?;
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
    let mut port = ports::generator(args.port, &allowed.namespace, &[target], &traffic, &cpus)?;
    transmit(args, &allowed, &traffic, &load, port.as_mut())
}

fn traffic(args: &Send) -> Result<Traffic> {
    let flows = match (&args.source, &args.destination) {
        (Some(source), Some(destination)) => FlowSpace::parse(source, destination).map_err(usage)?,
        _ => FlowSpace::benchmark(if args.ipv6 { Family::V6 } else { Family::V4 }, args.flows)
            .map_err(usage)?,
    };
    if (args.ipv6 && flows.family() == Family::V4) || (args.ipv4 && flows.family() == Family::V6) {
        return Err(usage(format!(
            "-s and -d are {} addresses, and -4 or -6 says otherwise",
            flows.family()
        )));
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
        campaign: args.campaign,
        stamp_every: args.stamp_every,
        ..Traffic::new(frame, mix, flows)
    };
    traffic.check().map_err(usage)?;
    Ok(traffic)
}

/// Writes the frames that would be sent into a capture file.
fn write(args: &Send, traffic: &Traffic, file: &Path) -> Result<ExitCode> {
    let failed = || format!("writing {}", file.display());
    let traffic = traffic.addressed(
        args.source_mac.unwrap_or(MacAddr(addresses::mac(1, 1))),
        args.destination_mac.unwrap_or(MacAddr(addresses::mac(1, 2))),
    );
    let frames = args.count.unwrap_or(1000);
    let output = std::fs::File::create(file).with_context(failed)?;
    let mut writer = Writer::new(std::io::BufWriter::new(output)).with_context(failed)?;
    let mut source = FrameSource::new(&traffic, 0, 1)?;
    let mut buffer = vec![0; usize::from(traffic.mix.max_len_fcs())];
    for number in 0..frames {
        if interrupt::interrupted() {
            bail!("interrupted after {number} of {frames} frames: {} is incomplete", file.display());
        }
        let length = source.fill(&mut buffer, 0);
        writer.write(number * 1000, &buffer[..length]).with_context(failed)?;
    }
    let file_written = writer.finish().with_context(failed)?.into_inner().with_context(failed)?;
    file_written.sync_all().with_context(failed)?;
    print(&format!("{frames} frames written to {}\n", file.display()));
    Ok(ExitCode::SUCCESS)
}

fn cpus(args: &Send) -> Result<Vec<u32>> {
    let online = cpu::online_cpus().context("asking which CPUs this process may use")?;
    match &args.cpus {
        None if args.threads as usize > online.len() => Err(usage(format!(
            "-p {} threads want as many CPUs, and there are {}",
            args.threads,
            online.len()
        ))),
        // From the last on: the first has the machine's interrupts.
        None => Ok(online.into_iter().rev().take(args.threads as usize).collect()),
        Some(cpus) => match cpus.0.iter().find(|c| !online.contains(c)) {
            Some(cpu) => Err(usage(format!("CPU {cpu} is not online, or not allowed to this process"))),
            None => Ok(cpus.0.clone()),
        },
    }
}

/// In a lab of ours the next hop is known; elsewhere the user must name it, because a wrong one floods a switch.
fn destination(args: &Send, allowed: &Allowed) -> Result<MacAddr> {
    if let Some(mac) = args.destination_mac {
        return Ok(mac);
    }
    let lane = allowed.link.name.strip_prefix('g').and_then(|n| n.parse::<usize>().ok());
    match (allowed.in_lab, lane) {
        (true, Some(lane)) if routes(allowed, lane) => Ok(MacAddr(addresses::mac(lane, 2))),
        (true, Some(lane)) => Ok(MacAddr(addresses::mac(lane, 4))),
        _ => Err(usage("-D MAC is needed: the Ethernet address of the DUT's (or receiver's) interface")),
    }
}

/// Whether the DUT of a lane of our lab routes.
fn routes(allowed: &Allowed, lane: usize) -> bool {
    let records = Registry::at(DEFAULT_ROOT).list().map(|l| l.records).unwrap_or_default();
    let inode = allowed.namespace.inode();
    let lab = records.iter().find(|r| r.namespaces.values().any(|n| n.inode == inode));
    lab.and_then(|lab| lab.duts.get(lane)).is_some_and(|dut| dut.routes())
}

fn rate(args: &Send, allowed: &Allowed, mix: &FrameMix, threads: usize) -> Result<Option<f64>> {
    let speed = || {
        let mbps = Ethtool::open(&allowed.namespace).ok()?.speed_mbps(&allowed.link.name).ok()??;
        Some(f64::from(mbps) * 1e6)
    };
    let link = args.link_speed.or_else(speed);
    args.rate.frames_per_second(mix.average_len_fcs(), link, threads).map_err(usage)
}

fn transmit(
    args: &Send,
    allowed: &Allowed,
    traffic: &Traffic,
    load: &Load,
    port: &mut dyn Port,
) -> Result<ExitCode> {
    let route = Route::open(&allowed.namespace)?;
    let before = route.link_by_index(allowed.link.index)?.stats;
    if !args.json {
        announce(allowed, traffic, load, port);
    }
    port.start(load)?;
    let mut tally = Tally::new(args.json, args.normalize, args.report_ms);
    while !port.finished() && !interrupt::interrupted() {
        std::thread::sleep(Duration::from_millis(args.report_ms.min(10)));
        tally.tick("sent", port.frames());
    }
    let ended = monotonic_ns();
    let began = port.began_ns().unwrap_or(ended);
    port.stop()?;
    // The last batch is handed over after the last frame was written.
    std::thread::sleep(Duration::from_millis(20));
    let after = route.link_by_index(allowed.link.index)?.stats;
    let counters = port.counters();
    let seconds = port.active_ns().map_or(ended - began, |ns| ns) as f64 / 1e9;
    let (sent, refused) = (after.tx_packets - before.tx_packets, after.tx_dropped - before.tx_dropped);
    report(args, &counters, seconds, sent, refused);
    warn_of_rate(load.rate, counters.frames, seconds);
    if counters.frames > 0 && sent + refused == 0 {
        eprintln!(
            "linerate: warning: {name} counted none of these frames. Where it is a veth, its other end takes redirected frames only with GRO on or an XDP program: ethtool -K PEER gro on",
            name = allowed.link.name
        );
    }
    if interrupt::interrupted() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if counters.frames == 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn announce(allowed: &Allowed, traffic: &Traffic, load: &Load, port: &dyn Port) {
    let rate = load.rate.map_or("as fast as possible".into(), |r| format!("{r:.1} frames/s"));
    print(&format!(
        "{} {} frames of {} bytes with FCS, {} flows ({}), {rate}, from {} by {}, campaign {}\n",
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

/// What was offered is measured, never assumed: says so where it is not what was asked.
fn warn_of_rate(asked: Option<f64>, frames: u64, seconds: f64) {
    let Some(asked) = asked.filter(|_| seconds > 0.0) else { return };
    let offered = frames as f64 / seconds;
    // A frame at each end of a short run is no error.
    if (offered - asked).abs() > OFFERED_TOLERANCE * asked + 2.0 / seconds {
        let off = 100.0 * (offered / asked - 1.0);
        eprintln!(
            "linerate: warning: {asked:.1} frames/s were asked for, and {offered:.1} were sent ({off:+.2} %)"
        );
    }
}

fn report(args: &Send, counters: &PortCounters, seconds: f64, sent: u64, refused: u64) {
    if args.json {
        let mut document = tally::totals(counters, seconds);
        document["counters"] = serde_json::to_value(counters).unwrap_or_default();
        document["interface"] = serde_json::json!({ "sent": sent, "refused": refused });
        print(&format!("{document:#}\n"));
        return;
    }
    print(&format!("Sent {}\n", tally::sentence(counters, seconds)));
    print(&format!("Interface: {sent} sent, {refused} refused (the other end's ring was full)\n"));
    if counters.stall_ns > 10_000_000 {
        print(&format!(
            "The generator was kept from running for up to {} ms at a time\n",
            counters.stall_ns / 1_000_000
        ));
    }
}
