//! Links: make, change, remove and list them.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

use super::Route;
use super::message::{Body, attribute, attributes, text, u32_at, u64_at};
use crate::Error;
use crate::net::{MacAddr, Netns};

/// `struct ifinfomsg`.
pub(super) const HEADER: usize = 16;
/// linux/if.h: the unknown operational state of a link.
const IF_OPER_UNKNOWN: u8 = 0;
/// Make an object that is not there yet.
const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;

/// linux/veth.h, linux/if_link.h and linux/if_ether.h: attributes of the kinds of links.
const VETH_INFO_PEER: u16 = 1;
const BR_STP_STATE: u16 = 5;
const BR_MCAST_SNOOPING: u16 = 23;
const VRF_TABLE: u16 = 1;
const MACVLAN_MODE: u16 = 1;
const MACVLAN_MODE_BRIDGE: u32 = 4;
const VLAN_ID: u16 = 1;
const VLAN_PROTOCOL: u16 = 5;
const VXLAN_ID: u16 = 1;
const VXLAN_GROUP: u16 = 2;
const VXLAN_LOCAL: u16 = 4;
const VXLAN_LEARNING: u16 = 7;
const VXLAN_PORT: u16 = 15;
const VXLAN_UDP_CSUM: u16 = 18;

/// One end of a veth pair to be made.
#[derive(Debug, Clone)]
pub struct VethEnd {
    pub name: String,
    pub mac: MacAddr,
    /// MTU in bytes without Ethernet header.
    pub mtu: u32,
    /// Number in the end's namespace; the kernel's choice if 0. Ends whose numbers are equal come up a second late: the kernel
    /// takes such a link for one that is not stacked, and puts its news off (`linkwatch_urgent_event` in net/core/link_watch.c).
    pub index: u32,
}

/// A VXLAN tunnel between two hosts, without learning: RFC 7348 over IPv4.
#[derive(Debug, Clone, Copy)]
pub struct VxlanSpec<'a> {
    /// Name of the tunnel's interface.
    pub name: &'a str,
    /// Ethernet address, the source of the frames inside.
    pub mac: MacAddr,
    /// Largest packet inside.
    pub mtu: u32,
    pub id: u32,
    /// Our address of the outer packets.
    pub local: Ipv4Addr,
    /// The other end's.
    pub remote: Ipv4Addr,
    /// UDP port of both ends.
    pub port: u16,
}

/// A link as the kernel describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// Number of the link in its namespace.
    pub index: u32,
    pub name: String,
    /// Ethernet address; zero if the link has none.
    pub mac: MacAddr,
    /// Largest payload of a frame, in bytes.
    pub mtu: u32,
    /// Set up by the administrator (IFF_UP).
    pub up: bool,
    /// The wire, or the peer, is there (IFF_LOWER_UP).
    pub carrier: bool,
    /// Ready to send (IFF_RUNNING, and for veth: said to be up, not merely not known to be down). It may come some
    /// milliseconds after `carrier`: the kernel gives the link its queues in the background, and until then all that
    /// the network stack sends is lost without being counted.
    pub running: bool,
    /// The loopback device (IFF_LOOPBACK).
    pub loopback: bool,
    /// Kind of a virtual link, such as `veth` or `bridge`.
    pub kind: Option<String>,
    /// Bridge, bond or VRF it belongs to.
    pub master: Option<u32>,
    /// Link in the same namespace that it stands on, as a VLAN does.
    pub lower: Option<u32>,
    pub num_rx_queues: u32,
    pub stats: LinkStats,
}

/// A link's 64-bit counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    pub rx_packets: u64,
    pub tx_packets: u64,
    /// Bytes of frames, without FCS on most cards.
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
    /// Packets dropped on their way out.
    pub tx_dropped: u64,
    /// Packets the card had no room for.
    pub rx_missed: u64,
    /// Packets the card had no room for, in the words of other drivers.
    pub rx_fifo: u64,
    pub collisions: u64,
}

