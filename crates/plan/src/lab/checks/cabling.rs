//! Checks across hosts: unique addresses, and cables whose two ends can talk to each other.

use super::super::{HostAddress, Interface, Role, lower};
use super::HostTree;
use crate::diagnostic::{Diagnostic, Problems, Span};
use crate::value::Tree;
use std::collections::HashMap;
use std::net::IpAddr;

pub(super) fn check(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    once(all, problems);
    let dut = all.iter().find(|host| host.is(Role::Dut));
    let reference = all.iter().find(|host| host.is(Role::Reference));
    if let Some(dut) = dut {
        cable(dut, "in", &with(all, Role::Generator, "send"), problems);
        let beyond = match reference {
            Some(_) => with(all, Role::Reference, "in"),
            None => with(all, Role::Receiver, "receive"),
        };
        cable(dut, "out", &beyond, problems);
    }
    if let Some(reference) = reference {
        cable(reference, "out", &with(all, Role::Receiver, "receive"), problems);
    }
    next_hops(all, problems);
    ranges(all, problems);
}

/// The interfaces of a role, with their hosts' names.
fn with<'a>(all: &[HostTree<'a>], role: Role, key: &str) -> Vec<(&'a str, Interface)> {
    let having = all.iter().filter(|host| host.is(role));
    having
        .flat_map(|host| {
            host.interfaces().filter(|(k, ..)| *k == key).map(|(.., tree)| (host.name, interface(tree)))
        })
        .collect()
}

/// Ethernet and IP addresses belong to one interface each.
fn once(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, String> = HashMap::new();
    for host in all {
        for (key, _, tree) in host.interfaces() {
            let place = format!("{}.{key}", host.name);
            for (text, span) in addresses(tree) {
                let alone = text.split('/').next().unwrap_or_default().to_string();
                if let Some(other) = seen.insert(alone, place.clone()) {
                    let message = format!("{text} is the address of {other} already");
                    problems.fault(span, message, "each interface has addresses of its own");
                }
            }
            if let Some((node, mac)) = mac(tree) {
                let octets: [u8; 6] = mac.0;
                if mac.is_multicast() || octets == [0; 6] {
                    let help = "write the interface's own, as the host shows it";
                    problems.fault(node, format!("{mac} is no interface's Ethernet address"), help);
                }
            }
        }
    }
}

fn mac(tree: &Tree) -> Option<(Span, linerate_wire::MacAddr)> {
    Some((tree.get("mac")?.span, tree.read("mac")?))
}

fn addresses(tree: &Tree) -> impl Iterator<Item = (&str, Span)> {
    let nodes = tree.list("addresses").iter().chain(tree.get("mac"));
    nodes.filter_map(|node| Some((node.text()?, node.span)))
}

fn interface(tree: &Tree) -> Interface {
    lower::typed(tree).unwrap_or_default()
}

/// One cable: an end that neither has a name nor an address can only be found by asking for the route to the other end; and where both
/// ends have addresses of a family, one must be in the other's network.
fn cable(
    host: &HostTree<'_>,
    key: &'static str,
    peers: &[(&str, Interface)],
    problems: &mut Vec<Diagnostic>,
) {
    let Some((_, span, tree)) = host.interfaces().find(|(k, ..)| *k == key) else { return };
    let own = interface(tree);
    let named = ["name", "mac", "addresses"].iter().any(|key| tree.get(key).is_some());
    if !named && peers.iter().all(|(_, peer)| peer.addresses.is_empty()) && !peers.is_empty() {
        let message = format!("nothing says which interface of {} [{key}] is", host.name);
        problems.fault(span, message, "add name = \"igb1\", its mac, or its addresses");
    }
    for (other, peer) in peers {
        for is_v4 in [true, false] {
            let of_family = |addresses: &[HostAddress]| -> Vec<HostAddress> {
                addresses.iter().copied().filter(|a| a.address.is_ipv4() == is_v4).collect()
            };
            let (ours, theirs) = (of_family(&own.addresses), of_family(&peer.addresses));
            let routed = own.next_hops.iter().any(|hop| hop.is_ipv4() == is_v4);
            if let Some(far) = unreachable(&ours, &theirs).filter(|_| !routed) {
                let message = format!("{far} of {other} is in no network of [{key}] of {}", host.name);
                let node = tree.get("addresses").map_or(span, |n| n.span);
                let help = "give both ends of the cable addresses of one network, or name next-hops";
                problems.fault(node, message, help);
            }
        }
    }
}

/// The first far address, if no near one reaches any of them.
fn unreachable(near: &[HostAddress], far: &[HostAddress]) -> Option<HostAddress> {
    let reached = |a: &HostAddress, b: &HostAddress| {
        let ways = [a.reaches(b.address), b.reaches(a.address)];
        ways.iter().all(Option::is_none) || ways.contains(&Some(true))
    };
    let any = near.iter().any(|a| far.iter().any(|b| reached(a, b)));
    if any || near.is_empty() { None } else { far.first().copied() }
}

/// A next hop is in a network of its interface, where these are known.
fn next_hops(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    for host in all {
        for (key, _, tree) in host.interfaces() {
            let own = interface(tree);
            for node in tree.list("next-hops") {
                let Some(text) = node.text() else { continue };
                let Ok(hop) = text.parse::<IpAddr>() else { continue };
                let of_family: Vec<_> =
                    own.addresses.iter().filter(|a| a.address.is_ipv4() == hop.is_ipv4()).collect();
                let known: Vec<bool> = of_family.iter().filter_map(|a| a.reaches(hop)).collect();
                if !known.is_empty() && known.len() == of_family.len() && !known.contains(&true) {
                    let message = format!("{hop} is in no network of [{key}] of {}", host.name);
                    problems.fault(node.span, message, "name the neighbour that frames are handed to");
                }
            }
        }
    }
}

/// Finds addresses of frames outside the ranges for benchmarks, which belong to others.
fn ranges(all: &[HostTree<'_>], problems: &mut Vec<Diagnostic>) {
    let aside = ["198.18.0.0/15", "2001:2::/48"].map(|text| text.parse::<HostAddress>());
    for host in all {
        for (.., tree) in host.interfaces() {
            for node in tree.list("networks") {
                let Some(text) = node.text() else { continue };
                let Ok(network) = text.parse::<HostAddress>() else { continue };
                let within = |range: &HostAddress| {
                    range.reaches(network.address) == Some(true) && network.length >= range.length
                };
                if !aside.iter().flatten().any(within) {
                    let help =
                        "198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180) are set aside for benchmarks";
                    let message =
                        format!("{text} may be somebody's: frames with its addresses must not get out");
                    problems.push(Diagnostic::warning(node.span, message).remedy(help));
                }
            }
        }
    }
}
