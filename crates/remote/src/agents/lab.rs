//! A lab of hosts with agents. Ports are made when they are first needed, and kept.
//!
//! Frames go in one direction, or in both at once: then each end sends and counts, and every count is kept by direction.

use super::agent::Agent;
use super::trial::{Member, Ports, Trial};
use crate::{RemoteError, Result, TrialResult};
use linerate_hosts::agent::connecting::Opening;
use linerate_hosts::agent::message::{Port, Role};
use linerate_measure::record::Direction;
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_wire::{Filter, FlowOrder, Load, MILLION, MacAddr, STREAMS, Traffic, Transport};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// A card of a host.
#[derive(Debug, Clone)]
pub struct Card {
    /// The number of its host's agent.
    pub agent: usize,
    /// Interface of the card.
    pub interface: String,
    /// How frames leave or arrive.
    pub backend: Backend,
    /// The CPUs that it is worked from; the agent's choice where none are named.
    pub cpus: Vec<u32>,
}

/// A card that sends.
#[derive(Debug, Clone)]
pub struct Sender {
    /// The card.
    pub card: Card,
    /// The Ethernet address at the other end: the device's, or the receiver's without a device.
    pub to: MacAddr,
    /// The receiver's, for frames that a bridge passes on.
    pub beyond: Option<MacAddr>,
}

impl Sender {
    /// The Ethernet address that its frames are sent to.
    fn to(&self, bridged: bool) -> MacAddr {
        self.beyond.filter(|_| bridged).unwrap_or(self.to)
    }
}

/// A kind of frames.
#[derive(Debug, Clone)]
pub struct Frames {
    pub traffic: Traffic,
    pub direction: Direction,
    /// Whether they are addressed to the receiver, through a bridge, and not to the device.
    pub bridged: bool,
    /// 802.1Q tags of the frames at the generator and at the receiver.
    pub tags: Option<[u16; 2]>,
}

/// The cards of one direction.
#[derive(Debug, Clone)]
pub struct Way {
    /// Where frames leave.
    pub senders: Vec<Sender>,
    /// Where they arrive.
    pub receivers: Vec<Card>,
}

/// How the hosts are cabled.
#[derive(Debug, Clone)]
pub struct Cabling {
    /// Forward, and with both directions reverse, with the same number of senders.
    pub ways: Vec<Way>,
    /// Whether the user has said that all these interfaces lead to nothing but the lab (RFC 6815).
    pub isolated: bool,
}

/// A lab of hosts, with an agent on each.
pub struct RealLab {
    agents: Vec<Agent>,
    cabling: Cabling,
    kinds: Vec<Kind>,
    /// By direction: whether its receivers are there.
    receives: Vec<bool>,
    /// Whether both ends of connections are there.
    connects: bool,
    /// Loads of connections so far.
    openings: u32,
    campaign: u8,
    /// Why senders do not use the fastest backend.
    notes: Vec<String>,
    /// Gets a long wait for another linerate in words.
    tell: fn(String),
}

/// Counts of frames that were shown to the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    /// Frames to send.
    pub wanted: u64,
    /// Frames that the senders' programs have sent.
    pub sent: u64,
    /// Frames that their interfaces have counted as sent, where they were asked.
    pub left: Option<u64>,
    /// Frames received, every one once.
    pub arrived: u64,
    /// Answers that came back.
    pub answers: u64,
}

/// A kind of frames, with its streams.
struct Kind {
    frames: Frames,
    /// Whether its generators are there.
    prepared: bool,
}

impl Kind {
    fn ways(&self) -> usize {
        self.frames.direction.ways().len()
    }
}

/// How long frames may be under way when the device is shown all flows, in nanoseconds.
const LEARNING_NS: u64 = 30_000;
/// And how much longer all of them may take, on hosts that are busy.
const LEARN_WITHIN_NS: u64 = 1_000_000_000;

fn threads(senders: &[Sender]) -> usize {
    senders
        .iter()
        .map(|sender| sender.card.cpus.len().max(1))
        .sum()
}

