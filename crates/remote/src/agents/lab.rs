//! A lab of hosts with agents, and one trial over them: armed everywhere, let go at one moment, watched, drained and read.
//!
//! Ports are made when they are first needed and kept.

use super::Agent;
use crate::{RemoteError, Result};
use linerate_hosts::agent::merge::{Series, merge};
use linerate_hosts::agent::message::{Order, Port, Reply, Role, Sample};
use linerate_hosts::clock::Offset;
use linerate_hosts::stamps::{Stamps, ages};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::trial::Outcome;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Clocks, CpuShare, Stamped};
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_stats::histogram::Histogram;
use linerate_wire::{Filter, FlowOrder, Load, MacAddr, RateStep, STREAMS, Traffic, Transport};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An agent with the ports of it that take part.
pub struct Member<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// Its ports that send.
    pub generators: Vec<String>,
    /// The streams of their frames: the low bytes.
    pub streams: Vec<u8>,
    /// Its ports that count.
    pub receivers: Vec<String>,
}

/// A trial to be run.
pub struct Trial<'a> {
    /// Who takes part.
    pub members: &'a [Member<'a>],
    /// Its times.
    pub timing: Timing,
    /// The load of all generators together; each gets an even share of its rate and frames. Its duration is that of `timing`.
    pub load: Load,
    /// Whether receivers answer each frame.
    pub answer: bool,
    /// Whether ages are to be found by the stamps of cards.
    pub card_stamps: bool,
}

/// Result of a trial.
#[derive(Debug, Clone, Default)]
pub struct Flown {
    /// Samples and faults, on our clock.
    pub outcome: Outcome,
    /// All generators' counters together.
    pub generator: PortCounters,
    /// All receivers'.
    pub receiver: PortCounters,
    /// How much later than they should each generator began, by our clock: host and port, nanoseconds. As uncertain as the comparison
    /// of clocks (`within_ns`).
    pub late: Vec<(String, i64)>,
    /// The largest uncertainty of a comparison of clocks, in nanoseconds.
    pub within_ns: u64,
    /// How the ages of stamped frames were found, where generators and receivers are agents.
    pub clocks: Option<Clocks>,
    /// Whose stamps they are, where those of cards are wanted.
    pub stamped: Option<Stamped>,
    /// How busy each host's CPUs were.
    pub cpus: BTreeMap<String, Vec<CpuShare>>,
}

impl Flown {
    /// Nanoseconds between the first generator's beginning and the last one's.
    pub fn skew_ns(&self) -> u64 {
        let late = || self.late.iter().map(|(_, ns)| *ns);
        late().max().zip(late().min()).map_or(0, |(last, first)| last.abs_diff(first))
    }
}

/// From the order to go until it is time: the order must be there, and generators need some 80 ms to get ready.
const LEAD_NS: u64 = 150_000_000;
/// Generators go on so long after the window, so that its end is in it.
const OVERRUN_NS: u64 = 50_000_000;
/// How long the end of a load may be awaited after its time.
const GRACE: Duration = Duration::from_secs(8);
/// How often an interrupt is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Answers may be under way this long.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);
/// A sample at least every second.
const LONGEST_SAMPLE_NS: u64 = 1_000_000_000;

/// A member under way.
#[derive(Default)]
struct Underway {
    load: u64,
    offset: Offset,
    began: BTreeMap<String, u64>,
    samples: BTreeMap<String, Vec<Sample>>,
    ended: Option<(Vec<String>, Vec<CpuShare>)>,
}

