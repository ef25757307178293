//! Slow tasks: ports and loads. One after the other, on a thread of its own.

use super::ports::{self, Made, Options};
use crate::error::Error;
use crate::host::cpu::CpuTimes;
use crate::ports::answer::Answerer;
use crate::ports::monotonic_ns;
use linerate_hosts::agent::message::{Fault, Order, Reply, Request, Sample};
use linerate_measure::counters::PortCounters;
use linerate_wire::Load;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

/// Input of the deciding thread.
pub(super) enum Input {
    Line(u64, Vec<u8>),
    Closed,
    Flood,
    Said(Reply),
    Done(Result<Reply, Fault>),
}

/// Does tasks.
pub(super) struct Worker {
    options: Options,
    to: SyncSender<Input>,
    cancel: Arc<AtomicBool>,
    ports: BTreeMap<String, Made>,
    armed: Option<(Vec<String>, Order)>,
}

/// Generators are started this much before their moment: setting up a call of BPF_PROG_RUN takes 13 to 33 ms.
const AHEAD_NS: u64 = 80_000_000;
/// How long the first frame may take from then on.
const START_WITHIN_NS: u64 = 5_000_000_000;
/// A wait is not longer than this, so that a stop is noticed.
const LOOK: Duration = Duration::from_millis(2);

impl Worker {
    pub fn new(options: Options, to: SyncSender<Input>, cancel: Arc<AtomicBool>) -> Worker {
        Worker { options, to, cancel, ports: BTreeMap::new(), armed: None }
    }

    pub fn run(&mut self, todo: &Receiver<Request>) {
        for request in todo {
            let done = catch_unwind(AssertUnwindSafe(|| self.carry_out(request)));
            let done = done.unwrap_or_else(|_| {
                // Whatever their state: the ports are dropped, which ends their loads.
                (self.ports, self.armed) = (BTreeMap::new(), None);
                Err(system(
                    "carrying out a request",
                    "linerate is at fault: report it with what the agent wrote",
                ))
            });
            if self.to.send(Input::Done(done)).is_err() {
                return;
            }
        }
    }

    fn carry_out(&mut self, request: Request) -> Result<Reply, Fault> {
        match request {
            Request::Prepare(wanted) => {
                // An XDP program must be removed before another can be attached to the same interface.
                self.ports.remove(&wanted.name);
                let made = ports::make(&wanted, &self.options)?;
                self.ports.insert(wanted.name.clone(), made);
            }
            Request::Release { ports } => {
                self.silence();
                self.ports.retain(|name, _| !ports.is_empty() && !ports.contains(name));
            }
            Request::Arm { ports, order } => self.arm(ports, order)?,
            Request::Go { at_ns } => return self.fly(at_ns),
            Request::Counters { ports } => {
                let named = |name: &String| {
                    let Made { port, answerer, .. } = self.ports.get(name)?;
                    let answers = answerer.as_ref().map_or(0, Answerer::frames);
                    Some((name.clone(), PortCounters { answers, ..port.counters() }))
                };
                return Ok(Reply::Counters { ports: ports.iter().filter_map(named).collect() });
            }
            _ => self.ports.clear(),
        }
        Ok(Reply::Done {})
    }

    fn arm(&mut self, names: Vec<String>, order: Order) -> Result<(), Fault> {
        self.armed = None;
        self.silence();
        for (_, made) in self.ports.iter_mut().filter(|(name, _)| names.contains(name)) {
            made.answer(order.answer).map_err(|e| system("preparing answers", e))?;
            if made.sends {
                // An earlier load's threads are waited for now, not at the start.
                made.port.stop().map_err(|e| system("ending the load before", e))?;
            }
        }
        self.armed = Some((names, order));
        Ok(())
    }

    /// Nothing is answered any more.
    fn silence(&mut self) {
        self.ports.values_mut().for_each(|made| made.answerer = None);
    }

