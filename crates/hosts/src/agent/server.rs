//! The agent's side of a session: permitted requests, answers, and the end.
//!
//! The session takes events ([`Event`]) and returns actions ([`Action`]). One task is under way at a time; heartbeats, clocks,
//! stops and goodbyes are answered meanwhile. Whatever ends a session (end of input, silence, a signal, a malformed line), the
//! load is stopped first, then the ports are closed, and then the agent ends.

use super::message::{Code, Fault, Reply, Request, decode};
use super::{BEAT_NS, GREET_NS, IDLE_SILENCE_NS, SILENCE_NS, SPOKEN, Silence};
use std::collections::BTreeSet;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A line was read, at this time.
    Line { bytes: Vec<u8>, heard_ns: u64 },
    /// The input has ended, or cannot be read on.
    Closed,
    /// The other side does not read the answers.
    Unheard,
    /// A signal asks the agent to go.
    Interrupted,
    /// Time has passed.
    Tick,
    /// The task that was under way is done.
    Done(Result<Reply, Fault>),
    /// A message of the load that is under way.
    Said(Reply),
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Say this.
    Send(u64, Reply),
    /// Send the time of this clock, and when the question was heard.
    SendTime { id: u64, heard_ns: u64 },
    /// Do this, which takes time, and report it by [`Event::Done`]. Of a go: run the load. Of a goodbye: give all ports up.
    Do(Request),
    /// Cut short the load that is under way. [`Event::Done`] follows as ever.
    Cancel,
    /// Go.
    Finish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Open,
    /// Waiting for the task that is under way, to leave then.
    Ending,
    /// Leaving.
    Leaving,
    Gone,
}

/// The agent's side of a session.
#[derive(Debug)]
pub struct Session {
    phase: Phase,
    linerate: String,
    cpus: Vec<u32>,
    clock: String,
    /// The request that is being carried out, with its number.
    under: Option<(u64, Request)>,
    ports: BTreeSet<String>,
    armed: bool,
    /// Stops that are answered when the load has ended.
    stops: Vec<u64>,
    /// The number of the goodbye, and the reason if the controller did not ask for it.
    goodbye: (u64, Option<String>),
    clean: bool,
    silence: Silence,
    beat_ns: u64,
}

/// Stops that wait for one load to end; more are answered with an error.
const MOST_STOPS: usize = 16;
/// Ports of one agent.
const MOST_PORTS: usize = 32;

