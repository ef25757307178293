//! Addresses of links, static neighbours and entries of a bridge's forwarding table, so that nothing is asked or learned in a
//! trial; routes, and which links a default route leaves by, in any table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Route;
use super::message::{Body, attribute, attributes, ip, u16_at, u32_at};
use super::socket::REPLACE;
use crate::Error;
use crate::net::MacAddr;

/// `struct rtmsg`.
const HEADER: usize = 12;
/// `struct ifaddrmsg`.
const ADDRESS_HEADER: usize = 8;
/// linux/if_addr.h: flags of 32 bits.
const IFA_FLAGS: u16 = 8;
/// `struct rtnexthop`.
const HOP_HEADER: usize = 8;
/// linux/rtnetlink.h and linux/nexthop.h: next hops as objects of their own.
const RTA_NH_ID: u16 = 30;
const RTM_GETNEXTHOP: u16 = 106;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;

/// A network and the length of its prefix.
pub type Prefix = (IpAddr, u8);
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
    /// Gives a link an address, at once usable (IPv6 without duplicate address detection).
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let nodad = if address.is_ipv6() {
            libc::IFA_F_NODAD
        } else {
            0
        };
        let body = address_of(index, address, prefix, nodad as u8).number(IFA_FLAGS, nodad);
        let what = format_args!(
            "add address {address}/{prefix} to interface {}",
            self.name_of(index)
        );
        self.change(libc::RTM_NEWADDR, REPLACE, &body, what)
    }

    /// Takes an address from a link.
    pub fn remove_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let what = format_args!(
            "remove address {address}/{prefix} from interface {}",
            self.name_of(index)
        );
        let body = address_of(index, address, prefix, 0);
        self.change(libc::RTM_DELADDR, 0, &body, what)
    }

    /// All addresses of the namespace: link, address, prefix length. The far end of a point-to-point address is
    /// listed as well.
    pub fn addresses(&self) -> Result<Vec<(u32, IpAddr, u8)>, Error> {
        let answers = self.dump(
            libc::RTM_GETADDR,
            &Body(vec![0; ADDRESS_HEADER]),
            "list addresses",
        )?;
        Ok(answers
            .iter()
            .flat_map(|body| parse_addresses(body))
            .collect())
    }

    /// Sets a permanent neighbour, in place of any entry for the address.
    pub fn add_neighbour(&self, index: u32, address: IpAddr, mac: MacAddr) -> Result<(), Error> {
        let what = format_args!(
            "set neighbour {address} on interface {}",
            self.name_of(index)
        );
        self.change(
            libc::RTM_NEWNEIGH,
            REPLACE,
            &neighbour(index, address, mac),
            what,
        )
    }

    /// Sets many permanent neighbours of a link; otherwise as [`Route::add_routes`].
    pub fn add_neighbours(
        &self,
        index: u32,
        neighbours: impl IntoIterator<Item = (IpAddr, MacAddr)>,
        go_on: impl FnMut() -> bool,
    ) -> Result<u64, Error> {
        let bodies = neighbours
            .into_iter()
            .map(|(address, mac)| neighbour(index, address, mac));
        self.change_many(libc::RTM_NEWNEIGH, bodies, go_on, "set neighbour", index)
    }

    /// Adds an entry to the bridge of port `index`: frames to `mac` leave by this port. Static, so it does not age; not
    /// "permanent", which in a bridge means the host's own address and would keep the frames.
    pub fn add_fdb(&self, index: u32, mac: MacAddr) -> Result<(), Error> {
        let body = entry(
            libc::AF_BRIDGE as u8,
            index,
            libc::NUD_NOARP,
            libc::NTF_MASTER,
            mac,
        );
        let (mac, port) = (linerate_wire::MacAddr(mac), self.name_of(index));
        let what = format_args!("add forwarding entry {mac} on bridge port {port}");
        self.change(libc::RTM_NEWNEIGH, REPLACE, &body, what)
    }

    /// Adds (or replaces) a route.
    pub fn add_route(
        &self,
        dst: IpAddr,
        prefix: u8,
        via: Option<IpAddr>,
        oif: u32,
    ) -> Result<(), Error> {
        if via.is_some_and(|via| via.is_ipv4() != dst.is_ipv4()) {
            let reason = "the gateway must be of the same family as the destination";
            return Err(Error::unusable(
                "the route",
                format_args!("{dst}/{prefix}"),
                reason,
            ));
        }
        let gateway = via.map(|via| format!(" via {via}")).unwrap_or_default();
        let what = format_args!(
            "add route {dst}/{prefix}{gateway} by interface {}",
            self.name_of(oif)
        );
        self.change(
            libc::RTM_NEWROUTE,
            REPLACE,
            &route((dst, prefix), via, oif, self.table),
            what,
        )
    }

    /// Adds routes by the hundred thousand, each by the gateway if that is of its family, else directly by
    /// `oif`. Returns their number. `go_on` is called now and then; once it returns false, the rest is left out.
    ///
    /// # Errors
    /// The first that the kernel refuses, with its number; those before it are added, and some after it may be.
    pub fn add_routes(
        &self,
        routes: impl IntoIterator<Item = Prefix>,
        gateway: Option<IpAddr>,
        oif: u32,
        go_on: impl FnMut() -> bool,
    ) -> Result<u64, Error> {
        let of_family = |to: Prefix| gateway.filter(|gateway| gateway.is_ipv4() == to.0.is_ipv4());
        let bodies = routes
            .into_iter()
            .map(|to| route(to, of_family(to), oif, self.table));
        self.change_many(libc::RTM_NEWROUTE, bodies, go_on, "add route", oif)
    }

    /// The link by which packets to an address leave; `None` where none does.
    pub fn link_towards(&self, address: IpAddr) -> Option<u32> {
        let mut body = Body(vec![0; HEADER]);
        body.0[..2].copy_from_slice(&[family(address), if address.is_ipv4() { 32 } else { 128 }]);
        // An error is the kernel's answer that nothing leads there (ENETUNREACH, EHOSTUNREACH).
        let answers = self.ask(
            libc::RTM_GETROUTE,
            0,
            &body.ip(libc::RTA_DST, address),
            "look up a route",
        );
        let link = |body: &Vec<u8>| u32_at(attribute(body, HEADER, libc::RTA_OIF)?, 0);
        answers.ok()?.iter().find_map(link)
    }

    /// The links by which a default route leaves, IPv4 and IPv6, in all tables. Half a default route (`0.0.0.0/1`, as
    /// VPN clients set it) and all of global IPv6 (`2000::/3`) count.
    pub fn default_route_interfaces(&self) -> Result<Vec<u32>, Error> {
        let mut exits = Exits::default();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut body = Body(vec![0; HEADER]);
            body.0[0] = family as u8;
            for body in self.dump(libc::RTM_GETROUTE, &body, "list routes")? {
                read_default(&body, &mut exits);
            }
        }
        if !exits.objects.is_empty() {
            let answers = self.dump(RTM_GETNEXTHOP, &Body(vec![0; 8]), "list next hops")?;
            let hops: NextHops = answers
                .iter()
                .filter_map(|body| parse_next_hop(body))
                .collect();
            exits
                .links
                .extend(exits.objects.iter().flat_map(|id| resolve(&hops, *id)));
        }
        Ok(exits.links.into_iter().collect())
    }
}