impl Trial<'_> {
    /// Runs it. `began` gets the moment of the first frame, by CLOCK_MONOTONIC, once it is certain. Ends early when `interrupted` becomes true. Whatever happens, loads that can be reached are stopped; the others
    /// end by themselves.
    ///
    /// # Errors
    /// An agent is lost, or refuses.
    pub fn run(&self, interrupted: &AtomicBool, began: &dyn Fn(u64)) -> Result<Flown> {
        let result = self.fly(interrupted, began);
        if result.is_err() {
            for member in self.members.iter().filter(|m| m.agent.lost().is_none()) {
                let _ = member.agent.stop();
            }
        }
        result
    }

    fn fly(&self, interrupted: &AtomicBool, began: &dyn Fn(u64)) -> Result<Flown> {
        let offsets = self.compare_clocks()?;
        let apart = self.apart(&offsets);
        let shift_ns = apart.iter().filter_map(|(_, offset)| Some((*offset)?.within_ns)).max().unwrap_or(0);
        let under = |offset| Underway { offset, ..Underway::default() };
        let mut underway: Vec<Underway> = offsets.into_iter().map(under).collect();
        for (number, member) in self.members.iter().enumerate() {
            let ports = [member.receivers.as_slice(), &member.generators].concat();
            let of_these = apart.iter().filter(|([_, receiver], _)| *receiver == number);
            let ahead_ns = of_these.flat_map(|([generator, _], offset)| {
                let ns = clamped(offset.unwrap_or_default().ns + i128::from(shift_ns));
                self.members[*generator].streams.iter().map(move |stream| (*stream, ns))
            });
            member.agent.arm(ports, self.order(member, ahead_ns.collect()))?;
        }
        let at_ns = monotonic_ns() + LEAD_NS;
        // Receivers first: they count before the first frame can come.
        for sends in [false, true] {
            let both = self.members.iter().zip(&mut underway);
            for (member, under) in both.filter(|(member, _)| member.generators.is_empty() != sends) {
                under.load = member.agent.go(under.offset.there(at_ns))?;
            }
        }
        began(at_ns);
        self.watch(&mut underway, interrupted)?;
        let mut flown = Flown::default();
        (flown.generator, flown.receiver) = self.drain()?;
        for (member, under) in self.members.iter().zip(&mut underway) {
            // All reports of the receivers' agents are here: they have been stopped.
            while under.ended.is_none() && under.hear(member.agent, Instant::now() + GRACE)? {}
        }
        let mut error_ns = 0;
        let mut apart = apart;
        if shift_ns > 0 {
            let later = self.apart(&self.compare_clocks()?);
            for ((_, before), (_, after)) in apart.iter_mut().zip(&later) {
                if let Some(before) = before {
                    before.within_ns = before.error_until(&after.unwrap_or_default());
                    error_ns = error_ns.max(before.within_ns);
                }
            }
        }
        flown.clocks = Some(Clocks { shift_ns, error_ns });
        if self.card_stamps {
            self.compare_stamps(&mut flown, &apart);
            self.check_all()?;
        }
        self.tell(&mut flown, underway, at_ns);
        Ok(flown)
    }

    fn compare_clocks(&self) -> Result<Vec<Offset>> {
        self.members.iter().map(|member| member.agent.compare_clocks()).collect()
    }

    /// Puts the ages of frames that both ends' cards, or their drivers, have stamped in the place of those by the generator's program.
    fn compare_stamps(&self, flown: &mut Flown, apart: &[([usize; 2], Option<Offset>)]) {
        let (mut why, mut by_cards) = (Vec::new(), [true; 2]);
        let mut read = |agent: &Agent, ports: &[String], end: usize| {
            let read = match ports {
                [] => Ok(BTreeMap::new()),
                ports => agent.stamps(ports),
            };
            let read = read.map_err(|error| why.push(error.to_string())).unwrap_or_default();
            by_cards[end] &= read.values().all(|stamps| stamps.card.is_some());
            why.extend(read.values().filter_map(|stamps| stamps.why.clone()));
            read.into_values().collect::<Vec<Stamps>>()
        };
        let both = |m: &Member<'_>| [read(m.agent, &m.generators, 0), read(m.agent, &m.receivers, 1)];
        let stamps: Vec<[Vec<Stamps>; 2]> = self.members.iter().map(both).collect();
        let (mut found, mut error_ns) = (Vec::new(), 0);
        for ([generator, receiver], offset) in apart {
            let (sent, received) = (&stamps[*generator][0], &stamps[*receiver][1]);
            for (sent, received) in sent.iter().flat_map(|sent| received.iter().map(move |r| (sent, r))) {
                match ages(sent, received, *offset) {
                    Ok((ages, error)) => {
                        found.extend(ages);
                        error_ns = error_ns.max(error);
                    }
                    Err(set) => why.push(set),
                }
            }
        }
        if found.is_empty() {
            why.push("no frame was stamped at both ends: latency is by the generator's program".into());
        } else {
            let mut latency = Histogram::default();
            let shifted = |age: &i128| u64::try_from((age + i128::from(error_ns)).max(0)).unwrap_or(u64::MAX);
            found.iter().map(shifted).for_each(|age| latency.record(age));
            flown.receiver.latency = latency;
            flown.clocks = Some(Clocks { shift_ns: error_ns, error_ns });
        }
        why.sort();
        why.dedup();
        flown.stamped = Some(Stamped { frames: found.len() as u64, by_cards, why });
    }

    /// The clock of each member that sends as seen from each that receives, with their numbers; none where one machine has both.
    fn apart(&self, offsets: &[Offset]) -> Vec<([usize; 2], Option<Offset>)> {
        let having =
            |ports: fn(&Member<'_>) -> bool| (0..offsets.len()).filter(move |n| ports(&self.members[*n]));
        let pairs = having(|m| !m.generators.is_empty())
            .flat_map(|g| having(|m| !m.receivers.is_empty()).map(move |r| [g, r]));
        let seen = |[g, r]: [usize; 2]| {
            let offset = offsets[g].from(&offsets[r]);
            // Machines that were started from one image may have the same name.
            let named_alike = self.members[g].agent.shares_clock(self.members[r].agent);
            let one = g == r || (named_alike && offset.may_be_none());
            ([g, r], (!one).then_some(offset))
        };
        pairs.map(seen).collect()
    }

    fn order(&self, member: &Member<'_>, ahead_ns: Vec<(u8, i64)>) -> Order {
        let generators: u64 = self.members.iter().map(|m| m.generators.len() as u64).sum();
        // An agent gives every port of a load the same: shares are of whole generators.
        let share = |n: u64| n.div_ceil(generators.max(1));
        let each = |rate: f64| rate / generators.max(1) as f64;
        // Receivers report for as long as the generators may take; they are stopped when all is there.
        let spare = if member.generators.is_empty() {
            10 * LONGEST_SAMPLE_NS + self.timing.drain_ns
        } else {
            OVERRUN_NS
        };
        let load = Load {
            duration_ns: self.timing.load_ns() + spare,
            frames: self.load.frames.map(share),
            rate: self.load.rate.map(each),
            step: self.load.step.map(|step| RateStep { rate: each(step.rate), ..step }),
            ..self.load
        };
        let sample_ns = self.timing.interval_ns.clamp(1_000_000, LONGEST_SAMPLE_NS);
        Order { load, sample_ns, answer: self.answer, ahead_ns }
    }

    /// Listens until all generators have ended.
    fn watch(&self, underway: &mut [Underway], interrupted: &AtomicBool) -> Result<()> {
        let until = Instant::now() + Duration::from_nanos(self.timing.load_ns() + LEAD_NS) + GRACE;
        let mut stopped = false;
        let senders = self.members.iter().zip(underway).filter(|(member, _)| !member.generators.is_empty());
        for (member, under) in senders {
            while under.ended.is_none() {
                if interrupted.load(Ordering::Relaxed) && !stopped {
                    stopped = true;
                    self.stop_generators()?;
                }
                self.check_all()?;
                if !under.hear(member.agent, Instant::now() + LOOK)? && Instant::now() > until {
                    return Err(member.agent.failed("its load does not end, although its time is up"));
                }
            }
        }
        Ok(())
    }

    /// One that is lost ends the trial, even while another one is read.
    fn check_all(&self) -> Result<()> {
        self.members.iter().try_for_each(|member| match member.agent.lost() {
            Some(lost) => Err(member.agent.lost_while("a load was under way", &lost)),
            None => Ok(()),
        })
    }

    fn stop_generators(&self) -> Result<()> {
        self.members.iter().filter(|m| !m.generators.is_empty()).try_for_each(|m| m.agent.stop())
    }

    /// Waits for the last frames, and reads the counters of all.
    fn drain(&self) -> Result<(PortCounters, PortCounters)> {
        // A receiver's agent reports until it is stopped, and answers nothing else meanwhile: its report ends, its counting goes on.
        for member in self.members.iter().filter(|m| m.generators.is_empty()) {
            member.agent.stop()?;
        }
        let sent = self.read(|m| &m.generators)?;
        let (quiet, most) = (self.timing.quiet_ns, self.timing.drain_ns);
        let [quiet, most] = [quiet, most].map(Duration::from_nanos);
        let received = self.settled(|m| &m.receivers, quiet, most, |now| now.unique() >= sent.frames)?;
        let all = |now: &PortCounters| now.answers >= received.unique();
        let answers = match self.answer {
            true => self.settled(|m| &m.generators, ANSWER_WITHIN, Duration::MAX, all)?.answers,
            false => 0,
        };
        Ok((PortCounters { answers, ..sent }, received))
    }

    /// Counters of ports once they are complete, have not changed for a while, or have been waited for long enough.
    fn settled(
        &self,
        which: for<'m> fn(&'m Member<'_>) -> &'m Vec<String>,
        quiet: Duration,
        most: Duration,
        is_complete: impl Fn(&PortCounters) -> bool,
    ) -> Result<PortCounters> {
        let (began, mut changed, mut last) = (Instant::now(), Instant::now(), (0, 0));
        loop {
            let now = self.read(which)?;
            if (now.frames, now.answers) != last {
                (last, changed) = ((now.frames, now.answers), Instant::now());
            }
            if is_complete(&now) || changed.elapsed() >= quiet || began.elapsed() >= most {
                return Ok(now);
            }
            std::thread::sleep((quiet / 10).min(LOOK));
        }
    }

    fn read(&self, which: for<'m> fn(&'m Member<'_>) -> &'m Vec<String>) -> Result<PortCounters> {
        let mut all = PortCounters::default();
        for member in self.members.iter().filter(|m| !which(m).is_empty()) {
            member.agent.counters(which(member))?.into_values().for_each(|counters| all.add(counters));
        }
        Ok(all)
    }

    fn tell(&self, flown: &mut Flown, underway: Vec<Underway>, at_ns: u64) {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        let mut first = u64::MAX;
        for (member, under) in self.members.iter().zip(underway) {
            let host = member.agent.host();
            flown.within_ns = flown.within_ns.max(under.offset.within_ns);
            if !member.receivers.is_empty() {
                flown.receiver.by_clock(|ns| under.offset.here(ns.into()));
            }
            for (port, samples) in &under.samples {
                let series = Series::of(samples, |ns| under.offset.here(ns.into()));
                if member.generators.contains(port) { senders.push(series) } else { receivers.push(series) }
            }
            for (port, began) in under.began.iter().filter(|(port, _)| member.generators.contains(port)) {
                let began = under.offset.here((*began).into());
                first = first.min(began);
                flown.late.push((format!("{host} {port}"), began as i64 - at_ns as i64));
            }
            if let Some((faults, cpus)) = under.ended {
                flown.outcome.faults.extend(faults.iter().map(|fault| format!("{host}: {fault}")));
                flown.cpus.insert(host.into(), cpus);
            }
        }
        let began = if first == u64::MAX { at_ns } else { first };
        let (from, to) = (began + self.timing.warm_up_ns, began + self.timing.load_ns());
        flown.outcome.began_ns = began;
        flown.outcome.samples = merge(&senders, &receivers, began, from, to);
    }
}

