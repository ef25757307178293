//! The hosts that send and count: by their linerate, or by the tools that they have.

use super::Site;
use crate::interrupt::{INTERRUPTED as STOP, interrupted};
use crate::messages::tell;
use crate::testbed::prepare::{Prepared, TrafficKind};
use crate::testbed::{PACED_BATCH, Request};
use anyhow::{Context, Result, bail};
use linerate_hosts::preflight::frames::PortTried;
use linerate_hosts::tools::{self, Task};
use linerate_measure::record::Direction;
use linerate_plan::Backend;
use linerate_plan::lab::{Host, Interface};
use linerate_plan::settings::{Dut, End};
use linerate_remote::ExecutionTarget;
use linerate_remote::agents::lab::{Cabling, Card, Frames, RealLab, Sender, Shown, Way};
use linerate_remote::agents::{Agent, Link, TrialResult};
use linerate_remote::external::{ToolHost, ToolTrial};
use linerate_wire::{FCS_LEN, Family, FlowSpace, FrameMix, FrameSpec, Load, MacAddr, Traffic, Transport};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Frames handed over at once where no rate was asked for.
pub const BATCH: u32 = 64;
/// How long an agent may take to answer.
const GREETING: Duration = Duration::from_secs(10);
/// How long the first frame may take to come through, unless the DUT is to boot quicker.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long frames of the reverse direction may take, once those of the other come through.
const PATIENCE_BACK: Duration = Duration::from_secs(2);
/// How often flows are shown until each has been answered: a frame or an answer may get lost.
const ROUNDS: u32 = 4;

/// Frames from each port when the tester's ports are tried, and whose they are.
const TRIED: u32 = 100;
const CAMPAIGN: u8 = 1;
/// Some drivers read their card's counters every two seconds.
const COUNTED: Duration = Duration::from_millis(2200);

/// Flows that a DUT has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// No frame came through.
    Nothing,
    /// No frame came through, and the tester's own interfaces counted none as sent.
    Unsent,
    /// The direction of the load.
    OneWay,
    /// Both directions of each.
    Answered,
}

/// The hosts that send and count.
pub struct Tester {
    hosts: Hosts,
    /// The sending and the counting backend, for records.
    pub names: [String; 2],
    /// Why hosts do not send by the fastest backend.
    pub notes: Vec<String>,
    /// How long it may take until frames come through.
    patience: Duration,
}

enum Hosts {
    /// Hosts that have linerate.
    Agents(Box<RealLab>),
    /// Hosts that have tools.
    Tools(Tools),
}

/// Hosts with tools.
struct Tools {
    generators: Vec<ToolHost>,
    receiver: ToolHost,
    /// By kind of traffic: the tasks of the generators, and of the receiver.
    tasks: Vec<(Vec<Task>, Task)>,
}

impl Tester {
    /// Shows the device `flows` flows of a kind, again and again until they come through: a link may be down for a while after
    /// settings of a card, and a router forwards nothing for a while after a boot. Tools wait for the first frame of each trial;
    /// they cannot count flows, and their warm-up must do. With `answer`, the receiver answers each flow if it can.
    pub fn learn(&mut self, kind: usize, flows: u64, answer: bool) -> Result<Learned> {
        let patience = self.patience;
        let Hosts::Agents(lab) = &mut self.hosts else { return Ok(Learned::OneWay) };
        let learned = show(lab, [kind, 0], flows, answer && lab.can_answer(kind), patience)?;
        let through = !matches!(learned, Learned::Nothing | Learned::Unsent);
        if through && lab.ways(kind) > 1 {
            // Rules may pass no frame of the other direction: the trial tells.
            show(lab, [kind, 1], flows, false, patience.min(PATIENCE_BACK))?;
        }
        Ok(learned)
    }

    /// One trial of a kind of traffic through the device as it stands. `began`: see [`RealLab::trial`].
    pub fn trial(&mut self, kind: usize, request: &Request, began: &dyn Fn(u64)) -> Result<TrialResult> {
        let timing = request.timing;
        match &mut self.hosts {
            Hosts::Agents(lab) => {
                let batch = if request.rate.is_some() && request.burst == 0 { PACED_BATCH } else { BATCH };
                Ok(lab.trial(kind, timing, request.load(batch), &STOP, began)?)
            }
            Hosts::Tools(tools) => {
                let (sent, received) = &tools.tasks[kind];
                // Every generator sends its share.
                let rate = request.rate.map(|rate| rate / sent.len() as f64);
                let at = |task: &Task| Task { load: Load { rate, ..task.load }, ..task.clone() };
                let generators: Vec<(ToolHost, Task)> =
                    tools.generators.iter().cloned().zip(sent.iter().map(at)).collect();
                let receiver = Some((&tools.receiver, at(received)));
                let trial = ToolTrial { generators: &generators, receiver, timing, patience: self.patience };
                Ok(trial.run(&STOP)?)
            }
        }
    }