/// The address family of an address.
fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    }) as u8
}

/// `struct ifaddrmsg`, and the address.
fn address_of(index: u32, address: IpAddr, prefix: u8, flags: u8) -> Body {
    let mut body = Body(vec![family(address), prefix, flags, 0]);
    body.0.extend(index.to_ne_bytes());
    body.ip(libc::IFA_LOCAL, address)
        .ip(libc::IFA_ADDRESS, address)
}

fn neighbour(index: u32, address: IpAddr, mac: MacAddr) -> Body {
    entry(family(address), index, libc::NUD_PERMANENT, 0, mac).ip(libc::NDA_DST, address)
}

/// `struct ndmsg`, and the Ethernet address.
fn entry(family: u8, index: u32, state: u16, flags: u8, mac: MacAddr) -> Body {
    let mut body = Body(vec![family, 0, 0, 0]);
    body.0.extend(index.to_ne_bytes());
    body.0.extend(state.to_ne_bytes());
    body.0.extend([flags, libc::RTN_UNICAST]);
    body.with(libc::NDA_LLADDR, &mac)
}

fn parse_addresses(body: &[u8]) -> Vec<(u32, IpAddr, u8)> {
    let (Some(index), Some(&prefix)) = (u32_at(body, 4), body.get(1)) else {
        return Vec::new();
    };
    let own_or_peer = attributes(body, ADDRESS_HEADER)
        .filter(|(kind, _)| matches!(*kind, libc::IFA_ADDRESS | libc::IFA_LOCAL))
        .filter_map(|(_, value)| ip(value));
    let mut addresses: Vec<_> = own_or_peer
        .map(|address| (index, address, prefix))
        .collect();
    addresses.dedup();
    addresses
}