impl RealLab {
    /// A lab of these agents, for these kinds of traffic with their directions; fills in addresses of frames, campaign and streams.
    /// Nothing is done yet. `tell` gets long waits for other linerates in words.
    ///
    /// # Errors
    /// In words: more streams than a receiver distinguishes, or a host that is not there.
    pub fn new(
        agents: Vec<Agent>,
        cabling: Cabling,
        kinds: Vec<Frames>,
        campaign: u8,
        tell: fn(String),
    ) -> Result<RealLab, String> {
        let there = |way: &Way| {
            let cards = way.senders.iter().map(|s| &s.card).chain(&way.receivers);
            !way.senders.is_empty()
                && !way.receivers.is_empty()
                && cards.into_iter().all(|card| card.agent < agents.len())
        };
        let ways = |kind: &Frames| kind.direction.ways().len();
        let most = kinds.iter().map(ways).max().unwrap_or(1);
        if cabling.ways.len() < most || !cabling.ways.iter().all(there) {
            return Err("a lab needs a host that sends and one that receives".into());
        }
        let (mut first, mut all) = (0, Vec::new());
        for mut frames in kinds {
            (frames.traffic.campaign, frames.traffic.first_stream) = (campaign, first as u8);
            let of_kind = cabling.ways[..ways(&frames)].iter();
            let threads: usize = of_kind
                .map(|way| threads(&way.senders))
                .filter(|_| frames.traffic.connections.is_none())
                .sum();
            first += threads * frames.traffic.streams_each();
            all.push(Kind {
                frames,
                prepared: false,
            });
        }
        if first > STREAMS {
            return Err(format!(
                "{} kinds of frames, each from all threads and in its directions, are {first} streams, and a receiver tells {STREAMS} apart",
                all.len(),
            ));
        }
        let receives = vec![false; cabling.ways.len()];
        Ok(RealLab {
            agents,
            cabling,
            kinds: all,
            receives,
            connects: false,
            openings: 0,
            campaign,
            notes: Vec::new(),
            tell,
        })
    }

    /// Number of directions of a kind.
    pub fn ways(&self, kind: usize) -> usize {
        self.kinds[kind].ways()
    }

    /// Makes the ports of a kind. Returns what each card of the first direction sends by, and why some do not use the fastest
    /// backend.
    ///
    /// # Errors
    /// An agent refuses, or is lost.
    pub fn get_ready(&mut self, kind: usize) -> Result<(Vec<Backend>, Vec<String>)> {
        self.prepare(kind)?;
        let backends = self.cabling.ways[0]
            .senders
            .iter()
            .map(|sender| sender.card.backend);
        Ok((backends.collect(), self.notes.clone()))
    }

    /// Shows the device every flow of a kind once from each sender of a direction, so that no trial pays the cost of first frames (RFC
    /// 2544's learning frames). With `answer`, the receiver answers each.
    ///
    /// # Errors
    /// An agent refuses, or is lost.
    pub fn learn(
        &mut self,
        kind: usize,
        way: usize,
        flows: u64,
        answer: bool,
        interrupted: &AtomicBool,
    ) -> Result<Shown> {
        // Senders share the frames, and each begins with the first flow. Of two IP versions, the one with fewer frames needs longer.
        let second = self.kinds[kind].frames.traffic.ipv6.as_ref();
        let rarer = second.map_or(MILLION, |second| {
            second.millionths.min(MILLION - second.millionths).max(1)
        });
        let flows = flows.saturating_mul(MILLION.into()).div_ceil(rarer.into());
        let frames = flows.saturating_mul(self.cabling.ways[way].senders.len() as u64);
        let most_ns = LEARN_WITHIN_NS + frames.saturating_mul(LEARNING_NS);
        let timing = Timing {
            warm_up_ns: 0,
            interval_ns: most_ns,
            ..Timing::slice(most_ns)
        };
        let load = Load {
            rate: Some(50_000.0),
            frames: Some(frames),
            batch: 8,
            ..Load::lasting(timing.load())
        };
        let began: &dyn Fn(u64) = &|_| {};
        let result = self.run(kind, way..way + 1, timing, load, answer, interrupted, began)?;
        let (sent, received) = (&result.sent[0], &result.received[0]);
        let opened = result.ends.as_ref().map(|ends| &ends.opened);
        let arrived = opened.map_or(received.unique(), |opened| {
            opened.reached.first().copied().unwrap_or(0)
        });
        Ok(Shown {
            wanted: frames,
            sent: sent.frames,
            left: sent.left,
            arrived,
            answers: sent.answers,
        })
    }

    /// Whether the hosts' linerate can answer the flows of a kind: only a sequential order has all of them in the first frames,
    /// and echo replies cannot be distinguished from requests yet.
    pub fn can_answer(&self, kind: usize) -> bool {
        let traffic = &self.kinds[kind].frames.traffic;
        let mut receivers = self.cabling.ways[0].receivers.iter();
        traffic.order == FlowOrder::Sequential
            && traffic.frame.transport != Transport::IcmpEcho
            && receivers.all(|card| card.backend != Backend::AfXdp)
    }

