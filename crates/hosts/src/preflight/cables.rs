//! Interfaces and cables: links, speeds, pause frames, addresses, and who knows whom by ARP.

use super::{Findings, Plug, Port, Station, alike, by_address, ports, speed};
use crate::systems::Interface;
use crate::words::unless_empty;
use linerate_plan::Backend;
use linerate_plan::lab::{HostAddress, Interface as LabInterface, Lab};
use std::net::IpAddr;

/// Checks a host's interfaces one by one.
pub(super) fn interfaces(lab: &Lab, station: &Station<'_>, out: &mut Findings) {
    let host = station.host;
    let managed = managed(station);
    for port in ports(lab, host) {
        let Port { key, wanted, .. } = port;
        let interface = match port.found(station.facts) {
            Ok(interface) => interface,
            Err(why) => {
                let names = station.facts.interfaces.iter().take(20);
                let names: Vec<&str> = names.map(|i| i.name.as_str()).collect();
                let evidence = format!("{why}; it has {}", names.join(" "));
                let remedy = "correct the lab file, or load the driver";
                out.fault(host, format!("[{key}] is not there"), evidence, remedy);
                continue;
            }
        };
        let name = &interface.name;
        if managed.is_some_and(|m| m.name == *name) {
            out.fault(
                host,
                format!("[{key}] is the interface that ssh comes in at"),
                format!("both are {name}"),
                "use another interface: a load would cut the host off",
            );
        }
        link(station, interface, wanted.speed.or(lab.link_speed), out);
        if interface.pause.is_on() {
            let yes = |on: Option<bool>| if on == Some(true) { "on" } else { "off" };
            out.warning(
                host,
                format!("{name} uses pause frames"),
                format!(
                    "obeyed {}, sent {}",
                    yes(interface.pause.rx),
                    yes(interface.pause.tx)
                ),
                pause_off(station, name),
            );
        }
        addresses(station, interface, wanted, out);
    }
}

/// Whether an interface has a link that carries frames at the speed that is wanted.
fn link(station: &Station<'_>, interface: &Interface, wanted: Option<f64>, out: &mut Findings) {
    let (host, name) = (station.host, &interface.name);
    if !interface.up {
        let by = if station.is_linux() {
            "ip link set"
        } else {
            "ifconfig"
        };
        out.fault(
            host,
            format!("{name} is switched off"),
            "its flags have no UP",
            format!("{by} {name} up"),
        );
    } else if interface.link == Some(false) {
        let media = interface.media.as_deref().unwrap_or_default();
        let media = unless_empty("; medium: ", media, "");
        let remedy = "see the cable, the transceiver, the other end, and whether pkt-gen has it open (that resets the link)";
        out.fault(
            host,
            format!("{name} has no link"),
            format!("no carrier{media}"),
            remedy,
        );
    }
    if interface.full_duplex == Some(false) {
        let media = interface.media.as_deref().unwrap_or("half duplex");
        out.fault(
            host,
            format!("{name} runs at half duplex"),
            media,
            "let both ends negotiate, or neither",
        );
    }
    if let (Some(wanted), Some(is)) = (
        wanted,
        interface.speed.filter(|_| interface.link != Some(false)),
    ) && (wanted / is - 1.0).abs() > 0.01
    {
        let remedy = "see cable and negotiation, or correct speed in the lab file: shares of line rate are of that";
        out.fault(
            host,
            format!("{name} runs at {}, not {}", speed(is), speed(wanted)),
            interface.media.as_deref().unwrap_or("by ethtool"),
            remedy,
        );
    }
}

/// Whether an interface has the addresses of the lab file.
fn addresses(
    station: &Station<'_>,
    interface: &Interface,
    wanted: &LabInterface,
    out: &mut Findings,
) {
    let (host, name) = (station.host, &interface.name);
    if let Some((said, is)) = wanted
        .mac
        .zip(interface.mac)
        .filter(|(said, is)| said != is)
    {
        out.fault(
            host,
            format!("{name} has another Ethernet address than the lab file says"),
            format!("it is {is}, not {said}"),
            "correct the lab file: frames to the wrong address are dropped by the card",
        );
    }
    for said in &wanted.addresses {
        let differ = |a: &HostAddress| {
            a.length
                .zip(said.length)
                .is_some_and(|(is, said)| is != said)
        };
        if interface
            .addresses
            .iter()
            .any(|a| a.address == said.address && !differ(a))
        {
            continue;
        }
        let remedy = match said {
            _ if station.is_linux() => format!("ip addr add {said} dev {name}"),
            _ if said.address.is_ipv6() => format!("ifconfig {name} inet6 {said}"),
            _ => format!("ifconfig {name} inet {said} alias"),
        };
        out.fault(
            host,
            format!("{name} does not have the address {said}"),
            listed(
                interface
                    .addresses
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            ),
            format!("{remedy}, or correct the lab file"),
        );
    }
}

