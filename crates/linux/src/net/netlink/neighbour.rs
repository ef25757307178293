//! Static neighbours, and static entries of a bridge's forwarding table: nothing is asked or learned in a trial.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::RouteType;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::Route;
use super::address::family;
use crate::net::{Error, MacAddr};

impl Route {
    /// Sets a permanent neighbour, in place of whatever was known about the address.
    pub fn add_neighbour(&self, index: u32, address: IpAddr, mac: MacAddr) -> Result<(), Error> {
        let mut message = entry(index, mac);
        message.header.family = family(address);
        message.header.state = NeighbourState::Permanent;
        message.header.kind = RouteType::Unicast;
        let destination = match address {
            IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
            IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
        };
        message.attributes.push(NeighbourAttribute::Destination(destination));
        self.change(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE, || {
            format!("set neighbour {address} on interface {}", self.name_of(index))
        })
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

fn entry(index: u32, mac: MacAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = index;
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
    message
}

fn mac_text(mac: MacAddr) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
