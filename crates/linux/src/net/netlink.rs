//! Links, addresses, neighbours and routes of one namespace, over a NETLINK_ROUTE socket opened inside it.
//!
//! Requests are a fixed header and attributes. Answers are read attribute by attribute: a dump must not fail because some
//! link on the machine has an attribute that linerate does not know. Malformed attributes are skipped, nothing panics.

mod link;
pub(crate) mod message;
mod route;
pub(crate) mod socket;
mod tunnel;

use std::fmt::{self, Display};
use std::sync::{Mutex, PoisonError};

use super::Netns;
use crate::error::{Doing, Error};
pub(crate) use link::check_name;
pub use link::{LinkInfo, LinkStats, VethEnd, VxlanSpec};
use message::Body;
pub use route::Prefix;
use socket::{DUMP, Failure, Socket};
pub use tunnel::TunnelSpec;

/// A NETLINK_ROUTE socket of one namespace. Any thread may use it: a socket stays in the namespace it was made in.
#[derive(Debug)]
pub struct Route {
    socket: Mutex<Socket>,
    label: String,
    /// The table of the routes that it adds.
    table: u8,
}

impl Route {
    /// Opens the socket inside `ns`.
    pub fn open(ns: &Netns) -> Result<Route, Error> {
        let socket = ns.enter(|| Socket::open(libc::NETLINK_ROUTE))?;
        let socket = socket.doing(format_args!(
            "open a netlink socket in namespace {}",
            ns.label()
        ))?;
        Ok(Route {
            socket: Mutex::new(socket),
            label: ns.label().to_owned(),
            table: libc::RT_TABLE_MAIN,
        })
    }

    /// Adds routes to another table than the main one.
    pub fn in_table(self, table: u8) -> Route {
        Route { table, ..self }
    }

    /// Changes something; `what` completes "cannot ... in namespace NAME", and is written only after a failure.
    fn change(&self, kind: u16, flags: u16, body: &Body, what: impl Display) -> Result<(), Error> {
        self.ask(kind, flags, body, what).map(drop)
    }

    /// Makes or replaces many objects on a link: many requests in each message to the kernel, one answer for all of them. Returns
    /// their number. `go_on` is called now and then; once it returns false, the rest is left out.
    ///
    /// # Errors
    /// The first that the kernel refuses, with its number; those before it are made, and some after it may be.
    fn change_many(
        &self,
        kind: u16,
        mut bodies: impl Iterator<Item = Body>,
        mut go_on: impl FnMut() -> bool,
        what: &str,
        index: u32,
    ) -> Result<u64, Error> {
        let result = self.on_socket(|socket| socket.pipeline(kind, &mut bodies, &mut go_on));
        result.map_err(|(number, failure)| {
            let link = self.name_of(index);
            self.error(
                format_args!("{what} number {number} of many on interface {link}"),
                failure,
            )
        })
    }

    /// The bodies of the answers to a request.
    fn ask(
        &self,
        kind: u16,
        flags: u16,
        body: &Body,
        what: impl Display,
    ) -> Result<Vec<Vec<u8>>, Error> {
        // Unlocked before the name for a message is looked up.
        let answers = self.on_socket(|socket| socket.collect(kind, flags, body));
        answers.map_err(|failure| self.error(what, failure))
    }

    /// All objects of a kind.
    fn dump(&self, kind: u16, body: &Body, what: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.ask(kind, DUMP, body, what)
    }

    fn error(&self, what: impl Display, failure: Failure) -> Error {
        failure.into_error(format!("{what} in namespace {}", self.label))
    }

    fn on_socket<T>(&self, use_it: impl FnOnce(&mut Socket) -> T) -> T {
        // A panic elsewhere leaves nothing half-done: answers to an abandoned request are recognised by their number.
        use_it(&mut self.socket.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A link's name for a message.
    fn name_of(&self, index: u32) -> Name<'_> {
        Name(self, index)
    }
}

/// A link's name: looked up when it is written, after a failure.
struct Name<'a>(&'a Route, u32);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.link_by_index(self.1) {
            Ok(link) => f.write_str(&link.name),
            Err(_) => write!(f, "number {}", self.1),
        }
    }
}
