//! Links that stand on other links: macvlan, VLAN, VXLAN.

use std::net::Ipv4Addr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoMacVlan, InfoVlan, InfoVxlan, LinkAttribute, LinkInfo as Info, LinkMessage,
    MacVlanMode, VlanProtocol,
};

use super::Route;
use super::link::check_name;
use crate::net::{Error, MacAddr};

/// A VXLAN tunnel between two hosts, without learning: RFC 7348 over IPv4.
#[derive(Debug, Clone, Copy)]
pub struct VxlanSpec<'a> {
    /// Name of the tunnel's interface.
    pub name: &'a str,
    /// Its Ethernet address, the source of the frames inside.
    pub mac: MacAddr,
    /// Largest packet inside.
    pub mtu: u32,
    /// Network identifier.
    pub id: u32,
    /// Our address of the outer packets.
    pub local: Ipv4Addr,
    /// The other end's.
    pub remote: Ipv4Addr,
    /// UDP port of both ends.
    pub port: u16,
}

impl Route {
    /// Makes a macvlan interface in bridge mode on top of `lower`; it is down.
    pub fn create_macvlan(&self, name: &str, mac: MacAddr, lower: u32) -> Result<(), Error> {
        let data = InfoData::MacVlan(vec![InfoMacVlan::Mode(MacVlanMode::Bridge)]);
        let on = [LinkAttribute::Link(lower), LinkAttribute::Address(mac.to_vec())];
        self.create_on(name, InfoKind::MacVlan, data, &on, "macvlan interface")
    }

    /// Makes an interface for the frames of `lower` that carry the 802.1Q tag `id`; it is down.
    pub fn create_vlan(&self, name: &str, mac: MacAddr, lower: u32, id: u16) -> Result<(), Error> {
        if !(1..=4094).contains(&id) {
            let reason = "VLAN numbers go from 1 to 4094";
            return Err(Error::Invalid { what: "the VLAN number", value: id.to_string(), reason });
        }
        let data = InfoData::Vlan(vec![InfoVlan::Id(id), InfoVlan::Protocol(VlanProtocol::Ieee8021Q)]);
        let on = [LinkAttribute::Link(lower), LinkAttribute::Address(mac.to_vec())];
        self.create_on(name, InfoKind::Vlan, data, &on, "VLAN interface")
    }

    /// Makes one end of a tunnel; it is down. Its outer packets go without UDP checksum, as RFC 7348 section 5 recommends.
    pub fn create_vxlan(&self, spec: &VxlanSpec<'_>) -> Result<(), Error> {
        let data = InfoData::Vxlan(vec![
            InfoVxlan::Id(spec.id),
            InfoVxlan::Local(spec.local),
            InfoVxlan::Group(spec.remote),
            InfoVxlan::Port(spec.port),
            InfoVxlan::Learning(false),
            InfoVxlan::UDPCsum(false),
        ]);
        let own = [LinkAttribute::Address(spec.mac.to_vec()), LinkAttribute::Mtu(spec.mtu)];
        self.create_on(spec.name, InfoKind::Vxlan, data, &own, "VXLAN tunnel")
    }

    /// Sets a link's Ethernet address.
    pub fn set_mac(&self, index: u32, mac: MacAddr) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(LinkAttribute::Address(mac.to_vec()));
        self.change(RouteNetlinkMessage::SetLink(message), 0, || {
            format!("set the Ethernet address of interface {}", self.name_of(index))
        })
    }

    fn create_on(
        &self,
        name: &str,
        kind: InfoKind,
        data: InfoData,
        attributes: &[LinkAttribute],
        what: &str,
    ) -> Result<(), Error> {
        check_name(name)?;
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        message.attributes.extend_from_slice(attributes);
        message.attributes.push(LinkAttribute::LinkInfo(vec![Info::Kind(kind), Info::Data(data)]));
        let made = self.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, || {
            format!("create {what} {name}")
        });
        made.map_err(|e| match e.errno() {
            Some(libc::EOPNOTSUPP) => Error::Unsupported {
                operation: format!("create {what} {name}"),
                reason: "this kernel does not have that kind of link".into(),
            },
            _ => e,
        })
    }
}
