//! The controller's side: an agent on another host (or in another namespace), reached over the pipes of a child process.
//!
//! A thread keeps the connection: it reads the agent's messages, sends heartbeats and watches for silence. So calls have
//! time limits that hold, and callers learn at once that the agent has gone. The thread, and all processes that carry the connection, go before
//! ordinary programs: a busy machine must not look like a lost one.

use crate::{Control, Fault, RemoteError, Result, end_within, spawn_piped, would_block};
use linerate_hosts::agent::SPOKEN;
use linerate_hosts::agent::client::Session;
use linerate_hosts::agent::connecting::EndCounts;
use linerate_hosts::agent::message::{Lines, Order, Port, Reply, Request};
use linerate_hosts::clock::{Offset, Probe};
use linerate_hosts::stamps::Stamps;
use linerate_hosts::words::unless_empty;
use linerate_linux::ports::{go_first, monotonic_ns};
use linerate_linux::process::pipes::{self, Outlet};
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An agent that has been greeted. Dropped, it ends its load and goes.
pub struct Agent {
    host: String,
    cpus: Vec<u32>,
    clock: String,
    shared: Arc<Shared>,
    /// The process that leads to it.
    child: Option<Child>,
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
/// How long the last words of a process that has closed its output are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Takes an answer of the expected kind, which comes with the time when it was here; hands any other back.
macro_rules! expect {
    ($answer:pat => $value:expr) => {
        |answer| match answer {
            $answer => Ok($value),
            (_, other) => Err(other),
        }
    };
}

impl Agent {
    /// Greets the agent at the other end of a link. `host`: its name in messages; `linerate`: our version.
    ///
    /// # Errors
    /// There is no agent, it speaks another version, or it takes longer than `within`.
    pub fn greet(host: &str, link: Link, linerate: &str, within: Duration) -> Result<Agent> {
        let shared = Arc::new(Shared {
            session: Mutex::new(Session::new(monotonic_ns())),
            changed: Condvar::new(),
            control: link.control,
        });
        let mut agent = Agent {
            host: host.into(),
            cpus: Vec::new(),
            clock: String::new(),
            shared: Arc::clone(&shared),
            child: link.child,
        };
        let (id, line) = shared.lock().greet(SPOKEN, linerate);
        shared.write(&line);
        std::thread::spawn(move || shared.keep(link.outlets));
        let welcome = expect!((_, Reply::Welcome { cpus, clock }) => (cpus, clock));
        (agent.cpus, agent.clock) = agent.answer(id, "greeting it", within, welcome)?;
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
    pub(super) fn shares_clock(&self, other: &Agent) -> bool {
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
        let prepared = expect!((_, Reply::Prepared { backend, why }) => (backend, why));
        self.call(
            &Request::Prepare(Box::new(port)),
            &doing,
            PREPARE_WITHIN,
            prepared,
        )
    }

    /// Gives ports up; all of them where none are named.
    ///
    /// # Errors
    /// As for every call.
    pub fn release(&self, ports: Vec<String>) -> Result<()> {
        let request = Request::Release { ports };
        self.order(&request, "giving ports up", PREPARE_WITHIN)
            .map(drop)
    }

    /// Makes ports ready for a load. Returns the nanoseconds that this waited for another linerate on the host; or, where it is still that
    /// one's turn, who it is.
    ///
    /// # Errors
    /// As for every call.
    pub fn arm(&self, ports: Vec<String>, order: Order) -> Result<Result<u64, String>> {
        let request = Request::Arm { ports, order };
        self.call(&request, "arming the load", QUICK, |answer| match answer {
            (_, Reply::Armed { waited_ns }) => Ok(Ok(waited_ns)),
            (_, Reply::Busy { by }) => Ok(Err(by)),
            (_, other) => Err(other),
        })
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
        let ports = ports.to_vec();
        let counters = expect!((_, Reply::Counters { ports }) => ports);
        self.call(
            &Request::Counters { ports },
            "reading its ports' counters",
            QUICK,
            counters,
        )
    }

    /// How far the connections of a load came, by all of these ends together.
    ///
    /// # Errors
    /// As for every call.
    pub fn connections(&self, ports: &[String]) -> Result<EndCounts> {
        let ports = ports.to_vec();
        let request = Request::Connections { ports };
        let ends = expect!((_, Reply::Connections { ports }) => ports);
        let ends = self.call(&request, "reading its connections", QUICK, ends)?;
        let mut all = EndCounts::default();
        ends.into_values().for_each(|end| all.add(end));
        Ok(all)
    }

    /// Stamps of the cards of ports since their start, by port.
    ///
    /// # Errors
    /// As for every call.
    pub fn stamps(&self, ports: &[String]) -> Result<BTreeMap<String, Stamps>> {
        let ports = ports.to_vec();
        let stamps = expect!((_, Reply::Stamps { ports }) => ports);
        self.call(
            &Request::Stamps { ports },
            "reading its cards' stamps",
            QUICK,
            stamps,
        )
    }

    /// Compares the clocks.
    ///
    /// # Errors
    /// As for every call; no answer makes sense.
    pub fn compare_clocks(&self) -> Result<Offset> {
        let probe = |_| {
            let asked = monotonic_ns();
            let probe = |(received, heard_ns, answered_ns): (u64, u64, u64)| Probe {
                asked,
                there: [heard_ns.into(), answered_ns.into()],
                error_ns: 0,
                received,
            };
            let time = expect!((received, Reply::Time { heard_ns, answered_ns }) => (received, heard_ns, answered_ns));
            self.call(&Request::Clock {}, "comparing clocks", QUICK, time)
                .map(probe)
        };
        let probes: Vec<Probe> = (0..PROBES).map(probe).collect::<Result<_>>()?;
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
        self.call(&Request::Goodbye {}, "saying goodbye", PARTING, |_| Ok(()))
    }

    /// A request that has no answer but that it is done; gives its number.
    fn order(&self, request: &Request, doing: &str, within: Duration) -> Result<u64> {
        let id = self.ask(request);
        self.answer(id, doing, within, expect!((_, Reply::Done {}) => id))
    }

    fn call<T>(
        &self,
        request: &Request,
        doing: &str,
        within: Duration,
        take: impl FnOnce((u64, Reply)) -> Result<T, Reply>,
    ) -> Result<T> {
        self.answer(self.ask(request), doing, within, take)
    }

    /// Sends a request; gives its number.
    fn ask(&self, request: &Request) -> u64 {
        let (id, line) = self.shared.lock().ask(request);
        self.shared.write(&line);
        id
    }

    /// An answer, taken with the time when it was here.
    fn answer<T>(
        &self,
        id: u64,
        doing: &str,
        within: Duration,
        take: impl FnOnce((u64, Reply)) -> Result<T, Reply>,
    ) -> Result<T> {
        match self.wait_for(doing, Instant::now() + within, |session| session.answer(id))? {
            Some((_, Reply::Error(fault))) => Err(self.failed(fault.to_string())),
            Some(answer) => take(answer).map_err(|other| {
                let shown: String = format!("{other:?}").chars().take(200).collect();
                self.lost_while(doing, &format!("it sent a malformed message: {shown}"))
            }),
            None => {
                self.shared.lock().forget(id);
                let within = within.as_secs_f64();
                Err(self.failed(format!("no answer within {within} s while {doing}")))
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
            let woken = self.shared.changed.wait_timeout(session, left);
            session = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// An error of this agent, in a whole sentence.
    pub(super) fn failed(&self, said: impl Into<String>) -> RemoteError {
        RemoteError::new(&self.host, Fault::Tester, said)
    }

    pub(super) fn lost_while(&self, doing: &str, why: &str) -> RemoteError {
        let said = unless_empty("; it said: ", &self.shared.lock().complaints(), "");
        self.failed(format!("lost the agent while {doing}: {why}{said}"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The end of its input is the agent's word to go.
        self.shared.control.close();
        let within = match self.lost() {
            Some(_) => PARTING_LOST,
            None => PARTING,
        };
        self.child
            .iter_mut()
            .for_each(|child| end_within(child, within));
    }
}

/// The session, for its callers and the thread that keeps it.
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

    fn write(&self, line: &[u8]) {
        let written = self.control.write_all(line, WRITE_WITHIN);
        // One that has ended shows by its output.
        if written.is_err_and(|error| would_block(&error)) {
            self.lock().lose("it does not read what it is asked");
            self.changed.notify_all();
        }
    }

    /// Reads messages, sends heartbeats, and watches for silence, until the agent is gone.
    fn keep(&self, mut outlets: [Outlet; 2]) {
        go_first();
        let (mut lines, mut ended) = (Lines::default(), None);
        loop {
            // A pipe that cannot be waited for or read is one that has ended.
            let waited = pipes::wait(&outlets, LOOK);
            let mut said = [Vec::new(), Vec::new()];
            let mut read =
                |n: usize| outlets[n].read(&mut |bytes| said[n].extend_from_slice(bytes));
            let broken = waited.and(read(1)).and(read(0)).is_err();
            let (now, mut session) = (monotonic_ns(), self.lock());
            session.complained(&said[1]);
            if let Err(flood) = lines.take(&said[0], |line| session.line(line, now)) {
                session.lose(flood.to_string());
            }
            if broken || outlets[0].is_closed() {
                let since = ended.get_or_insert_with(Instant::now).elapsed();
                if outlets[1].is_closed() || since > LAST_WORDS {
                    session.closed();
                }
            }
            let beat = self.control.fd().and_then(|_| session.tick(now));
            let lost = session.lost().is_some();
            drop(session);
            self.changed.notify_all();
            if lost {
                return;
            }
            beat.iter().for_each(|line| self.write(line));
        }
    }
}

/// The way to an agent: its input and its outputs, and the process that has them, unless it is a caller's.
pub struct Link {
    child: Option<Child>,
    control: Arc<Control>,
    outlets: [Outlet; 2],
}

impl Link {
    /// Uses existing pipes.
    ///
    /// # Errors
    /// The system does not take the pipe.
    pub fn of_pipes(input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) -> io::Result<Link> {
        Ok(Link {
            child: None,
            control: Control::new(input.into())?,
            outlets: [Some(output.into()), None].map(Outlet::new),
        })
    }

    /// Starts a process whose standard input and output lead to an agent. Its standard error is kept for messages.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(mut command: Command) -> io::Result<Link> {
        let (child, input, outputs) = spawn_piped(&mut command)?;
        Ok(Link {
            child: Some(child),
            control: Control::new(input)?,
            outlets: outputs.map(|output| Outlet::new(Some(output))),
        })
    }
}
