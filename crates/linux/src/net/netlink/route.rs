//! Routes; and which links a default route leaves by, in any table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::Route;
use super::address::family;
use super::attributes::{attributes, attributes_after, u16_at, u32_at};
use crate::net::Error;

/// `struct rtmsg`.
const HEADER: usize = 12;
/// `struct rtnexthop`.
const HOP_HEADER: usize = 8;
/// linux/rtnetlink.h: a route made on the fly, not configured.
const CLONED: u32 = 0x200;
/// linux/rtnetlink.h and linux/nexthop.h: next hops as objects of their own.
const RTA_NH_ID: u16 = 30;
const RTM_GETNEXTHOP: u16 = 106;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;

/// A next-hop object: its link, or the numbers of its members.
type NextHop = (Option<u32>, Vec<u32>);
/// All of them, by number.
type NextHops = BTreeMap<u32, NextHop>;

/// Where a default route leads.
#[derive(Debug, Default, PartialEq, Eq)]
struct Exits {
    links: BTreeSet<u32>,
    objects: BTreeSet<u32>,
}

impl Route {
    /// Adds (or replaces) a route in the main table.
    pub fn add_route(&self, dst: IpAddr, prefix: u8, via: Option<IpAddr>, oif: u32) -> Result<(), Error> {
        if via.is_some_and(|via| via.is_ipv4() != dst.is_ipv4()) {
            let reason = "the gateway must be of the same family as the destination";
            return Err(Error::Invalid { what: "the route", value: format!("{dst}/{prefix}"), reason });
        }
        let message = route_message(dst, prefix, via, oif);
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE, || {
            let via = via.map(|via| format!(" via {via}")).unwrap_or_default();
            format!("add route {dst}/{prefix}{via} by interface {}", self.name_of(oif))
        })
    }

    /// The link by which packets to an address leave; `None` where none does.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn link_towards(&self, address: IpAddr) -> Result<Option<u32>, Error> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes = vec![RouteAttribute::Destination(RouteAddress::from(address))];
        let answers = match self
            .ask(RouteNetlinkMessage::GetRoute(message), 0, || format!("look up a route to {address}"))
        {
            Ok(answers) => answers,
            // Nothing leads there (ENETUNREACH, EHOSTUNREACH).
            Err(Error::Kernel { .. } | Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let link = |body: &Vec<u8>| {
            attributes_after(body, HEADER)
                .find(|(kind, _)| *kind == libc::RTA_OIF)
                .and_then(|(_, value)| u32_at(value, 0))
        };
        Ok(answers.iter().find_map(|(_, body)| link(body)))
    }

    /// The links by which a default route leaves, IPv4 and IPv6, in all tables. Half a default route (`0.0.0.0/1`, as
    /// VPN clients set it) and all of global IPv6 (`2000::/3`) count.
    pub fn default_route_interfaces(&self) -> Result<Vec<u32>, Error> {
        let mut exits = Exits::default();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            let message = RouteNetlinkMessage::GetRoute(message);
            for (_, body) in self.ask(message, NLM_F_DUMP, || "list routes".to_owned())? {
                read_default(&body, &mut exits);
            }
        }
        if !exits.objects.is_empty() {
            let hops = self.next_hops()?;
            exits.links.extend(exits.objects.iter().flat_map(|id| resolve(&hops, *id)));
        }
        Ok(exits.links.into_iter().collect())
    }

    fn next_hops(&self) -> Result<NextHops, Error> {
        let answers = self.ask_raw(RTM_GETNEXTHOP, &[0; 8], NLM_F_DUMP);
        let answers = answers.map_err(|failure| self.error("list next hops".to_owned(), failure))?;
        Ok(answers.iter().filter_map(|(_, body)| parse_next_hop(body)).collect())
    }
}

fn route_message(dst: IpAddr, prefix: u8, via: Option<IpAddr>, oif: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(dst);
    message.header.destination_prefix_length = prefix;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.kind = RouteType::Unicast;
    // IPv4 tells a directly connected network by its scope; IPv6 has no scopes for routes.
    let direct = via.is_none() && dst.is_ipv4();
    message.header.scope = if direct { RouteScope::Link } else { RouteScope::Universe };
    message.attributes = vec![RouteAttribute::Destination(RouteAddress::from(dst)), RouteAttribute::Oif(oif)];
    message.attributes.extend(via.map(|via| RouteAttribute::Gateway(RouteAddress::from(via))));
    message
}

