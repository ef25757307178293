//! One trial over agents: armed on all hosts, started at one moment, watched, drained and read.

mod drain;

use super::agent::Agent;
use crate::{Result, TrialResult};
use linerate_hosts::agent::connecting::Opening;
use linerate_hosts::agent::merge::{Series, Window};
use linerate_hosts::agent::message::{Order, Reply, Sample};
use linerate_hosts::clock::Offset;
use linerate_hosts::stamps::{Stamps, ages};
use linerate_linux::ports::monotonic_ns;
use linerate_measure::record::{Clocks, CpuShare, Stamped};
use linerate_measure::trial::Timing;
use linerate_stats::histogram::Histogram;
use linerate_wire::{Load, RateStep};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An agent with the ports of it that take part.
pub struct Member<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// Ports for each direction of the trial's frames.
    pub ways: Vec<Ports>,
}

/// Ports of an agent for one direction.
#[derive(Debug, Clone, Default)]
pub struct Ports {
    /// Ports that send.
    pub generators: Vec<String>,
    /// The streams of their frames: the low bytes.
    pub streams: Vec<u8>,
    /// Ports that count.
    pub receivers: Vec<String>,
}

impl Ports {
    /// Ports that send (0), or that count (1).
    fn of(&self, end: usize) -> &[String] {
        [&self.generators, &self.receivers][end]
    }
}

impl Member<'_> {
    fn sends(&self) -> bool {
        self.ways.iter().any(|ports| !ports.generators.is_empty())
    }
}

/// A trial to be run.
pub struct Trial<'a> {
    /// The agents that take part. Each has the same directions, and each direction the same number of generators.
    pub members: &'a [Member<'a>],
    /// Times of the trial.
    pub timing: Timing,
    /// The load of each direction; each generator of it gets an even share of its rate and frames. Its duration is that of `timing`.
    pub load: Load,
    /// Whether receivers answer each frame.
    pub answer: bool,
    /// Whether latency comes from the stamps of cards.
    pub card_stamps: bool,
    /// The connections, if the load is one of connections: generators are clients then, and receivers servers.
    pub opening: Option<Opening>,
    /// Gets a long wait for another linerate in words.
    pub tell: fn(String),
}

/// From the order to start until the start, in nanoseconds: the order must arrive, and generators need some 80 ms to prepare.
const LEAD_NS: u64 = 150_000_000;
/// Generators continue for this time after the window, so that the load covers its end.
const OVERRUN_NS: u64 = 50_000_000;
/// Longest wait for the end of a load after its time.
const GRACE: Duration = Duration::from_secs(8);
/// Interval of checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// A wait that is told.
const LONG_WAIT: Duration = Duration::from_secs(2);
/// A sample at least every second.
const LONGEST_SAMPLE_NS: u64 = 1_000_000_000;

/// A member with its running load.
struct Underway<'a> {
    member: &'a Member<'a>,
    load: u64,
    offset: Offset,
    began: BTreeMap<String, u64>,
    samples: BTreeMap<String, Vec<Sample>>,
    ended: Option<(Vec<String>, Vec<CpuShare>)>,
}

/// Who measures, on the hosts of a lab: this process of this machine.
fn turn() -> String {
    let machine = rustix::system::uname();
    let name: String = machine
        .nodename()
        .to_string_lossy()
        .chars()
        .take(60)
        .collect();
    format!("process {} of {name}", std::process::id())
}

