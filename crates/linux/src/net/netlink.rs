//! Links, addresses, neighbours and routes of one namespace, over a NETLINK_ROUTE socket opened inside it.
//!
//! Requests are a fixed header and attributes. Answers are read attribute by attribute: a dump must not fail because some
//! link on the machine has an attribute that linerate does not know.

mod address;
pub(crate) mod attributes;
mod link;
mod route;
pub(crate) mod socket;

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Netns;
use crate::error::{Doing, Error};
use attributes::Body;
pub(crate) use link::check_name;
pub use link::{LinkInfo, LinkStats, VethEnd, VxlanSpec};
pub use route::Prefix;
use socket::{DUMP, Failure, REPLACE, Socket};

/// A NETLINK_ROUTE socket of one namespace. Any thread may use it: a socket stays in the namespace it was made in.
#[derive(Debug)]
pub struct Route {
    socket: Mutex<Socket>,
    label: String,
}

impl Route {
    /// Opens the socket inside `ns`.
    pub fn open(ns: &Netns) -> Result<Route, Error> {
        let socket = ns.enter(|| Socket::open(libc::NETLINK_ROUTE))?;
        let socket = socket.doing(format_args!("open a netlink socket in namespace {}", ns.label()))?;
        Ok(Route { socket: Mutex::new(socket), label: ns.label().to_owned() })
    }

    /// Changes something; `what` completes "cannot ... in namespace NAME" and is called only after a failure.
    fn change(&self, kind: u16, flags: u16, body: &Body, what: impl FnOnce() -> String) -> Result<(), Error> {
        self.ask(kind, flags, body, what).map(drop)
    }

    /// Makes or replaces many objects: many requests in each message to the kernel, one answer for all of them, and the number of
    /// the first that fails.
    fn change_many(
        &self,
        kind: u16,
        mut bodies: impl Iterator<Item = Body>,
        mut go_on: impl FnMut() -> bool,
        what: impl FnOnce(u64) -> String,
    ) -> Result<u64, Error> {
        let result = self.lock().pipeline(kind, &mut bodies, &mut go_on);
        result.map_err(|(number, failure)| self.error(what(number), failure))
    }

    /// The bodies of the answers to a request.
    fn ask(
        &self,
        kind: u16,
        flags: u16,
        body: &Body,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<Vec<u8>>, Error> {
        // Unlocked before the name for a message is looked up.
        let answers = self.lock().collect(kind, flags, body);
        answers.map_err(|failure| self.error(what(), failure))
    }

    /// All objects of a kind.
    fn dump(&self, kind: u16, body: &Body, what: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.ask(kind, DUMP, body, || what.to_owned())
    }

    fn error(&self, what: String, failure: Failure) -> Error {
        failure.into_error(format!("{what} in namespace {}", self.label))
    }

    fn lock(&self) -> MutexGuard<'_, Socket> {
        // A panic elsewhere leaves nothing half-done: answers to an abandoned request are recognised by their number.
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address family of an address.
fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}
