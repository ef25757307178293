//! The way through the DUT: it forwards, and has a route to both sides.

use super::{Problems, Station, is_link_local, ports};
use crate::systems::question::forwarding;
use crate::systems::{Facts, Interface, Kernel};
use linerate_plan::lab::{Host, HostAddress, Lab, Role};
use linerate_plan::settings::End;
use linerate_wire::Family;
use std::net::IpAddr;

pub(super) fn check(lab: &Lab, stations: &[Station<'_>], problems: &mut Problems) {
    let Some(dut) = stations.iter().find(|s| s.host.roles.contains(&Role::Dut)) else { return };
    for end in [End::In, End::Out] {
        for network in lab.networks(end) {
            if let Some(to) = behind(network, dut.host, dut.facts) {
                route(lab, dut, end, network, to, problems);
            }
        }
    }
    let six = |end: &End| lab.networks(*end).iter().any(|n| n.contains(':'));
    forwards(lab, dut, [End::In, End::Out].iter().any(six), problems);
}

/// An address of a network that the DUT can only reach over a neighbour, where the network has one: the first, one in its middle, or
/// one at its end.
pub(super) fn behind(network: &str, dut: &Host, facts: &Facts) -> Option<IpAddr> {
    let HostAddress { address, length } = network.parse().ok()?;
    let said = [&dut.inside, &dut.outside].into_iter().flatten().flat_map(|i| &i.addresses);
    let own: Vec<&HostAddress> = said.chain(facts.interfaces.iter().flat_map(|i| &i.addresses)).collect();
    let hosts = hosts(if address.is_ipv4() { 32 } else { 128 }, length);
    let at = |host: u128| match address {
        IpAddr::V4(a) => IpAddr::V4((u32::from(a) | (host & hosts) as u32).into()),
        IpAddr::V6(a) => IpAddr::V6((u128::from(a) | (host & hosts)).into()),
    };
    let candidates = [at(1), at((hosts / 2 + 1) | 1), at(hosts.saturating_sub(1))];
    let far = |to: &IpAddr| !own.iter().any(|a| a.reaches(*to) == Some(true));
    Some(candidates.into_iter().find(far).unwrap_or(candidates[0]))
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
fn route(lab: &Lab, dut: &Station<'_>, end: End, network: &str, to: IpAddr, problems: &mut Problems) {
    let host = dut.host;
    let Some(way) = dut.facts.ways.get(&to) else { return };
    let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
    let hop = lab.next_hop(end, family);
    let Some(interface) = interface(lab, dut, end) else { return };
    // A network that the lab does not use, in a version of IP that its cables do not have, needs no way.
    if hop.is_none() && !interface.addresses.iter().any(|a| a.reaches(to) == Some(true)) {
        return;
    }
    let remedy = add(dut.facts, network, hop, &interface.name);
    let Some(way) = way else {
        problems.fault(host, format!("it has no route to {network}"), &format!("asked for {to}"), &remedy);
        return;
    };
    if way.interface != interface.name {
        problems.fault(
            host,
            format!("it sends frames for {network} by another interface"),
            &format!("the way to {to} is by {}, not {}", way.interface, interface.name),
            &remedy,
        );
    } else if let (Some(is), Some(hop)) = (way.gateway, hop)
        && is != hop
    {
        problems.fault(
            host,
            format!("it sends frames for {network} to another neighbour"),
            &format!("the way to {to} is over {is}, not {hop}"),
            &remedy,
        );
    }
}

/// An interface of the DUT.
fn interface<'a>(lab: &Lab, dut: &Station<'a>, end: End) -> Option<&'a Interface> {
    let key = match end {
        End::In => "in",
        End::Out => "out",
    };
    ports(lab, dut.host).iter().find(|port| port.key == key)?.found(dut.facts).ok()
}

fn add(facts: &Facts, network: &str, hop: Option<IpAddr>, interface: &str) -> String {
    let hop = hop.map_or("NEIGHBOUR".to_string(), |h| h.to_string());
    match facts.kernel() {
        Some(Kernel::Linux) => format!("ip route replace {network} via {hop} dev {interface}"),
        _ if network.contains(':') => format!("route add -inet6 {network} {hop}"),
        _ => format!("route add -net {network} {hop}"),
    }
}

fn forwards(lab: &Lab, dut: &Station<'_>, six: bool, problems: &mut Problems) {
    let Some(kernel) = dut.kernel() else { return };
    let host: &Host = dut.host;
    let carries = |v4: bool| {
        let ends = [End::In, End::Out].into_iter().filter_map(|end| interface(lab, dut, end));
        ends.flat_map(|i| &i.addresses).any(|a| a.address.is_ipv4() == v4 && !is_link_local(a.address))
    };
    for (key, wanted) in forwarding(kernel).into_iter().zip([carries(true), six && carries(false)]) {
        if let Some(value) = dut.facts.number(key).filter(|v| wanted && *v == 0) {
            problems.fault(
                host,
                "it does not forward",
                &format!("{key} is {value}"),
                format!("sysctl {key}=1"),
            );
        }
    }
}
