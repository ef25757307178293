//! A lab of hosts with agents, and one trial over them: armed everywhere, let go at one moment, watched, drained and read.
//!
//! Frames go one way, or both ways at once: then each end sends and counts, and every count is kept by direction.
//!
//! Ports are made when they are first needed and kept.

use super::Agent;
use crate::{RemoteError, Result};
use linerate_hosts::agent::merge::{Series, merge, warm_up};
use linerate_hosts::agent::message::{Order, Port, Reply, Role, Sample};
use linerate_hosts::clock::Offset;
use linerate_hosts::stamps::{Stamps, ages};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::trial::Outcome;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Clocks, CpuShare, Direction, Stamped};
use linerate_measure::trial::Timing;
use linerate_plan::Backend;
use linerate_stats::histogram::Histogram;
use linerate_wire::{Filter, FlowOrder, Load, MILLION, MacAddr, RateStep, STREAMS, Traffic, Transport};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An agent with the ports of it that take part.
pub struct Member<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// Its ports for each direction of the trial's frames.
    pub ways: Vec<Ports>,
}

/// Ports of an agent for one direction.
#[derive(Debug, Clone, Default)]
pub struct Ports {
    /// Those that send.
    pub generators: Vec<String>,
    /// The streams of their frames: the low bytes.
    pub streams: Vec<u8>,
    /// Those that count.
    pub receivers: Vec<String>,
}

impl Member<'_> {
    fn sends(&self) -> bool {
        self.ways.iter().any(|ports| !ports.generators.is_empty())
    }
}

