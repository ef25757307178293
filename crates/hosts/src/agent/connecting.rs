//! Connections between hosts: the orders of both ends, and the counts of each.

use super::message::Fault;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::ConnectionTrial;
use linerate_wire::{ConnectionSpec, LARGEST_OBJECT, MacAddr, SERVERS};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The connections of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The frames of each.
    pub connections: ConnectionSpec,
    /// The first client's address, and the first server's.
    pub first: [IpAddr; 2],
    /// The Ethernet address that the client sends to.
    pub to: MacAddr,
    /// The number of the load, by which its frames are known from those of loads before it.
    pub number: u32,
}

impl Opening {
    /// Refuses impossible connections.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let refuse = |why: &str| Err(Fault::order("arming the load", why));
        let ConnectionSpec {
            request,
            object,
            open,
            servers,
            served_by,
            flood,
            illegal,
            ..
        } = self.connections;
        if open.is_some() || served_by.is_nginx() || flood > 0 || illegal > 0 {
            return refuse(
                "hosts keep no connections open, have no nginx, and send neither a flood nor illegal attempts",
            );
        }
        if request.max(object) > LARGEST_OBJECT {
            return refuse(&format!(
                "requests and answers have {LARGEST_OBJECT} bytes at most"
            ));
        }
        if !servers.is_power_of_two() || servers > SERVERS {
            return refuse("connections have 1, 2, 4, 8 or 16 servers");
        }
        match self.first[0].is_ipv4() == self.first[1].is_ipv4() {
            true => Ok(()),
            false => refuse("clients and servers have addresses of one IP version"),
        }
    }
}

/// Counts of an end, or of both. Stages that are reached at the other end are 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EndCounts {
    /// How far the connections came.
    pub opened: ConnectionTrial,
    /// Frames that were sent and that arrived, each by direction: to the servers, to the clients.
    pub frames: [Vec<PortCounters>; 2],
    /// Connections that closed, frames that belong to none, and times to open.
    pub closed: PortCounters,
    /// Whether a thread has opened as many as there are numbers for it.
    pub used_up: bool,
}

impl EndCounts {
    /// Joins the other end's.
    pub fn add(&mut self, other: EndCounts) {
        self.opened.add(&other.opened);
        for (all, more) in self.frames.iter_mut().zip(other.frames) {
            all.resize_with(all.len().max(more.len()), PortCounters::default);
            all.iter_mut()
                .zip(more)
                .for_each(|(all, more)| all.add(more));
        }
        self.closed.add(other.closed);
        self.used_up |= other.used_up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::Exchange;

    pub(crate) fn opening() -> Opening {
        Opening {
            connections: ConnectionSpec::new(Exchange::Request, 6),
            first: [[198, 18, 10, 1], [198, 19, 10, 1]].map(IpAddr::from),
            to: MacAddr([2; 6]),
            number: 3,
        }
    }

    #[test]
    fn connections_that_hosts_cannot_open_are_refused() {
        opening().check().unwrap();
        let refused = |change: fn(&mut Opening)| {
            let mut opening = opening();
            change(&mut opening);
            opening.check().unwrap_err();
        };
        refused(|o| o.connections.open = Some(1));
        refused(|o| o.connections.flood = 1);
        refused(|o| o.connections.object = LARGEST_OBJECT + 1);
        refused(|o| o.connections.servers = 3);
        refused(|o| o.first[0] = [0; 16].into());
    }

    #[test]
    fn both_ends_together_have_all_stages() {
        let end = |reached: [u64; 2], attempted| EndCounts {
            opened: ConnectionTrial {
                attempted,
                reached: reached.to_vec(),
                timed_by_client: attempted > 0,
                ..ConnectionTrial::default()
            },
            ..EndCounts::default()
        };
        let mut all = EndCounts::default();
        all.add(end([0, 8], 10));
        all.add(end([9, 0], 0));
        assert_eq!(all, end([9, 8], 10));
    }
}
