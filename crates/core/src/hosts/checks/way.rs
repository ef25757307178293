//! The way through the DUT: it forwards, and has a route to both sides.

use super::{Problems, Station, found};
use crate::hosts::question::forwarding;
use crate::hosts::{Facts, Kernel};
use crate::lab::{Host, HostAddress, Lab, Role};
use crate::plan::settings::End;
use linerate_wire::Family;
use std::net::IpAddr;

pub(super) fn check(lab: &Lab, stations: &[Station<'_>], problems: &mut Problems) {
    let Some(dut) = stations.iter().find(|s| s.host.roles.contains(&Role::Dut)) else { return };
    for end in [End::In, End::Out] {
        for network in lab.networks(end) {
            if let Some(to) = first_address(network) {
                route(lab, dut, end, network, to, problems);
            }
        }
    }
    let six = |end: &End| lab.networks(*end).iter().any(|n| n.contains(':'));
    forwards(dut, [End::In, End::Out].iter().any(six), problems);
}

/// The first address of a network that a host can have.
pub(super) fn first_address(network: &str) -> Option<IpAddr> {
    let HostAddress { address, length } = network.parse().ok()?;
    let length = u32::from(length.unwrap_or(if address.is_ipv4() { 32 } else { 128 }));
    Some(match address {
        IpAddr::V4(a) if length < 31 => IpAddr::V4((u32::from(a) | 1).into()),
        IpAddr::V6(a) if length < 127 => IpAddr::V6((u128::from(a) | 1).into()),
        other => other,
    })
}

/// What is for a network leaves by the right interface, to the right neighbour. Ways that were not asked for are not judged.
fn route(lab: &Lab, dut: &Station<'_>, end: End, network: &str, to: IpAddr, problems: &mut Problems) {
    let host = dut.host;
    let Some(way) = dut.facts.ways.get(&to) else { return };
    let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
    let hop = lab.next_hop(end, family);
    let Some(interface) = host.end(end).and_then(|i| found(i, dut.facts).ok()) else { return };
    // A network that the lab does not use, in a version of IP that its cables do not have, needs no way.
    if hop.is_none() && !interface.addresses.iter().any(|a| a.reaches(to) == Some(true)) {
        return;
    }
    let remedy = add(dut.facts, network, hop, &interface.name);
    let Some(way) = way else {
        problems.fault(host, &format!("it has no route to {network}"), &format!("asked for {to}"), &remedy);
        return;
    };
    if way.interface != interface.name {
        problems.fault(
            host,
            &format!("it sends what is for {network} by another interface"),
            &format!("the way to {to} is by {}, not {}", way.interface, interface.name),
            &remedy,
        );
    } else if let (Some(is), Some(hop)) = (way.gateway, hop)
        && is != hop
    {
        problems.fault(
            host,
            &format!("it sends what is for {network} to another neighbour"),
            &format!("the way to {to} is over {is}, not {hop}"),
            &remedy,
        );
    }
}

fn add(facts: &Facts, network: &str, hop: Option<IpAddr>, interface: &str) -> String {
    let hop = hop.map_or("NEIGHBOUR".to_string(), |h| h.to_string());
    match facts.kernel() {
        Some(Kernel::Linux) => format!("ip route replace {network} via {hop} dev {interface}"),
        _ if network.contains(':') => format!("route add -inet6 {network} {hop}"),
        _ => format!("route add -net {network} {hop}"),
    }
}

fn forwards(dut: &Station<'_>, six: bool, problems: &mut Problems) {
    let Some(kernel) = dut.kernel() else { return };
    let host: &Host = dut.host;
    let carries = |v4: bool| {
        let ends = [End::In, End::Out].into_iter().filter_map(|e| found(host.end(e)?, dut.facts).ok());
        ends.flat_map(|i| &i.addresses).any(|a| a.address.is_ipv4() == v4 && !is_link_local(a.address))
    };
    for (key, wanted) in forwarding(kernel).into_iter().zip([carries(true), six && carries(false)]) {
        if let Some(value) = dut.facts.number(key).filter(|v| wanted && *v == 0) {
            problems.fault(
                host,
                "it does not forward",
                &format!("{key} is {value}"),
                &format!("sysctl {key}=1"),
            );
        }
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    }
}