impl Route {
    /// Makes a veth pair, the peer in another namespace (or the same), with these numbers of transmit and receive queues on
    /// either end; both are down.
    pub fn create_veth(
        &self,
        end: &VethEnd,
        peer: &VethEnd,
        peer_ns: &Netns,
        queues: u32,
    ) -> Result<(), Error> {
        check_name(&peer.name)?;
        let body = |end: &VethEnd| {
            let body = link(end.index)
                .number(libc::IFLA_MTU, end.mtu)
                .with(libc::IFLA_ADDRESS, &end.mac);
            body.number(libc::IFLA_NUM_TX_QUEUES, queues)
                .number(libc::IFLA_NUM_RX_QUEUES, queues)
        };
        let far = body(peer).text(libc::IFLA_IFNAME, &peer.name);
        let far = far.number(libc::IFLA_NET_NS_FD, peer_ns.as_fd().as_raw_fd() as u32);
        self.create(
            &end.name,
            body(end),
            "veth",
            Body::default().nest(VETH_INFO_PEER, far),
        )
    }

    /// Makes a bridge without spanning tree and multicast snooping, and gives its index.
    pub fn create_bridge(&self, name: &str) -> Result<u32, Error> {
        let data = Body::default()
            .number(BR_STP_STATE, 0)
            .with(BR_MCAST_SNOOPING, &[0]);
        self.create(name, link(0), "bridge", data)?;
        Ok(self.link(name)?.index)
    }

    /// Makes a VRF for the routes of this table, and gives its index; it is down.
    pub fn create_vrf(&self, name: &str, table: u32) -> Result<u32, Error> {
        let data = Body::default().number(VRF_TABLE, table);
        self.create(name, link(0), "vrf", data)?;
        Ok(self.link(name)?.index)
    }

    /// Makes a macvlan interface in bridge mode on top of `lower`; it is down.
    pub fn create_macvlan(&self, name: &str, mac: MacAddr, lower: u32) -> Result<(), Error> {
        let data = Body::default().number(MACVLAN_MODE, MACVLAN_MODE_BRIDGE);
        self.create(name, on_top(lower, mac), "macvlan", data)
    }

    /// Makes an interface for the frames of `lower` that carry the 802.1Q tag `id`; it is down.
    pub fn create_vlan(&self, name: &str, mac: MacAddr, lower: u32, id: u16) -> Result<(), Error> {
        let protocol = (libc::ETH_P_8021Q as u16).to_be_bytes();
        let data = Body::default()
            .with(VLAN_ID, &id.to_ne_bytes())
            .with(VLAN_PROTOCOL, &protocol);
        self.create(name, on_top(lower, mac), "vlan", data)
    }

    /// Makes one end of a tunnel; it is down. Its outer packets go without UDP checksum, as RFC 7348 section 5 recommends.
    pub fn create_vxlan(&self, spec: &VxlanSpec<'_>) -> Result<(), Error> {
        let body = link(0)
            .with(libc::IFLA_ADDRESS, &spec.mac)
            .number(libc::IFLA_MTU, spec.mtu);
        let data = Body::default()
            .number(VXLAN_ID, spec.id)
            .ip(VXLAN_LOCAL, spec.local.into())
            .ip(VXLAN_GROUP, spec.remote.into())
            .with(VXLAN_PORT, &spec.port.to_be_bytes())
            .with(VXLAN_LEARNING, &[0])
            .with(VXLAN_UDP_CSUM, &[0]);
        self.create(spec.name, body, "vxlan", data)
    }

    /// All links of the namespace.
    pub fn links(&self) -> Result<Vec<LinkInfo>, Error> {
        let answers = self.dump(libc::RTM_GETLINK, &link(0), "list links")?;
        Ok(answers.iter().filter_map(|body| parse_link(body)).collect())
    }

    pub fn link(&self, name: &str) -> Result<LinkInfo, Error> {
        check_name(name)?;
        self.one_link(
            &link(0).text(libc::IFLA_IFNAME, name),
            format!("interface {name}"),
        )
    }

