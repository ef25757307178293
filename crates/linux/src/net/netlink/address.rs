//! Addresses of links.

use std::net::IpAddr;

use super::attributes::{Body, attributes, ip, u32_at};
use super::{REPLACE, Route, family};
use crate::net::Error;

/// `struct ifaddrmsg`.
const HEADER: usize = 8;
/// linux/if_addr.h: flags of 32 bits.
const IFA_FLAGS: u16 = 8;

impl Route {
    /// Gives a link an address, at once usable (IPv6 without duplicate address detection).
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), Error> {
        let nodad = if address.is_ipv6() { libc::IFA_F_NODAD } else { 0 };
        let mut body = Body(vec![family(address), prefix, nodad as u8, 0]);
        body.0.extend(index.to_ne_bytes());
        let body = body.ip(libc::IFA_LOCAL, address).ip(libc::IFA_ADDRESS, address).number(IFA_FLAGS, nodad);
        self.change(libc::RTM_NEWADDR, REPLACE, &body, || {
            format!("add address {address}/{prefix} to interface {}", self.name_of(index))
        })
    }

    /// All addresses of the namespace: link, address, prefix length. The far end of a point-to-point address is
    /// listed as well.
    pub fn addresses(&self) -> Result<Vec<(u32, IpAddr, u8)>, Error> {
        let answers = self.dump(libc::RTM_GETADDR, &Body(vec![0; HEADER]), "list addresses")?;
        Ok(answers.iter().flat_map(|body| parse_addresses(body)).collect())
    }
}

fn parse_addresses(body: &[u8]) -> Vec<(u32, IpAddr, u8)> {
    let (Some(index), Some(&prefix)) = (u32_at(body, 4), body.get(1)) else { return Vec::new() };
    let own_or_peer = attributes(body, HEADER)
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
