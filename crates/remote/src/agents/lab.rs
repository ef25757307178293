//! A lab of hosts with agents: the sending cards and the counting one, as a testbed needs them.
//!
//! Ports are made when they are first needed and kept.

use super::{Agent, Flown, Member, Trial};
use crate::{RemoteError, Result};
use linerate_hosts::agent::message::{Port, Role};
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_wire::{Filter, FlowOrder, Load, MacAddr, STREAMS, Traffic, Transport};
use std::sync::atomic::AtomicBool;

/// A card of a host.
#[derive(Debug, Clone)]
pub struct Card {
    /// The number of its host's agent.
    pub agent: usize,
    /// Its interface.
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
}

/// How the hosts are cabled.
#[derive(Debug, Clone)]
pub struct Cabling {
    /// Where frames leave.
    pub senders: Vec<Sender>,
    /// Where they arrive.
    pub receiver: Card,
    /// Whether the user has said that all these interfaces lead to nothing but the lab (RFC 6815).
    pub isolated: bool,
}

/// A lab of hosts, with an agent on each.
pub struct RealLab {
    agents: Vec<Agent>,
    cabling: Cabling,
    kinds: Vec<Traffic>,
    /// By kind: whether its ports are there.
    prepared: Vec<bool>,
    receives: bool,
    campaign: u8,
}

/// The receiving port's name.
const RECEIVER: &str = "receiver";
/// How long frames may be under way when the device is shown all flows, in nanoseconds.
const LEARNING_NS: u64 = 30_000;

impl RealLab {
    /// A lab of these agents, for these kinds of traffic; fills in addresses of frames, campaign and streams. Nothing is done
    /// yet.
    ///
    /// # Errors
    /// In words: more streams than a receiver distinguishes, or a host that is not there.
    pub fn new(
        agents: Vec<Agent>,
        cabling: Cabling,
        mut kinds: Vec<Traffic>,
        campaign: u8,
    ) -> Result<RealLab, String> {
        let hosts = cabling.senders.iter().map(|s| s.card.agent).chain([cabling.receiver.agent]);
        if cabling.senders.is_empty() || hosts.into_iter().any(|host| host >= agents.len()) {
            return Err("a lab needs a host that sends and one that receives".into());
        }
        let threads: usize = cabling.senders.iter().map(|s| s.card.cpus.len().max(1)).sum();
        if threads * kinds.len() > STREAMS {
            return Err(format!(
                "{} kinds of frames, each from {threads} threads, are {} streams, and a receiver tells {STREAMS} apart",
                kinds.len(),
                threads * kinds.len()
            ));
        }
        for (number, kind) in kinds.iter_mut().enumerate() {
            (kind.campaign, kind.first_stream) = (campaign, (number * threads) as u8);
        }
        let prepared = vec![false; kinds.len()];
        Ok(RealLab { agents, cabling, kinds, prepared, receives: false, campaign })
    }

    /// Shows the device every flow of a kind once from each sender, so that no trial pays the cost of first frames (RFC 2544's
    /// learning frames). With `answer`, the receiver answers each. Returns the numbers of frames sent, of frames received, and of
    /// answers.
    ///
    /// # Errors
    /// An agent refuses, or is lost.
    pub fn learn(
        &mut self,
        kind: usize,
        flows: u64,
        answer: bool,
        interrupted: &AtomicBool,
    ) -> Result<[u64; 3]> {
        // Senders share the frames, and each begins with the first flow.
        let frames = flows.saturating_mul(self.cabling.senders.len() as u64);
        let most_ns = 100_000_000 + frames.saturating_mul(LEARNING_NS);
        let timing = Timing { warm_up_ns: 0, interval_ns: most_ns, ..Timing::slice(most_ns) };
        let load =
            Load { rate: Some(50_000.0), frames: Some(frames), batch: 8, ..Load::lasting(timing.load()) };
        let flown = self.fly(kind, timing, load, answer, interrupted)?;
        Ok([flown.generator.frames, flown.receiver.unique(), flown.generator.answers])
    }

