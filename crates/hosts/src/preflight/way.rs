//! Ways: through the DUT, and between hosts whose tools send by their system's own stack.

use super::{Findings, Station, alike, is_link_local, ports};
use crate::systems::Kernel;
use crate::systems::{Facts, Interface};
use linerate_plan::Backend;
use linerate_plan::lab::{Host, HostAddress, Lab, Role};
use linerate_plan::settings::End;
use linerate_plan::sysctl::forwarding;
use linerate_wire::Family;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The way through the DUT: it forwards, and has a route to both sides.
pub(super) fn through(lab: &Lab, stations: &[Station<'_>], out: &mut Findings) {
    let Some(dut) = stations.iter().find(|s| s.host.roles.contains(&Role::Dut)) else {
        return;
    };
    for end in [End::In, End::Out] {
        for network in lab.networks(end) {
            if let Some(to) = behind(network, dut.host, dut.facts) {
                route(lab, dut, end, network, to, out);
            }
        }
    }
    let six = |end: &End| lab.networks(*end).iter().any(|n| n.contains(':'));
    forwards(lab, dut, [End::In, End::Out].iter().any(six), out);
}

/// An address of a network that the DUT can only reach over a neighbour, where the network has one: the first, one in its middle, or
/// one at its end. In a network of the DUT's own, one that is not the DUT's.
pub(super) fn behind(network: &str, dut: &Host, facts: &Facts) -> Option<IpAddr> {
    let HostAddress { address, length } = network.parse().ok()?;
    let said = [&dut.inside, &dut.outside]
        .into_iter()
        .flatten()
        .flat_map(|i| &i.addresses);
    let own: Vec<&HostAddress> = said
        .chain(facts.interfaces.iter().flat_map(|i| &i.addresses))
        .collect();
    let hosts = hosts(if address.is_ipv4() { 32 } else { 128 }, length);
    let at = |host: u128| match address {
        IpAddr::V4(a) => IpAddr::V4((u32::from(a) | (host & hosts) as u32).into()),
        IpAddr::V6(a) => IpAddr::V6((u128::from(a) | (host & hosts)).into()),
    };
    let candidates = [at(1), at((hosts / 2 + 1) | 1), at(hosts.saturating_sub(1))];
    let far = |to: &IpAddr| !own.iter().any(|a| a.reaches(*to) == Some(true));
    let other = |to: &IpAddr| own.iter().all(|a| a.address != *to);
    candidates
        .iter()
        .copied()
        .find(far)
        .or(candidates.into_iter().find(other))
}

/// The bits of an address that are the host's; none in networks of one or two addresses, which are all hosts'.
fn hosts(bits: u32, length: Option<u8>) -> u128 {
    match bits.saturating_sub(length.map_or(bits, u32::from)) {
        0 | 1 => 0,
        128 => u128::MAX,
        n => (1 << n) - 1,
    }
}

/// Frames for a network leave by the right interface, to the right neighbour. Ways that were not asked for are not judged.
fn route(lab: &Lab, dut: &Station<'_>, end: End, network: &str, to: IpAddr, out: &mut Findings) {
    let host = dut.host;
    let Some(way) = dut.facts.ways.get(&to) else {
        return;
    };
    let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
    let hop = lab.next_hop(end, family);
    let Some(interface) = found(lab, dut, key(end)).first().copied() else {
        return;
    };
    // A network that the lab does not use, in a version of IP that its cables do not have, needs no way.
    if hop.is_none()
        && !interface
            .addresses
            .iter()
            .any(|a| a.reaches(to) == Some(true))
    {
        return;
    }
    let remedy = add(dut, network, hop, &interface.name);
    let Some(way) = way else {
        out.fault(
            host,
            format!("it has no route to {network}"),
            format!("asked for {to}"),
            remedy,
        );
        return;
    };
    if way.interface != interface.name {
        out.fault(
            host,
            format!("it sends frames for {network} by another interface"),
            format!(
                "the way to {to} is by {}, not {}",
                way.interface, interface.name
            ),
            remedy,
        );
    } else if let (Some(is), Some(hop)) = (way.gateway, hop)
        && is != hop
    {
        out.fault(
            host,
            format!("it sends frames for {network} to another neighbour"),
            format!("the way to {to} is over {is}, not {hop}"),
            remedy,
        );
    }
}

/// The interfaces of a host that have this key in the lab file.
fn found<'a>(lab: &Lab, station: &Station<'a>, key: &str) -> Vec<&'a Interface> {
    let ports = ports(lab, station.host)
        .into_iter()
        .filter(|port| port.key == key);
    ports
        .filter_map(|port| port.found(station.facts).ok())
        .collect()
}

/// The key of the DUT's interface at an end.
fn key(end: End) -> &'static str {
    if end == End::In { "in" } else { "out" }
}

fn forwards(lab: &Lab, dut: &Station<'_>, six: bool, out: &mut Findings) {
    let Some(kernel) = dut.facts.kernel() else {
        return;
    };
    let host: &Host = dut.host;
    let carries = |v4: bool| {
        let ends = ["in", "out"]
            .into_iter()
            .flat_map(|key| found(lab, dut, key));
        ends.flat_map(|i| &i.addresses)
            .any(|a| a.address.is_ipv4() == v4 && !is_link_local(a.address))
    };
    for (key, wanted) in forwarding(kernel.into())
        .into_iter()
        .zip([carries(true), six && carries(false)])
    {
        if let Some(value) = dut.facts.number(key).filter(|v| wanted && *v == 0) {
            out.fault(
                host,
                "it does not forward",
                format!("{key} is {value}"),
                format!("sysctl {key}=1"),
            );
        }
        if kernel == Kernel::OpenBsd && wanted && dut.facts.number(key) == Some(2) {
            out.fault(
                host,
                "it forwards IPsec packets only",
                format!("{key} is 2 (sysctl(2) of OpenBSD)"),
                format!("sysctl {key}=1"),
            );
        }
    }
}

