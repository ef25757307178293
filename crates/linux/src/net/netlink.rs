//! Links, addresses, neighbours and routes of one namespace, over a NETLINK_ROUTE socket opened inside it.
//!
//! Requests are built from the types of `netlink-packet-route`. Answers are read attribute by attribute instead: a
//! dump must not fail because some link on the machine has an attribute that the crate does not know.

mod address;
pub(crate) mod attributes;
mod bulk;
mod link;
mod neighbour;
mod route;
pub(crate) mod socket;
mod virtual_links;

use std::sync::{Mutex, MutexGuard, PoisonError};

use netlink_packet_core::NetlinkSerializable;
use netlink_packet_route::RouteNetlinkMessage;

use super::{Error, Netns};
pub use bulk::Prefix;
pub(crate) use link::check_name;
pub use link::{LinkInfo, LinkStats, VethSpec};
use socket::{Failure, Socket};
pub use virtual_links::VxlanSpec;

/// A NETLINK_ROUTE socket of one namespace. Any thread may use it: a socket stays in the namespace it was made in.
#[derive(Debug)]
pub struct Route {
    socket: Mutex<Socket>,
    label: String,
}

impl Route {
    /// Opens the socket inside `ns`.
    pub fn open(ns: &Netns) -> Result<Route, Error> {
        let failed = |e| Error::kernel(format!("open a netlink socket in namespace {}", ns.label()), e);
        let socket = ns.run(|| Socket::open(libc::NETLINK_ROUTE).map_err(failed))?;
        Ok(Route { socket: Mutex::new(socket), label: ns.label().to_owned() })
    }

    /// Changes something; `what` completes "cannot ... in namespace NAME" and is made only when it went wrong.
    fn change(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let (kind, body) = encode(message);
        let result = self.lock().request(kind, flags, &body, |_, _| {});
        result.map_err(|failure| self.error(what(), failure))
    }

    /// Asks for one thing, or all of them (`NLM_F_DUMP`): the bodies of the answers, each after its message type.
    fn ask(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<(u16, Vec<u8>)>, Error> {
        let (kind, body) = encode(message);
        self.ask_raw(kind, &body, flags).map_err(|failure| self.error(what(), failure))
    }

    fn ask_raw(&self, kind: u16, body: &[u8], flags: u16) -> Result<Vec<(u16, Vec<u8>)>, Failure> {
        self.lock().collect(kind, flags, body)
    }

    fn error(&self, what: String, failure: Failure) -> Error {
        failure.into_error(format!("{what} in namespace {}", self.label))
    }

    fn lock(&self) -> MutexGuard<'_, Socket> {
        // A panic elsewhere leaves nothing half-done: answers to an abandoned request are told by their number.
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn encode(message: RouteNetlinkMessage) -> (u16, Vec<u8>) {
    let mut body = vec![0; message.buffer_len()];
    message.serialize(&mut body);
    (message.message_type(), body)
}
