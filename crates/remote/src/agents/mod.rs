//! The controller's side: an agent on another host (or in another namespace), reached over the two pipes of a child process.
//!
//! Three threads keep a connection: one reads what the agent says, one writes, one sends heartbeats and watches for silence. So calls
//! have time limits that hold, and whoever waits learns at once that the agent has gone.

mod error;
pub mod lab;
mod link;
mod shared;
mod trial;

pub use error::AgentError;
pub use link::Link;
pub use trial::{Flown, Member, Trial};

use linerate_hosts::agent::client::{Lost, Session};
use linerate_hosts::agent::clock::{Offset, Probe};
use linerate_hosts::agent::message::{Facts, Prepared, Reply, Request};
use linerate_hosts::agent::spec::{Order, Port};
use linerate_hosts::agent::{SPOKEN, Versions};
use linerate_linux::ports::monotonic_ns;
use linerate_measure::counters::PortCounters;
use shared::{Shared, State, UNWRITTEN, write_lines};
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What an agent said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The version of the protocol that is spoken.
    pub protocol: u32,
    /// Its linerate.
    pub linerate: String,
    /// What it can do.
    pub features: Vec<String>,
}

/// An agent that has been greeted. Dropped, it ends its load and goes.
pub struct Agent {
    host: String,
    welcome: Welcome,
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
    /// Greets the agent at the other end of a link. `host`: what messages call it; `linerate`: our version.
    ///
    /// # Errors
    /// There is none, it speaks another version, or it takes longer than `within`.
    pub fn greet(host: &str, link: Link, linerate: &str, within: Duration) -> Result<Agent, AgentError> {
        Agent::greet_as(SPOKEN, host, link, linerate, within)
    }

