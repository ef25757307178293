//! The controller's side: an agent on another host (or in another namespace), reached over the two pipes of a child process.
//!
//! Two threads keep a connection: one reads the agent's messages, one sends heartbeats and watches for silence. So calls have
//! time limits that hold, and callers learn at once that the agent has gone.

pub mod lab;
mod link;
mod shared;
mod trial;

pub use link::Link;
pub use trial::{Flown, Member, Trial};

use crate::{Fault, RemoteError, Result};
use linerate_hosts::agent::SPOKEN;
use linerate_hosts::agent::client::{Lost, Session};
use linerate_hosts::agent::message::{Reply, Request};
use linerate_hosts::agent::spec::{Order, Port};
use linerate_hosts::clock::{Offset, Probe};
use linerate_linux::ports::monotonic_ns;
use linerate_measure::counters::PortCounters;
use shared::{Shared, State};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An agent that has been greeted. Dropped, it ends its load and goes.
pub struct Agent {
    host: String,
    cpus: Vec<u32>,
    shared: Arc<Shared>,
    link: link::Rest,
    /// Its clock as last compared.
    offset: Mutex<Option<Offset>>,
}

/// Questions for one comparison of clocks.
const PROBES: usize = 16;
/// How long quick calls may take.
const QUICK: Duration = Duration::from_secs(5);
/// How long making a port may take: millions of flows are millions of entries.
const PREPARE_WITHIN: Duration = Duration::from_secs(60);
/// How long an agent may take to give its ports up.
const PARTING: Duration = Duration::from_secs(60);
/// How long the way to an agent that is not heard of any more may take to close: ssh itself may be frozen, or wait for its host.
const PARTING_LOST: Duration = Duration::from_secs(1);

impl Agent {
    /// Greets the agent at the other end of a link. `host`: its name in messages; `linerate`: our version.
    ///
    /// # Errors
    /// There is no agent, it speaks another version, or it takes longer than `within`.
    pub fn greet(host: &str, link: Link, linerate: &str, within: Duration) -> Result<Agent> {
        Agent::greet_as(SPOKEN, host, link, linerate, within)
    }

