//! The ports of the tester in an embedded lab: a generator for each kind of traffic, and the receivers of each lane.

use super::targets;
use crate::testbed::prepare::{Prepared, TrafficKind};
use anyhow::{Context, Result};
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::ports::ends::Ends;
use linerate_linux::ports::{self, Arrival, Port, Target};
use linerate_measure::record::Direction;
use linerate_wire::{Filter, MacAddr, Traffic};
use std::collections::BTreeMap;

/// All ports of the tester. Generators come first: they are dropped before the receivers.
pub struct Tester {
    /// By kind of traffic, with its directions; each can aim at every lane.
    generators: BTreeMap<usize, (Box<dyn Port>, usize)>,
    /// One per lane at its end and, with both directions, one at its beginning.
    receivers: Vec<Ends>,
}

impl Tester {
    /// Makes the ports for these kinds of traffic.
    ///
    /// # Errors
    /// No privilege, or frames that this backend cannot carry.
    pub fn new(
        lab: &EmbeddedLab,
        prepared: &Prepared,
        kinds: &[(usize, &TrafficKind)],
    ) -> Result<Self> {
        let (backend, campaign) = (prepared.backend, prepared.campaign());
        let streams: usize = kinds.iter().map(|(_, kind)| kind.streams()).sum();
        let filter = Filter {
            streams: streams as u16,
            ..Filter::of_campaign(campaign)
        };
        let cpu = prepared.roles.receiver.first().copied();
        let receivers = lab.lanes.iter().map(|lane| {
            let end = Arrival {
                ifindex: lane.receiver.index,
                queues: lane.receiver_queues,
            };
            let beginning = Arrival {
                ifindex: lane.generator.index,
                queues: lane.generator_queues,
            };
            let inside = lab.spec.both_ways.then_some((&lab.generator, beginning));
            let all = [(&lab.receiver, end)].into_iter().chain(inside);
            let made =
                all.map(|(node, at)| ports::receiver(backend, &node.namespace, at, filter, cpu));
            made.collect::<Result<_, _>>().map(Ends::new)
        });
        let receivers = receivers
            .collect::<Result<_, _>>()
            .context("setting up the receiver")?;
        let targets = targets(lab);
        let back = lab.lanes.iter().map(|lane| Target {
            ifindex: lane.receiver.index,
            source: MacAddr(lane.receiver.mac),
            destination: MacAddr(lane.back_mac()),
        });
        let back: Vec<Target> = back.collect();
        let (mut first_stream, mut generators) = (0, BTreeMap::new());
        for (number, kind) in kinds {
            let traffic = Traffic {
                campaign,
                first_stream,
                ..kind.traffic.clone()
            };
            let (inside, outside) = (&lab.generator.namespace, &lab.receiver.namespace);
            let made = match kind.direction {
                Direction::Both => {
                    let sides = [(inside, &targets[..]), (outside, &back[..])];
                    ports::both_ways(backend, sides, &traffic, &kind.cpus)
                }
                _ => ports::generator(backend, inside, &targets, &traffic, &kind.cpus),
            };
            let made = made.context("setting up the generator")?;
            generators.insert(*number, (made, kind.direction.ways().len()));
            first_stream += kind.streams() as u8;
        }
        Ok(Tester {
            generators,
            receivers,
        })
    }

    /// The generator of a kind of traffic, sending into a lane, and the receiver at its end.
    pub fn pair(&mut self, kind: usize, lane: usize) -> (&mut dyn Port, &mut dyn Port) {
        let (generator, directions) = self
            .generators
            .get_mut(&kind)
            .expect("each kind has its generator");
        generator.aim(lane);
        self.receivers[lane].use_first(*directions);
        (generator.as_mut(), &mut self.receivers[lane])
    }

    /// Lets test frames that arrive at the end of a lane go up the receiver's stack as well, or stops that; see
    /// [`Port::let_through`].
    pub fn let_through(&mut self, lane: usize, on: bool) -> bool {
        self.receivers[lane].let_through(on)
    }
}