    /// Releases the hosts. Returns messages about failures.
    pub fn take_down(self) -> Vec<String> {
        match self.hosts {
            Hosts::Agents(lab) => lab.take_down().iter().map(ToString::to_string).collect(),
            Hosts::Tools(_) => Vec::new(),
        }
    }
}

/// Shows the device the flows of a direction of a kind, until they come through.
fn show(
    lab: &mut RealLab,
    [kind, way]: [usize; 2],
    flows: u64,
    answer: bool,
    patience: Duration,
) -> Result<Learned> {
    let (began, mut before, mut left) = (Instant::now(), 0u64, false);
    for round in 1.. {
        let shown = lab.learn(kind, way, flows, answer, &STOP)?;
        let Shown { arrived, .. } = shown;
        // Some drivers read their card's counters every two seconds.
        left |= shown.sent == 0 || shown.left != Some(0);
        let over = interrupted() || began.elapsed() > patience;
        if let Some(learned) = judged(shown, answer && round < ROUNDS && !interrupted(), before, over) {
            return Ok(if learned == Learned::Nothing && !left { Learned::Unsent } else { learned });
        }
        if !answer || arrived == 0 {
            before = arrived;
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    unreachable!("the rounds do not end")
}

/// The DUT's state after a round of frames. `None`: another round may teach it more. `asks`: whether answers are still waited for; `before`: frames of the round before; `over`: whether this was the last one.
fn judged(
    Shown { wanted, sent, arrived, answers, .. }: Shown,
    asks: bool,
    before: u64,
    over: bool,
) -> Option<Learned> {
    // A busy generator may have sent a part of them, and answers to those alone establish nothing.
    if answers >= wanted {
        return Some(Learned::Answered);
    }
    if asks && arrived > 0 {
        return None;
    }
    // Of a slow device, no more will arrive the next time.
    let steady = before > 0 && arrived <= before.saturating_add(before / 5);
    let known = if arrived > 0 { Learned::OneWay } else { Learned::Nothing };
    (over || steady || arrived.saturating_mul(2) >= sent).then_some(known)
}

/// The backend, unless frames of this length leave a choice to the agent, which tries what its card can do.
fn left_to_agents(backend: Backend, longest_fcs: u16) -> Backend {
    match backend.resolved(longest_fcs) {
        Backend::Xdp => backend,
        other => other,
    }
}

/// A sending interface.
struct Sending<'a> {
    host: &'a Host,
    side: Side<'a>,
    /// The Ethernet address at the other end: the DUT's, or the receiver's without a DUT.
    to: MacAddr,
    /// The interface's own Ethernet address, for frames of the reverse direction that come without a DUT.
    own: Option<MacAddr>,
}

impl Site {
    /// The tester of this lab.
    ///
    /// # Errors
    /// A host lacks something, or its tool cannot send this traffic.
    pub fn tester(&self, prepared: &Prepared) -> Result<Tester> {
        let sending = self.sending()?;
        let hosts = sending.iter().map(|one| one.host).chain([self.lab.receiver()]);
        let mut backends: Vec<Backend> = hosts.map(|host| self.tool(host)).collect::<Result<_>>()?;
        let has_agents = self.has_agents()?;
        if has_agents {
            let lengths = prepared.kinds.iter().map(|kind| kind.traffic.mix.max_len_fcs());
            let longest = lengths.max().unwrap_or(64);
            backends.iter_mut().for_each(|backend| *backend = left_to_agents(*backend, longest));
        }
        let (counting, sends) = backends.split_last().context("a lab has a receiver")?;
        let (hosts, sends, notes) = match has_agents {
            true => {
                let mut lab = self.agents(&sending, sends, *counting, prepared)?;
                let first = prepared.measured().next().map_or(0, |cell| prepared.kind_of[cell]);
                let (sends, notes) = lab.get_ready(first)?;
                (Hosts::Agents(Box::new(lab)), sends, notes)
            }
            false => {
                (Hosts::Tools(self.tools(&sending, sends, *counting, prepared)?), sends.to_vec(), Vec::new())
            }
        };
        let mut names: Vec<&str> = sends.iter().map(|backend| backend.name()).collect();
        names.dedup();
        let names = [names.join(", "), counting.resolved(0).name().into()];
        let boot = self.lab.dut().map_or(PATIENCE, |dut| Duration::from_nanos(dut.boot.timeout_ns));
        Ok(Tester { hosts, names, notes, patience: boot.min(PATIENCE) })
    }

    /// The other end of the generators' cables.
    fn far_end(&self) -> Result<(&Host, &linerate_hosts::systems::Interface)> {
        let (host, key) = match self.lab.dut() {
            Some(dut) => (dut, "in"),
            None => (self.lab.receiver(), "receive"),
        };
        Ok((host, self.interface(host, key, 0)?))
    }

    /// The Ethernet address that frames are sent to.
    fn destination(&self) -> Result<MacAddr> {
        if let Some(black_box) = &self.lab.black_box {
            return beside(black_box, End::In);
        }
        let (host, found) = self.far_end()?;
        found.mac.with_context(|| format!("{}: {} has no Ethernet address", host.name, found.name))
    }

    fn sending(&self) -> Result<Vec<Sending<'_>>> {
        let to = self.destination()?;
        let mut all = Vec::new();
        for host in self.lab.generators() {
            for (nth, wanted) in host.send.iter().enumerate() {
                let found = self.interface(host, "send", nth)?;
                let addresses = found.addresses.iter().map(|a| a.address).collect();
                let side = Side { name: &found.name, wanted, addresses };
                all.push(Sending { host, side, to, own: found.mac });
            }
        }
        Ok(all)
    }

    /// The generators' interfaces that are too short for these frames: each with what to do.
    ///
    /// # Errors
    /// An interface is not there.
    pub(super) fn too_short(&self, traffic: &Traffic) -> Result<Vec<String>> {
        let longest = traffic.mix.max_len_fcs();
        let needed = usize::from(longest).saturating_sub(traffic.frame.l2_len() + FCS_LEN) as u64;
        let mut short = Vec::new();
        for host in self.lab.generators() {
            for nth in 0..host.send.len() {
                let found = self.interface(host, "send", nth)?;
                if let Some(mtu) = found.mtu.map(u64::from).filter(|mtu| *mtu < needed) {
                    let name = &found.name;
                    short.push(format!(
                        "{}: frames of {longest} bytes need an MTU of {needed}, and {name} has {mtu}: ip link set {name} mtu {needed}",
                        host.name
                    ));
                }
            }
        }
        Ok(short)
    }

    fn agents(
        &self,
        sending: &[Sending<'_>],
        sends: &[Backend],
        counting: Backend,
        prepared: &Prepared,
    ) -> Result<RealLab> {
        for backend in sends.iter().chain([&counting]) {
            prepared.kinds.iter().try_for_each(|kind| backend.resolved(0).check(&kind.traffic))?;
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
    fn wire(
        &self,
        sending: &[Sending<'_>],
        sends: &[Backend],
        counting: Backend,
        kinds: Vec<Frames>,
        campaign: u8,
    ) -> Result<RealLab> {
        let receiver = self.lab.receiver();
        let hosts: BTreeMap<&str, &Host> =
            self.lab.generators().chain([receiver]).map(|host| (&*host.name, host)).collect();
        let number = |host: &Host| hosts.keys().position(|name| *name == host.name).unwrap_or(0);
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
                card.cpus = agents[card.agent].cpus().iter().copied().take(threads as usize).collect();
            }
            senders.push(Sender { card, to: one.to, beyond: far.mac });
        }
        let receiver = card(receiver, &far.name, counting);
        let mut ways = vec![Way { senders, receivers: vec![receiver] }];
        if kinds.iter().any(|kind| kind.direction == Direction::Both) {
            ways.push(self.back(&ways[0], sending, &agents)?);
        }
        let cabling = Cabling { ways, isolated: self.lab.isolated };
        RealLab::new(agents, cabling, kinds, campaign, tell).map_err(anyhow::Error::msg)
    }

    /// Sends a few test frames from the tester's ports, as a campaign does, and looks whether they arrive at the other end of the cables.
    /// Nothing unless the tester's hosts have linerate.
    ///
    /// # Errors
    /// A port cannot be made, or a host was lost.
    pub fn try_ports(&self) -> Result<Vec<PortTried>> {
        if !self.has_agents()? {
            return Ok(Vec::new());
        }
        let sending = self.sending()?;
        let sends: Vec<Backend> = sending.iter().map(|one| self.tool(one.host)).collect::<Result<_>>()?;
        let (nowhere, flows) = (MacAddr::default(), FlowSpace::benchmark(Family::V4, TRIED)?);
        let frame = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
        let traffic = Traffic::new(frame, FrameMix::single(64), flows);
        let kinds = vec![Frames { traffic, direction: Direction::Forward, bridged: false, tags: None }];
        let mut lab = self.wire(&sending, &sends, self.tool(self.lab.receiver())?, kinds, CAMPAIGN)?;
        let (backends, notes) = lab.get_ready(0)?;
        let far = self.far_end()?;
        let at = (far.0.name.clone(), far.1.name.clone());
        let before = self.received(&at);
        let Shown { sent, .. } = lab.learn(0, 0, TRIED.into(), false, &STOP)?;
        let rose = || Some(self.received(&at)?.saturating_sub(before?));
        let mut arrived = rose();
        if arrived.is_some_and(|arrived| arrived < sent) {
            std::thread::sleep(COUNTED);
            arrived = rose();
        }
        let tried = sending.iter().zip(backends).map(|(one, backend)| {
            let ours = |note: &&String| note.starts_with(&format!("{}: {} ", one.host.name, one.side.name));
            PortTried {
                from: (one.host.name.clone(), one.side.name.into()),
                port: backend,
                why: notes.iter().find(ours).cloned(),
                sent,
                arrives: at.clone(),
                arrived,
            }
        });
        let tried = tried.collect();
        lab.take_down();
        Ok(tried)
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
        let mut taken: Vec<u32> = senders.iter().filter(own).flat_map(|s| working(&s.card, cpus)).collect();
        let mut back = Vec::new();
        for (sender, one) in senders.iter().zip(sending) {
            let to = outside.unwrap_or(one.own);
            let to = to
                .with_context(|| format!("an interface beside {} has no Ethernet address", from.interface))?;
            let cpus = further(cpus, &taken, sender.card.cpus.len().max(1));
            taken.extend(&cpus);
            back.push(Sender { card: Card { cpus, ..from.clone() }, to, beyond: one.own });
        }
        Ok(Way { senders: back, receivers: senders.iter().map(|sender| sender.card.clone()).collect() })
    }

    fn tools(
        &self,
        sending: &[Sending<'_>],
        sends: &[Backend],
        counting: Backend,
        prepared: &Prepared,
    ) -> Result<Tools> {
        let receiver = self.lab.receiver();
        let driven = |host: &Host, tool: Backend| -> Result<ToolHost> {
            Ok(ToolHost { place: Arc::clone(self.place(host)?), tool, sudo: host.sudo })
        };
        let found = self.interface(receiver, "receive", 0)?;
        let wanted = receiver.receive.as_ref().context("the receiver has no [receive] in the lab file")?;
        let addresses = found.addresses.iter().map(|a| a.address).collect();
        let far = Side { name: &found.name, wanted, addresses };
        let mut tasks = Vec::new();
        for kind in &prepared.kinds {
            if kind.dut.tags().is_some() {
                bail!(
                    "only linerate sends frames with VLAN tags: use tool = \"linerate\" on all hosts that send or receive"
                );
            }
            let beyond = found.mac.filter(|_| kind.dut == Dut::Bridge);
            let of = |one: &Sending<'_>, tool: Backend, at: &str| {
                task(kind, tool, [&one.side, &far], at, beyond.unwrap_or(one.to))
            };
            let sent = sending.iter().zip(sends).map(|(one, tool)| of(one, *tool, one.side.name));
            tasks.push((sent.collect::<Result<_>>()?, of(&sending[0], counting, far.name)?));
        }
        let generators = sending.iter().zip(sends).map(|(one, tool)| driven(one.host, *tool));
        Ok(Tools {
            generators: generators.collect::<Result<_>>()?,
            receiver: driven(receiver, counting)?,
            tasks,
        })
    }
}

/// The Ethernet address of a black box, as the lab file has it.
fn beside(black_box: &Host, end: End) -> Result<MacAddr> {
    let (name, key) = (&black_box.name, if end == End::In { "in" } else { "out" });
    black_box.end(end).and_then(|interface| interface.mac).with_context(|| {
        format!("nobody can ask {name} for the Ethernet address of [{key}]: write mac = \"...\" there in the lab file")
    })
}

/// The CPUs that a sending card is worked from: the agent takes the last one where none are named.
fn working(card: &Card, cpus: &[u32]) -> Vec<u32> {
    if card.cpus.is_empty() { cpus.last().copied().into_iter().collect() } else { card.cpus.clone() }
}

/// CPUs of a host for `wanted` threads: the last ones without a thread, then CPUs with threads. The first is left to interrupts and
/// to the agent's connection.
fn further(cpus: &[u32], taken: &[u32], wanted: usize) -> Vec<u32> {
    let usable = || cpus.iter().skip(usize::from(cpus.len() > 1)).rev().copied();
    let free = usable().filter(|cpu| !taken.contains(cpu));
    free.chain(usable().filter(|cpu| taken.contains(cpu))).take(wanted).collect()
}

/// Starts linerate on a host, over its connection.
fn greet(place: &ExecutionTarget, host: &Host) -> Result<Agent> {
    let (program, arguments): (&str, &[&str]) =
        if host.sudo { ("sudo", &["-n", "linerate", "agent"]) } else { ("linerate", &["agent"]) };
    let command = place.program(program, arguments)?;
    let link = Link::start(command).with_context(|| format!("starting ssh to {}", host.name))?;
    Ok(Agent::greet(&host.name, link, env!("CARGO_PKG_VERSION"), GREETING)?)
}

/// One end of a cable, for a tool.
pub struct Side<'a> {
    /// The interface's name on its host.
    pub name: &'a str,
    /// Entry of the host in the lab file.
    pub wanted: &'a Interface,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
}

impl Side<'_> {
    fn address(&self, family: Family) -> Result<IpAddr> {
        let found = self.addresses.iter().find(|a| a.is_ipv4() == (family == Family::V4));
        found.copied().with_context(|| format!("{} has no {family} address", self.name))
    }
}