/// A trial to be run.
pub struct Trial<'a> {
    /// Who takes part. Each has the same directions, and each direction as many generators.
    pub members: &'a [Member<'a>],
    /// Its times.
    pub timing: Timing,
    /// The load of each direction; each generator of it gets an even share of its rate and frames. Its duration is that of `timing`.
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
    /// All generators' counters together, by direction.
    pub sent: Vec<PortCounters>,
    /// All receivers', by direction.
    pub received: Vec<PortCounters>,
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
    /// Of frames that take so many directions, without counts.
    pub(crate) fn of_ways(ways: usize) -> Flown {
        let none = vec![PortCounters::default(); ways];
        Flown { sent: none.clone(), received: none, ..Flown::default() }
    }

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
        let shift_ns = apart.iter().filter_map(|pair| Some(pair.offset?.within_ns)).max().unwrap_or(0);
        let under = |offset| Underway { offset, ..Underway::default() };
        let mut underway: Vec<Underway> = offsets.into_iter().map(under).collect();
        for (number, member) in self.members.iter().enumerate() {
            let of_way = |ports: &Ports| [ports.receivers.as_slice(), &ports.generators].concat();
            let ports = member.ways.iter().flat_map(of_way).collect();
            let ahead_ns = apart.iter().filter(|pair| pair.receiver == number).flat_map(|pair| {
                let ns = clamped(pair.offset.unwrap_or_default().ns + i128::from(shift_ns));
                self.members[pair.generator].ways[pair.way].streams.iter().map(move |stream| (*stream, ns))
            });
            member.agent.arm(ports, self.order(member, ahead_ns.collect()))?;
        }
        // Receivers first: they count before the first frame can come. One that also sends gets its order before that, too: each
        // takes a round trip at most, which is twice the error of the clocks.
        let orders_ns: u64 = underway.iter().map(|under| 2 * under.offset.within_ns).sum();
        let at_ns = monotonic_ns() + LEAD_NS + orders_ns;
        for sends in [false, true] {
            let both = self.members.iter().zip(&mut underway);
            for (member, under) in both.filter(|(member, _)| member.sends() == sends) {
                under.load = member.agent.go(under.offset.there(at_ns))?;
            }
        }
        began(at_ns);
        self.watch(&mut underway, interrupted)?;
        let mut flown = Flown::default();
        (flown.sent, flown.received) = self.drain(&underway)?;
        for (member, under) in self.members.iter().zip(&mut underway) {
            // All reports of the receivers' agents are here: they have been stopped.
            while under.ended.is_none() && under.hear(member.agent, Instant::now() + GRACE)? {}
        }
        let mut error_ns = 0;
        let mut apart = apart;
        if shift_ns > 0 {
            let later = self.apart(&self.compare_clocks()?);
            for (before, after) in apart.iter_mut().zip(&later) {
                if let Some(before) = &mut before.offset {
                    before.within_ns = before.error_until(&after.offset.unwrap_or_default());
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
    fn compare_stamps(&self, flown: &mut Flown, apart: &[Pair]) {
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
        let mut of_way = |m: &Member<'_>, ports: &Ports| {
            [read(m.agent, &ports.generators, 0), read(m.agent, &ports.receivers, 1)]
        };
        let stamps: Vec<Vec<[Vec<Stamps>; 2]>> =
            self.members.iter().map(|m| m.ways.iter().map(|ports| of_way(m, ports)).collect()).collect();
        let (mut found, mut error_ns) = (vec![Vec::new(); flown.received.len()], 0);
        for pair in apart {
            let (sent, received) =
                (&stamps[pair.generator][pair.way][0], &stamps[pair.receiver][pair.way][1]);
            for (sent, received) in sent.iter().flat_map(|sent| received.iter().map(move |r| (sent, r))) {
                match ages(sent, received, pair.offset) {
                    Ok((ages, error)) => {
                        found[pair.way].extend(ages);
                        error_ns = error_ns.max(error);
                    }
                    Err(set) => why.push(set),
                }
            }
        }
        let frames = found.iter().map(Vec::len).sum::<usize>() as u64;
        if found.iter().any(Vec::is_empty) {
            why.push("no frame was stamped at both ends: latency is by the generator's program".into());
        } else {
            let shifted = |age: &i128| u64::try_from((age + i128::from(error_ns)).max(0)).unwrap_or(u64::MAX);
            for (received, found) in flown.received.iter_mut().zip(&found) {
                received.latency = Histogram::default();
                found.iter().map(shifted).for_each(|age| received.latency.record(age));
            }
            flown.clocks = Some(Clocks { shift_ns: error_ns, error_ns });
        }
        why.sort();
        why.dedup();
        flown.stamped = Some(Stamped { frames, by_cards, why });
    }

    /// How many directions the frames take.
    fn ways(&self) -> usize {
        self.members.first().map_or(0, |member| member.ways.len())
    }

    /// The clock of each member that sends as seen from each that receives its frames; none where one machine has both.
    fn apart(&self, offsets: &[Offset]) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for way in 0..self.ways() {
            let having = |of: fn(&Ports) -> &[String]| {
                (0..offsets.len()).filter(move |n| !of(&self.members[*n].ways[way]).is_empty())
            };
            for generator in having(|ports| &ports.generators) {
                for receiver in having(|ports| &ports.receivers) {
                    let offset = offsets[generator].from(&offsets[receiver]);
                    // Machines that were started from one image may have the same name.
                    let named_alike =
                        self.members[generator].agent.shares_clock(self.members[receiver].agent);
                    let one = generator == receiver || (named_alike && offset.may_be_none());
                    pairs.push(Pair { way, generator, receiver, offset: (!one).then_some(offset) });
                }
            }
        }
        pairs
    }

    fn order(&self, member: &Member<'_>, ahead_ns: Vec<(u8, i64)>) -> Order {
        let of_way = |way: usize| self.members.iter().map(|m| m.ways[way].generators.len() as u64).sum();
        let generators: u64 = (0..self.ways()).map(of_way).max().unwrap_or(0);
        // An agent gives every port of a load the same: shares are of whole generators.
        let share = |n: u64| n.div_ceil(generators.max(1));
        let each = |rate: f64| rate / generators.max(1) as f64;
        // Receivers report for as long as the generators may take; they are stopped when all is there.
        let spare = if member.sends() { OVERRUN_NS } else { 10 * LONGEST_SAMPLE_NS + self.timing.drain_ns };
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
        let senders = self.members.iter().zip(underway).filter(|(member, _)| member.sends());
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
        self.members.iter().filter(|m| m.sends()).try_for_each(|m| m.agent.stop())
    }

    /// Waits for the last frames, and reads the counters of all: those sent and those received, by direction.
    fn drain(&self, underway: &[Underway]) -> Result<(Vec<PortCounters>, Vec<PortCounters>)> {
        // A receiver's agent reports until it is stopped, and answers nothing else meanwhile: its report ends, its counting goes on.
        for member in self.members.iter().filter(|m| !m.sends()) {
            member.agent.stop()?;
        }
        let mut sent = self.read(underway, |ports| &ports.generators)?;
        let (quiet, most) = (self.timing.quiet_ns, self.timing.drain_ns);
        let [quiet, most] = [quiet, most].map(Duration::from_nanos);
        let all = |way: usize, now: &PortCounters| now.unique() >= sent[way].frames;
        let received = self.settled(underway, |ports| &ports.receivers, quiet, most, all)?;
        if self.answer {
            let all = |way: usize, now: &PortCounters| now.answers >= received[way].unique();
            let answers =
                self.settled(underway, |ports| &ports.generators, ANSWER_WITHIN, Duration::MAX, all)?;
            sent.iter_mut().zip(answers).for_each(|(sent, with)| sent.answers = with.answers);
        }
        Ok((sent, received))
    }

    /// Counters of ports once all directions are complete, have not changed for a while, or have been waited for long enough.
    fn settled(
        &self,
        underway: &[Underway],
        which: fn(&Ports) -> &Vec<String>,
        quiet: Duration,
        most: Duration,
        is_complete: impl Fn(usize, &PortCounters) -> bool,
    ) -> Result<Vec<PortCounters>> {
        let (began, mut changed, mut last) = (Instant::now(), Instant::now(), Vec::new());
        loop {
            let all = self.read(underway, which)?;
            let now: Vec<[u64; 2]> = all.iter().map(|now| [now.frames, now.answers]).collect();
            if now != last {
                (last, changed) = (now, Instant::now());
            }
            let complete = all.iter().enumerate().all(|(way, now)| is_complete(way, now));
            if complete || changed.elapsed() >= quiet || began.elapsed() >= most {
                return Ok(all);
            }
            std::thread::sleep((quiet / 10).min(LOOK));
        }
    }

    /// Counters of ports by direction, with times on our clock.
    fn read(&self, underway: &[Underway], which: fn(&Ports) -> &Vec<String>) -> Result<Vec<PortCounters>> {
        let mut all = vec![PortCounters::default(); self.ways()];
        for (member, under) in self.members.iter().zip(underway) {
            let names: Vec<String> = member.ways.iter().flat_map(which).cloned().collect();
            if names.is_empty() {
                continue;
            }
            for (port, mut counters) in member.agent.counters(&names)? {
                counters.by_clock(|ns| under.offset.here(ns.into()));
                if let Some(way) = member.ways.iter().position(|ports| which(ports).contains(&port)) {
                    all[way].add(counters);
                }
            }
        }
        Ok(all)
    }

    fn tell(&self, flown: &mut Flown, underway: Vec<Underway>, at_ns: u64) {
        let mut of_ways = vec![[Vec::new(), Vec::new()]; self.ways()];
        let mut first = u64::MAX;
        for (member, under) in self.members.iter().zip(underway) {
            let host = member.agent.host();
            flown.within_ns = flown.within_ns.max(under.offset.within_ns);
            for (ports, [senders, receivers]) in member.ways.iter().zip(&mut of_ways) {
                let series = |port: &String| {
                    let samples = under.samples.get(port).map_or(&[][..], Vec::as_slice);
                    Series::of(samples, |ns| under.offset.here(ns.into()))
                };
                senders.extend(ports.generators.iter().map(series));
                receivers.extend(ports.receivers.iter().map(series));
                for port in &ports.generators {
                    let Some(began) = under.began.get(port) else { continue };
                    let began = under.offset.here((*began).into());
                    first = first.min(began);
                    flown.late.push((format!("{host} {port}"), began as i64 - at_ns as i64));
                }
            }
            if let Some((faults, cpus)) = under.ended {
                flown.outcome.faults.extend(faults.iter().map(|fault| format!("{host}: {fault}")));
                flown.cpus.insert(host.into(), cpus);
            }
        }
        let began = if first == u64::MAX { at_ns } else { first };
        let (from, to) = (began + self.timing.warm_up_ns, began + self.timing.load_ns());
        flown.outcome.began_ns = began;
        let merged = |[senders, receivers]: &[Vec<Series>; 2]| merge(senders, receivers, began, from, to);
        if let [forward, reverse] = &of_ways[..] {
            flown.outcome.each = [merged(forward), merged(reverse)];
        }
        let all = [0, 1].map(|end| of_ways.iter().flat_map(|way| way[end].clone()).collect::<Vec<_>>());
        flown.outcome.warm_up = warm_up(&all[0], &all[1], began, from);
        flown.outcome.samples = merged(&all);
    }
}

