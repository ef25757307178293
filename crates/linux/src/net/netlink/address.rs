//! Addresses of links, static neighbours, and static entries of a bridge's forwarding table: nothing is asked or learned in a trial.

use std::net::IpAddr;

use super::attributes::{Body, attributes, ip, u32_at};
use super::{REPLACE, Route, family};
use crate::Error;
use crate::net::MacAddr;

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

    /// Sets a permanent neighbour, in place of any entry for the address.
    pub fn add_neighbour(&self, index: u32, address: IpAddr, mac: MacAddr) -> Result<(), Error> {
        self.change(libc::RTM_NEWNEIGH, REPLACE, &neighbour(index, address, mac), || {
            format!("set neighbour {address} on interface {}", self.name_of(index))
        })
    }

    /// Sets many permanent neighbours of a link; otherwise as [`Route::add_routes`].
    pub fn add_neighbours(
        &self,
        index: u32,
        neighbours: impl IntoIterator<Item = (IpAddr, MacAddr)>,
        go_on: impl FnMut() -> bool,
    ) -> Result<u64, Error> {
        let bodies = neighbours.into_iter().map(|(address, mac)| neighbour(index, address, mac));
        self.change_many(libc::RTM_NEWNEIGH, bodies, go_on, |number| {
            format!("set neighbour number {number} of many on interface {}", self.name_of(index))
        })
    }

    /// Adds an entry to the bridge of port `index`: frames to `mac` leave by this port. Static, so it does not age; not
    /// "permanent", which in a bridge means the host's own address and would keep the frames.
    pub fn add_fdb(&self, index: u32, mac: MacAddr) -> Result<(), Error> {
        let body = entry(libc::AF_BRIDGE as u8, index, libc::NUD_NOARP, libc::NTF_MASTER, mac);
        self.change(libc::RTM_NEWNEIGH, REPLACE, &body, || {
            let mac = linerate_wire::MacAddr(mac);
            format!("add forwarding entry {mac} on bridge port {}", self.name_of(index))
        })
    }
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