/// The task of a tool that sends from one end of the lab to the other, seen by the interface `at`.
///
/// # Errors
/// The traffic that the tool cannot send.
pub fn task(
    kind: &TrafficKind,
    tool: Backend,
    [sender, receiver]: [&Side<'_>; 2],
    at: &str,
    to: MacAddr,
) -> Result<Task> {
    tool.check(&kind.traffic)?;
    let mut traffic = kind.traffic.addressed(MacAddr::default(), to);
    // Frames of these tools go through the hosts' own stacks: their addresses are the hosts'.
    if tool.uses_host_stack() {
        if traffic.flows.len() > 1 {
            bail!("{tool} sends one flow, not {}", traffic.flows.len());
        }
        let family = traffic.frame.family;
        traffic.flows = tools::one_flow(sender.address(family)?, receiver.address(family)?, PORT)?;
    }
    Ok(Task {
        interface: at.into(),
        traffic,
        load: Load::lasting(Duration::from_secs(1)),
        threads: sender.wanted.threads.unwrap_or(1),
        link_wait_s: LINK_WAIT_S,
    })
}

/// The port that iperf3 and netperf exchange data on.
const PORT: u16 = 5201;
/// Seconds that a card may take for its link to come back after netmap has opened it.
const LINK_WAIT_S: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_get_cpus_of_their_own_where_there_are_some() {
        let four = [0, 1, 2, 3];
        assert_eq!(further(&four, &[], 1), [3], "the agent's own choice");
        assert_eq!(further(&four, &[3], 1), [2]);
        assert_eq!(further(&four, &[3], 2), [2, 1]);
        assert_eq!(further(&four, &[3, 2], 3), [1, 3, 2], "then shared, but not the first");
        assert_eq!(further(&[0, 1], &[1], 1), [1]);
        assert_eq!(further(&[5], &[5], 1), [5], "there is one");
        assert_eq!(further(&four, &[], 9), [3, 2, 1]);
    }

    #[test]
    fn a_learning_that_sent_a_part_of_the_flows_establishes_nothing() {
        let shown =
            |[wanted, sent, arrived, answers]: [u64; 4]| Shown { wanted, sent, left: None, arrived, answers };
        let judged = |counts, asks, before, over| judged(shown(counts), asks, before, over);
        let part = [5_000_000, 1_200_000, 1_200_000, 1_200_000];
        assert_eq!(judged(part, true, 0, false), None, "another round");
        assert_eq!(judged(part, false, 0, false), Some(Learned::OneWay), "no round is left");
        assert_eq!(judged([2000, 2000, 2000, 2000], true, 0, false), Some(Learned::Answered));
        assert_eq!(judged([2000, 2000, 2000, 1999], false, 0, false), Some(Learned::OneWay));
        assert_eq!(judged([2000, 2000, 0, 0], true, 0, false), None, "the link may come up");
        assert_eq!(judged([2000, 2000, 0, 0], true, 0, true), Some(Learned::Nothing));
        assert_eq!(judged([2000, 2000, 300, 0], false, 290, false), Some(Learned::OneWay), "a slow device");
    }
}