/// The interface of the ssh connection, as far as it is known.
fn managed<'a>(station: &Station<'a>) -> Option<&'a Interface> {
    let facts = station.facts;
    let said = station
        .host
        .management
        .as_ref()
        .and_then(|wanted| match &wanted.name {
            Some(name) => facts.interface(name),
            None => by_address(wanted, facts),
        });
    let address: Option<IpAddr> = station
        .host
        .reach
        .ssh()
        .and_then(|ssh| ssh.host.parse().ok());
    said.or_else(|| {
        facts
            .interfaces
            .iter()
            .find(|i| i.addresses.iter().any(|a| Some(a.address) == address))
    })
}

fn listed(words: Vec<String>) -> String {
    if words.is_empty() {
        "it has none".into()
    } else {
        format!("it has {}", words.join(", "))
    }
}

fn pause_off(station: &Station<'_>, name: &str) -> String {
    let by_sysctl = || {
        let at = name.find(|c: char| c.is_ascii_digit())?;
        let (driver, unit) = name.split_at(at);
        let key = station.facts.sysctls.keys().find(|k| {
            k.starts_with(&format!("dev.{driver}.{unit}."))
                && (k.ends_with(".fc") || k.ends_with(".pause_settings"))
        })?;
        Some(format!("sysctl {key}=0"))
    };
    match station.is_linux() {
        true => format!("ethtool -A {name} autoneg off rx off tx off"),
        false => by_sysctl().unwrap_or_else(|| {
            "switch flow control off in the driver and on a switch in between".into()
        }),
    }
}

/// Checks both ends of a cable.
pub(super) fn check([a, b]: &[Plug<'_>; 2], out: &mut Findings) {
    if let (Some(left), Some(right)) = (a.found.speed, b.found.speed)
        && left != right
    {
        out.fault(
            a.station.host,
            format!(
                "the ends of the cable {} run at different speeds",
                between(a, b)
            ),
            format!("{} and {}", speed(left), speed(right)),
            "a switch in between, or the wrong interface in the lab file",
        );
    }
    if let (Some(left), Some(right)) = (a.found.mtu, b.found.mtu)
        && left != right
    {
        out.warning(
            a.station.host,
            format!(
                "the ends of the cable {} have different MTUs",
                between(a, b)
            ),
            format!("{left} and {right}"),
            "set both alike, or long frames are dropped at one end",
        );
    }
    knows(a, b, out);
    knows(b, a, out);
}

fn between(a: &Plug<'_>, b: &Plug<'_>) -> String {
    format!(
        "{} {} - {} {}",
        a.station.host.name, a.found.name, b.station.host.name, b.found.name
    )
}

/// Whether one end can send to the other: it has its address by ARP or neighbour discovery, and the right one.
fn knows(from: &Plug<'_>, to: &Plug<'_>, out: &mut Findings) {
    let (facts, host, at) = (from.station.facts, from.station.host, &from.found.name);
    let silent = to.station.tool() == Some(Backend::PktGen);
    let near = &from.found.addresses;
    let in_reach = |far: &&HostAddress| {
        near.iter()
            .any(|n| alike(n.address, far.address) && n.reaches(far.address) == Some(true))
    };
    for far in to.wanted.addresses.iter().filter(in_reach) {
        let who = format!("{} of {}", far.address, to.station.host.name);
        let entries = || facts.neighbours.iter().filter(|n| n.address == far.address);
        let (is_fault, what, evidence) = match entries().find(|n| n.interface == *at) {
            None => match entries().next() {
                Some(other) => {
                    out.fault(
                        host,
                        format!("it looks for {who} behind another interface"),
                        format!("it knows it at {}, not at {at}", other.interface),
                        "see for swapped cables and for two interfaces in one network",
                    );
                    continue;
                }
                // A host can still ask, unless the other side cannot answer: pkt-gen takes all frames from the system that would.
                None => {
                    let what = format!("it does not know who has {who}");
                    (silent, what, format!("no entry for it at {at}"))
                }
            },
            Some(entry) => match (entry.mac, to.found.mac) {
                (None, _) => {
                    let evidence = format!("its entry at {at} is incomplete");
                    (true, format!("{who} does not answer it"), evidence)
                }
                (Some(said), Some(is)) if said != is => {
                    let what = format!("it has the wrong Ethernet address for {who}");
                    let evidence = format!("it knows {said}, {} has {is}", to.found.name);
                    (true, what, evidence)
                }
                _ if silent && !entry.permanent => {
                    let why = "expires, and ARP gets no answer while pkt-gen runs";
                    let what = format!("it will forget who has {who}");
                    (false, what, format!("its entry at {at} {why}"))
                }
                _ => continue,
            },
        };
        let stay = stay(from, to, &far.address.to_string());
        match is_fault {
            true => out.fault(host, what, evidence, stay),
            false => out.warning(host, what, evidence, stay),
        }
    }
}

/// A permanent entry: under netmap, ARP gets no answer.
fn stay(from: &Plug<'_>, to: &Plug<'_>, address: &str) -> String {
    let mac = to.found.mac.map_or("MAC".to_string(), |m| m.to_string());
    match address {
        _ if from.station.is_linux() => {
            format!(
                "ip neigh replace {address} lladdr {mac} dev {} nud permanent",
                from.found.name
            )
        }
        _ if address.contains(':') => format!("ndp -s {address} {mac}"),
        _ => format!("arp -s {address} {mac}"),
    }
}
