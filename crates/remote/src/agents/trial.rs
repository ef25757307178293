//! One trial over agents: armed everywhere, let go at one moment, watched, drained and read.

use super::Agent;
use crate::Result;
use linerate_hosts::agent::merge::{Series, merge};
use linerate_hosts::agent::message::{Order, Reply, Sample};
use linerate_hosts::clock::Offset;
use linerate_linux::ports::monotonic_ns;
use linerate_linux::trial::Outcome;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::CpuShare;
use linerate_measure::trial::Timing;
use linerate_wire::Load;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An agent with the ports of it that take part.
pub struct Member<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// Its ports that send.
    pub generators: Vec<String>,
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
    /// Runs it. Ends early when `interrupted` becomes true. Whatever happens, loads that can be reached are stopped; the others
    /// end by themselves.
    ///
    /// # Errors
    /// An agent is lost, or refuses.
    pub fn run(&self, interrupted: &AtomicBool) -> Result<Flown> {
        let result = self.fly(interrupted);
        if result.is_err() {
            for member in self.members.iter().filter(|m| m.agent.lost().is_none()) {
                let _ = member.agent.stop();
            }
        }
        result
    }

    fn fly(&self, interrupted: &AtomicBool) -> Result<Flown> {
        let mut underway = Vec::new();
        for member in self.members {
            underway.push(Underway { offset: member.agent.compare_clocks()?, ..Underway::default() });
            let ports = [member.receivers.as_slice(), &member.generators].concat();
            member.agent.arm(ports, self.order(member))?;
        }
        let at_ns = monotonic_ns() + LEAD_NS;
        // Receivers first: they count before the first frame can come.
        for sends in [false, true] {
            let both = self.members.iter().zip(&mut underway);
            for (member, under) in both.filter(|(member, _)| member.generators.is_empty() != sends) {
                under.load = member.agent.go(under.offset.there(at_ns))?;
            }
        }
        self.watch(&mut underway, interrupted)?;
        let mut flown = Flown::default();
        (flown.generator, flown.receiver) = self.drain()?;
        for (member, under) in self.members.iter().zip(&mut underway) {
            // All reports of the receivers' agents are here: they have been stopped.
            while under.ended.is_none() && under.hear(member.agent, Instant::now() + GRACE)? {}
        }
        self.tell(&mut flown, underway, at_ns);
        Ok(flown)
    }

    fn order(&self, member: &Member<'_>) -> Order {
        let generators: u64 = self.members.iter().map(|m| m.generators.len() as u64).sum();
        // An agent gives every port of a load the same: shares are of whole generators.
        let share = |n: u64| n.div_ceil(generators.max(1));
        // Receivers report for as long as the generators may take; they are stopped when all is there.
        let spare = if member.generators.is_empty() {
            10 * LONGEST_SAMPLE_NS + self.timing.drain_ns
        } else {
            OVERRUN_NS
        };
        let load = Load {
            duration_ns: self.timing.load_ns() + spare,
            frames: self.load.frames.map(share),
            rate: self.load.rate.map(|rate| rate / generators.max(1) as f64),
            ..self.load
        };
        let sample_ns = self.timing.interval_ns.clamp(1_000_000, LONGEST_SAMPLE_NS);
        Order { load, sample_ns, answer: self.answer }
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
        let (began, mut quiet, mut last) = (Instant::now(), Instant::now(), 0);
        let sent = self.read(|m| &m.generators)?;
        loop {
            let received = self.read(|m| &m.receivers)?;
            if received.frames != last {
                (last, quiet) = (received.frames, Instant::now());
            }
            let complete = received.unique() >= sent.frames;
            let still = quiet.elapsed() >= Duration::from_nanos(self.timing.quiet_ns);
            if complete || still || began.elapsed() >= Duration::from_nanos(self.timing.drain_ns) {
                let answers = if self.answer { self.answers(received.unique())? } else { 0 };
                return Ok((PortCounters { answers, ..sent }, received));
            }
            std::thread::sleep(Duration::from_nanos(self.timing.quiet_ns / 10).min(LOOK));
        }
    }

    /// The answers that have come back to the generators, once all have or no more do.
    fn answers(&self, all: u64) -> Result<u64> {
        let (mut quiet, mut last) = (Instant::now(), 0);
        loop {
            let now = self.read(|m| &m.generators)?.answers;
            if now != last {
                (last, quiet) = (now, Instant::now());
            }
            if now >= all || quiet.elapsed() >= ANSWER_WITHIN {
                return Ok(now);
            }
            std::thread::sleep(LOOK.min(ANSWER_WITHIN / 10));
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