impl Session {
    /// A session that begins. `linerate`: this program's version; `cpus`: those that may be used; `clock`: the name of the clock.
    pub fn new(linerate: &str, cpus: Vec<u32>, clock: String, now_ns: u64) -> Session {
        Session {
            phase: Phase::Greeting,
            linerate: linerate.into(),
            cpus,
            clock,
            under: None,
            ports: BTreeSet::new(),
            armed: false,
            stops: Vec::new(),
            goodbye: (0, None),
            clean: false,
            silence: Silence::since(now_ns),
            beat_ns: now_ns,
        }
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// Whether it ended with a goodbye of the controller's.
    pub fn was_clean(&self) -> bool {
        self.is_over() && self.clean
    }

    /// Whether a load is under way.
    pub fn runs(&self) -> bool {
        matches!(&self.under, Some((_, Request::Go { .. })))
    }

    /// Takes an event at `now_ns`, and returns actions, to be done in this order.
    pub fn handle(&mut self, event: Event, now_ns: u64) -> Vec<Action> {
        let mut todo = Vec::new();
        match event {
            _ if self.phase == Phase::Gone => {}
            Event::Line { bytes, heard_ns } => self.line(&bytes, heard_ns, now_ns, &mut todo),
            Event::Closed => self.end("the connection ended", &mut todo),
            Event::Unheard => self.end("the controller does not read the answers", &mut todo),
            Event::Interrupted => self.end("the agent was told to end by a signal", &mut todo),
            Event::Tick => self.tick(now_ns, &mut todo),
            Event::Done(result) => self.done(result, &mut todo),
            Event::Said(reply) => {
                if let Some((id, Request::Go { .. })) = &self.under {
                    todo.push(Action::Send(*id, reply));
                }
            }
        }
        todo
    }

    fn line(&mut self, line: &[u8], heard_ns: u64, now_ns: u64, todo: &mut Vec<Action>) {
        if !matches!(self.phase, Phase::Greeting | Phase::Open) {
            return;
        }
        let (id, request) = match decode::<Request>(line) {
            Ok(read) => read,
            Err((id, fault)) => {
                let is_unknown = fault.code == Code::Unknown && self.phase == Phase::Open;
                todo.push(Action::Send(id, Reply::Error(fault)));
                if !is_unknown {
                    return self.end("the controller sent a malformed message", todo);
                }
                return self.silence = Silence::since(now_ns);
            }
        };
        self.silence = Silence::since(now_ns);
        match request {
            Request::Clock {} if self.phase == Phase::Open => {
                todo.push(Action::SendTime { id, heard_ns })
            }
            request if self.phase == Phase::Open => self.request(id, request, todo),
            Request::Hello {
                protocol: SPOKEN, ..
            } => {
                self.phase = Phase::Open;
                self.beat_ns = now_ns;
                let welcome = Reply::Welcome {
                    cpus: self.cpus.clone(),
                    clock: self.clock.clone(),
                };
                todo.push(Action::Send(id, welcome));
            }
            request => {
                let (fault, why) = match request {
                    Request::Hello { protocol, linerate } => (
                        Fault::version(protocol, &linerate, &self.linerate),
                        "the two sides speak different versions",
                    ),
                    _ => (
                        Fault::order("beginning a session", "the first message must be a hello"),
                        "there was no greeting",
                    ),
                };
                todo.push(Action::Send(id, Reply::Error(fault)));
                self.end(why, todo);
            }
        }
    }

    fn request(&mut self, id: u64, request: Request, todo: &mut Vec<Action>) {
        match request {
            Request::Heartbeat {} => {}
            Request::Stop {} if self.runs() && self.stops.len() < MOST_STOPS => {
                self.stops.push(id);
                todo.push(Action::Cancel);
            }
            Request::Stop {} if !self.runs() => {
                let was_armed = std::mem::take(&mut self.armed);
                if was_armed && self.under.is_none() {
                    self.under = Some((id, Request::Stop {}));
                    return todo.push(Action::Do(Request::Stop {}));
                }
                todo.push(Action::Send(id, Reply::Done {}));
            }
            Request::Goodbye {} => {
                (self.goodbye, self.clean) = ((id, None), true);
                self.leave(todo);
            }
            request => match self.check(&request) {
                Ok(()) => {
                    if matches!(request, Request::Go { .. }) {
                        self.armed = false;
                        todo.push(Action::Send(id, Reply::Done {}));
                    }
                    self.under = Some((id, request.clone()));
                    todo.push(Action::Do(request));
                }
                Err(fault) => todo.push(Action::Send(id, Reply::Error(fault))),
            },
        }
    }

    /// Whether a request may be carried out now.
    fn check(&self, request: &Request) -> Result<(), Fault> {
        if self.under.is_some() {
            let why = match self.runs() {
                true => "a load is under way",
                false => "the request before it is still being done",
            };
            let (what, remedy) = (
                "doing two things at once",
                "wait for its answer, or stop it",
            );
            return Err(Fault::new(what, why, remedy));
        }
        match request {
            Request::Prepare(port) => {
                port.check()?;
                if self.ports.len() >= MOST_PORTS && !self.ports.contains(&port.name) {
                    let why = format!("there are {MOST_PORTS} ports already");
                    return Err(Fault::order(format!("preparing port {}", port.name), why));
                }
                Ok(())
            }
            Request::Release { ports } => self.check_ports("giving up", ports),
            Request::Arm { ports, order } => {
                order.check()?;
                self.check_ports("arming", ports)?;
                match ports.is_empty() {
                    true => Err(Fault::order("arming", "no port is named")),
                    false => Ok(()),
                }
            }
            Request::Go { .. } if self.armed => Ok(()),
            Request::Go { .. } => Err(Fault::order("starting the load", "nothing is armed")),
            Request::Counters { ports }
            | Request::Connections { ports }
            | Request::Stamps { ports } => self.check_ports("reading", ports),
            _ => Err(Fault::order("doing a request", "it has no place there")),
        }
    }

    fn check_ports(&self, doing: &str, ports: &[String]) -> Result<(), Fault> {
        if let Some(port) = ports.iter().find(|port| !self.ports.contains(*port)) {
            let what = format!("{doing} port {}", super::message::shown(port));
            return Err(Fault::order(what, "it was not prepared"));
        }
        match ports.iter().collect::<BTreeSet<_>>().len() == ports.len() {
            true => Ok(()),
            false => Err(Fault::order(format!("{doing} ports"), "one is named twice")),
        }
    }

    fn tick(&mut self, now_ns: u64, todo: &mut Vec<Action>) {
        let silent = self.silence.look(now_ns);
        let most = if self.armed || self.runs() {
            SILENCE_NS
        } else {
            IDLE_SILENCE_NS
        };
        match self.phase {
            Phase::Greeting if silent > GREET_NS => self.end("no greeting arrived", todo),
            Phase::Open if silent > most => {
                let ms = silent / 1_000_000;
                self.end(
                    &format!("nothing was heard of the controller for {ms} ms"),
                    todo,
                );
            }
            Phase::Open | Phase::Ending | Phase::Leaving
                if now_ns.saturating_sub(self.beat_ns) >= BEAT_NS =>
            {
                self.beat_ns = now_ns;
                todo.push(Action::Send(0, Reply::Heartbeat {}));
            }
            _ => {}
        }
    }

    fn done(&mut self, result: Result<Reply, Fault>, todo: &mut Vec<Action>) {
        let Some((id, request)) = self.under.take() else {
            return;
        };
        match &request {
            // The replaced port is closed even if the new one could not be made.
            Request::Prepare(port) => {
                self.armed = false;
                self.ports.remove(&port.name);
                self.ports.extend(result.is_ok().then(|| port.name.clone()));
            }
            Request::Release { ports } => {
                self.armed = false;
                self.ports
                    .retain(|port| !ports.is_empty() && !ports.contains(port));
            }
            Request::Arm { .. } => self.armed = matches!(result, Ok(Reply::Armed { .. })),
            _ => {}
        }
        let reply = match (request, result) {
            (Request::Goodbye {}, result) => {
                self.phase = Phase::Gone;
                let (id, why) = std::mem::take(&mut self.goodbye);
                let why = why.or(result.err().map(|fault| fault.to_string()));
                return todo.extend([Action::Send(id, Reply::Goodbye { why }), Action::Finish]);
            }
            (Request::Go { .. }, Err(fault)) => Reply::Ended {
                faults: vec![fault.to_string()],
                cpus: Vec::new(),
            },
            (_, result) => result.unwrap_or_else(Reply::Error),
        };
        todo.push(Action::Send(id, reply));
        todo.extend(
            self.stops
                .drain(..)
                .map(|id| Action::Send(id, Reply::Done {})),
        );
        if self.phase == Phase::Ending {
            self.leave(todo);
        }
    }

    /// Ends a session without a goodbye.
    fn end(&mut self, why: &str, todo: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Greeting | Phase::Open) {
            self.goodbye = (0, Some(why.into()));
            self.leave(todo);
        }
    }

    fn leave(&mut self, todo: &mut Vec<Action>) {
        if self.under.is_some() {
            self.phase = Phase::Ending;
            return todo.push(Action::Cancel);
        }
        self.phase = Phase::Leaving;
        self.under = Some((0, Request::Goodbye {}));
        todo.push(Action::Do(Request::Goodbye {}));
    }
}
