//! Facts that the DUT's own configuration adds to a lab: names of interfaces, addresses, networks, next hops.

use super::super::rc::Router;
use super::super::sets::Set;
use super::reader::Reader;
use linerate_plan::lab::{DESTINATION_NETWORKS, Host, HostAddress, Interface, Role, SOURCE_NETWORKS};
use std::net::IpAddr;

/// Completes hosts with the values of a configuration set.
pub(super) fn complete(hosts: &mut [Host], set: &Set, reader: &mut Reader<'_>) {
    let router = &set.router;
    let admin: Option<IpAddr> = hosts[0].ssh.host.parse().ok();
    own_address(hosts, router, reader);
    let near = |interface: Option<&Interface>| -> Vec<IpAddr> {
        interface.map(|i| i.addresses.iter().map(|a| a.address).collect()).unwrap_or_default()
    };
    let generator = hosts.iter().find(|h| h.roles.contains(&Role::Generator)).and_then(|h| h.send.first());
    let receiver = hosts.iter().find(|h| h.roles.contains(&Role::Receiver)).and_then(|h| h.receive.as_ref());
    let behind = |defaults: [&str; 2]| {
        let defaults: Vec<HostAddress> = defaults.iter().filter_map(|d| d.parse().ok()).collect();
        let route = router
            .routes
            .iter()
            .find(|(net, _)| defaults.iter().any(|d| d.reaches(net.address) == Some(true)));
        route.and_then(|(_, hop)| router.towards(*hop))
    };
    let towards = |addresses: Vec<IpAddr>| addresses.into_iter().find_map(|a| router.towards(a));
    let inside = towards(near(generator)).or_else(|| behind(SOURCE_NETWORKS));
    let reference = hosts.iter().any(|h| h.roles.contains(&Role::Reference));
    let outside = match reference {
        false => towards(near(receiver)).or_else(|| behind(DESTINATION_NETWORKS)),
        true => behind(DESTINATION_NETWORKS),
    };
    let outside = outside.filter(|name| Some(*name) != inside);
    let management =
        admin.and_then(|a| router.towards(a)).filter(|m| Some(*m) != inside && Some(*m) != outside);
    let (dut, others) = hosts.split_at_mut(1);
    let dut = &mut dut[0];
    end(dut.inside.get_or_insert_default(), inside, router);
    end(dut.outside.get_or_insert_default(), outside, router);
    if let Some(name) = management {
        dut.management = Some(Interface { name: Some(name.into()), ..Interface::default() });
    }
    let inside = inside.map(|name| (name, router));
    let outside = outside.map(|name| (name, router));
    for host in others.iter_mut() {
        if let (Some(send), Some((name, router))) = (host.send.first_mut(), inside) {
            neighbour(send, name, router);
        }
        match (&mut host.receive, outside) {
            (Some(receive), Some((name, router))) if !reference => neighbour(receive, name, router),
            _ => {}
        }
    }
    if let Some(far) = others.iter_mut().find(|h| h.roles.contains(&Role::Reference)) {
        far_end(far, set, outside);
    }
    next_hops(dut, others, router);
}

/// The archive's authors sometimes wrote the DUT's own address for the sender's.
fn own_address(hosts: &mut [Host], router: &Router, reader: &mut Reader<'_>) {
    for (name, interfaces) in hosts.iter_mut().flat_map(|h| {
        [
            ("SENDER_LAB_IP", h.send.iter_mut().collect::<Vec<_>>()),
            ("RECEIVER_LAB_IP", h.receive.iter_mut().collect()),
        ]
    }) {
        for interface in interfaces {
            let before = interface.addresses.len();
            interface.addresses.retain(|a| !router.has(a.address));
            if let (true, Some(value)) = (interface.addresses.len() < before, reader.values.get(name)) {
                reader
                    .notes
                    .left_value(value, format!("{name}: it is an address of the DUT itself, by its rc.conf"));
            }
        }
    }
}

/// An interface of the DUT.
fn end(interface: &mut Interface, name: Option<&str>, router: &Router) {
    let Some(name) = name else { return };
    interface.name = Some(name.to_string());
    interface.addresses = router.addresses(name).to_vec();
    let networks: Vec<String> = router.routes_through(name).map(|(net, _)| net.to_string()).collect();
    for network in networks {
        if !interface.networks.contains(&network) {
            interface.networks.push(network);
        }
    }
}