    /// The same, speaking another version of the protocol.
    ///
    /// # Errors
    /// As [`Agent::greet`].
    pub fn greet_as(
        protocol: u32,
        host: &str,
        link: Link,
        linerate: &str,
        within: Duration,
    ) -> Result<Agent> {
        let Link { control, output, rest } = link;
        let session = Session::new(monotonic_ns());
        let state = State { session, answers: BTreeMap::new(), said: VecDeque::new(), lost: None };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), control });
        let (reads, beats) = (Arc::clone(&shared), Arc::clone(&shared));
        std::thread::spawn(move || reads.read(output));
        let offset = Mutex::new(None);
        let mut agent = Agent { host: host.into(), cpus: Vec::new(), shared, link: rest, offset };
        let (id, line) = agent.shared.lock().session.greet(protocol, linerate, monotonic_ns());
        agent.shared.write(&line);
        std::thread::spawn(move || beats.beat());
        match agent.answer(id, "greeting it", within)? {
            (_, Reply::Welcome { cpus }) => agent.cpus = cpus,
            (_, other) => return Err(agent.nonsense("greeting it", &other)),
        }
        Ok(agent)
    }

    /// The host's name in messages.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The CPUs of the host that ports may be worked from.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// The reason why the agent was lost; `None` while it is there.
    pub fn lost(&self) -> Option<Lost> {
        self.shared.lock().lost.clone()
    }

    /// Makes a port.
    ///
    /// # Errors
    /// As for every call: the agent is lost, refuses, or is late.
    pub fn prepare(&self, port: Port) -> Result<()> {
        let doing = format!("preparing port {}", port.name);
        self.order(&Request::Prepare(Box::new(port)), &doing, PREPARE_WITHIN).map(drop)
    }

    /// Gives ports up; all of them where none are named.
    ///
    /// # Errors
    /// As for every call.
    pub fn release(&self, ports: Vec<String>) -> Result<()> {
        self.order(&Request::Release { ports }, "giving ports up", PREPARE_WITHIN).map(drop)
    }

    /// Makes ports ready for a load.
    ///
    /// # Errors
    /// As for every call.
    pub fn arm(&self, ports: Vec<String>, order: Order) -> Result<()> {
        self.order(&Request::Arm { ports, order }, "arming the load", QUICK).map(drop)
    }

    /// Starts the armed load at a moment of our clock, as far as the clocks have been compared. Returns the number that the
    /// load's messages have.
    ///
    /// # Errors
    /// As for every call; the clocks were not compared yet.
    pub fn go(&self, at_ns: u64) -> Result<u64> {
        let offset = *self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        let at_ns = offset.ok_or_else(|| self.no_clock())?.there(at_ns);
        self.order(&Request::Go { at_ns }, "starting the load", QUICK)
    }

    /// Ends the load; returns when nothing is sent any more.
    ///
    /// # Errors
    /// As for every call.
    pub fn stop(&self) -> Result<()> {
        self.order(&Request::Stop {}, "stopping the load", QUICK).map(drop)
    }

    /// Counters of ports since their start.
    ///
    /// # Errors
    /// As for every call.
    pub fn counters(&self, ports: &[String]) -> Result<BTreeMap<String, PortCounters>> {
        let doing = "reading its ports' counters";
        match self.call(&Request::Counters { ports: ports.to_vec() }, doing, QUICK)? {
            (_, Reply::Counters { ports }) => Ok(ports),
            (_, other) => Err(self.nonsense(doing, &other)),
        }
    }

    /// Compares the clocks, and remembers how they stand.
    ///
    /// # Errors
    /// As for every call; no answer makes sense.
    pub fn compare_clocks(&self) -> Result<Offset> {
        let doing = "comparing clocks";
        let mut probes = Vec::with_capacity(PROBES);
        for _ in 0..PROBES {
            let asked = monotonic_ns();
            match self.call(&Request::Clock {}, doing, QUICK)? {
                (received, Reply::Time { heard_ns, answered_ns }) => {
                    let there = [heard_ns.into(), answered_ns.into()];
                    probes.push(Probe { asked, there, error_ns: 0, received });
                }
                (_, other) => return Err(self.nonsense(doing, &other)),
            }
        }
        let offset = Offset::of(&probes).ok_or_else(|| self.no_clock())?;
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner) = Some(offset);
        Ok(offset)
    }

    /// Waits for a message of a load, until a moment; `None` when that has come.
    ///
    /// # Errors
    /// The agent is lost.
    pub fn hear(&self, load: u64, until: Instant) -> Result<Option<Reply>> {
        self.wait_for("a load was under way", until, |state| {
            let at = state.said.iter().position(|(id, _)| *id == load)?;
            state.said.remove(at).map(|(_, reply)| reply)
        })
    }

    /// Says goodbye: the agent ends its load, gives its ports up, and goes.
    ///
    /// # Errors
    /// As for every call.
    pub fn goodbye(self) -> Result<()> {
        self.call(&Request::Goodbye {}, "saying goodbye", PARTING).map(drop)
    }

    /// A request that has no answer but that it is done; gives its number.
    fn order(&self, request: &Request, doing: &str, within: Duration) -> Result<u64> {
        let (id, line) = self.shared.lock().session.ask(request);
        self.shared.write(&line);
        match self.answer(id, doing, within)? {
            (_, Reply::Done {}) => Ok(id),
            (_, other) => Err(self.nonsense(doing, &other)),
        }
    }

    fn call(&self, request: &Request, doing: &str, within: Duration) -> Result<(u64, Reply)> {
        let (id, line) = self.shared.lock().session.ask(request);
        self.shared.write(&line);
        self.answer(id, doing, within)
    }

    /// An answer, with the time when it was here.
    fn answer(&self, id: u64, doing: &str, within: Duration) -> Result<(u64, Reply)> {
        match self.wait_for(doing, Instant::now() + within, |state| state.answers.remove(&id))? {
            Some((_, Reply::Error(fault))) => Err(self.failed(fault.to_string())),
            Some(answer) => Ok(answer),
            None => {
                self.shared.lock().session.forget(id);
                Err(self.failed(format!("no answer within {} s while {doing}", within.as_secs_f64())))
            }
        }
    }

    /// Waits until there is something to take, or the time is up.
    fn wait_for<T>(
        &self,
        doing: &str,
        until: Instant,
        take: impl Fn(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut state = self.shared.lock();
        loop {
            if let Some(taken) = take(&mut state) {
                return Ok(Some(taken));
            }
            if let Some(lost) = state.lost.clone() {
                drop(state);
                return Err(self.lost_while(doing, &lost));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            state = self.shared.wait(state, left);
        }
    }

    /// An error of this agent, in a whole sentence.
    fn failed(&self, said: impl Into<String>) -> RemoteError {
        RemoteError::new(&self.host, Fault::Tester, said)
    }

    fn no_clock(&self) -> RemoteError {
        self.failed("its clock cannot be compared with ours: no answer makes sense")
    }

    fn lost_while(&self, doing: &str, why: &Lost) -> RemoteError {
        let said = self.link.complaints();
        let said = if said.is_empty() { said } else { format!("; it said: {said}") };
        self.failed(format!("lost the agent while {doing}: {why}{said}"))
    }

    fn nonsense(&self, doing: &str, reply: &Reply) -> RemoteError {
        let shown: String = format!("{reply:?}").chars().take(200).collect();
        self.lost_while(doing, &format!("it sent a malformed message: {shown}"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The end of its input is the agent's word to go.
        self.shared.control.close();
        self.link.end(if self.lost().is_some() { PARTING_LOST } else { PARTING });
    }
}
