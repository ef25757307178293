//! Agents of linerate on the hosts that send and count, and the cards and CPUs that they work with.

use super::{Sending, Site, beside};
use crate::messages::tell;
use crate::testbed::prepare::{Prepared, TrafficKind};
use anyhow::{Context, Result};
use linerate_measure::record::Direction;
use linerate_plan::Backend;
use linerate_plan::lab::Host;
use linerate_plan::settings::{Dut, End};
use linerate_remote::ExecutionTarget;
use linerate_remote::agents::lab::{Cabling, Card, Frames, RealLab, Sender, Way};
use linerate_remote::agents::{Agent, Link};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long an agent may take to answer.
const GREETING: Duration = Duration::from_secs(10);

impl Site {
    pub(super) fn agents(
        &self,
        sending: &[Sending<'_>],
        sends: &[Backend],
        counting: Backend,
        prepared: &Prepared,
    ) -> Result<RealLab> {
        for backend in sends.iter().chain([&counting]) {
            prepared
                .kinds
                .iter()
                .try_for_each(|kind| backend.resolved(0).check(&kind.traffic))?;
        }
        let frames = |kind: &TrafficKind| Frames {
            traffic: kind.traffic.clone(),
            direction: kind.direction,
            bridged: kind.dut == Dut::Bridge,
            tags: kind.dut.tags(),
        };
        let kinds = prepared.kinds.iter().map(frames).collect();
        self.wire(sending, sends, counting, kinds, prepared.campaign())
    }

    /// Agents on all hosts that send or count, for these kinds of traffic.
    pub(super) fn wire(
        &self,
        sending: &[Sending<'_>],
        sends: &[Backend],
        counting: Backend,
        kinds: Vec<Frames>,
        campaign: u8,
    ) -> Result<RealLab> {
        let receiver = self.lab.receiver();
        let hosts: BTreeMap<&str, &Host> = self
            .lab
            .generators()
            .chain([receiver])
            .map(|host| (&*host.name, host))
            .collect();
        let number = |host: &Host| {
            hosts
                .keys()
                .position(|name| *name == host.name)
                .unwrap_or(0)
        };
        let greet = |host: &&Host| greet(self.place(host)?, host);
        let agents: Vec<Agent> = hosts.values().map(greet).collect::<Result<_>>()?;
        let card = |host, interface: &str, backend| Card {
            agent: number(host),
            interface: interface.into(),
            backend,
            cpus: Vec::new(),
        };
        let far = self.interface(receiver, "receive", 0)?;
        let mut senders = Vec::new();
        for (one, backend) in sending.iter().zip(sends) {
            let mut card = card(one.host, one.side.name, *backend);
            if let Some(threads) = one.side.wanted.threads {
                card.cpus = agents[card.agent]
                    .cpus()
                    .iter()
                    .copied()
                    .take(threads as usize)
                    .collect();
            }
            senders.push(Sender {
                card,
                to: one.to,
                beyond: far.mac,
            });
        }
        let receiver = card(receiver, &far.name, counting);
        let mut ways = vec![Way {
            senders,
            receivers: vec![receiver],
        }];
        if kinds.iter().any(|kind| kind.direction == Direction::Both) {
            ways.push(self.back(&ways[0], sending, &agents)?);
        }
        let cabling = Cabling {
            ways,
            isolated: self.lab.isolated,
        };
        RealLab::new(agents, cabling, kinds, campaign, tell).map_err(anyhow::Error::msg)
    }

    /// The way back: from the receiver's card, with as many threads as the generators have, to wherever the DUT's routes lead, which is
    /// one of the generators' cards.
    fn back(&self, forward: &Way, sending: &[Sending<'_>], agents: &[Agent]) -> Result<Way> {
        let Way { senders, receivers } = forward;
        let outside = match (self.lab.dut(), &self.lab.black_box) {
            (Some(dut), _) => Some(self.interface(dut, "out", 0)?.mac),
            (None, Some(black_box)) => Some(Some(beside(black_box, End::Out)?)),
            (None, None) => None,
        };
        let from = &receivers[0];
        let cpus = agents[from.agent].cpus();
        let own = |sender: &&Sender| sender.card.agent == from.agent;
        let mut taken: Vec<u32> = senders
            .iter()
            .filter(own)
            .flat_map(|s| working(&s.card, cpus))
            .collect();
        let mut back = Vec::new();
        for (sender, one) in senders.iter().zip(sending) {
            let to = outside.unwrap_or(one.own);
            let to = to.with_context(|| {
                format!(
                    "an interface beside {} has no Ethernet address",
                    from.interface
                )
            })?;
            let cpus = further(cpus, &taken, sender.card.cpus.len().max(1));
            taken.extend(&cpus);
            back.push(Sender {
                card: Card {
                    cpus,
                    ..from.clone()
                },
                to,
                beyond: one.own,
            });
        }
        Ok(Way {
            senders: back,
            receivers: senders.iter().map(|sender| sender.card.clone()).collect(),
        })
    }
}

/// The CPUs that a sending card is worked from: the agent takes the last one where none are named.
fn working(card: &Card, cpus: &[u32]) -> Vec<u32> {
    if card.cpus.is_empty() {
        cpus.last().copied().into_iter().collect()
    } else {
        card.cpus.clone()
    }
}

/// CPUs of a host for `wanted` threads: the last ones without a thread, then CPUs with threads. The first is left to interrupts and
/// to the agent's connection.
fn further(cpus: &[u32], taken: &[u32], wanted: usize) -> Vec<u32> {
    let usable = || cpus.iter().skip(usize::from(cpus.len() > 1)).rev().copied();
    let free = usable().filter(|cpu| !taken.contains(cpu));
    free.chain(usable().filter(|cpu| taken.contains(cpu)))
        .take(wanted)
        .collect()
}

/// Starts linerate on a host, over its connection.
fn greet(place: &ExecutionTarget, host: &Host) -> Result<Agent> {
    let (program, arguments): (&str, &[&str]) = if host.sudo {
        ("sudo", &["-n", "linerate", "agent"])
    } else {
        ("linerate", &["agent"])
    };
    let command = place.program(program, arguments)?;
    let link = Link::start(command).with_context(|| format!("starting ssh to {}", host.name))?;
    Ok(Agent::greet(
        &host.name,
        link,
        env!("CARGO_PKG_VERSION"),
        GREETING,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_get_cpus_of_their_own_where_there_are_some() {
        let four = [0, 1, 2, 3];
        assert_eq!(further(&four, &[], 1), [3], "the agent's own choice");
        assert_eq!(further(&four, &[3], 1), [2]);
        assert_eq!(further(&four, &[3], 2), [2, 1]);
        assert_eq!(
            further(&four, &[3, 2], 3),
            [1, 3, 2],
            "then shared, but not the first"
        );
        assert_eq!(further(&[0, 1], &[1], 1), [1]);
        assert_eq!(further(&[5], &[5], 1), [5], "there is one");
        assert_eq!(further(&four, &[], 9), [3, 2, 1]);
    }
}
