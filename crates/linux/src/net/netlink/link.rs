//! Links: make, change, remove and list them.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    BridgeStpState, InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo as Info,
    LinkMessage,
};

use super::Route;
use super::attributes::{attributes, attributes_after, text, u32_at, u64_at};
use crate::net::{Error, MacAddr, Netns};

/// `struct ifinfomsg`.
const HEADER: usize = 16;
/// linux/if.h: the operational state of a link that has not been told.
const IF_OPER_UNKNOWN: u8 = 0;
/// Seconds to the unit in which the kernel takes a bridge's ageing time (USER_HZ).
const USER_HZ: u32 = 100;

/// A veth pair to be made: the first end in the socket's namespace, the peer in another (or the same).
#[derive(Debug, Clone)]
pub struct VethSpec<'a> {
    /// Name of the end in this namespace.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Name of the other end.
    pub peer_name: &'a str,
    /// Its Ethernet address.
    pub peer_mac: MacAddr,
    /// The namespace of the other end.
    pub peer_ns: &'a Netns,
    /// Number of transmit and of receive queues, on both ends.
    pub queues: u32,
    /// MTU in bytes without Ethernet header.
    pub mtu: u32,
    /// MTU of the other end; the same if `None`.
    pub peer_mtu: Option<u32>,
    /// Length of the transmit queue of both ends; the kernel's default if `None`.
    pub txqueuelen: Option<u32>,
    /// Numbers of this end and of the other, each in its namespace; the kernel's choice if `None`. Ends whose numbers are
    /// equal come up a second late: the kernel takes such a link for one that is not stacked, and puts its news off
    /// (`linkwatch_urgent_event` in net/core/link_watch.c).
    pub indexes: Option<(u32, u32)>,
}

/// A link as the kernel describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// Number of the link in its namespace.
    pub index: u32,
    /// Name of the link.
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
    /// Number of receive queues.
    pub num_rx_queues: u32,
    /// Number of transmit queues.
    pub num_tx_queues: u32,
    /// Counters.
    pub stats: LinkStats,
    /// An XDP program is attached.
    pub xdp_attached: bool,
}

/// A link's 64-bit counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Bad packets received.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
    /// Packets dropped on their way out.
    pub tx_dropped: u64,
    /// Packets the card had no room for.
    pub rx_missed: u64,
    /// Packets nobody on this host wanted.
    pub rx_nohandler: u64,
}

impl Route {
    /// Makes a veth pair; both ends are down.
    pub fn create_veth(&self, spec: &VethSpec<'_>) -> Result<(), Error> {
        check_name(spec.name)?;
        check_name(spec.peer_name)?;
        let mut peer = veth_end(spec.peer_name, spec.peer_mac, spec.indexes.map(|i| i.1), spec);
        peer.attributes.push(LinkAttribute::Mtu(spec.peer_mtu.unwrap_or(spec.mtu)));
        peer.attributes.push(LinkAttribute::NetNsFd(spec.peer_ns.as_fd().as_raw_fd()));
        let mut message = veth_end(spec.name, spec.mac, spec.indexes.map(|i| i.0), spec);
        message.attributes.push(LinkAttribute::Mtu(spec.mtu));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            Info::Kind(InfoKind::Veth),
            Info::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, || {
            format!("create veth pair {}/{}", spec.name, spec.peer_name)
        })
    }

    /// Makes a bridge without spanning tree and multicast snooping, and gives its index. `ageing_seconds`: how long
    /// a learned address lives; 0 makes it flood.
    pub fn create_bridge(&self, name: &str, ageing_seconds: Option<u32>) -> Result<u32, Error> {
        check_name(name)?;
        let mut data =
            vec![InfoBridge::StpState(BridgeStpState::Disabled), InfoBridge::MulticastSnooping(false)];
        data.extend(ageing_seconds.map(|seconds| InfoBridge::AgeingTime(seconds.saturating_mul(USER_HZ))));
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![Info::Kind(InfoKind::Bridge), Info::Data(InfoData::Bridge(data))]),
        ];
        self.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, || {
            format!("create bridge {name}")
        })?;
        Ok(self.link(name)?.index)
    }

    /// All links of the namespace.
    pub fn links(&self) -> Result<Vec<LinkInfo>, Error> {
        let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.ask(message, NLM_F_DUMP, || "list links".to_owned())?;
        Ok(answers.iter().filter_map(|(_, body)| parse_link(body)).collect())
    }

    /// One link by name.
    pub fn link(&self, name: &str) -> Result<LinkInfo, Error> {
        check_name(name)?;
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.one_link(message, format!("interface {name}"))
    }

    /// One link by index.
    pub fn link_by_index(&self, index: u32) -> Result<LinkInfo, Error> {
        self.one_link(indexed(index), format!("interface number {index}"))
    }

    /// Sets a link up or down. Setting it down flushes its IPv6 addresses, routes and neighbours.
    pub fn set_up(&self, index: u32, up: bool) -> Result<(), Error> {
        let mut message = indexed(index);
        message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
        message.header.change_mask = LinkFlags::Up;
        let state = if up { "up" } else { "down" };
        self.set_link(message, |name| format!("set interface {name} {state}"))
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
                let operation = format!("wait for interface {} in namespace {}", link.name, self.label);
                return Err(Error::kernel(operation, io::Error::from_raw_os_error(libc::ETIMEDOUT)));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until all links of the namespace that are set up can send, the loopback device aside.
    pub fn wait_all_running(&self, longest: Duration) -> Result<(), Error> {
        let wanted = self.links()?.into_iter().filter(|link| link.up && !link.loopback);
        wanted.into_iter().try_for_each(|link| self.wait_running(link.index, longest))
    }

    /// Sets the MTU.
    pub fn set_mtu(&self, index: u32, mtu: u32) -> Result<(), Error> {
        let mut message = indexed(index);
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.set_link(message, |name| format!("set the MTU of interface {name} to {mtu}"))
    }

    /// Puts a link into a bridge or bond, or takes it out.
    pub fn set_master(&self, index: u32, master: Option<u32>) -> Result<(), Error> {
        let mut message = indexed(index);
        message.attributes.push(LinkAttribute::Controller(master.unwrap_or(0)));
        self.set_link(message, |name| match master {
            Some(master) => format!("put interface {name} into {}", self.name_of(master)),
            None => format!("take interface {name} out of its bridge"),
        })
    }

    /// Limits the segments that one offloaded (GSO) packet of a link may have; 1 means none larger than a frame.
    pub fn set_gso_max_segments(&self, index: u32, segments: u32) -> Result<(), Error> {
        let mut message = indexed(index);
        message.attributes.push(LinkAttribute::GsoMaxSegs(segments));
        self.set_link(message, |name| {
            format!("limit the offloaded segments of interface {name} to {segments}")
        })
    }

    /// Removes a link; of a veth pair both ends go.
    pub fn delete(&self, index: u32) -> Result<(), Error> {
        self.change(RouteNetlinkMessage::DelLink(indexed(index)), 0, || {
            format!("delete interface {}", self.name_of(index))
        })
    }

    /// A link's name for a message: looked up only when something has already gone wrong.
    pub(super) fn name_of(&self, index: u32) -> String {
        self.link_by_index(index).map_or_else(|_| format!("number {index}"), |link| link.name)
    }

    fn set_link(&self, message: LinkMessage, what: impl FnOnce(&str) -> String) -> Result<(), Error> {
        let index = message.header.index;
        self.change(RouteNetlinkMessage::SetLink(message), 0, || what(&self.name_of(index)))
    }

    fn one_link(&self, message: LinkMessage, what: String) -> Result<LinkInfo, Error> {
        match self.ask(RouteNetlinkMessage::GetLink(message), 0, || format!("look up {what}")) {
            Ok(answers) => answers.iter().find_map(|(_, body)| parse_link(body)),
            Err(e) if e.is_missing() => None,
            Err(e) => return Err(e),
        }
        .ok_or_else(|| Error::NotFound { what, place: format!("namespace {}", self.label) })
    }
}

