//! An end of connections on a host, as a port: the client, the server, or both in one kernel.

use super::super::port::{Port, Target, ThreadCounters};
use super::super::redirect;
use super::{Closed, ConnectionEnds, Opener, Wanted};
use crate::error::Error;
use crate::net::Netns;
use linerate_hosts::agent::connecting::{EndCounts, Opening};
use linerate_measure::counters::{PortCounters, QueueCounters};
use linerate_plan::Backend;
use linerate_wire::Load;
use std::sync::Arc;

/// An end of connections on a host.
pub struct End {
    /// Before what it opens connections with: dropped in this order.
    opener: Option<Opener<Arc<ConnectionEnds>>>,
    ends: Arc<ConnectionEnds>,
    /// The connections of the load.
    opening: Option<Opening>,
    /// The CPUs that open connections; none at a server.
    cpus: Vec<u32>,
    /// Whether frames go back by `XDP_TX`.
    turns: bool,
}

impl End {
    /// The end at a client's interface, with the CPUs that open connections, or at a server's, or both.
    ///
    /// # Errors
    /// No privilege, an old kernel, or a card that does not transmit redirected frames.
    pub fn new(
        namespace: &Netns,
        client: Option<(Target, Vec<u32>)>,
        server: Option<u32>,
        turns: bool,
    ) -> Result<End, Error> {
        let (targets, cpus) = client.map_or_else(Default::default, |(to, cpus)| (vec![to], cpus));
        let servers: Vec<u32> = server.into_iter().collect();
        let ends = ConnectionEnds::new(namespace, &targets, namespace, &servers, false);
        let ends = Arc::new(ends.map_err(Error::naming_privileges)?);
        for target in &targets {
            // The client's program is on the interface, so no other one has to be.
            redirect::ensure(namespace, target)?;
        }
        Ok(End {
            opener: None,
            ends,
            opening: None,
            cpus,
            turns,
        })
    }
}

impl Port for End {
    fn backend(&self) -> Backend {
        Backend::Xdp
    }

    fn open(&mut self, opening: &Opening) -> Result<(), Error> {
        // The threads of the load before are waited for.
        self.opener = None;
        let wanted = Wanted {
            connections: opening.connections,
            first: opening.first,
            cpus: self.cpus.clone(),
            target: 0,
            alone: self.turns,
            closed_loop: opening.connections.exchange.closes_at_client(),
            hosts: true,
        };
        let Some(ends) = Arc::get_mut(&mut self.ends) else {
            return Err(Error::Refused("connections are still being opened".into()));
        };
        for target in &mut ends.targets {
            target.destination = opening.to;
        }
        ends.begin(&wanted, opening.number);
        self.opening = Some(*opening);
        self.opener =
            (!self.cpus.is_empty()).then(|| Opener::new(Arc::clone(&self.ends), wanted, None));
        Ok(())
    }

    fn start(&mut self, load: &Load) -> Result<(), Error> {
        match &mut self.opener {
            Some(opener) => opener.start(load),
            // A server has counted since it was told of the connections.
            None => Ok(()),
        }
    }

    fn threads(&self) -> Vec<ThreadCounters> {
        self.opener.as_ref().map_or_else(Vec::new, Port::threads)
    }

    fn counters(&self) -> PortCounters {
        let arrived = self.ends.arrived();
        let queue = |(cpu, frames)| QueueCounters {
            cpu,
            queue: cpu,
            frames,
        };
        let received = || PortCounters {
            frames: arrived.iter().map(|(_, frames)| frames).sum(),
            queues: arrived.iter().copied().map(queue).collect(),
            ..PortCounters::default()
        };
        self.opener.as_ref().map_or_else(received, Port::counters)
    }

    fn closed(&self) -> u64 {
        Closed { ends: &self.ends }.frames()
    }

    fn ends(&self) -> Option<EndCounts> {
        let connections = self.opening?.connections;
        Some(EndCounts {
            opened: self.ends.account(connections),
            frames: self.ends.frames(),
            closed: Closed { ends: &self.ends }.counters(),
            used_up: self.opener.is_some()
                && self.ends.are_numbers_used_up(self.cpus.len(), &connections),
        })
    }

    fn finished(&self) -> bool {
        self.opener.as_ref().is_some_and(Port::finished)
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.opener.as_mut().map_or(Ok(()), Port::stop)
    }
}