    /// Runs the load that is armed. Its end is in the reply, also where a port failed; generators are stopped in any case.
    fn fly(&mut self, at_ns: u64) -> Result<Reply, Fault> {
        let (names, order) =
            self.armed.take().ok_or_else(|| Fault::order("starting the load", "nothing is armed"))?;
        let flown = self.ports.iter_mut().filter(|(name, _)| names.contains(name)).collect();
        let mut flight =
            Flight { at_ns: at_ns.max(monotonic_ns()), order, flown, to: &self.to, cancel: &self.cancel };
        let cpu_times = || CpuTimes::read(Path::new("/")).ok();
        let mut before = None;
        let flown = flight.start().and_then(|()| {
            before = cpu_times();
            flight.watch()
        });
        let after = cpu_times();
        let mut faults: Vec<String> = flown.err().map(|error| error.to_string()).into_iter().collect();
        for (name, made) in &mut flight.flown {
            if made.sends
                && let Err(error) = made.port.stop()
            {
                faults.push(format!("{name}: {error}"));
            }
        }
        flight.report();
        let cpus = after.zip(before).map(|(after, before)| after.since(&before)).unwrap_or_default();
        Ok(Reply::Ended { faults, cpus })
    }
}

fn system(what: &str, why: impl ToString) -> Fault {
    Fault::new(what, why, "run the agent as root, and look at the host's kernel log")
}

/// A load under way.
struct Flight<'a> {
    at_ns: u64,
    order: Order,
    flown: Vec<(&'a String, &'a mut Made)>,
    to: &'a SyncSender<Input>,
    cancel: &'a AtomicBool,
}

impl Flight<'_> {
    /// Receivers count from now on; generators are ready to send at their moment.
    fn start(&mut self) -> Result<(), Error> {
        let load = Load { not_before_ns: self.at_ns, ..self.order.load };
        for (name, made) in self.flown.iter_mut().filter(|(_, made)| !made.sends) {
            made.port.start(&load)?;
            say(self.to, Reply::Began { port: name.to_string(), at_ns: monotonic_ns() });
        }
        self.sleep_until(self.at_ns.saturating_sub(AHEAD_NS), || false);
        if self.cancelled() {
            return Ok(());
        }
        let mut generators = self.flown.iter_mut().filter(|(_, made)| made.sends);
        generators.try_for_each(|(_, made)| made.port.start(&load))
    }

    /// Reports until the load is over.
    fn watch(&mut self) -> Result<(), Error> {
        let mut begun = vec![false; self.flown.len()];
        let mut next_ns = self.at_ns;
        loop {
            self.announce(&mut begun)?;
            if self.cancelled() {
                return Ok(());
            }
            if self.is_over() {
                self.announce(&mut begun)?;
                return Ok(());
            }
            let now = monotonic_ns();
            if now >= next_ns {
                self.report();
                // A moment that was missed is not made up for: samples stay at multiples of their distance.
                next_ns += self.order.sample_ns * ((now - next_ns) / self.order.sample_ns + 1);
            }
            self.sleep_until(next_ns, || self.is_over());
        }
    }

    /// Reports generators whose first frame has left.
    fn announce(&self, begun: &mut [bool]) -> Result<(), Error> {
        let waiting = self.flown.iter().zip(begun).filter(|((_, made), begun)| made.sends && !**begun);
        for ((name, made), begun) in waiting {
            if let Some(at_ns) = made.port.began_ns() {
                *begun = true;
                say(self.to, Reply::Began { port: name.to_string(), at_ns });
            } else if monotonic_ns() > self.at_ns + START_WITHIN_NS {
                return Err(Error::Refused(format!(
                    "no frame left port {name} within {} s: is the interface up?",
                    START_WITHIN_NS / 1_000_000_000
                )));
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let mut generators = self.flown.iter().filter(|(_, made)| made.sends).peekable();
        match generators.peek() {
            Some(_) => generators.all(|(_, made)| made.port.finished()),
            None => monotonic_ns() >= self.at_ns.saturating_add(self.order.load.duration_ns),
        }
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    fn report(&self) {
        for (name, made) in &self.flown {
            let (frames, at_ns) = (made.port.frames(), monotonic_ns());
            say(self.to, Reply::Sample(Sample { port: name.to_string(), at_ns, frames }));
        }
    }

    fn sleep_until(&self, at_ns: u64, over: impl Fn() -> bool) {
        while !self.cancelled() && !over() {
            match at_ns.saturating_sub(monotonic_ns()) {
                0 => return,
                ns => std::thread::sleep(Duration::from_nanos(ns).min(LOOK)),
            }
        }
    }
}

fn say(to: &SyncSender<Input>, reply: Reply) {
    // Without a deciding thread, the process is about to end.
    let _ = to.send(Input::Said(reply));
}
