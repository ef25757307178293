//! The tester of an embedded lab: its generators and receivers, by XDP where that is to be had, by AF_PACKET otherwise.

use super::embedded_plan::{Backend, EmbeddedPlan};
use anyhow::{Context, Result};
use linerate_linux::lab::EmbeddedLab;
use linerate_linux::ports::af_packet::{AfPacketGenerator, AfPacketReceiver};
use linerate_linux::ports::live::{LiveFrames, Target};
use linerate_linux::ports::xdp_receiver::{ReceiverOptions, XdpReceiver};
use linerate_linux::ports::{Generator, Port, Traffic};
use linerate_wire::MacAddr;

/// Streams that a receiver tells apart.
pub const STREAMS: usize = 256;

/// All ports of the tester. Generators come first: they are dropped before the receivers.
pub struct Tester {
    generators: Generators,
    /// One per lane.
    receivers: Vec<Box<dyn Port>>,
}

enum Generators {
    /// One per kind of traffic; each can aim at every lane.
    Live(Vec<LiveFrames>),
    /// By kind of traffic and lane.
    Packet(Vec<Vec<AfPacketGenerator>>),
}

impl Tester {
    /// Makes the ports.
    ///
    /// # Errors
    /// No privilege, or frames that these ports cannot carry.
    pub fn new(lab: &EmbeddedLab, plan: &EmbeddedPlan) -> Result<Self> {
        let receivers = receivers(lab, plan).context("setting up the receiver")?;
        let generators = generators(lab, plan).context("setting up the generator")?;
        Ok(Tester { generators, receivers })
    }

    /// The generator of a kind of traffic, sending into a lane, and the receiver at its end.
    pub fn pair(&mut self, kind: usize, lane: usize) -> (&mut dyn Generator, &mut dyn Port) {
        let receiver = self.receivers[lane].as_mut();
        match &mut self.generators {
            Generators::Live(by_kind) => {
                by_kind[kind].aim(lane);
                (&mut by_kind[kind], receiver)
            }
            Generators::Packet(by_kind) => (&mut by_kind[kind][lane], receiver),
        }
    }
}

impl Tester {
    /// Lets test frames that arrive at the end of a lane go up the receiver's stack as well, or stops that; see
    /// [`Port::let_through`].
    pub fn let_through(&mut self, lane: usize, on: bool) -> bool {
        self.receivers[lane].let_through(on)
    }
}

fn receivers(lab: &EmbeddedLab, plan: &EmbeddedPlan) -> Result<Vec<Box<dyn Port>>> {
    let options = ReceiverOptions {
        campaign: plan.campaign,
        streams: plan.kinds.iter().map(|k| k.cpus.len()).sum(),
        queues: 1,
        pass_foreign: false,
        unsigned: false,
    };
    let cpu = plan.roles.receiver.first().copied();
    let mut all: Vec<Box<dyn Port>> = Vec::new();
    for lane in &lab.lanes {
        let (index, options) =
            (lane.receiver.index, ReceiverOptions { queues: lane.receiver_queues, ..options });
        all.push(match plan.backend {
            Backend::Xdp => Box::new(XdpReceiver::new(&lab.receiver, index, options)?),
            Backend::Packet => Box::new(AfPacketReceiver::new(&lab.receiver, index, options, cpu)?),
        });
    }
    Ok(all)
}

fn generators(lab: &EmbeddedLab, plan: &EmbeddedPlan) -> Result<Generators> {
    let targets: Vec<Target> = lab
        .lanes
        .iter()
        .map(|lane| Target {
            ifindex: lane.generator.index,
            source: lane.generator.mac,
            destination: lane.destination_mac(),
        })
        .collect();
    let kinds = 0..plan.kinds.len();
    Ok(match plan.backend {
        Backend::Xdp => {
            let live = |kind| {
                let traffic = traffic(plan, kind, &targets[0]);
                LiveFrames::new(&lab.generator, targets.clone(), traffic, plan.kinds[kind].cpus.clone())
            };
            Generators::Live(kinds.map(live).collect::<Result<_, _>>()?)
        }
        Backend::Packet => {
            let of_kind = |kind| {
                let lanes = targets.iter().map(|target| {
                    let traffic = traffic(plan, kind, target);
                    AfPacketGenerator::new(&lab.generator, target.ifindex, traffic, &plan.kinds[kind].cpus)
                });
                lanes.collect::<Result<Vec<_>, _>>()
            };
            Generators::Packet(kinds.map(of_kind).collect::<Result<_, _>>()?)
        }
    })
}

fn traffic(plan: &EmbeddedPlan, number: usize, target: &Target) -> Traffic {
    let kind = &plan.kinds[number];
    let mut frame = kind.frame;
    (frame.dst_mac, frame.src_mac) = (MacAddr(target.destination), MacAddr(target.source));
    Traffic {
        frame,
        mix: kind.mix.clone(),
        flows: kind.flows.clone(),
        order: kind.order,
        rate: None,
        campaign: plan.campaign,
        first_stream: plan.kinds[..number].iter().map(|k| k.cpus.len()).sum::<usize>() as u8,
        stamp_every: kind.stamp_every,
        batch: 64,
    }
}