/// Ways between generators and receiver that are asked for with [`crate::systems::Question::Way`], by the names of the hosts: their
/// interfaces' addresses must be known. Not more than 16 for a host.
pub fn ways(lab: &Lab, facts: &BTreeMap<String, Facts>) -> BTreeMap<String, Vec<IpAddr>> {
    let receiver = lab.receiver();
    let of = |host: &Host, key: &str| -> Vec<IpAddr> {
        let Some(facts) = facts.get(&host.name) else {
            return Vec::new();
        };
        found(lab, &Station { host, facts }, key)
            .into_iter()
            .flat_map(addresses)
            .take(16)
            .collect()
    };
    let mut asked: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for generator in lab.generators().filter(|host| host.name != receiver.name) {
        asked.insert(generator.name.clone(), of(receiver, "receive"));
        let back = asked.entry(receiver.name.clone()).or_default();
        back.extend(of(generator, "send"));
        back.truncate(16);
    }
    asked.retain(|_, to| !to.is_empty());
    asked
}

/// Addresses of an interface that frames can be sent to.
fn addresses(interface: &Interface) -> impl Iterator<Item = IpAddr> + '_ {
    interface
        .addresses
        .iter()
        .map(|a| a.address)
        .filter(|a| !is_link_local(*a))
}

/// Tools that send by their system's own stack, iperf3 and netperf: they need two hosts, and routes from each to the other.
pub(super) fn across(lab: &Lab, stations: &[Station<'_>], out: &mut Findings) {
    let Some(receiver) = stations
        .iter()
        .find(|s| s.host.roles.contains(&Role::Receiver))
    else {
        return;
    };
    for generator in stations
        .iter()
        .filter(|s| s.host.roles.contains(&Role::Generator))
    {
        let own = generator.tool().filter(|tool| tool.uses_host_stack());
        let Some(tool) = own else { continue };
        if generator.host.name == receiver.host.name {
            out.fault(generator.host, format!("{} would not send over the cables", tool.name()), "generator and receiver are one host, whose system sends nothing to itself over cables", "let linerate or pkt-gen send, or give each a host");
            continue;
        }
        let theirs = receiver.tool();
        if theirs != Some(tool) {
            let evidence = format!(
                "{} uses {}",
                receiver.host.name,
                theirs.map_or("nothing", Backend::name)
            );
            let remedy = format!("write tool = \"{}\" for both", tool.name());
            let what = format!("{} has no server to connect to", tool.name());
            out.fault(generator.host, what, evidence, remedy);
        }
        let needs = format!("{} sends by the system's routes", tool.name());
        reaches(lab, (generator, "send"), (receiver, "receive"), &needs, out);
        reaches(lab, (receiver, "receive"), (generator, "send"), &needs, out);
    }
}

/// Whether one host's system sends frames for the other's interface by its own of the lab. Ways that were not asked for are not
/// judged.
fn reaches(
    lab: &Lab,
    (from, key): (&Station<'_>, &str),
    (to, far): (&Station<'_>, &str),
    needs: &str,
    out: &mut Findings,
) {
    let names: Vec<&str> = found(lab, from, key)
        .iter()
        .map(|i| i.name.as_str())
        .collect();
    for address in found(lab, to, far).into_iter().flat_map(addresses) {
        let Some(way) = from.facts.ways.get(&address) else {
            continue;
        };
        let what = format!(
            "it has no route to {address} of {} over the lab",
            to.host.name
        );
        let evidence = match way {
            Some(way) if names.contains(&way.interface.as_str()) => continue,
            Some(way) => {
                format!(
                    "{needs}, and its way there is by {}, not {}",
                    way.interface,
                    names.join(", ")
                )
            }
            None => format!("{needs}, and it has no way there"),
        };
        out.fault(
            from.host,
            what,
            evidence,
            over_the_dut(lab, from, key, address, names.first().unwrap_or(&key)),
        );
    }
}

/// The command that makes the route: over the DUT's interface at the same cable.
fn over_the_dut(lab: &Lab, from: &Station<'_>, key: &str, to: IpAddr, dev: &str) -> String {
    let near = lab.device().and_then(|dut| {
        if key == "send" {
            dut.inside.as_ref()
        } else {
            dut.outside.as_ref()
        }
    });
    let hop = near.and_then(|i| {
        i.addresses
            .iter()
            .map(|a| a.address)
            .find(|a| alike(*a, to))
    });
    add(from, &to.to_string(), hop, dev)
}

/// The command that adds or replaces a route to a network or an address.
fn add(station: &Station<'_>, to: &str, hop: Option<IpAddr>, dev: &str) -> String {
    let hop = hop.map_or("NEIGHBOUR".to_string(), |hop| hop.to_string());
    let kind = match to {
        _ if station.is_linux() => return format!("ip route replace {to} via {hop} dev {dev}"),
        _ if to.contains(':') => "-inet6",
        _ if to.contains('/') => "-net",
        _ => "-host",
    };
    format!("route add {kind} {to} {hop}")
}