/// Notes the exits of a route if it is a default route that forwards.
fn read_default(body: &[u8], exits: &mut Exits) {
    let (Some(&family), Some(&length), Some(&kind)) = (body.first(), body.get(1), body.get(7)) else {
        return;
    };
    let widest = if libc::c_int::from(family) == libc::AF_INET { 1 } else { 3 };
    let cloned = u32_at(body, 8).is_some_and(|flags| flags & CLONED != 0);
    if length > widest || kind != libc::RTN_UNICAST || cloned {
        return;
    }
    for (kind, value) in attributes_after(body, HEADER) {
        match kind {
            libc::RTA_OIF => exits.links.extend(u32_at(value, 0)),
            libc::RTA_MULTIPATH => exits.links.extend(hop_links(value)),
            RTA_NH_ID => exits.objects.extend(u32_at(value, 0)),
            _ => {}
        }
    }
}

/// The links of the next hops of a multipath route.
fn hop_links(mut bytes: &[u8]) -> Vec<u32> {
    let mut links = Vec::new();
    while let (Some(length), Some(link)) = (u16_at(bytes, 0), u32_at(bytes, 4)) {
        links.push(link);
        let length = usize::from(length).max(HOP_HEADER).next_multiple_of(4);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    links
}

fn parse_next_hop(body: &[u8]) -> Option<(u32, NextHop)> {
    let (mut id, mut link, mut members) = (None, None, Vec::new());
    for (kind, value) in attributes(body.get(8..)?) {
        match kind {
            NHA_ID => id = u32_at(value, 0),
            NHA_OIF => link = u32_at(value, 0),
            NHA_GROUP => members = value.chunks_exact(8).filter_map(|member| u32_at(member, 0)).collect(),
            _ => {}
        }
    }
    Some((id?, (link, members)))
}

/// The links a next-hop object leads to: its own, or its members' (groups are not nested).
fn resolve(hops: &NextHops, id: u32) -> Vec<u32> {
    let Some((link, members)) = hops.get(&id) else { return Vec::new() };
    let of_members = members.iter().filter_map(|member| hops.get(member)?.0);
    link.iter().copied().chain(of_members).collect()
}

#[cfg(test)]
mod tests {
    use super::super::attributes::push;
    use super::*;

    fn route(length: u8, kind: u8, attribute: u16, value: &[u8]) -> Exits {
        let mut body = vec![libc::AF_INET as u8, length, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0];
        push(&mut body, attribute, value);
        let mut exits = Exits::default();
        read_default(&body, &mut exits);
        exits
    }

    #[test]
    fn default_routes_are_found_in_every_form() {
        let five = 5u32.to_ne_bytes();
        assert_eq!(route(0, 1, libc::RTA_OIF, &five).links, BTreeSet::from([5]));
        assert_eq!(route(1, 1, libc::RTA_OIF, &five).links, BTreeSet::from([5]));
        assert_eq!(route(24, 1, libc::RTA_OIF, &five), Exits::default());
        assert_eq!(route(0, libc::RTN_UNREACHABLE, libc::RTA_OIF, &five), Exits::default());
        assert_eq!(route(0, 1, RTA_NH_ID, &five).objects, BTreeSet::from([5]));
        let hops =
            [&8u16.to_ne_bytes()[..], &[0, 0], &five, &8u16.to_ne_bytes(), &[0, 0], &6u32.to_ne_bytes()];
        assert_eq!(route(0, 1, libc::RTA_MULTIPATH, &hops.concat()).links, BTreeSet::from([5, 6]));
    }

    #[test]
    fn hostile_bytes_neither_panic_nor_hang() {
        for byte in [0, 1, 0xff] {
            for length in 0..64 {
                let bytes = vec![byte; length];
                read_default(&bytes, &mut Exits::default());
                hop_links(&bytes);
                parse_next_hop(&bytes);
            }
        }
    }

    #[test]
    fn groups_of_next_hops_are_followed() {
        let hops = BTreeMap::from([(1, (Some(4), vec![])), (2, (None, vec![1, 9]))]);
        assert_eq!(resolve(&hops, 2), [4]);
        assert!(resolve(&hops, 7).is_empty());
    }
}
