//! Static neighbours, and static entries of a bridge's forwarding table: nothing is asked or learned in a trial.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::RouteType;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::Route;
use super::address::family;
use super::attributes::{attributes_after, ip, u16_at, u32_at};
use crate::net::{Error, MacAddr};

/// `struct ndmsg`.
const HEADER: usize = 12;

impl Route {
    /// Sets a permanent neighbour, in place of whatever was known about the address.
    pub fn add_neighbour(&self, index: u32, address: IpAddr, mac: MacAddr) -> Result<(), Error> {
        let mut message = entry(index, mac);
        message.header.family = family(address);
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        message.attributes.push(destination(address));
        self.change(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE, || {
            format!("set neighbour {address} on interface {}", self.name_of(index))
        })
    }

    /// Forgets a neighbour.
    ///
    /// # Errors
    /// There is none such.
    pub fn remove_neighbour(&self, index: u32, address: IpAddr) -> Result<(), Error> {
        let mut message = NeighbourMessage::default();
        message.header.ifindex = index;
        message.header.family = family(address);
        message.attributes.push(destination(address));
        self.change(RouteNetlinkMessage::DelNeighbour(message), 0, || {
            format!("remove neighbour {address} from interface {}", self.name_of(index))
        })
    }

    /// The Ethernet address of a permanent neighbour; `None` where there is none. What was learned does not count.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn neighbour(&self, index: u32, address: IpAddr) -> Result<Option<MacAddr>, Error> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        let answers = self
            .ask(RouteNetlinkMessage::GetNeighbour(message), NLM_F_DUMP, || "list neighbours".to_owned())?;
        Ok(answers.iter().find_map(|(_, body)| permanent(body, index, address)))
    }

    /// Tells the bridge that `index` is a port of: frames to `mac` leave by this port. Static, so it does not age;
    /// not "permanent", which in a bridge means the host's own address and would keep the frames.
    pub fn add_fdb(&self, index: u32, mac: MacAddr) -> Result<(), Error> {
        let mut message = entry(index, mac);
        message.header.family = AddressFamily::Bridge;
        message.header.state = NeighbourState::Noarp;
        message.header.flags = NeighbourFlags::Controller;
        self.change(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE, || {
            format!("add forwarding entry {} on bridge port {}", mac_text(mac), self.name_of(index))
        })
    }
}

fn destination(address: IpAddr) -> NeighbourAttribute {
    NeighbourAttribute::Destination(match address {
        IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
        IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
    })
}

/// The Ethernet address in a `struct ndmsg`, if it is of this permanent neighbour.
fn permanent(body: &[u8], index: u32, address: IpAddr) -> Option<MacAddr> {
    let state = u16_at(body, 8)?;
    if u32_at(body, 4)? != index || state & libc::NUD_PERMANENT == 0 {
        return None;
    }
    let value =
        |wanted| attributes_after(body, HEADER).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    if ip(value(libc::NDA_DST)?)? != address {
        return None;
    }
    value(libc::NDA_LLADDR)?.try_into().ok()
}

fn entry(index: u32, mac: MacAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = index;
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
    message
}

fn mac_text(mac: MacAddr) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