/// A member that sends, and one that receives its frames.
struct Pair {
    /// The number of the direction.
    way: usize,
    /// Numbers of the members.
    generator: usize,
    receiver: usize,
    /// The generator's clock as seen from the receiver; none where one machine has both.
    offset: Option<Offset>,
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
    /// Forward and, where frames go both ways, reverse, with as many senders.
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
    campaign: u8,
}

/// A kind of traffic.
struct Kind {
    traffic: Traffic,
    /// How many directions it takes.
    ways: usize,
    /// Whether its generators are there.
    prepared: bool,
}

/// How long frames may be under way when the device is shown all flows, in nanoseconds.
const LEARNING_NS: u64 = 30_000;
/// And how much longer all of them may take, on hosts that are busy.
const LEARN_WITHIN_NS: u64 = 1_000_000_000;

fn threads(senders: &[Sender]) -> usize {
    senders.iter().map(|sender| sender.card.cpus.len().max(1)).sum()
}

impl RealLab {
    /// A lab of these agents, for these kinds of traffic with their directions; fills in addresses of frames, campaign and streams.
    /// Nothing is done yet.
    ///
    /// # Errors
    /// In words: more streams than a receiver distinguishes, or a host that is not there.
    pub fn new(
        agents: Vec<Agent>,
        cabling: Cabling,
        kinds: Vec<(Traffic, Direction)>,
        campaign: u8,
    ) -> Result<RealLab, String> {
        let there = |way: &Way| {
            let cards = way.senders.iter().map(|s| &s.card).chain(&way.receivers);
            !way.senders.is_empty()
                && !way.receivers.is_empty()
                && cards.into_iter().all(|card| card.agent < agents.len())
        };
        let most = kinds.iter().map(|(_, direction)| direction.ways().len()).max().unwrap_or(1);
        if cabling.ways.len() < most || !cabling.ways.iter().all(there) {
            return Err("a lab needs a host that sends and one that receives".into());
        }
        let (mut first, mut all) = (0, Vec::new());
        for (traffic, direction) in kinds {
            let ways = direction.ways().len();
            let traffic = Traffic { campaign, first_stream: first as u8, ..traffic };
            let threads: usize = cabling.ways[..ways].iter().map(|way| threads(&way.senders)).sum();
            first += threads * traffic.streams_each();
            all.push(Kind { traffic, ways, prepared: false });
        }
        if first > STREAMS {
            return Err(format!(
                "{} kinds of frames, each from all threads and in its directions, are {first} streams, and a receiver tells {STREAMS} apart",
                all.len(),
            ));
        }
        let receives = vec![false; cabling.ways.len()];
        Ok(RealLab { agents, cabling, kinds: all, receives, campaign })
    }