impl Underway {
    /// Takes a message of the load; `false` if there was none until then.
    fn hear(&mut self, agent: &Agent, until: Instant) -> Result<bool> {
        let Some(reply) = agent.hear(self.load, until)? else { return Ok(false) };
        match reply {
            Reply::Began { port, at_ns } => {
                self.began.insert(port, at_ns);
            }
            Reply::Sample(sample) => self.samples.entry(sample.port.clone()).or_default().push(sample),
            Reply::Ended { faults, cpus } => self.ended = Some((faults, cpus)),
            _ => {}
        }
        Ok(true)
    }
}

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
        let flown = self.trial(kind, timing, load, answer, interrupted, &|_| {})?;
        Ok([flown.generator.frames, flown.receiver.unique(), flown.generator.answers])
    }

    /// Whether the hosts' linerate can answer the flows of a kind: only a sequential order has all of them in the first frames,
    /// and echo replies cannot be distinguished from requests yet.
    pub fn can_answer(&self, kind: usize) -> bool {
        let in_turn = self.kinds[kind].order == FlowOrder::Sequential;
        let echo = self.kinds[kind].frame.transport == Transport::IcmpEcho;
        let passes = self.cabling.receiver.backend != Backend::AfXdp;
        in_turn && !echo && passes
    }

    /// Runs one trial with a kind of traffic through the device between the cards, as it stands; the load's duration is that of
    /// `timing`. With `answer`, the receiver answers each frame.
    ///
    /// # Errors
    /// An agent refuses, or is lost.
    pub fn trial(
        &mut self,
        kind: usize,
        timing: Timing,
        load: Load,
        answer: bool,
        interrupted: &AtomicBool,
        began: &dyn Fn(u64),
    ) -> Result<Flown> {
        self.prepare(kind)?;
        let members: Vec<Member<'_>> = (0..self.agents.len()).filter_map(|n| self.member(n, kind)).collect();
        let card_stamps = self.kinds[kind].card_stamps;
        Trial { members: &members, timing, load, answer, card_stamps }.run(interrupted, began)
    }

    /// An agent's part in a trial, if it has one.
    fn member(&self, number: usize, kind: usize) -> Option<Member<'_>> {
        let senders = || self.cabling.senders.iter().enumerate().filter(|(_, s)| s.card.agent == number);
        let generators: Vec<String> = senders().map(|(nth, _)| port_name(kind, nth)).collect();
        let streams = senders().flat_map(|(nth, _)| self.streams(kind, nth)).collect();
        let receives = self.cabling.receiver.agent == number;
        let receivers = if receives { vec![RECEIVER.to_string()] } else { Vec::new() };
        let agent = &self.agents[number];
        (!generators.is_empty() || receives).then_some(Member { agent, generators, streams, receivers })
    }

    /// The streams of a sender's frames: the low bytes.
    fn streams(&self, kind: usize, sender: usize) -> impl Iterator<Item = u8> + use<> {
        let threads = |sender: &Sender| sender.card.cpus.len().max(1);
        let (before, from) = self.cabling.senders.split_at(sender);
        let first = usize::from(self.kinds[kind].first_stream) + before.iter().map(threads).sum::<usize>();
        (first..first + threads(&from[0])).map(|stream| stream as u8)
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
            let card_stamps = self.kinds.iter().any(|kind| kind.card_stamps);
            let filter = Filter { pass_foreign, card_stamps, ..Filter::of_campaign(self.campaign) };
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
            for (nth, sender) in senders.iter().enumerate() {
                let traffic = self.kinds[kind].addressed(MacAddr::default(), sender.to);
                let first_stream = self.streams(kind, nth).next().unwrap_or_default();
                let traffic = Traffic { first_stream, ..traffic };
                let role = Role::Generator(Box::new(traffic));
                self.agents[sender.card.agent].prepare(port(port_name(kind, nth), &sender.card, role))?;
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

fn clamped(ns: i128) -> i64 {
    ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn port_name(kind: usize, sender: usize) -> String {
    format!("kind {kind} sender {sender}")
}
