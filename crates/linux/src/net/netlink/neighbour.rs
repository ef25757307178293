//! Static neighbours, and static entries of a bridge's forwarding table: nothing is asked or learned in a trial.

use std::net::IpAddr;

use super::attributes::Body;
use super::{REPLACE, Route, family};
use crate::net::{Error, MacAddr};

impl Route {
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