/// `struct rtmsg` and its attributes.
fn route((to, prefix): Prefix, via: Option<IpAddr>, oif: u32, table: u8) -> Body {
    // IPv4 marks a directly connected network by its scope; IPv6 has no scopes for routes.
    let scope = if via.is_none() && to.is_ipv4() {
        libc::RT_SCOPE_LINK
    } else {
        libc::RT_SCOPE_UNIVERSE
    };
    let kind = [table, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST];
    let mut body = Body(vec![family(to), prefix, 0, 0]);
    body.0.extend(kind);
    body.0.extend([0; 4]);
    let body = body.ip(libc::RTA_DST, to).number(libc::RTA_OIF, oif);
    via.into_iter()
        .fold(body, |body, via| body.ip(libc::RTA_GATEWAY, via))
}

/// Notes the exits of a route if it is a default route that forwards.
fn read_default(body: &[u8], exits: &mut Exits) {
    let (Some(&family), Some(&length), Some(&kind)) = (body.first(), body.get(1), body.get(7))
    else {
        return;
    };
    let widest = if libc::c_int::from(family) == libc::AF_INET {
        1
    } else {
        3
    };
    let cloned = u32_at(body, 8).is_some_and(|flags| flags & libc::RTM_F_CLONED != 0);
    if length > widest || kind != libc::RTN_UNICAST || cloned {
        return;
    }
    for (kind, value) in attributes(body, HEADER) {
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
    for (kind, value) in attributes(body, 8) {
        match kind {
            NHA_ID => id = u32_at(value, 0),
            NHA_OIF => link = u32_at(value, 0),
            NHA_GROUP => {
                members = value
                    .chunks_exact(8)
                    .filter_map(|member| u32_at(member, 0))
                    .collect()
            }
            _ => {}
        }
    }
    Some((id?, (link, members)))
}

/// The links a next-hop object leads to: its own, or its members' (groups are not nested).
fn resolve(hops: &NextHops, id: u32) -> Vec<u32> {
    let Some((link, members)) = hops.get(&id) else {
        return Vec::new();
    };
    let of_members = members.iter().filter_map(|member| hops.get(member)?.0);
    link.iter().copied().chain(of_members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(length: u8, kind: u8, attribute: u16, value: &[u8]) -> Exits {
        let header = vec![libc::AF_INET as u8, length, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0];
        let mut exits = Exits::default();
        read_default(&Body(header).with(attribute, value).0, &mut exits);
        exits
    }

    #[test]
    fn default_routes_are_found_in_every_form() {
        let five = 5u32.to_ne_bytes();
        assert_eq!(route(0, 1, libc::RTA_OIF, &five).links, BTreeSet::from([5]));
        assert_eq!(route(1, 1, libc::RTA_OIF, &five).links, BTreeSet::from([5]));
        assert_eq!(route(24, 1, libc::RTA_OIF, &five), Exits::default());
        assert_eq!(
            route(0, libc::RTN_UNREACHABLE, libc::RTA_OIF, &five),
            Exits::default()
        );
        assert_eq!(route(0, 1, RTA_NH_ID, &five).objects, BTreeSet::from([5]));
        let hops = [
            &8u16.to_ne_bytes()[..],
            &[0, 0],
            &five,
            &8u16.to_ne_bytes(),
            &[0, 0],
            &6u32.to_ne_bytes(),
        ];
        assert_eq!(
            route(0, 1, libc::RTA_MULTIPATH, &hops.concat()).links,
            BTreeSet::from([5, 6])
        );
    }

    #[test]
    fn hostile_bytes_neither_panic_nor_hang() {
        for byte in [0, 1, 0xff] {
            for length in 0..64 {
                let bytes = vec![byte; length];
                read_default(&bytes, &mut Exits::default());
                hop_links(&bytes);
                parse_next_hop(&bytes);
                assert!(length >= 8 || parse_addresses(&bytes).is_empty());
            }
        }
    }

    #[test]
    fn hostile_addresses_give_nothing() {
        assert!(parse_addresses(&[0xff; 40]).is_empty());
    }

    #[test]
    fn groups_of_next_hops_are_followed() {
        let hops = BTreeMap::from([(1, (Some(4), vec![])), (2, (None, vec![1, 9]))]);
        assert_eq!(resolve(&hops, 2), [4]);
        assert!(resolve(&hops, 7).is_empty());
    }
}
