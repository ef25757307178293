//! The tester of an embedded lab: its generators and receivers, by one of linerate's own backends.

use super::embedded_plan::EmbeddedPlan;
use anyhow::{Context, Result, bail};
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::ports::{self, Arrival, Port, Target};
use linerate_plan::Backend;
use linerate_wire::{Filter, MacAddr, Traffic};

/// All ports of the tester. Generators come first: they are dropped before the receivers.
pub struct Tester {
    /// One per kind of traffic; each can aim at every lane.
    generators: Vec<Box<dyn Port>>,
    /// One per lane.
    receivers: Vec<Box<dyn Port>>,
}

impl Tester {
    /// Makes the ports.
    ///
    /// # Errors
    /// No privilege, or frames that this backend cannot carry.
    pub fn new(lab: &EmbeddedLab, plan: &EmbeddedPlan) -> Result<Self> {
        let receivers = receivers(lab, plan).context("setting up the receiver")?;
        let targets: Vec<Target> = lab
            .lanes
            .iter()
            .map(|lane| Target {
                ifindex: lane.generator.index,
                source: MacAddr(lane.generator.mac),
                destination: MacAddr(lane.destination_mac()),
            })
            .collect();
        if plan.backend == Backend::AfXdp && plan.kinds.len() > 1 {
            bail!(
                "af-xdp sends one kind of frames, because a queue has one such socket: choose one --family and --size, or another --port"
            );
        }
        let mut first_stream = 0;
        let mut generators = Vec::new();
        for kind in &plan.kinds {
            let traffic = Traffic { campaign: plan.campaign, first_stream, ..kind.traffic.clone() };
            let made = ports::generator(plan.backend, &lab.generator, &targets, &traffic, &kind.cpus);
            generators.push(made.context("setting up the generator")?);
            first_stream += kind.cpus.len() as u8;
        }
        Ok(Tester { generators, receivers })
    }

    /// The generator of a kind of traffic, sending into a lane, and the receiver at its end.
    pub fn pair(&mut self, kind: usize, lane: usize) -> (&mut dyn Port, &mut dyn Port) {
        self.generators[kind].aim(lane);
        (self.generators[kind].as_mut(), self.receivers[lane].as_mut())
    }

    /// Lets test frames that arrive at the end of a lane go up the receiver's stack as well, or stops that; see
    /// [`Port::let_through`].
    pub fn let_through(&mut self, lane: usize, on: bool) -> bool {
        self.receivers[lane].let_through(on)
    }
}

fn receivers(lab: &EmbeddedLab, plan: &EmbeddedPlan) -> Result<Vec<Box<dyn Port>>> {
    let streams = plan.kinds.iter().map(|kind| kind.cpus.len()).sum::<usize>() as u16;
    let filter = Filter { streams, ..Filter::of_campaign(plan.campaign) };
    let cpu = plan.roles.receiver.first().copied();
    let of_lane = lab.lanes.iter().map(|lane| {
        let at = Arrival { ifindex: lane.receiver.index, queues: lane.receiver_queues };
        ports::receiver(plan.backend, &lab.receiver, at, filter, cpu)
    });
    Ok(of_lane.collect::<Result<_, _>>()?)
}
