//! Addresses of links.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::Route;
use super::attributes::{attributes_after, ip, u32_at};
use crate::net::Error;

/// `struct ifaddrmsg`.
const HEADER: usize = 8;

impl Route {
    /// Gives a link an address, at once usable (IPv6 without duplicate address detection).
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE, || {
            format!("add address {address}/{prefix} to interface {}", self.name_of(index))
        })
    }

    /// All addresses of the namespace: link, address, prefix length. The far end of a point-to-point address is
    /// listed as well.
    pub fn addresses(&self) -> Result<Vec<(u32, IpAddr, u8)>, Error> {
        let message = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let answers = self.ask(message, NLM_F_DUMP, || "list addresses".to_owned())?;
        Ok(answers.iter().flat_map(|(_, body)| parse_addresses(body)).collect())
    }
}

/// The address family of an address.
pub(super) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn parse_addresses(body: &[u8]) -> Vec<(u32, IpAddr, u8)> {
    let (Some(index), Some(&prefix)) = (u32_at(body, 4), body.get(1)) else { return Vec::new() };
    let own_or_peer = attributes_after(body, HEADER)
        .filter(|(kind, _)| matches!(*kind, libc::IFA_ADDRESS | libc::IFA_LOCAL))
        .filter_map(|(_, value)| ip(value));
    let mut addresses: Vec<_> = own_or_peer.map(|address| (index, address, prefix)).collect();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bodies_give_nothing() {
        for length in 0..8 {
            assert!(parse_addresses(&vec![0xff; length]).is_empty());
        }
        assert!(parse_addresses(&[0xff; 40]).is_empty());
    }
}