fn veth_end(name: &str, mac: MacAddr, index: Option<u32>, spec: &VethSpec<'_>) -> LinkMessage {
    let mut end = indexed(index.unwrap_or(0));
    end.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Address(mac.to_vec()),
        LinkAttribute::NumTxQueues(spec.queues),
        LinkAttribute::NumRxQueues(spec.queues),
    ];
    end.attributes.extend(spec.txqueuelen.map(LinkAttribute::TxQueueLen));
    end
}

fn indexed(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

/// The kernel's own rule (dev_valid_name), said before the kernel says "Invalid argument".
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let wrong = |reason| Err(Error::Invalid { what: "the interface name", value: name.to_owned(), reason });
    if name.is_empty() || name == "." || name == ".." {
        return wrong("it names nothing");
    }
    if name.len() >= libc::IFNAMSIZ {
        return wrong("at most 15 bytes are allowed");
    }
    if name.bytes().any(|b| b == b'/' || b == b':' || b == 0 || b.is_ascii_whitespace()) {
        return wrong("a slash, a colon and white space are not allowed");
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
    for (kind, value) in attributes_after(body, HEADER) {
        lower_elsewhere |= kind == libc::IFLA_LINK_NETNSID;
        state_known &= kind != libc::IFLA_OPERSTATE || value != [IF_OPER_UNKNOWN];
        read_attribute(&mut link, kind, value);
    }
    // Other drivers may never say more than "unknown"; a veth always does, once the kernel has made it ready.
    link.running &= state_known || link.kind.as_deref() != Some("veth");
    // A veth's peer, or a VLAN's card, in another namespace: that number means nothing here.
    link.lower = link.lower.filter(|&lower| !lower_elsewhere && lower != 0 && lower != link.index);
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
        libc::IFLA_NUM_TX_QUEUES => link.num_tx_queues = number.unwrap_or(0),
        libc::IFLA_LINKINFO => {
            link.kind =
                attributes(value).find(|(kind, _)| *kind == libc::IFLA_INFO_KIND).map(|(_, v)| text(v));
        }
        libc::IFLA_STATS64 => link.stats = parse_stats(value),
        // IFLA_XDP_ATTACHED, the second in the nest: 0 means none.
        libc::IFLA_XDP => {
            link.xdp_attached = attributes(value).any(|(kind, v)| kind == 2 && v.first() != Some(&0))
        }
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
        rx_nohandler: nth(23),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_kernel_would_refuse_are_refused_with_a_reason() {
        for name in ["", ".", "..", "a b", "a/b", "a:b", "sixteen-bytes-xx", "a\0"] {
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
