//! Routes and neighbours by the hundred thousand: many requests in each message to the kernel, one answer for all of them,
//! and each that fails located by its number.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};

use super::Route;
use super::attributes::push;
use super::socket::Pipeline;
use crate::net::{Error, MacAddr};

const RTM_NEWROUTE: u16 = libc::RTM_NEWROUTE;
const RTM_NEWNEIGH: u16 = libc::RTM_NEWNEIGH;

/// A network and the length of its prefix.
pub type Prefix = (IpAddr, u8);

impl Route {
    /// Adds routes to the main table, each by the gateway of its family or, without one, directly by `oif`. Gives how many there
    /// were. `go_on` is asked now and then; once it says no, the rest is left out.
    ///
    /// # Errors
    /// The first that the kernel does not take, with its number; those before it are there, and some after it may be.
    pub fn add_routes(
        &self,
        routes: impl IntoIterator<Item = Prefix>,
        gateway: Option<IpAddr>,
        oif: u32,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<u64, Error> {
        let mut last = None;
        let mut routes = routes.into_iter();
        let result = self.pipeline(RTM_NEWROUTE, &mut go_on, |body| {
            last = routes.next();
            last.is_some_and(|(to, prefix)| {
                route_body(body, to, prefix, gateway, oif);
                true
            })
        });
        result.map_err(|(number, failure)| {
            failure.into_error(format!(
                "add route number {number} of many by interface {} in namespace {}",
                self.name_of(oif),
                self.label
            ))
        })
    }

    /// Sets permanent neighbours of a link; otherwise as [`Route::add_routes`].
    ///
    /// # Errors
    /// As [`Route::add_routes`].
    pub fn add_neighbours(
        &self,
        index: u32,
        neighbours: impl IntoIterator<Item = (IpAddr, MacAddr)>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<u64, Error> {
        let mut neighbours = neighbours.into_iter();
        let result = self.pipeline(RTM_NEWNEIGH, &mut go_on, |body| {
            neighbours.next().is_some_and(|(address, mac)| {
                neighbour_body(body, index, address, mac);
                true
            })
        });
        result.map_err(|(number, failure)| {
            failure.into_error(format!(
                "set neighbour number {number} of many on interface {} in namespace {}",
                self.name_of(index),
                self.label
            ))
        })
    }

    fn pipeline(
        &self,
        kind: u16,
        go_on: &mut dyn FnMut() -> bool,
        next: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, (u64, super::socket::Failure)> {
        self.lock().pipeline(Pipeline { kind, flags: NLM_F_CREATE | NLM_F_REPLACE }, go_on, next)
    }
}

/// `struct rtmsg` and its attributes, as [`Route::add_route`] would send them.
fn route_body(body: &mut Vec<u8>, to: IpAddr, prefix: u8, gateway: Option<IpAddr>, oif: u32) {
    let gateway = gateway.filter(|g| g.is_ipv4() == to.is_ipv4());
    let scope = if gateway.is_none() && to.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
    let table = libc::RT_TABLE_MAIN;
    body.extend([family(to), prefix, 0, 0, table, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST]);
    body.extend([0; 4]);
    push_ip(body, libc::RTA_DST, to);
    push(body, libc::RTA_OIF, &oif.to_ne_bytes());
    if let Some(gateway) = gateway {
        push_ip(body, libc::RTA_GATEWAY, gateway);
    }
}

/// `struct ndmsg` and its attributes.
fn neighbour_body(body: &mut Vec<u8>, index: u32, address: IpAddr, mac: MacAddr) {
    body.extend([family(address), 0, 0, 0]);
    body.extend(index.to_ne_bytes());
    body.extend(libc::NUD_PERMANENT.to_ne_bytes());
    body.extend([0, libc::RTN_UNICAST]);
    push_ip(body, libc::NDA_DST, address);
    push(body, libc::NDA_LLADDR, &mac);
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn push_ip(body: &mut Vec<u8>, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => push(body, kind, &v4.octets()),
        IpAddr::V6(v6) => push(body, kind, &v6.octets()),
    }
}
