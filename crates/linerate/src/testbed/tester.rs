//! The tester of an embedded lab: its generators and receivers, by one of linerate's own backends.

use super::prepare::{Prepared, TrafficKind, distinct};
use anyhow::{Context, Result, bail};
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::ports::{self, Arrival, Port, Target};
use linerate_plan::Backend;
use linerate_wire::{Filter, MacAddr, STREAMS, Traffic};
use std::collections::BTreeMap;

/// All ports of the tester. Generators come first: they are dropped before the receivers.
pub struct Tester {
    /// By kind of traffic; each can aim at every lane.
    generators: BTreeMap<usize, Box<dyn Port>>,
    /// One per lane.
    receivers: Vec<Box<dyn Port>>,
}

/// The kinds of traffic of these cells, with their numbers.
pub fn kinds(prepared: &Prepared, cells: impl Iterator<Item = usize>) -> Vec<(usize, &TrafficKind)> {
    let numbers = distinct(cells.map(|cell| prepared.kind_of[cell]));
    numbers.into_iter().map(|kind| (kind, &prepared.kinds[kind])).collect()
}

/// Number of streams of these kinds of traffic.
///
/// # Errors
/// More than a receiver distinguishes.
pub fn streams(kinds: &[(usize, &TrafficKind)]) -> Result<u16> {
    let streams: usize = kinds.iter().map(|(_, kind)| kind.cpus.len()).sum();
    if streams > STREAMS {
        bail!(
            "{} kinds of frames, each on its generator CPUs, are {streams} streams, and a receiver tells {STREAMS} apart: use fewer kinds or CPUs",
            kinds.len()
        );
    }
    Ok(streams as u16)
}

impl Tester {
    /// Makes the ports for these kinds of traffic.
    ///
    /// # Errors
    /// No privilege, or frames that this backend cannot carry.
    pub fn new(lab: &EmbeddedLab, prepared: &Prepared, kinds: &[(usize, &TrafficKind)]) -> Result<Self> {
        let (backend, campaign) = (prepared.backend, prepared.campaign());
        let filter = Filter { streams: streams(kinds)?, ..Filter::of_campaign(campaign) };
        let cpu = prepared.roles.receiver.first().copied();
        let receivers = lab.lanes.iter().map(|lane| {
            let at = Arrival { ifindex: lane.receiver.index, queues: lane.receiver_queues };
            ports::receiver(backend, &lab.receiver.namespace, at, filter, cpu)
        });
        let receivers = receivers.collect::<Result<_, _>>().context("setting up the receiver")?;
        let targets = lab.lanes.iter().map(|lane| Target {
            ifindex: lane.generator.index,
            source: MacAddr(lane.generator.mac),
            destination: MacAddr(lane.destination_mac()),
        });
        let targets: Vec<Target> = targets.collect();
        if backend == Backend::AfXdp && kinds.len() > 1 {
            bail!(
                "af-xdp sends one kind of frames, because a queue has one such socket: choose one --family and --size, or another --port"
            );
        }
        let (mut first_stream, mut generators) = (0, BTreeMap::new());
        for (number, kind) in kinds {
            let traffic = Traffic { campaign, first_stream, ..kind.traffic.clone() };
            let made = ports::generator(backend, &lab.generator.namespace, &targets, &traffic, &kind.cpus);
            generators.insert(*number, made.context("setting up the generator")?);
            first_stream += kind.cpus.len() as u8;
        }
        Ok(Tester { generators, receivers })
    }

    /// The generator of a kind of traffic, sending into a lane, and the receiver at its end.
    pub fn pair(&mut self, kind: usize, lane: usize) -> (&mut dyn Port, &mut dyn Port) {
        let generator = self.generators.get_mut(&kind).expect("each kind has its generator");
        generator.aim(lane);
        (generator.as_mut(), self.receivers[lane].as_mut())
    }

    /// Lets test frames that arrive at the end of a lane go up the receiver's stack as well, or stops that; see
    /// [`Port::let_through`].
    pub fn let_through(&mut self, lane: usize, on: bool) -> bool {
        self.receivers[lane].let_through(on)
    }
}