/// An interface at the other end of one of the DUT's: its addresses are the DUT's next hops there.
fn neighbour(interface: &mut Interface, name: &str, router: &Router) {
    let length = |address: IpAddr| {
        let network = router.addresses(name).iter().find(|a| a.reaches(address) == Some(true));
        network.and_then(|a| a.length)
    };
    for own in &mut interface.addresses {
        own.length = own.length.or(length(own.address));
    }
    let hops: Vec<IpAddr> = router.routes_through(name).map(|(_, hop)| *hop).collect();
    for hop in hops.into_iter().filter(|hop| !router.has(*hop)) {
        if !interface.addresses.iter().any(|a| a.address.is_ipv4() == hop.is_ipv4()) {
            interface.addresses.push(HostAddress { address: hop, length: length(hop) });
        }
    }
    let known = interface.addresses.iter().find_map(|a| router.neighbour(a.address));
    interface.mac = interface.mac.or(known);
}

/// The reference: by its own rc.conf, and as the DUT's neighbour.
fn far_end(far: &mut Host, set: &Set, outside: Option<(&str, &Router)>) {
    if let Some((name, router)) = outside {
        neighbour(far.inside.get_or_insert_default(), name, router);
    }
    let Some(own) = &set.reference else { return };
    let near =
        outside.and_then(|(name, router)| router.addresses(name).iter().find_map(|a| own.towards(a.address)));
    if let (Some(name), Some(inside)) = (near, far.inside.as_mut()) {
        inside.name = Some(name.to_string());
        inside.addresses = own.addresses(name).to_vec();
    }
    let beyond: Vec<HostAddress> = DESTINATION_NETWORKS.iter().filter_map(|d| d.parse().ok()).collect();
    let route =
        own.routes.iter().find(|(net, _)| beyond.iter().any(|d| d.reaches(net.address) == Some(true)));
    let name = route.and_then(|(_, hop)| own.towards(*hop)).filter(|name| Some(*name) != near);
    end(far.outside.get_or_insert_default(), name, own);
}

/// Reports next hops that are not the address at the other end.
fn next_hops(dut: &mut Host, others: &[Host], router: &Router) {
    let reference = others.iter().find(|h| h.roles.contains(&Role::Reference));
    let inside: Vec<&Interface> = others.iter().flat_map(|h| &h.send).collect();
    let outside: Vec<&Interface> = match reference {
        Some(far) => far.inside.iter().collect(),
        None => others.iter().filter_map(|h| h.receive.as_ref()).collect(),
    };
    for (interface, peers) in [(&mut dut.inside, inside), (&mut dut.outside, outside)] {
        let Some(interface) = interface else { continue };
        let Some(name) = interface.name.clone() else { continue };
        let reachable = |hop: IpAddr, all: &[HostAddress]| all.iter().any(|a| a.reaches(hop) == Some(true));
        let hops: Vec<IpAddr> = router.routes_through(&name).map(|(_, hop)| *hop).collect();
        for hop in hops {
            let peer = peers.iter().any(|p| p.addresses.iter().any(|a| a.address == hop));
            if !peer && reachable(hop, &interface.addresses) && !interface.next_hops.contains(&hop) {
                interface.next_hops.push(hop);
            }
        }
    }
}

/// An address that the DUT pings and no tester has is the reference's, if nothing else gives one.
pub(super) fn pinged(hosts: &mut [Host], reaches: &[IpAddr]) {
    let interfaces =
        hosts.iter().flat_map(|h| h.send.iter().chain(&h.receive).chain(&h.inside).chain(&h.outside));
    let known: Vec<IpAddr> = interfaces.flat_map(|i| i.addresses.iter().map(|a| a.address)).collect();
    let Some(far) = hosts.iter_mut().find(|h| h.roles.contains(&Role::Reference)) else { return };
    let Some(inside) = far.inside.as_mut().filter(|i| i.addresses.is_empty()) else { return };
    let other = reaches.iter().find(|address| !known.contains(address));
    inside.addresses.extend(other.map(|address| HostAddress { address: *address, length: None }));
}
