//! The DUT's own configuration (rc.conf): its interfaces, routes and neighbours, and what they add to the hosts of a lab.

use super::notes::Notes;
use super::values::Values;
use crate::netbenches::shell::{Item, items};
use linerate_plan::lab::{
    DESTINATION_NETWORKS, Host, HostAddress, Interface, Role, SOURCE_NETWORKS, is_interface,
};
use linerate_wire::MacAddr;
use std::net::{IpAddr, Ipv4Addr};

/// Interfaces, routes or neighbours of one file at most.
const MOST: usize = 200;

/// A router, as its rc.conf describes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Router {
    /// Interfaces with their names and addresses, in the order of the file.
    ports: Vec<Interface>,
    /// Static routes: network and next hop.
    routes: Vec<(HostAddress, IpAddr)>,
    /// Static ARP and NDP entries.
    neighbours: Vec<(IpAddr, MacAddr)>,
}

impl Router {
    /// Reads an rc.conf, over the values of earlier ones.
    pub(super) fn read(&mut self, text: &str) {
        for Item { name, value, .. } in items(text) {
            if let Some(interface) = name.strip_prefix("ifconfig_") {
                self.interface(interface, &value);
            } else if name.starts_with("route_") || name.starts_with("ipv6_route_") {
                self.routes
                    .extend(route(&value).filter(|_| self.routes.len() < MOST));
            } else if name.starts_with("static_arp_") || name.starts_with("static_ndp_") {
                self.neighbours
                    .extend(static_entry(&value).filter(|_| self.neighbours.len() < MOST));
            }
        }
    }

    fn interface(&mut self, name: &str, value: &str) {
        let name = name.trim_end_matches("_ipv6");
        let name = match name.rsplit_once("_alias") {
            Some((interface, number)) if number.chars().all(|c| c.is_ascii_digit()) => interface,
            _ => name,
        };
        // rc.conf writes igb1_2 for igb1.2, the VLAN.
        let name = name.replace('_', ".");
        if !is_interface(&name) || name == "DEFAULT" || self.ports.len() >= MOST {
            return;
        }
        let Some(address) = address(value) else {
            return;
        };
        match self
            .ports
            .iter_mut()
            .find(|port| port.name.as_ref() == Some(&name))
        {
            Some(port) if port.addresses.len() < MOST => port.addresses.push(address),
            Some(_) => {}
            None => {
                let port = Interface {
                    name: Some(name),
                    addresses: vec![address],
                    ..Interface::default()
                };
                self.ports.push(port);
            }
        }
    }

    /// The interface in whose networks an address is.
    fn towards(&self, address: IpAddr) -> Option<&Interface> {
        self.ports
            .iter()
            .find(|port| length(port, address).is_some())
    }

    /// The interface through which it reaches the first network that it has a route to.
    fn behind(&self, networks: [&str; 2]) -> Option<&Interface> {
        let networks: Vec<HostAddress> = networks
            .iter()
            .filter_map(|network| network.parse().ok())
            .collect();
        let is_one = |net: &HostAddress| {
            networks
                .iter()
                .any(|n| n.reaches(net.address) == Some(true))
        };
        let (_, hop) = self.routes.iter().find(|(net, _)| is_one(net))?;
        self.towards(*hop)
    }

    /// Whether an address is its own.
    fn has(&self, address: IpAddr) -> bool {
        self.ports
            .iter()
            .any(|port| port.addresses.iter().any(|a| a.address == address))
    }

    /// Routes through an interface.
    fn routes_through(&self, port: &Interface) -> impl Iterator<Item = &(HostAddress, IpAddr)> {
        self.routes
            .iter()
            .filter(|(_, hop)| self.towards(*hop).is_some_and(|p| p.name == port.name))
    }

    /// The Ethernet address of a neighbour.
    fn neighbour(&self, address: IpAddr) -> Option<MacAddr> {
        self.neighbours
            .iter()
            .find(|(a, _)| *a == address)
            .map(|(_, mac)| *mac)
    }
}

/// The length of an interface's network that has an address.
fn length(interface: &Interface, address: IpAddr) -> Option<u8> {
    interface
        .addresses
        .iter()
        .find(|a| a.reaches(address) == Some(true))?
        .length
}

/// `inet 198.18.0.205/24 -lro`, `inet6 2001:2::205 prefixlen 64`, `inet 10.0.0.1 netmask 255.255.255.0`.
fn address(value: &str) -> Option<HostAddress> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let at = words.iter().position(|w| matches!(*w, "inet" | "inet6"))?;
    let address: HostAddress = words.get(at + 1)?.parse().ok()?;
    with_length(address, words.get(at + 2..at + 4).unwrap_or_default())
}

/// `-net 198.18.0.0/16 198.18.0.203`, `2001:2:: -prefixlen 49 2001:2::203`.
fn route(value: &str) -> Option<(HostAddress, IpAddr)> {
    let kinds = ["-net", "-inet", "-inet6", "-4", "-6"];
    let words: Vec<&str> = value
        .split_whitespace()
        .filter(|w| !kinds.contains(w))
        .collect();
    let [network, length @ .., hop] = words.as_slice() else {
        return None;
    };
    let network = with_length(network.parse().ok()?, length)?;
    network.length?;
    Some((network, hop.parse().ok()?))
}