impl Trial<'_> {
    /// Runs it. `began` gets the moment of the first frame, by CLOCK_MONOTONIC, once it is certain. Ends early when `interrupted`
    /// becomes true. Whatever happens, loads that can be reached are stopped; the others end by themselves.
    ///
    /// # Errors
    /// An agent is lost, or refuses.
    pub fn run(&self, interrupted: &AtomicBool, began: &dyn Fn(u64)) -> Result<TrialResult> {
        self.run_load(interrupted, began).inspect_err(|_| {
            let there = self.members.iter().filter(|m| m.agent.lost().is_none());
            there.for_each(|member| drop(member.agent.stop()));
        })
    }

    fn run_load(&self, interrupted: &AtomicBool, began: &dyn Fn(u64)) -> Result<TrialResult> {
        let offsets = self.compare_clocks()?;
        let mut apart = match self.opening {
            // They are timed by one clock.
            Some(_) => Vec::new(),
            None => self.apart(&offsets),
        };
        let within = apart.iter().filter_map(|pair| Some(pair.offset?.within_ns));
        let shift_ns = within.max().unwrap_or(0);
        let under = |(member, offset)| Underway {
            member,
            load: 0,
            offset,
            began: BTreeMap::new(),
            samples: BTreeMap::new(),
            ended: None,
        };
        let mut underway: Vec<Underway<'_>> = self.members.iter().zip(offsets).map(under).collect();
        let ahead_ns = |pair: &Pair| {
            let ns = pair.offset.unwrap_or_default().ns + i128::from(shift_ns);
            let ns = ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            let streams = &self.members[pair.generator].ways[pair.way].streams;
            streams.iter().map(move |stream| (*stream, ns))
        };
        let orders = self.members.iter().enumerate().map(|(number, member)| {
            let from_others = apart.iter().filter(|pair| pair.receiver == number);
            let order = self.order(member, from_others.flat_map(ahead_ns).collect());
            let of_way = |ports: &Ports| [ports.receivers.as_slice(), &ports.generators].concat();
            let ports = member.ways.iter().flat_map(of_way).collect();
            (member.agent, ports, order)
        });
        let Some(waited_ns) = self.arm(orders.collect(), interrupted)? else {
            return Ok(TrialResult::of_ways(self.ways()));
        };
        // Receivers first: they count before the first frame can come. One that also sends gets its order before that, too: each
        // takes a round trip at most, which is twice the error of the clocks.
        let round_trips = underway.iter().map(|under| 2 * under.offset.within_ns);
        let at_ns = monotonic_ns() + LEAD_NS + round_trips.sum::<u64>();
        for sends in [false, true] {
            let due = |under: &&mut Underway<'_>| under.member.sends() == sends;
            for under in underway.iter_mut().filter(due) {
                under.load = under.member.agent.go(under.offset.there(at_ns))?;
            }
        }
        began(at_ns);
        self.watch(&mut underway, interrupted)?;
        let mut result = TrialResult {
            waited_ns,
            ..TrialResult::default()
        };
        (result.sent, result.received, result.ends) = self.drain(&underway)?;
        for under in &mut underway {
            // All reports of the receivers' agents are here: they have been stopped.
            while under.ended.is_none() && under.hear(Instant::now() + GRACE)? {}
        }
        let mut error_ns = 0;
        if shift_ns > 0 {
            let later = self.apart(&self.compare_clocks()?);
            for (before, after) in apart.iter_mut().zip(&later) {
                if let Some(before) = &mut before.offset {
                    before.within_ns = before.error_until(&after.offset.unwrap_or_default());
                    error_ns = error_ns.max(before.within_ns);
                }
            }
        }
        result.clocks = Some(Clocks { shift_ns, error_ns });
        if self.card_stamps {
            self.compare_stamps(&mut result, &apart);
            self.check_all()?;
        }
        self.tell(&mut result, underway, at_ns);
        Ok(result)
    }

    /// Arms all members, or none: where it is another linerate's turn, this host is asked first the next time, so that no host waits armed.
    /// Returns the nanoseconds of waiting; `None` if `interrupted`.
    fn arm(
        &self,
        mut hosts: Vec<(&Agent, Vec<String>, Order)>,
        interrupted: &AtomicBool,
    ) -> Result<Option<u64>> {
        let (began, mut tell, mut waited_ns) = (Instant::now(), Some(self.tell), 0);
        loop {
            let mut busy = None;
            for (nth, (agent, ports, order)) in hosts.iter().enumerate() {
                match agent.arm(ports.clone(), order.clone())? {
                    Ok(ns) => waited_ns += ns,
                    Err(by) => {
                        busy = Some((nth, by));
                        break;
                    }
                }
            }
            let Some((nth, by)) = busy else {
                return Ok(Some(waited_ns));
            };
            waited_ns = began.elapsed().as_nanos() as u64;
            hosts[..nth]
                .iter()
                .try_for_each(|(agent, ..)| agent.stop())?;
            hosts.rotate_left(nth);
            if let Some(tell) = tell.take_if(|_| began.elapsed() > LONG_WAIT) {
                tell(format!("{}: waiting for {by}", hosts[0].0.host()));
            }
            if interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
    }

    fn compare_clocks(&self) -> Result<Vec<Offset>> {
        self.members
            .iter()
            .map(|member| member.agent.compare_clocks())
            .collect()
    }

    /// Replaces the latencies by the generator's program with those of frames that the cards, or their drivers, stamped at both ends.
    fn compare_stamps(&self, result: &mut TrialResult, apart: &[Pair]) {
        let (mut why, mut by_cards) = (Vec::new(), [true; 2]);
        let mut read = |member: &Member<'_>, way: usize, end: usize| {
            let ports = member.ways[way].of(end);
            let read = match ports {
                [] => Ok(BTreeMap::new()),
                ports => member.agent.stamps(ports),
            };
            let read = read
                .map_err(|error| why.push(error.to_string()))
                .unwrap_or_default();
            by_cards[end] &= read.values().all(|stamps| stamps.card.is_some());
            why.extend(read.values().filter_map(|stamps| stamps.why.clone()));
            read.into_values().collect::<Vec<Stamps>>()
        };
        let mut stamps = BTreeMap::new();
        for (number, member) in self.members.iter().enumerate() {
            for (way, end) in (0..self.ways()).flat_map(|way| [(way, 0), (way, 1)]) {
                stamps.insert((number, way, end), read(member, way, end));
            }
        }
        let (mut found, mut error_ns) = (vec![Vec::new(); result.received.len()], 0);
        for pair in apart {
            let sent = &stamps[&(pair.generator, pair.way, 0)];
            let received = &stamps[&(pair.receiver, pair.way, 1)];
            for (sent, received) in sent
                .iter()
                .flat_map(|s| received.iter().map(move |r| (s, r)))
            {
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
            why.push(
                "no frame was stamped at both ends: latency is by the generator's program".into(),
            );
        } else {
            for (received, found) in result.received.iter_mut().zip(&found) {
                received.latency = Histogram::default();
                for age in found {
                    let shifted = (age + i128::from(error_ns)).max(0);
                    received
                        .latency
                        .record(u64::try_from(shifted).unwrap_or(u64::MAX));
                }
            }
            result.clocks = Some(Clocks {
                shift_ns: error_ns,
                error_ns,
            });
        }
        why.sort();
        why.dedup();
        result.stamped = Some(Stamped {
            frames,
            by_cards,
            why,
        });
    }

    /// Number of directions of the frames.
    fn ways(&self) -> usize {
        self.members.first().map_or(0, |member| member.ways.len())
    }

    /// The clocks of sending members as seen from the members that receive their frames; `None` if one machine has both.
    fn apart(&self, offsets: &[Offset]) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for way in 0..self.ways() {
            let having = |end: usize| {
                (0..offsets.len()).filter(move |n| !self.members[*n].ways[way].of(end).is_empty())
            };
            for (generator, receiver) in having(0).flat_map(|g| having(1).map(move |r| (g, r))) {
                let offset = offsets[generator].from(&offsets[receiver]);
                // Machines that were started from one image may have the same name.
                let [one, other] = [generator, receiver].map(|n| self.members[n].agent);
                let named_alike = one.shares_clock(other);
                let same = generator == receiver || (named_alike && offset.may_be_none());
                pairs.push(Pair {
                    way,
                    generator,
                    receiver,
                    offset: (!same).then_some(offset),
                });
            }
        }
        pairs
    }

    fn order(&self, member: &Member<'_>, ahead_ns: Vec<(u8, i64)>) -> Order {
        let of_way = |way: usize| {
            let of = |m: &Member<'_>| m.ways[way].generators.len() as u64;
            self.members.iter().map(of).sum()
        };
        let generators: u64 = (0..self.ways()).map(of_way).max().unwrap_or(0).max(1);
        // An agent gives every port of a load the same: shares are of whole generators.
        let share = |n: u64| n.div_ceil(generators);
        let each = |rate: f64| rate / generators as f64;
        // Receivers report for as long as the generators may take; they are stopped when all is there.
        let spare = if member.sends() {
            OVERRUN_NS
        } else {
            10 * LONGEST_SAMPLE_NS + self.timing.drain_ns
        };
        let load = Load {
            duration_ns: self.timing.load_ns() + spare,
            frames: self.load.frames.map(share),
            rate: self.load.rate.map(each),
            step: self.load.step.map(|step| RateStep {
                rate: each(step.rate),
                ..step
            }),
            ..self.load
        };
        let sample_ns = self.timing.interval_ns.clamp(1_000_000, LONGEST_SAMPLE_NS);
        Order {
            turn: turn(),
            load,
            sample_ns,
            answer: self.answer,
            ahead_ns,
            opening: self.opening.map(Box::new),
        }
    }

    /// Listens until all generators have ended.
    fn watch(&self, underway: &mut [Underway<'_>], interrupted: &AtomicBool) -> Result<()> {
        let until = Instant::now() + Duration::from_nanos(self.timing.load_ns() + LEAD_NS) + GRACE;
        let mut stopped = false;
        for under in underway.iter_mut().filter(|under| under.member.sends()) {
            while under.ended.is_none() {
                if interrupted.load(Ordering::Relaxed) && !stopped {
                    stopped = true;
                    self.stop(|member| member.sends())?;
                }
                self.check_all()?;
                if !under.hear(Instant::now() + LOOK)? && Instant::now() > until {
                    let said = "its load does not end, although its time is up";
                    return Err(under.member.agent.failed(said));
                }
            }
        }
        Ok(())
    }

    fn stop(&self, which: impl Fn(&&Member<'_>) -> bool) -> Result<()> {
        let mut wanted = self.members.iter().filter(which);
        wanted.try_for_each(|member| member.agent.stop())
    }

    /// A lost agent ends the trial, even while another one is read.
    fn check_all(&self) -> Result<()> {
        self.members
            .iter()
            .try_for_each(|member| match member.agent.lost() {
                Some(lost) => Err(member.agent.lost_while("a load was under way", &lost)),
                None => Ok(()),
            })
    }

    fn tell(&self, result: &mut TrialResult, underway: Vec<Underway<'_>>, at_ns: u64) {
        let mut counts = vec![[Vec::new(), Vec::new()]; self.ways()];
        let mut first = None;
        for under in underway {
            let (host, offset) = (under.member.agent.host(), under.offset);
            for (ports, counts) in under.member.ways.iter().zip(&mut counts) {
                let here = |ns: u64| offset.here(ns.into());
                let of = |port: &String| under.samples.get(port).map_or(&[][..], Vec::as_slice);
                let frames = |port| Series::of(of(port), here);
                let closed = |port| Series::new(of(port).iter().map(|s| (here(s.at_ns), s.closed)));
                let [sent, received] = counts;
                sent.extend(ports.of(0).iter().map(frames));
                match self.opening {
                    Some(_) => {
                        received.extend(ports.of(0).iter().chain(ports.of(1)).map(closed));
                    }
                    None => received.extend(ports.of(1).iter().map(frames)),
                }
                for port in &ports.generators {
                    if let Some(began) = under.began.get(port) {
                        let began = offset.here((*began).into());
                        first = Some(first.map_or(began, |first: u64| first.min(began)));
                        let late_ns = began as i64 - at_ns as i64;
                        result.began(format!("{host} {port}"), late_ns, offset.within_ns);
                    }
                }
            }
            result.within_ns = result.within_ns.max(offset.within_ns);
            if let Some((faults, cpus)) = under.ended {
                let told = faults.iter().map(|fault| format!("{host}: {fault}"));
                result.outcome.faults.extend(told);
                result.cpus.insert(host.into(), cpus);
            }
        }
        let began = first.unwrap_or(at_ns);
        let window = Window::new(began, &self.timing);
        if let [forward, reverse] = &counts[..] {
            result.outcome.each =
                [forward, reverse].map(|[sent, received]| window.samples(sent, received));
        }
        let all = [0, 1].map(|end| {
            counts
                .iter()
                .flat_map(|way| way[end].clone())
                .collect::<Vec<_>>()
        });
        result.count(&window, &all[0], &all[1]);
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

impl Underway<'_> {
    /// Takes a message of the load; `false` if there was none until then.
    fn hear(&mut self, until: Instant) -> Result<bool> {
        let Some(reply) = self.member.agent.hear(self.load, until)? else {
            return Ok(false);
        };
        match reply {
            Reply::Began { port, at_ns } => {
                self.began.insert(port, at_ns);
            }
            Reply::Sample(sample) => self
                .samples
                .entry(sample.port.clone())
                .or_default()
                .push(sample),
            Reply::Ended { faults, cpus } => self.ended = Some((faults, cpus)),
            _ => {}
        }
        Ok(true)
    }
}
