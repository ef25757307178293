//! The controller's side: an agent on another host (or in another namespace), reached over the two pipes of a child process.
//!
//! Two threads keep a connection: one reads the agent's messages, one sends heartbeats and watches for silence. So calls have
//! time limits that hold, and callers learn at once that the agent has gone. Both, and all processes that carry the connection, go before
//! ordinary programs: a busy machine must not look like a lost one.

pub mod lab;
mod trial;

use crate::{Control, Fault, RemoteError, Result, end_within, spawn_piped, would_block};
use linerate_hosts::agent::SPOKEN;
use linerate_hosts::agent::client::Session;
use linerate_hosts::agent::message::{Lines, Order, Port, Reply, Request};
use linerate_hosts::clock::{Offset, Probe};
use linerate_hosts::stamps::Stamps;
use linerate_linux::ports::{go_first, monotonic_ns};
use linerate_linux::process::pipes::{self, Outlet};
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub use trial::{Member, Ports, Trial, TrialResult};

/// An agent that has been greeted. Dropped, it ends its load and goes.
pub struct Agent {
    host: String,
    cpus: Vec<u32>,
    clock: String,
    shared: Arc<Shared>,
    link: Rest,
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

/// How often silence is looked for, and heartbeats are.
const LOOK: Duration = Duration::from_millis(20);
/// How long a line may take to be written: an agent that reads nothing is lost soon.
const WRITE_WITHIN: Duration = Duration::from_secs(1);

impl Agent {
    /// Greets the agent at the other end of a link. `host`: its name in messages; `linerate`: our version.
    ///
    /// # Errors
    /// There is no agent, it speaks another version, or it takes longer than `within`.
    pub fn greet(host: &str, link: Link, linerate: &str, within: Duration) -> Result<Agent> {
        let Link {
            control,
            output,
            rest,
        } = link;
        let session = Mutex::new(Session::new(monotonic_ns()));
        let shared = Arc::new(Shared {
            session,
            changed: Condvar::new(),
            control,
        });
        let (reads, beats) = (Arc::clone(&shared), Arc::clone(&shared));
        std::thread::spawn(move || reads.read(output));
        let mut agent = Agent {
            host: host.into(),
            cpus: Vec::new(),
            clock: String::new(),
            shared,
            link: rest,
        };
        let (id, line) = agent.shared.lock().greet(SPOKEN, linerate, monotonic_ns());
        agent.shared.write(&line);
        std::thread::spawn(move || beats.beat());
        match agent.answer(id, "greeting it", within)? {
            (_, Reply::Welcome { cpus, clock }) => (agent.cpus, agent.clock) = (cpus, clock),
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

    /// Whether its clock and another agent's have the same name.
    fn shares_clock(&self, other: &Agent) -> bool {
        !self.clock.is_empty() && self.clock == other.clock
    }

    /// The reason why the agent was lost; `None` while it is there.
    pub fn lost(&self) -> Option<String> {
        self.shared.lock().lost().cloned()
    }

    /// Makes a port. Returns what sends or counts there, with the reason if that is not the fastest.
    ///
    /// # Errors
    /// As for every call: the agent is lost, refuses, or is late.
    pub fn prepare(&self, port: Port) -> Result<(Backend, Option<String>)> {
        let doing = format!("preparing port {}", port.name);
        match self.call(&Request::Prepare(Box::new(port)), &doing, PREPARE_WITHIN)? {
            (_, Reply::Prepared { backend, why }) => Ok((backend, why)),
            (_, other) => Err(self.nonsense(&doing, &other)),
        }
    }

    /// Gives ports up; all of them where none are named.
    ///
    /// # Errors
    /// As for every call.
    pub fn release(&self, ports: Vec<String>) -> Result<()> {
        self.order(
            &Request::Release { ports },
            "giving ports up",
            PREPARE_WITHIN,
        )
        .map(drop)
    }

    /// Makes ports ready for a load. Returns the nanoseconds that this waited for another linerate on the host; or, where it is still that
    /// one's turn, who it is.
    ///
    /// # Errors
    /// As for every call.
    pub fn arm(&self, ports: Vec<String>, order: Order) -> Result<Result<u64, String>> {
        let doing = "arming the load";
        match self.call(&Request::Arm { ports, order }, doing, QUICK)? {
            (_, Reply::Armed { waited_ns }) => Ok(Ok(waited_ns)),
            (_, Reply::Busy { by }) => Ok(Err(by)),
            (_, other) => Err(self.nonsense(doing, &other)),
        }
    }

    /// Starts the armed load at a moment of its clock. Returns the number that the load's messages have.
    ///
    /// # Errors
    /// As for every call.
    pub fn go(&self, at_ns: u64) -> Result<u64> {
        self.order(&Request::Go { at_ns }, "starting the load", QUICK)
    }

    /// Ends the load, or gives the turn of one that is armed back; returns when nothing is sent any more.
    ///
    /// # Errors
    /// As for every call.
    pub fn stop(&self) -> Result<()> {
        self.order(&Request::Stop {}, "stopping the load", QUICK)
            .map(drop)
    }

    /// Counters of ports since their start.
    ///
    /// # Errors
    /// As for every call.
    pub fn counters(&self, ports: &[String]) -> Result<BTreeMap<String, PortCounters>> {
        let doing = "reading its ports' counters";
        match self.call(
            &Request::Counters {
                ports: ports.to_vec(),
            },
            doing,
            QUICK,
        )? {
            (_, Reply::Counters { ports }) => Ok(ports),
            (_, other) => Err(self.nonsense(doing, &other)),
        }
    }

    /// Stamps of the cards of ports since their start, by port.
    ///
    /// # Errors
    /// As for every call.
    pub fn stamps(&self, ports: &[String]) -> Result<BTreeMap<String, Stamps>> {
        let doing = "reading its cards' stamps";
        match self.call(
            &Request::Stamps {
                ports: ports.to_vec(),
            },
            doing,
            QUICK,
        )? {
            (_, Reply::Stamps { ports }) => Ok(ports),
            (_, other) => Err(self.nonsense(doing, &other)),
        }
    }

    /// Compares the clocks.
    ///
    /// # Errors
    /// As for every call; no answer makes sense.
    pub fn compare_clocks(&self) -> Result<Offset> {
        let doing = "comparing clocks";
        let mut probes = Vec::with_capacity(PROBES);
        for _ in 0..PROBES {
            let asked = monotonic_ns();
            match self.call(&Request::Clock {}, doing, QUICK)? {
                (
                    received,
                    Reply::Time {
                        heard_ns,
                        answered_ns,
                    },
                ) => {
                    let there = [heard_ns.into(), answered_ns.into()];
                    probes.push(Probe {
                        asked,
                        there,
                        error_ns: 0,
                        received,
                    });
                }
                (_, other) => return Err(self.nonsense(doing, &other)),
            }
        }
        Offset::of(&probes).ok_or_else(|| {
            self.failed("its clock cannot be compared with ours: no answer makes sense")
        })
    }

    /// Waits for a message of a load, until a moment; `None` when that has come.
    ///
    /// # Errors
    /// The agent is lost.
    pub fn hear(&self, load: u64, until: Instant) -> Result<Option<Reply>> {
        self.wait_for("a load was under way", until, |session| session.said(load))
    }

    /// Says goodbye: the agent ends its load, gives its ports up, and goes.
    ///
    /// # Errors
    /// As for every call.
    pub fn goodbye(self) -> Result<()> {
        self.call(&Request::Goodbye {}, "saying goodbye", PARTING)
            .map(drop)
    }

    /// A request that has no answer but that it is done; gives its number.
    fn order(&self, request: &Request, doing: &str, within: Duration) -> Result<u64> {
        let id = self.ask(request);
        match self.answer(id, doing, within)? {
            (_, Reply::Done {}) => Ok(id),
            (_, other) => Err(self.nonsense(doing, &other)),
        }
    }

    fn call(&self, request: &Request, doing: &str, within: Duration) -> Result<(u64, Reply)> {
        self.answer(self.ask(request), doing, within)
    }

    /// Sends a request; gives its number.
    fn ask(&self, request: &Request) -> u64 {
        let (id, line) = self.shared.lock().ask(request);
        self.shared.write(&line);
        id
    }

    /// An answer, with the time when it was here.
    fn answer(&self, id: u64, doing: &str, within: Duration) -> Result<(u64, Reply)> {
        match self.wait_for(doing, Instant::now() + within, |session| session.answer(id))? {
            Some((_, Reply::Error(fault))) => Err(self.failed(fault.to_string())),
            Some(answer) => Ok(answer),
            None => {
                self.shared.lock().forget(id);
                Err(self.failed(format!(
                    "no answer within {} s while {doing}",
                    within.as_secs_f64()
                )))
            }
        }
    }

    /// Waits until there is something to take, or the time is up.
    fn wait_for<T>(
        &self,
        doing: &str,
        until: Instant,
        take: impl Fn(&mut Session) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut session = self.shared.lock();
        loop {
            if let Some(taken) = take(&mut session) {
                return Ok(Some(taken));
            }
            if let Some(lost) = session.lost().cloned() {
                drop(session);
                return Err(self.lost_while(doing, &lost));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            session = self.shared.wait(session, left);
        }
    }

    /// An error of this agent, in a whole sentence.
    fn failed(&self, said: impl Into<String>) -> RemoteError {
        RemoteError::new(&self.host, Fault::Tester, said)
    }

    fn lost_while(&self, doing: &str, why: &str) -> RemoteError {
        let said = self.link.complaints();
        let said = if said.is_empty() {
            said
        } else {
            format!("; it said: {said}")
        };
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
        self.link.end(if self.lost().is_some() {
            PARTING_LOST
        } else {
            PARTING
        });
    }
}

/// The session, for the threads that share it.
struct Shared {
    session: Mutex<Session>,
    changed: Condvar,
    /// The agent's input.
    control: Arc<Control>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        session: MutexGuard<'a, Session>,
        most: Duration,
    ) -> MutexGuard<'a, Session> {
        self.changed
            .wait_timeout(session, most)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn write(&self, line: &[u8]) {
        // One that has ended shows by its output.
        if self
            .control
            .write_all(line, WRITE_WITHIN)
            .is_err_and(|error| would_block(&error))
        {
            self.lock().lose("it does not read what it is asked");
            self.changed.notify_all();
        }
    }

    fn read(&self, mut output: impl Read) {
        go_first();
        let (mut lines, mut piece) = (Lines::default(), vec![0; 64 << 10]);
        loop {
            let read = output.read(&mut piece);
            let (now, mut session) = (monotonic_ns(), self.lock());
            match read {
                Ok(length) if length > 0 => {
                    if let Err(flood) = lines.take(&piece[..length], |line| session.line(line, now))
                    {
                        session.lose(flood.to_string());
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                _ => session.closed(),
            }
            let lost = session.lost().is_some();
            drop(session);
            self.changed.notify_all();
            if lost {
                return;
            }
        }
    }

    /// Sends heartbeats, and watches for silence.
    fn beat(&self) {
        go_first();
        while self.control.fd().is_some() {
            std::thread::sleep(LOOK);
            let mut session = self.lock();
            let (line, over) = (session.tick(monotonic_ns()), session.is_over());
            drop(session);
            if over {
                return self.changed.notify_all();
            }
            line.iter().for_each(|line| self.write(line));
        }
    }
}

/// Two pipes to an agent.
pub struct Link {
    pub(super) control: Arc<Control>,
    pub(super) output: Box<dyn Read + Send>,
    pub(super) rest: Rest,
}

/// The parts of a link that remain once its pipes are in use.
pub(super) struct Rest {
    child: Option<Child>,
    /// The process's standard error, and the end of its text.
    complaints: Mutex<(Outlet, Vec<u8>)>,
}

/// Most bytes of a process's standard error in a message: its end.
const SHOWN: usize = 600;
/// How long the last words of a process that has closed its output are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How often is looked whether a process has ended.
const LOOK_FOR_END: Duration = Duration::from_millis(5);

impl Link {
    /// Uses existing pipes.
    ///
    /// # Errors
    /// The system does not take the pipe.
    pub fn of_pipes(
        input: impl Into<OwnedFd>,
        output: impl Read + Send + 'static,
    ) -> io::Result<Link> {
        let rest = Rest {
            child: None,
            complaints: Mutex::new((Outlet::new(None), Vec::new())),
        };
        Ok(Link {
            control: Control::new(input.into())?,
            output: Box::new(output),
            rest,
        })
    }

    /// Starts a process whose standard input and output lead to an agent. Its standard error is kept for messages.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(mut command: Command) -> io::Result<Link> {
        let (child, input, [output, errors]) = spawn_piped(&mut command)?;
        let complaints = Mutex::new((Outlet::new(Some(errors)), Vec::new()));
        let rest = Rest {
            child: Some(child),
            complaints,
        };
        Ok(Link {
            rest,
            ..Link::of_pipes(input, File::from(output))?
        })
    }
}

impl Rest {
    /// The end of the process's standard error, on one line. If the process is about to end, waits for its last words.
    pub fn complaints(&self) -> String {
        let mut complaints = self
            .complaints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (outlet, kept) = &mut *complaints;
        let began = Instant::now();
        while !outlet.is_closed() && began.elapsed() < LAST_WORDS {
            let _ = pipes::wait(std::slice::from_ref(outlet), LOOK_FOR_END);
            let _ = outlet.read(&mut |bytes| {
                kept.extend_from_slice(bytes);
                kept.drain(..kept.len().saturating_sub(SHOWN));
            });
        }
        let text = String::from_utf8_lossy(kept).trim().replace('\n', " / ");
        text.chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect()
    }

    /// Waits for the process's end; kills it when it takes longer.
    pub fn end(&mut self, within: Duration) {
        if let Some(child) = &mut self.child {
            end_within(child, within);
        }
    }
}