    /// How many directions a kind takes.
    pub fn ways(&self, kind: usize) -> usize {
        self.kinds[kind].ways
    }

    /// Shows the device every flow of a kind once from each sender of a direction, so that no trial pays the cost of first frames (RFC
    /// 2544's learning frames). With `answer`, the receiver answers each. Returns the number of frames to send, and those of frames sent,
    /// of frames received, and of answers.
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
    ) -> Result<[u64; 4]> {
        // Senders share the frames, and each begins with the first flow. Of two IP versions, the one with fewer frames needs longer.
        let rarer = self.kinds[kind]
            .traffic
            .ipv6
            .as_ref()
            .map_or(MILLION, |second| second.millionths.min(MILLION - second.millionths).max(1));
        let flows = flows.saturating_mul(MILLION.into()).div_ceil(rarer.into());
        let frames = flows.saturating_mul(self.cabling.ways[way].senders.len() as u64);
        let most_ns = LEARN_WITHIN_NS + frames.saturating_mul(LEARNING_NS);
        let timing = Timing { warm_up_ns: 0, interval_ns: most_ns, ..Timing::slice(most_ns) };
        let load =
            Load { rate: Some(50_000.0), frames: Some(frames), batch: 8, ..Load::lasting(timing.load()) };
        let flown = self.fly(kind, way..way + 1, timing, load, answer, interrupted, &|_| {})?;
        let count = |of: &[PortCounters], count: fn(&PortCounters) -> u64| of.iter().map(count).sum();
        let [sent, answers] = [|c: &PortCounters| c.frames, |c: &PortCounters| c.answers];
        Ok([
            frames,
            count(&flown.sent, sent),
            count(&flown.received, PortCounters::unique),
            count(&flown.sent, answers),
        ])
    }

    /// Whether the hosts' linerate can answer the flows of a kind: only a sequential order has all of them in the first frames,
    /// and echo replies cannot be distinguished from requests yet.
    pub fn can_answer(&self, kind: usize) -> bool {
        let traffic = &self.kinds[kind].traffic;
        let in_turn = traffic.order == FlowOrder::Sequential;
        let echo = traffic.frame.transport == Transport::IcmpEcho;
        let passes = self.cabling.ways[0].receivers.iter().all(|card| card.backend != Backend::AfXdp);
        in_turn && !echo && passes
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
    ) -> Result<Flown> {
        self.fly(kind, 0..self.ways(kind), timing, load, false, interrupted, began)
    }

    #[allow(clippy::too_many_arguments, reason = "the two callers differ in most of them")]
    fn fly(
        &mut self,
        kind: usize,
        ways: Range<usize>,
        timing: Timing,
        load: Load,
        answer: bool,
        interrupted: &AtomicBool,
        began: &dyn Fn(u64),
    ) -> Result<Flown> {
        self.prepare(kind)?;
        let member = |agent| {
            let ways: Vec<Ports> = ways.clone().map(|way| self.ports(agent, kind, way)).collect();
            let takes_part = ways.iter().any(|p| !p.generators.is_empty() || !p.receivers.is_empty());
            takes_part.then_some(Member { agent: &self.agents[agent], ways })
        };
        let members: Vec<Member<'_>> = (0..self.agents.len()).filter_map(member).collect();
        let card_stamps = self.kinds[kind].traffic.card_stamps;
        Trial { members: &members, timing, load, answer, card_stamps }.run(interrupted, began)
    }

    /// An agent's part in one direction.
    fn ports(&self, agent: usize, kind: usize, way: usize) -> Ports {
        let Way { senders, receivers } = &self.cabling.ways[way];
        let of = |card: &Card| card.agent == agent;
        let sends = || senders.iter().enumerate().filter(|(_, sender)| of(&sender.card)).map(|(nth, _)| nth);
        let counts = receivers.iter().enumerate().filter(|(_, card)| of(card));
        Ports {
            generators: sends().map(|nth| generator_name(kind, way, nth)).collect(),
            streams: sends().flat_map(|nth| self.streams(kind, way, nth)).collect(),
            receivers: counts.map(|(nth, _)| receiver_name(way, nth)).collect(),
        }
    }

    /// The streams of a sender's frames: the low bytes.
    fn streams(&self, kind: usize, way: usize, sender: usize) -> impl Iterator<Item = u8> + use<> {
        let (before, from) = self.cabling.ways[way].senders.split_at(sender);
        let others: usize = self.cabling.ways[..way].iter().map(|way| threads(&way.senders)).sum();
        let traffic = &self.kinds[kind].traffic;
        let first = usize::from(traffic.first_stream) + (others + threads(before)) * traffic.streams_each();
        (first..first + threads(&from[..1]) * traffic.streams_each()).map(|stream| stream as u8)
    }

    fn prepare(&mut self, kind: usize) -> Result<()> {
        let isolated = self.cabling.isolated;
        let port = |name: String, card: &Card, role| Port {
            name,
            interface: card.interface.clone(),
            isolated,
            backend: card.backend,
            cpus: card.cpus.clone(),
            role,
        };
        let ways = &self.cabling.ways[..self.kinds[kind].ways];
        for (number, way) in ways.iter().enumerate().filter(|(number, _)| !self.receives[*number]) {
            for (nth, card) in way.receivers.iter().enumerate() {
                // In a lab of hosts, neighbours may have to be asked for.
                let pass_foreign = card.backend != Backend::AfXdp;
                let card_stamps = self.kinds.iter().any(|kind| kind.traffic.card_stamps);
                let filter = Filter { pass_foreign, card_stamps, ..Filter::of_campaign(self.campaign) };
                let card = Card { cpus: Vec::new(), ..card.clone() };
                let counts = port(receiver_name(number, nth), &card, Role::Receiver(filter));
                self.agents[card.agent].prepare(counts)?;
            }
        }
        self.receives[..ways.len()].fill(true);
        if self.kinds[kind].prepared {
            return Ok(());
        }
        // A queue has one AF_XDP socket at a time, and such frames go one way.
        let prepared = |other: &usize| self.kinds[*other].prepared;
        let others: Vec<usize> = (0..self.kinds.len()).filter(prepared).collect();
        let of_queues = |sender: &Sender| sender.card.backend == Backend::AfXdp && !others.is_empty();
        let mut released = false;
        for (nth, sender) in ways[0].senders.iter().enumerate().filter(|(_, sender)| of_queues(sender)) {
            let names = others.iter().map(|other| generator_name(*other, 0, nth)).collect();
            self.agents[sender.card.agent].release(names)?;
            released = true;
        }
        for (number, way) in ways.iter().enumerate() {
            for (nth, sender) in way.senders.iter().enumerate() {
                let traffic = self.kinds[kind].traffic.addressed(MacAddr::default(), sender.to);
                let traffic = if number == 0 { traffic } else { traffic.mirrored() };
                let first_stream = self.streams(kind, number, nth).next().unwrap_or_default();
                let role = Role::Generator(Box::new(Traffic { first_stream, ..traffic }));
                let sends = port(generator_name(kind, number, nth), &sender.card, role);
                self.agents[sender.card.agent].prepare(sends)?;
            }
        }
        if released {
            self.kinds.iter_mut().for_each(|kind| kind.prepared = false);
        }
        self.kinds[kind].prepared = true;
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

/// The names of directions in those of ports.
const BACK: [&str; 2] = ["", "reverse "];

fn generator_name(kind: usize, way: usize, sender: usize) -> String {
    format!("kind {kind} {}sender {sender}", BACK[way])
}

fn receiver_name(way: usize, receiver: usize) -> String {
    format!("{}receiver {receiver}", BACK[way])
}