    /// Runs one trial with a kind of traffic through the device between the cards, as it stands; the load is that of each direction, its
    /// duration that of `timing`.
    ///
    /// # Errors
    /// An agent refuses, or is lost.
    pub fn trial(
        &mut self,
        kind: usize,
        timing: Timing,
        load: Load,
        interrupted: &AtomicBool,
        began: &dyn Fn(u64),
    ) -> Result<TrialResult> {
        let ways = 0..self.ways(kind);
        self.run(kind, ways, timing, load, false, interrupted, began)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the two callers differ in most of them"
    )]
    fn run(
        &mut self,
        kind: usize,
        ways: Range<usize>,
        timing: Timing,
        load: Load,
        answer: bool,
        interrupted: &AtomicBool,
        began: &dyn Fn(u64),
    ) -> Result<TrialResult> {
        self.prepare(kind)?;
        let Frames {
            traffic, bridged, ..
        } = &self.kinds[kind].frames;
        let to = self.cabling.ways[0].senders[0].to(*bridged);
        let first = traffic.flows.flow(0);
        let opening = traffic.connections.map(|connections| Opening {
            connections,
            first: [first.src, first.dst],
            to,
            number: self.openings,
        });
        self.openings = self.openings.wrapping_add(1);
        let member = |agent| {
            let ports = |way| self.ports(agent, kind, way);
            let ways: Vec<Ports> = ways.clone().map(ports).collect();
            let takes_part = |p: &Ports| !p.generators.is_empty() || !p.receivers.is_empty();
            ways.iter().any(takes_part).then_some(Member {
                agent: &self.agents[agent],
                ways,
            })
        };
        let members: Vec<Member<'_>> = (0..self.agents.len()).filter_map(member).collect();
        Trial {
            members: &members,
            timing,
            load,
            answer,
            card_stamps: self.kinds[kind].frames.traffic.card_stamps,
            opening,
            tell: self.tell,
        }
        .run(interrupted, began)
    }

    /// An agent's part in one direction.
    fn ports(&self, agent: usize, kind: usize, way: usize) -> Ports {
        let Way { senders, receivers } = &self.cabling.ways[way];
        if self.kinds[kind].frames.traffic.connections.is_some() {
            return self.ends(agent);
        }
        let sends = || (0..senders.len()).filter(|nth| senders[*nth].card.agent == agent);
        let counts = (0..receivers.len()).filter(|nth| receivers[*nth].agent == agent);
        Ports {
            generators: sends().map(|nth| generator_name(kind, way, nth)).collect(),
            streams: sends()
                .flat_map(|nth| self.streams(kind, way, nth))
                .collect(),
            receivers: counts.map(|nth| receiver_name(way, nth)).collect(),
        }
    }

    /// An agent's ends of connections.
    fn ends(&self, agent: usize) -> Ports {
        let Way { senders, receivers } = &self.cabling.ways[0];
        let (client, server) = (senders[0].card.agent, receivers[0].agent);
        let named = |name: &str, here: bool| here.then(|| name.to_string()).into_iter().collect();
        Ports {
            generators: named(CLIENT, agent == client),
            streams: Vec::new(),
            receivers: named(SERVER, agent == server && agent != client),
        }
    }

    /// Makes both ends of connections, which serve all kinds.
    fn prepare_ends(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.connects, true) {
            return Ok(());
        }
        let Way { senders, receivers } = &self.cabling.ways[0];
        let (sender, receiver) = (&senders[0], &receivers[0]);
        // A host that has both has one program for both, and one clock.
        let server = (sender.card.agent == receiver.agent).then(|| receiver.interface.clone());
        if server.is_none() {
            let port = self.port(SERVER.into(), receiver, Role::Server);
            self.agents[receiver.agent].prepare(port)?;
        }
        let role = Role::Client { server };
        let port = self.port(CLIENT.into(), &sender.card, role);
        let (backend, _) = self.agents[sender.card.agent].prepare(port)?;
        self.cabling.ways[0].senders[0].card.backend = backend;
        Ok(())
    }

    /// The streams of a sender's frames: the low bytes.
    fn streams(&self, kind: usize, way: usize, sender: usize) -> impl Iterator<Item = u8> + use<> {
        let (before, from) = self.cabling.ways[way].senders.split_at(sender);
        let others = self.cabling.ways[..way].iter();
        let others: usize = others.map(|way| threads(&way.senders)).sum();
        let traffic = &self.kinds[kind].frames.traffic;
        let first =
            usize::from(traffic.first_stream) + (others + threads(before)) * traffic.streams_each();
        (first..first + threads(&from[..1]) * traffic.streams_each()).map(|stream| stream as u8)
    }

    fn prepare(&mut self, kind: usize) -> Result<()> {
        if self.kinds[kind].frames.traffic.connections.is_some() {
            return self.prepare_ends();
        }
        let count = self.kinds[kind].ways();
        self.prepare_receivers(count)?;
        if self.kinds[kind].prepared {
            return Ok(());
        }
        // A queue has one AF_XDP socket at a time, and such frames go one way.
        let others: Vec<usize> = (0..self.kinds.len())
            .filter(|other| self.kinds[*other].prepared)
            .collect();
        for (nth, sender) in self.cabling.ways[0].senders.iter().enumerate() {
            if sender.card.backend == Backend::AfXdp && !others.is_empty() {
                let names = others.iter().map(|other| generator_name(*other, 0, nth));
                self.agents[sender.card.agent].release(names.collect())?;
                self.kinds.iter_mut().for_each(|kind| kind.prepared = false);
            }
        }
        for number in 0..count {
            for nth in 0..self.cabling.ways[number].senders.len() {
                let sender = &self.cabling.ways[number].senders[nth];
                let agent = &self.agents[sender.card.agent];
                let (backend, why) = agent.prepare(self.generator(kind, number, nth))?;
                let why = why.map(|why| format!("{}: {why}", agent.host()));
                self.notes
                    .extend(why.filter(|why| !self.notes.contains(why)));
                self.cabling.ways[number].senders[nth].card.backend = backend;
            }
        }
        self.kinds[kind].prepared = true;
        Ok(())
    }

    /// The port of a kind from which a sender of a direction sends.
    fn generator(&self, kind: usize, way: usize, nth: usize) -> Port {
        let sender = &self.cabling.ways[way].senders[nth];
        let frames = &self.kinds[kind].frames;
        let to = sender.to(frames.bridged);
        let mut traffic = frames.traffic.addressed(MacAddr::default(), to);
        if way > 0 {
            traffic = traffic.mirrored();
        }
        if let Some(tags) = frames.tags {
            traffic = traffic.tagged(tags[way]);
        }
        traffic.first_stream = self.streams(kind, way, nth).next().unwrap_or_default();
        let role = Role::Generator(Box::new(traffic));
        self.port(generator_name(kind, way, nth), &sender.card, role)
    }

    /// Makes the receivers of the first directions that have none yet.
    fn prepare_receivers(&mut self, ways: usize) -> Result<()> {
        let all = self.cabling.ways[..ways].iter().enumerate();
        for (number, way) in all.filter(|(number, _)| !self.receives[*number]) {
            for (nth, card) in way.receivers.iter().enumerate() {
                // In a lab of hosts, neighbours may have to be asked for.
                let pass_foreign = card.backend != Backend::AfXdp;
                let card_stamps = self
                    .kinds
                    .iter()
                    .any(|kind| kind.frames.traffic.card_stamps);
                let filter = Filter {
                    pass_foreign,
                    card_stamps,
                    ..Filter::of_campaign(self.campaign)
                };
                let card = Card {
                    cpus: Vec::new(),
                    ..card.clone()
                };
                let counts = self.port(receiver_name(number, nth), &card, Role::Receiver(filter));
                self.agents[card.agent].prepare(counts)?;
            }
        }
        self.receives[..ways].fill(true);
        Ok(())
    }

    fn port(&self, name: String, card: &Card, role: Role) -> Port {
        let Card {
            interface,
            backend,
            cpus,
            ..
        } = card.clone();
        Port {
            name,
            interface,
            isolated: self.cabling.isolated,
            backend,
            cpus,
            role,
        }
    }

    /// Releases the agents; returns errors. Lost ones have ended their loads by themselves, and are skipped.
    pub fn take_down(self) -> Vec<RemoteError> {
        let there = self
            .agents
            .into_iter()
            .filter(|agent| agent.lost().is_none());
        there.filter_map(|agent| agent.goodbye().err()).collect()
    }
}

/// The names of both ends of connections.
const CLIENT: &str = "client";
const SERVER: &str = "server";

/// The names of directions in those of ports.
const BACK: [&str; 2] = ["", "reverse "];

fn generator_name(kind: usize, way: usize, sender: usize) -> String {
    format!("kind {kind} {}sender {sender}", BACK[way])
}

fn receiver_name(way: usize, receiver: usize) -> String {
    format!("{}receiver {receiver}", BACK[way])
}