    pub fn link_by_index(&self, index: u32) -> Result<LinkInfo, Error> {
        self.one_link(&link(index), format!("interface number {index}"))
    }

    /// Sets a link up or down. Setting it down flushes its IPv6 addresses, routes and neighbours.
    pub fn set_up(&self, index: u32, up: bool) -> Result<(), Error> {
        let flag = libc::IFF_UP as u32;
        let mut body = link(index);
        body.0[8..].copy_from_slice(
            &[if up { flag } else { 0 }, flag]
                .map(u32::to_ne_bytes)
                .concat(),
        );
        let (name, state) = (self.name_of(index), if up { "up" } else { "down" });
        self.change(
            libc::RTM_SETLINK,
            0,
            &body,
            format_args!("set interface {name} {state}"),
        )
    }

    /// Waits until a link can send ([`LinkInfo::running`]); both ends of a veth pair must have been set up.
    pub fn wait_running(&self, index: u32, longest: Duration) -> Result<(), Error> {
        let end = Instant::now() + longest;
        loop {
            let link = self.link_by_index(index)?;
            if link.running {
                return Ok(());
            }
            if Instant::now() >= end {
                let operation = format_args!(
                    "wait for interface {} in namespace {}",
                    link.name, self.label
                );
                return Err(Error::system(
                    operation,
                    io::Error::from_raw_os_error(libc::ETIMEDOUT),
                ));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until all links of the namespace that are set up can send, the loopback device aside.
    pub fn wait_all_running(&self, longest: Duration) -> Result<(), Error> {
        let wanted = self
            .links()?
            .into_iter()
            .filter(|link| link.up && !link.loopback);
        wanted
            .into_iter()
            .try_for_each(|link| self.wait_running(link.index, longest))
    }

    /// Sets a link's Ethernet address.
    pub fn set_mac(&self, index: u32, mac: MacAddr) -> Result<(), Error> {
        let (body, name) = (
            link(index).with(libc::IFLA_ADDRESS, &mac),
            self.name_of(index),
        );
        let what = format_args!("set the Ethernet address of interface {name}");
        self.change(libc::RTM_SETLINK, 0, &body, what)
    }

    /// Puts a link into a bridge or bond.
    pub fn set_master(&self, index: u32, master: u32) -> Result<(), Error> {
        let (body, name) = (
            link(index).number(libc::IFLA_MASTER, master),
            self.name_of(index),
        );
        let what = format_args!("put interface {name} into {}", self.name_of(master));
        self.change(libc::RTM_SETLINK, 0, &body, what)
    }

    fn one_link(&self, body: &Body, what: String) -> Result<LinkInfo, Error> {
        match self.ask(libc::RTM_GETLINK, 0, body, format_args!("look up {what}")) {
            Ok(answers) => answers.iter().find_map(|body| parse_link(body)),
            Err(e) if e.is_missing() => None,
            Err(e) => return Err(e),
        }
        .ok_or_else(|| Error::Missing(format!("{what} in namespace {}", self.label)))
    }

    pub(super) fn create(
        &self,
        name: &str,
        body: Body,
        kind: &str,
        data: Body,
    ) -> Result<(), Error> {
        check_name(name)?;
        let info = Body::default()
            .text(libc::IFLA_INFO_KIND, kind)
            .nest(libc::IFLA_INFO_DATA, data);
        let body = body
            .text(libc::IFLA_IFNAME, name)
            .nest(libc::IFLA_LINKINFO, info);
        self.change(
            libc::RTM_NEWLINK,
            CREATE,
            &body,
            format_args!("create {kind} interface {name}"),
        )
    }
}

/// A request about the link of that number; 0 names no link.
pub(super) fn link(index: u32) -> Body {
    let mut body = Body(vec![0; HEADER]);
    body.0[4..8].copy_from_slice(&index.to_ne_bytes());
    body
}

/// A request for a new link that stands on another.
fn on_top(lower: u32, mac: MacAddr) -> Body {
    link(0)
        .number(libc::IFLA_LINK, lower)
        .with(libc::IFLA_ADDRESS, &mac)
}

/// The kernel's own rule (dev_valid_name), checked here because the kernel only says "Invalid argument".
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let strange = |b: u8| b == b'/' || b == b':' || b == 0 || b.is_ascii_whitespace();
    if matches!(name, "" | "." | "..") || name.len() >= libc::IFNAMSIZ || name.bytes().any(strange)
    {
        let reason = "names have at most 15 bytes, without slash, colon and white space (a host over ssh is user@host)";
        return Err(Error::unusable("the interface name", name, reason));
    }
    Ok(())
}

/// Reads a link out of the body of an RTM_NEWLINK message.
fn parse_link(body: &[u8]) -> Option<LinkInfo> {
    let flags = u32_at(body, 8)?;
    let is = |flag: libc::c_int| flags & flag as u32 != 0;
    let mut link = LinkInfo {
        index: u32_at(body, 4)?,
        up: is(libc::IFF_UP),
        carrier: is(libc::IFF_LOWER_UP),
        running: is(libc::IFF_RUNNING),
        loopback: is(libc::IFF_LOOPBACK),
        ..LinkInfo::default()
    };
    let (mut lower_elsewhere, mut state_known) = (false, true);
    for (kind, value) in attributes(body, HEADER) {
        lower_elsewhere |= kind == libc::IFLA_LINK_NETNSID;
        state_known &= kind != libc::IFLA_OPERSTATE || value != [IF_OPER_UNKNOWN];
        read_attribute(&mut link, kind, value);
    }
    // Other drivers may never say more than "unknown"; a veth always does, once the kernel has made it ready.
    link.running &= state_known || link.kind.as_deref() != Some("veth");
    // A veth's peer, or a VLAN's card, in another namespace: that number means nothing here.
    link.lower = link
        .lower
        .filter(|&lower| !lower_elsewhere && lower != 0 && lower != link.index);
    Some(link)
}

fn read_attribute(link: &mut LinkInfo, kind: u16, value: &[u8]) {
    let number = u32_at(value, 0);
    match kind {
        libc::IFLA_IFNAME => link.name = text(value),
        libc::IFLA_ADDRESS => link.mac = value.try_into().unwrap_or_default(),
        libc::IFLA_MTU => link.mtu = number.unwrap_or(0),
        libc::IFLA_MASTER => link.master = number,
        libc::IFLA_LINK => link.lower = number,
        libc::IFLA_NUM_RX_QUEUES => link.num_rx_queues = number.unwrap_or(0),
        libc::IFLA_LINKINFO => {
            link.kind = attribute(value, 0, libc::IFLA_INFO_KIND).map(text);
        }
        libc::IFLA_STATS64 => link.stats = parse_stats(value),
        _ => {}
    }
}

/// `struct rtnl_link_stats64`, by position; older kernels send a shorter one.
fn parse_stats(bytes: &[u8]) -> LinkStats {
    let nth = |n: usize| u64_at(bytes, n * 8).unwrap_or(0);
    LinkStats {
        rx_packets: nth(0),
        tx_packets: nth(1),
        rx_bytes: nth(2),
        tx_bytes: nth(3),
        rx_errors: nth(4),
        tx_errors: nth(5),
        rx_dropped: nth(6),
        tx_dropped: nth(7),
        rx_missed: nth(15),
        rx_fifo: nth(14),
        collisions: nth(9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_would_refuse_are_refused_with_a_reason() {
        for name in [
            "",
            ".",
            "..",
            "a b",
            "a/b",
            "a:b",
            "sixteen-bytes-xx",
            "a\0",
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name("fifteen-bytes-x").is_ok());
    }

    #[test]
    fn a_short_or_hostile_body_gives_a_partial_link_or_none() {
        assert_eq!(parse_link(&[0; 8]), None);
        let link = parse_link(&[0xff; 64]).unwrap();
        assert_eq!(link.name, "");
        assert_eq!(parse_stats(&[1; 9]).tx_packets, 0);
    }
}