    /// The same, speaking other versions of the protocol.
    ///
    /// # Errors
    /// As [`Agent::greet`].
    pub fn greet_as(
        protocol: Versions,
        host: &str,
        link: Link,
        linerate: &str,
        within: Duration,
    ) -> Result<Agent, AgentError> {
        let (input, output, rest) = link.split();
        let (lines, waiting) = mpsc::sync_channel(UNWRITTEN);
        let session = Session::new(monotonic_ns());
        let state = State { session, answers: BTreeMap::new(), said: VecDeque::new(), lost: None };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            lines: Mutex::new(Some(lines)),
        });
        let (reads, beats) = (Arc::clone(&shared), Arc::clone(&shared));
        std::thread::spawn(move || write_lines(input, &waiting));
        std::thread::spawn(move || reads.read(output));
        let welcome = Welcome { protocol: 0, linerate: String::new(), features: vec![] };
        let mut agent = Agent { host: host.into(), welcome, shared, link: rest, offset: Mutex::new(None) };
        let (id, line) = agent.shared.lock().session.greet_as(protocol, linerate, monotonic_ns());
        agent.shared.write(line);
        std::thread::spawn(move || beats.beat());
        match agent.answer(id, "greeting it", within)? {
            Reply::Welcome { protocol, linerate, features } => {
                agent.welcome = Welcome { protocol, linerate, features };
                Ok(agent)
            }
            other => Err(agent.nonsense("greeting it", &other)),
        }
    }

    /// What messages call the host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What the agent said of itself.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Why there is no agent any more, where there is none.
    pub fn lost(&self) -> Option<Lost> {
        self.shared.lock().lost.clone()
    }

    /// Everything about the host.
    ///
    /// # Errors
    /// As for every call: the agent is lost, refuses, or is late.
    pub fn facts(&self) -> Result<Facts, AgentError> {
        let doing = "asking for its facts";
        match self.call(Request::Facts {}, doing, PREPARE_WITHIN)? {
            Reply::Facts(facts) => Ok(*facts),
            other => Err(self.nonsense(doing, &other)),
        }
    }

    /// Makes a port.
    ///
    /// # Errors
    /// As for every call.
    pub fn prepare(&self, port: Port) -> Result<Prepared, AgentError> {
        let doing = format!("preparing port {}", port.name);
        match self.call(Request::Prepare(Box::new(port)), &doing, PREPARE_WITHIN)? {
            Reply::Prepared(prepared) => Ok(*prepared),
            other => Err(self.nonsense(&doing, &other)),
        }
    }

    /// Gives ports up; all of them where none are named.
    ///
    /// # Errors
    /// As for every call.
    pub fn release(&self, ports: Vec<String>) -> Result<(), AgentError> {
        self.call(Request::Release { ports }, "giving ports up", PREPARE_WITHIN).map(drop)
    }

    /// Makes ports ready for a load.
    ///
    /// # Errors
    /// As for every call.
    pub fn arm(&self, ports: Vec<String>, order: Order) -> Result<(), AgentError> {
        self.call(Request::Arm { ports, order }, "arming the load", QUICK).map(drop)
    }

    /// Lets what is armed go at a moment of our clock, as far as the clocks have been compared. Gives the number under which the load
    /// speaks.
    ///
    /// # Errors
    /// As for every call; the clocks were not compared yet.
    pub fn go(&self, at_ns: u64) -> Result<u64, AgentError> {
        let offset = self.offset().ok_or_else(|| AgentError::Clock { host: self.host.clone() })?;
        let (id, line) = self.shared.lock().session.ask(Request::Go { at_ns: offset.there(at_ns) });
        self.shared.write(line);
        self.answer(id, "starting the load", QUICK).map(|_| id)
    }

    /// Ends the load; returns when nothing is sent any more.
    ///
    /// # Errors
    /// As for every call.
    pub fn stop(&self) -> Result<(), AgentError> {
        self.call(Request::Stop {}, "stopping the load", QUICK).map(drop)
    }

    /// What ports have counted since their start.
    ///
    /// # Errors
    /// As for every call.
    pub fn counters(&self, ports: &[String]) -> Result<BTreeMap<String, PortCounters>, AgentError> {
        let doing = "reading its ports' counters";
        match self.call(Request::Counters { ports: ports.to_vec() }, doing, QUICK)? {
            Reply::Counters { ports } => Ok(ports),
            other => Err(self.nonsense(doing, &other)),
        }
    }

    /// Compares the clocks, and remembers how they stand.
    ///
    /// # Errors
    /// As for every call; no answer makes sense.
    pub fn compare_clocks(&self) -> Result<Offset, AgentError> {
        let doing = "comparing clocks";
        let mut probes = Vec::with_capacity(PROBES);
        for _ in 0..PROBES {
            let asked = monotonic_ns();
            let (id, line) = self.shared.lock().session.ask(Request::Clock {});
            self.shared.write(line);
            match self.timed_answer(id, doing, QUICK)? {
                (received, Reply::Time { heard_ns, answered_ns, .. }) => {
                    probes.push(Probe { asked, heard: heard_ns, answered: answered_ns, received });
                }
                (_, other) => return Err(self.nonsense(doing, &other)),
            }
        }
        let offset = Offset::of(&probes).ok_or_else(|| AgentError::Clock { host: self.host.clone() })?;
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner) = Some(offset);
        Ok(offset)
    }

    /// The agent's time of day minus ours, in nanoseconds, to a few milliseconds.
    ///
    /// # Errors
    /// As for every call.
    pub fn wall_clock_ahead_ns(&self) -> Result<i128, AgentError> {
        let doing = "asking for its time of day";
        match self.call(Request::Clock {}, doing, QUICK)? {
            Reply::Time { wall_ns, .. } => {
                let ours = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                Ok(i128::from(wall_ns) - ours.map_or(0, |d| d.as_nanos() as i128))
            }
            other => Err(self.nonsense(doing, &other)),
        }
    }

    /// How the clocks stood when they were last compared.
    pub fn offset(&self) -> Option<Offset> {
        *self.offset.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for what a load says, until a moment; `None` when that has come. With it the time when it was here.
    ///
    /// # Errors
    /// The agent is lost.
    pub fn hear(&self, load: u64, until: Instant) -> Result<Option<(u64, Reply)>, AgentError> {
        let mut state = self.shared.lock();
        loop {
            if let Some(at) = state.said.iter().position(|(id, ..)| *id == load) {
                return Ok(state.said.remove(at).map(|(_, at_ns, reply)| (at_ns, reply)));
            }
            if let Some(lost) = &state.lost {
                let lost = lost.clone();
                drop(state);
                return Err(self.lost_while("a load was under way", lost));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Says goodbye: the agent ends its load, gives its ports up, and goes.
    ///
    /// # Errors
    /// As for every call.
    pub fn goodbye(self) -> Result<(), AgentError> {
        self.call(Request::Goodbye {}, "saying goodbye", PARTING).map(drop)
    }

    fn call(&self, request: Request, doing: &str, within: Duration) -> Result<Reply, AgentError> {
        let (id, line) = self.shared.lock().session.ask(request);
        self.shared.write(line);
        self.answer(id, doing, within)
    }

    fn answer(&self, id: u64, doing: &str, within: Duration) -> Result<Reply, AgentError> {
        self.timed_answer(id, doing, within).map(|(_, reply)| reply)
    }

    /// An answer, with the time when it was here.
    fn timed_answer(&self, id: u64, doing: &str, within: Duration) -> Result<(u64, Reply), AgentError> {
        let until = Instant::now() + within;
        let mut state = self.shared.lock();
        loop {
            match state.answers.remove(&id) {
                Some((_, Reply::Error(fault))) => {
                    return Err(AgentError::Refused { host: self.host.clone(), fault: Box::new(fault) });
                }
                Some(answer) => return Ok(answer),
                None => {}
            }
            if let Some(lost) = &state.lost {
                let lost = lost.clone();
                drop(state);
                return Err(match lost {
                    // It is told what the agent said; the rest is known to whoever reads it.
                    Lost::Refused(fault) => AgentError::Refused { host: self.host.clone(), fault },
                    lost => self.lost_while(doing, lost),
                });
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.session.forget(id);
                return Err(AgentError::Late { host: self.host.clone(), doing: doing.into(), limit: within });
            }
            state = self.shared.wait(state, left);
        }
    }

    fn lost_while(&self, doing: &str, why: Lost) -> AgentError {
        AgentError::Lost { host: self.host.clone(), doing: doing.into(), why, said: self.link.complaints() }
    }

    fn nonsense(&self, doing: &str, reply: &Reply) -> AgentError {
        let shown: String = format!("{reply:?}").chars().take(200).collect();
        self.lost_while(doing, Lost::Nonsense(shown))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The end of its input is the agent's word to go.
        self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.link.end(if self.lost().is_some() { PARTING_LOST } else { PARTING });
    }
}
