//! netsniff-ng's trafgen: command lines, and the totals that it prints at its end.
//!
//! A packet is an argument in trafgen's own language. Its ranges (`dinc`) go up together, each for itself: so there are
//! as many flows as the least common multiple of their lengths, all pairs only where those have no common divisor.

use super::fault::{FaultKind, Signs};
use super::monitor::{Parse, Report, State, Totals};
use super::{Invocation, Refusable, Task, Words};
use linerate_wire::EndpointRange;
use std::net::{IpAddr, Ipv4Addr};

const MARGIN_S: u32 = 5;

pub fn generator(task: &Task) -> Refusable {
    if task.threads > 1 {
        return Err("bound the frames of more than one process: its count is that of each".into());
    }
    let destination_mac = task.destination_mac()?;
    let unbounded =
        "run for a time without a rate: give one, or its end is a kill and its totals are lost";
    let frames = task.frames().ok_or(unbounded)?;
    let source_mac = task
        .source_mac()
        .map(|m| format!(", sa={m}"))
        .unwrap_or_default();
    let ports = |ends: &EndpointRange| {
        range(ends.first_port().into(), ends.last_port().into(), |port| {
            port.to_string()
        })
    };
    let [source, destination] = task.ends();
    let packet = format!(
        "{{ eth(da={destination_mac}{source_mac}), {}, udp(sp={}, dp={}), fill(0x5a, {}) }}",
        network(task)?,
        ports(source),
        ports(destination),
        task.payload(),
    );
    let pps = frames as f64 / f64::from(task.seconds());
    // The host's socket memory and interrupts stay as they are. (0.6.8 documents -A but does not accept it.)
    let command = Words::new(["trafgen", "--no-sock-mem", "-Q", "-P", "1"])
        .option("-o", &task.interface)
        .option("-n", frames)
        .option("-b", format!("{:.0}pps", pps.max(1.0)))
        .word(packet);
    let limit_s = task.link_wait_s + task.seconds() + MARGIN_S;
    // trafgen's processes survive SIGINT. They do not survive this; that of them which sends is ended with the whole group.
    Ok(Invocation::bounded("KILL", 2, limit_s, command))
}

/// The IP header, if its ranges make the flows asked for.
fn network(task: &Task) -> Refusable<String> {
    let [from, to] = task.ends();
    let lengths = [
        from.addresses(),
        from.ports().into(),
        to.addresses(),
        to.ports().into(),
    ];
    let flows = lengths
        .into_iter()
        .try_fold(1u64, |lcm, n| (lcm / gcd(lcm, n)).checked_mul(n));
    let asked = task.traffic.flows.len();
    if flows != Some(asked) {
        return Err(format!(
            "make {asked} flows: its ranges go up together, so their lengths must have no common divisor (20 addresses with 101, \
             not with 100)"
        ));
    }
    match (
        from.first_address(),
        from.last_address(),
        to.first_address(),
        to.last_address(),
    ) {
        (IpAddr::V4(a), IpAddr::V4(b), IpAddr::V4(c), IpAddr::V4(d)) => {
            let text = |n: u32| Ipv4Addr::from(n).to_string();
            let both = [(a, b), (c, d)].map(|(first, last)| range(first.into(), last.into(), text));
            Ok(format!("ipv4(sa={}, da={}, ttl=64)", both[0], both[1]))
        }
        (IpAddr::V6(a), b, IpAddr::V6(c), d) if b == a && d == c => {
            Ok(format!("ipv6(sa={a}, da={c}, hl=64)"))
        }
        _ => Err("vary IPv6 addresses between two bounds: vary ports, or use pkt-gen".into()),
    }
}

/// One value as `text` has it, or a range in numbers.
fn range(first: u32, last: u32, text: impl Fn(u32) -> String) -> String {
    if first == last {
        text(first)
    } else {
        format!("dinc({first}, {last})")
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Faults in trafgen's own words, in lower case.
pub const FAULTS: &Signs = &[
    (
        FaultKind::NoInterface,
        "no networking device or pcap file|no networking device given",
    ),
    (FaultKind::NotOpened, "failed to open output device"),
    (
        FaultKind::NoPrivilege,
        "cannot set nic flags|creation of pf socket failed",
    ),
    (FaultKind::LinkDown, "flushing tx_ring failed|sendto error"),
    (FaultKind::NoMemory, "cannot allocate tx_ring|cannot mmap"),
    (
        FaultKind::BadArgument,
        "syntax error|unrecognized option|invalid option",
    ),
];

/// Takes a running trafgen's lines. It has no samples.
#[derive(Default)]
pub struct Trafgen {
    /// The longest of its processes.
    seconds: f64,
}

impl Parse for Trafgen {
    fn line(&mut self, bytes: &[u8], _: bool, report: &mut Report) -> bool {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]);
        let text = text.trim();
        let counted = |label: &str| {
            text.strip_suffix(label)
                .and_then(|n| n.trim_end().parse::<u64>().ok())
        };
        if text.starts_with("Running!") {
            // trafgen prints nothing more until its end.
            report.moves(State::Up);
        } else if let Some(packets) = counted("packets outgoing") {
            report.says(Totals {
                packets: Some(packets),
                ..report.totals
            });
        } else if let Some(bytes) = counted("bytes outgoing") {
            report.totals.bytes = Some(bytes);
        } else if let Some(seconds) = took(text) {
            self.seconds = self.seconds.max(seconds);
            report.totals.seconds = Some(self.seconds);
        } else {
            return false;
        }
        true
    }
}

/// `0 sec, 31151 usec on CPU0 (6 packets)`.
fn took(text: &str) -> Option<f64> {
    let (seconds, rest) = text.split_once(" sec, ")?;
    let (micros, rest) = rest.split_once(" usec")?;
    let (seconds, micros): (u32, u32) = (seconds.trim().parse().ok()?, micros.parse().ok()?);
    rest.trim_start()
        .starts_with("on CPU")
        .then(|| f64::from(seconds) + f64::from(micros) * 1e-6)
}