    /// Runs one trial with a kind of traffic through the device between the cards, as it stands; the load's duration is that of
    /// `timing`.
    ///
    /// # Errors
    /// An agent refuses, or is lost.
    pub fn trial(
        &mut self,
        kind: usize,
        timing: Timing,
        load: Load,
        interrupted: &AtomicBool,
    ) -> Result<Flown> {
        self.fly(kind, timing, load, false, interrupted)
    }

    /// Whether the hosts' linerate can answer the flows of a kind: only a sequential order has all of them in the first frames,
    /// and echo replies cannot be distinguished from requests yet.
    pub fn can_answer(&self, kind: usize) -> bool {
        let in_turn = self.kinds[kind].order == FlowOrder::Sequential;
        let echo = self.kinds[kind].frame.transport == Transport::IcmpEcho;
        let passes = self.cabling.receiver.backend != Backend::AfXdp;
        in_turn && !echo && passes
    }

    fn fly(
        &mut self,
        kind: usize,
        timing: Timing,
        load: Load,
        answer: bool,
        interrupted: &AtomicBool,
    ) -> Result<Flown> {
        self.prepare(kind)?;
        let members: Vec<Member<'_>> = (0..self.agents.len()).filter_map(|n| self.member(n, kind)).collect();
        Trial { members: &members, timing, load, answer }.run(interrupted)
    }

    /// An agent's part in a trial, if it has one.
    fn member(&self, number: usize, kind: usize) -> Option<Member<'_>> {
        let senders = self.cabling.senders.iter().enumerate().filter(|(_, s)| s.card.agent == number);
        let generators: Vec<String> = senders.map(|(nth, _)| port_name(kind, nth)).collect();
        let receives = self.cabling.receiver.agent == number;
        let receivers = if receives { vec![RECEIVER.to_string()] } else { Vec::new() };
        let agent = &self.agents[number];
        (!generators.is_empty() || receives).then_some(Member { agent, generators, receivers })
    }

    fn prepare(&mut self, kind: usize) -> Result<()> {
        let Cabling { senders, receiver, isolated } = &self.cabling;
        let port = |name: String, card: &Card, role| Port {
            name,
            interface: card.interface.clone(),
            isolated: *isolated,
            backend: card.backend,
            cpus: card.cpus.clone(),
            role,
        };
        if !self.receives {
            // In a lab of hosts, neighbours may have to be asked for.
            let pass_foreign = receiver.backend != Backend::AfXdp;
            let filter = Filter { pass_foreign, ..Filter::of_campaign(self.campaign) };
            self.agents[receiver.agent].prepare(port(RECEIVER.into(), receiver, Role::Receiver(filter)))?;
            self.receives = true;
        }
        if !self.prepared[kind] {
            // A queue has one AF_XDP socket at a time.
            let others: Vec<usize> = (0..self.kinds.len()).filter(|other| self.prepared[*other]).collect();
            let of_queues = |sender: &Sender| sender.card.backend == Backend::AfXdp && !others.is_empty();
            for (nth, sender) in senders.iter().enumerate().filter(|(_, sender)| of_queues(sender)) {
                let names = others.iter().map(|other| port_name(*other, nth)).collect();
                self.agents[sender.card.agent].release(names)?;
                self.prepared.fill(false);
            }
            let mut stream = self.kinds[kind].first_stream;
            for (nth, sender) in senders.iter().enumerate() {
                let traffic = self.kinds[kind].addressed(MacAddr::default(), sender.to);
                let traffic = Traffic { first_stream: stream, ..traffic };
                let role = Role::Generator(Box::new(traffic));
                self.agents[sender.card.agent].prepare(port(port_name(kind, nth), &sender.card, role))?;
                stream = stream.wrapping_add(sender.card.cpus.len().max(1) as u8);
            }
            self.prepared[kind] = true;
        }
        Ok(())
    }

    /// Releases the agents; returns errors. Lost ones have ended their loads by themselves, and are skipped.
    pub fn take_down(self) -> Vec<RemoteError> {
        let there = self.agents.into_iter().filter(|agent| agent.lost().is_none());
        there.filter_map(|agent| agent.goodbye().err()).collect()
    }
}

fn port_name(kind: usize, sender: usize) -> String {
    format!("kind {kind} sender {sender}")
}