fn with_length(mut address: HostAddress, more: &[&str]) -> Option<HostAddress> {
    if let [key, value] = more {
        let longest = if address.address.is_ipv4() { 32 } else { 128 };
        address.length = match *key {
            "prefixlen" | "-prefixlen" => value.parse().ok().filter(|n: &u8| *n <= longest),
            "netmask" | "-netmask" => netmask(value),
            _ => address.length,
        };
    }
    Some(address)
}

fn netmask(text: &str) -> Option<u8> {
    let mask = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => u32::from(text.parse::<Ipv4Addr>().ok()?),
    };
    let length = mask.leading_ones();
    (mask.count_ones() == length).then_some(length as u8)
}

fn static_entry(value: &str) -> Option<(IpAddr, MacAddr)> {
    let mut words = value.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Completes hosts with the values of a configuration set. `far`: the reference's own, if the set is for both.
pub(super) fn complete(
    hosts: &mut [Host],
    router: &Router,
    far: Option<&Router>,
    values: &Values,
    notes: &mut Notes,
) {
    own_addresses(hosts, router, values, notes);
    let with = |role: Role| hosts.iter().find(|host| host.roles.contains(&role));
    let towards = |interface: &Interface| {
        interface
            .addresses
            .iter()
            .find_map(|a| router.towards(a.address))
    };
    let reference = with(Role::Reference).is_some();
    let near = with(Role::Generator).and_then(|host| host.send.first());
    let inside = near
        .and_then(towards)
        .or_else(|| router.behind(SOURCE_NETWORKS));
    let near = with(Role::Receiver)
        .and_then(|host| host.receive.as_ref())
        .filter(|_| !reference);
    let outside = near
        .and_then(towards)
        .or_else(|| router.behind(DESTINATION_NETWORKS));
    let outside = outside.filter(|port| Some(*port) != inside);
    let admin = hosts[0].reach.ssh().and_then(|ssh| ssh.host.parse().ok());
    let management = admin.and_then(|admin| router.towards(admin));
    let management = management.filter(|port| ![inside, outside].contains(&Some(*port)));
    let (dut, others) = hosts.split_at_mut(1);
    let dut = &mut dut[0];
    end(&mut dut.inside, inside, router);
    end(&mut dut.outside, outside, router);
    dut.management = management.map(|port| Interface {
        name: port.name.clone(),
        ..Interface::default()
    });
    for host in others.iter_mut() {
        let receive = host.receive.as_mut().filter(|_| !reference);
        for (interface, port) in [(host.send.first_mut(), inside), (receive, outside)] {
            if let (Some(interface), Some(port)) = (interface, port) {
                neighbour(interface, port, router);
            }
        }
        if host.roles.contains(&Role::Reference) {
            far_end(host, router, far, outside);
        }
    }
    next_hops(dut, others, router);
}

/// The archive's authors sometimes wrote the DUT's own address for the sender's.
fn own_addresses(hosts: &mut [Host], router: &Router, values: &Values, notes: &mut Notes) {
    for host in hosts {
        let send = host
            .send
            .iter_mut()
            .map(|interface| ("SENDER_LAB_IP", interface));
        let receive = host
            .receive
            .iter_mut()
            .map(|interface| ("RECEIVER_LAB_IP", interface));
        for (name, interface) in send.chain(receive) {
            let before = interface.addresses.len();
            interface.addresses.retain(|a| !router.has(a.address));
            if let (true, Some(value)) = (interface.addresses.len() < before, values.get(name)) {
                let what = format!("{name}: it is an address of the DUT itself, by its rc.conf");
                notes.left_value(value, what);
            }
        }
    }
}

/// An interface of a router.
fn end(interface: &mut Option<Interface>, port: Option<&Interface>, router: &Router) {
    let interface = interface.get_or_insert_default();
    let Some(port) = port else { return };
    interface.name.clone_from(&port.name);
    interface.addresses.clone_from(&port.addresses);
    for (network, _) in router.routes_through(port) {
        let network = network.to_string();
        if !interface.networks.contains(&network) {
            interface.networks.push(network);
        }
    }
}

/// An interface at the other end of one of the DUT's: its addresses are the DUT's next hops there.
fn neighbour(interface: &mut Interface, port: &Interface, router: &Router) {
    for own in &mut interface.addresses {
        own.length = own.length.or(length(port, own.address));
    }
    for (_, hop) in router
        .routes_through(port)
        .filter(|(_, hop)| !router.has(*hop))
    {
        if !interface
            .addresses
            .iter()
            .any(|a| a.address.is_ipv4() == hop.is_ipv4())
        {
            interface.addresses.push(HostAddress {
                address: *hop,
                length: length(port, *hop),
            });
        }
    }
    let known = interface
        .addresses
        .iter()
        .find_map(|a| router.neighbour(a.address));
    interface.mac = interface.mac.or(known);
}

/// The reference: by its own rc.conf, and as the DUT's neighbour.
fn far_end(far: &mut Host, dut: &Router, own: Option<&Router>, outside: Option<&Interface>) {
    let inside = far.inside.get_or_insert_default();
    if let Some(port) = outside {
        neighbour(inside, port, dut);
    }
    let Some(own) = own else { return };
    let near = outside.and_then(|port| port.addresses.iter().find_map(|a| own.towards(a.address)));
    if let Some(near) = near {
        inside.name.clone_from(&near.name);
        inside.addresses.clone_from(&near.addresses);
    }
    let beyond = own
        .behind(DESTINATION_NETWORKS)
        .filter(|port| Some(*port) != near);
    end(&mut far.outside, beyond, own);
}

/// Reports next hops that are not the address at the other end.
fn next_hops(dut: &mut Host, others: &[Host], router: &Router) {
    let inside: Vec<&Interface> = others.iter().flat_map(|h| &h.send).collect();
    let outside: Vec<&Interface> = match others.iter().find(|h| h.roles.contains(&Role::Reference))
    {
        Some(far) => far.inside.iter().collect(),
        None => others.iter().filter_map(|h| h.receive.as_ref()).collect(),
    };
    for (interface, peers) in [(&mut dut.inside, inside), (&mut dut.outside, outside)] {
        let Some(interface) = interface
            .as_mut()
            .filter(|interface| interface.name.is_some())
        else {
            continue;
        };
        let hops: Vec<IpAddr> = router
            .routes_through(interface)
            .map(|(_, hop)| *hop)
            .collect();
        for hop in hops {
            let peer = peers
                .iter()
                .any(|p| p.addresses.iter().any(|a| a.address == hop));
            if !peer && length(interface, hop).is_some() && !interface.next_hops.contains(&hop) {
                interface.next_hops.push(hop);
            }
        }
    }
}

/// An address that the DUT pings and no tester has is the reference's, if nothing else gives one.
pub(super) fn pinged(hosts: &mut [Host], reaches: &[IpAddr]) {
    let interfaces = hosts.iter().flat_map(|h| {
        h.send
            .iter()
            .chain(&h.receive)
            .chain(&h.inside)
            .chain(&h.outside)
    });
    let known: Vec<IpAddr> = interfaces
        .flat_map(|i| i.addresses.iter().map(|a| a.address))
        .collect();
    let Some(far) = hosts
        .iter_mut()
        .find(|h| h.roles.contains(&Role::Reference))
    else {
        return;
    };
    let Some(inside) = far.inside.as_mut().filter(|i| i.addresses.is_empty()) else {
        return;
    };
    let other = reaches.iter().find(|address| !known.contains(address));
    inside.addresses.extend(other.map(|address| HostAddress {
        address: *address,
        length: None,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn interfaces_routes_and_neighbours() {
        let mut router = Router::default();
        router.read(
            "ifconfig_igb1=\"inet 198.18.0.205/24 -tso4 -lro\"\nifconfig_igb1_ipv6=\"inet6 2001:2::205 prefixlen 64\"\n\
             ifconfig_igb2=\"inet 198.19.0.205 netmask 255.255.255.0\"\nifconfig_igb2_alias0=\"inet 198.19.1.1/24\"\n\
             ifconfig_igb3=\"up\"\nifconfig_cxl0_2=\"inet 10.0.0.1/8\"\n\
             route_generator=\"-net 198.18.0.0/16 198.18.0.203\"\n\
             ipv6_route_receiver=\"2001:2:0:8000:: -prefixlen 49 2001:2::203\"\n\
             static_arp_generator=\"198.18.0.203 00:1b:21:c4:95:7a\"\n",
        );
        let names: Vec<&str> = router
            .ports
            .iter()
            .filter_map(|port| port.name.as_deref())
            .collect();
        assert_eq!(names, ["igb1", "igb2", "cxl0.2"]);
        assert_eq!(
            router.towards("198.19.1.9".parse().unwrap()),
            Some(&router.ports[1])
        );
        assert_eq!(router.ports[0].addresses[1].to_string(), "2001:2::205/64");
        let routes: Vec<String> = router
            .routes_through(&router.ports[0])
            .map(|(n, _)| n.to_string())
            .collect();
        assert_eq!(routes, ["198.18.0.0/16", "2001:2:0:8000::/49"]);
        let hop = "198.18.0.203".parse().unwrap();
        assert_eq!(
            router.neighbour(hop).unwrap().to_string(),
            "00:1b:21:c4:95:7a"
        );
        assert!(router.has("198.18.0.205".parse().unwrap()) && !router.has(hop));
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "(ifconfig_|route_|static_arp_)[a-z0-9_]{0,4}=\"(inet |-net )?[0-9./: a-z-]{0,24}\"") {
            Router::default().read(&text);
        }
    }
}
