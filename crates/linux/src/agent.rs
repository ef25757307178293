//! `linerate agent`: serves the protocol of `linerate_hosts::agent` on two pipes, with the ports of this host.
//!
//! Four threads: one reads lines, one writes them, one carries out slow tasks ([`Worker`]), and this one decides. It never waits
//! for the others, so that silence, a signal or the end of the input always stop a load.

mod ports;

use crate::error::Error;
use crate::host::autogroup::{self, Ahead};
use crate::host::changes::{Host, HostChanges};
use crate::host::cpu;
use crate::host::turn::Turn;
use crate::ports::{go_first, monotonic_ns};
use crate::trial::sleep_until;
use linerate_hosts::agent::message::{Fault, Lines, Order, Reply, Request, Sample, encode};
use linerate_hosts::agent::server::{Action, Event, Session};
use linerate_hosts::systems::Kernel;
use linerate_wire::Load;
use ports::Made;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;

pub use ports::{Connection, Options};

/// How often the deciding thread looks at the clock and for signals.
const LOOK: Duration = Duration::from_millis(10);
/// A worker's wait is not longer than this, so that a stop is noticed.
const NAP: Duration = Duration::from_millis(2);
/// Generators are started this much before their moment: setting up a call of BPF_PROG_RUN takes 13 to 33 ms.
const AHEAD_NS: u64 = 80_000_000;
/// How long the first frame may take from then on.
const START_WITHIN_NS: u64 = 5_000_000_000;
/// Lines that may wait to be read…
const UNREAD: usize = 64;
/// …and to be written. With more, the controller has stopped reading.
const UNWRITTEN: usize = 1024;
/// How long an agent waits for its turn on its host before it says who has it. Other linerates pause between their loads.
const TURN_WITHIN: Duration = Duration::from_secs(1);
/// How long the last lines may take to be written.
const PARTING: Duration = Duration::from_millis(500);

/// Serves one session, to its end; `true` if it ended by a goodbye. Nothing is left running, whatever ended it.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    options: Options,
    interrupted: &AtomicBool,
) -> bool {
    let (inputs, events) = mpsc::sync_channel(UNREAD);
    let (tasks, todo) = mpsc::channel();
    let cancel = Arc::new(AtomicBool::new(false));
    let cpus = cpu::online_cpus().unwrap_or_default();
    let session = Session::new(&options.linerate, cpus, clock_name(), monotonic_ns());
    let (to, cancelled) = (inputs.clone(), Arc::clone(&cancel));
    // Of an agent that was killed; what cannot be put back now stays in the journal.
    let _ = Host::this().restore_remains();
    autogroup::restore_remains();
    // Not being allowed to is no error.
    let _ahead = Ahead::this();
    let changes = Host::this().begin();
    let mut worker = Worker {
        options,
        to,
        cancel: cancelled,
        ports: BTreeMap::new(),
        armed: None,
        changes,
    };
    std::thread::spawn(move || worker.run(&todo));
    // After the worker, whose programs and threads should run as any other. This one must run when a load is to be stopped.
    // Before the generator's threads, which are at -20 themselves and have all of a CPU each: a stop must come through.
    go_first();
    let _connection = ports::connection_goes_first();
    let (lines, written) = write_on_thread(output);
    read_on_thread(input, inputs);
    let clean = Loop {
        session,
        tasks,
        lines,
        cancel,
    }
    .run(&events, interrupted);
    let _ = written.recv_timeout(PARTING);
    clean
}

/// The machine's boot and the process's time namespace: CLOCK_MONOTONIC is one where both are the same. Empty if they cannot be read.
fn clock_name() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let boot = read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = read("/proc/self/timens_offsets").unwrap_or_default();
    let offset = namespace
        .split_ascii_whitespace()
        .skip_while(|word| *word != "monotonic")
        .take(3);
    [boot.trim()]
        .into_iter()
        .filter(|boot| !boot.is_empty())
        .chain(offset)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The deciding thread.
struct Loop {
    session: Session,
    tasks: Sender<Request>,
    lines: SyncSender<Said>,
    cancel: Arc<AtomicBool>,
}

impl Loop {
    fn run(mut self, events: &Receiver<Event>, interrupted: &AtomicBool) -> bool {
        while !self.session.is_over() {
            if interrupted.load(Ordering::Relaxed) {
                self.handle(Event::Interrupted);
            }
            match events.recv_timeout(LOOK) {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => {}
                // The worker holds one end for as long as it lives.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.handle(Event::Tick);
        }
        self.session.was_clean()
    }

    fn handle(&mut self, event: Event) {
        for action in self.session.handle(event, monotonic_ns()) {
            match action {
                Action::Send(id, reply) => self.say(Said::Line(encode(id, &reply))),
                Action::SendTime { id, heard_ns } => self.say(Said::Time { id, heard_ns }),
                Action::Do(task) => {
                    // The worker is idle, so no task sees the flag now.
                    self.cancel.store(false, Ordering::Relaxed);
                    let _ = self.tasks.send(task);
                }
                Action::Cancel => self.cancel.store(true, Ordering::Relaxed),
                Action::Finish => {}
            }
        }
    }

    fn say(&mut self, said: Said) {
        if self.lines.try_send(said).is_err() && !self.session.is_over() {
            // Reported once the actions at hand are done: the session ends in the same turn.
            self.handle(Event::Unheard);
        }
    }
}

fn read_on_thread(mut input: impl Read + Send + 'static, to: SyncSender<Event>) {
    std::thread::spawn(move || {
        let mut lines = Lines::default();
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = match input.read(&mut piece) {
                Ok(length) if length > 0 => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                _ => break,
            };
            let heard_ns = monotonic_ns();
            let pass_on = |line: &[u8]| {
                drop(to.send(Event::Line {
                    bytes: line.to_vec(),
                    heard_ns,
                }))
            };
            if lines.take(&piece[..length], pass_on).is_err() {
                return pass_on(b"a line that is longer than any message");
            }
        }
        let _ = to.send(Event::Closed);
    });
}

/// A line to be written; one with the time is made last of all, so that no wait of threads counts as time on the way.
enum Said {
    Line(Vec<u8>),
    Time { id: u64, heard_ns: u64 },
}

/// Writes on a thread of its own, because a full pipe blocks its writer. Returns the channel for lines, and one that reports the
/// end.
fn write_on_thread(mut output: impl Write + Send + 'static) -> (SyncSender<Said>, Receiver<()>) {
    let (lines, waiting) = mpsc::sync_channel(UNWRITTEN);
    let (over, ended) = mpsc::channel();
    std::thread::spawn(move || {
        for said in waiting {
            let line = match said {
                Said::Line(line) => line,
                Said::Time { id, heard_ns } => encode(
                    id,
                    &Reply::Time {
                        heard_ns,
                        answered_ns: monotonic_ns(),
                    },
                ),
            };
            if output
                .write_all(&line)
                .and_then(|()| output.flush())
                .is_err()
            {
                break;
            }
        }
        let _ = over.send(());
    });
    (lines, ended)
}

/// A load that may start.
struct Armed {
    ports: Vec<String>,
    order: Order,
    /// Other processes of this measurement, on the same CPUs.
    relatives: Vec<i32>,
    _turn: Turn,
}

/// Times of CPUs and of the agent's threads.
type Reading = (cpu::CpuTimes, BTreeMap<i32, cpu::TaskTime>);

fn read_cpus(relatives: &[i32]) -> Option<Reading> {
    let tasks = cpu::own_tasks(&[], relatives);
    Some((cpu::times(Path::new("/")).ok()?, tasks))
}

/// Does the slow tasks, ports and loads: one after the other, on a thread of its own.
struct Worker {
    options: Options,
    to: SyncSender<Event>,
    cancel: Arc<AtomicBool>,
    ports: BTreeMap<String, Made>,
    armed: Option<Armed>,
    /// Of this host: cards that stamp. Undone at the end of the session.
    changes: HostChanges,
}

impl Worker {
    fn run(&mut self, todo: &Receiver<Request>) {
        for request in todo {
            let done = self.carry_out(request);
            if self.to.send(Event::Done(done)).is_err() {
                return;
            }
        }
    }

    fn carry_out(&mut self, request: Request) -> Result<Reply, Fault> {
        match request {
            Request::Prepare(wanted) => {
                // An XDP program must be removed before another can be attached to the same interface.
                self.ports.remove(&wanted.name);
                let made = ports::make(&wanted, &self.options, &mut self.changes)?;
                let prepared = Reply::Prepared {
                    backend: made.port.backend(),
                    why: made.why.clone(),
                };
                self.ports.insert(wanted.name.clone(), made);
                return Ok(prepared);
            }
            Request::Release { ports } => {
                self.silence();
                self.ports
                    .retain(|name, _| !ports.is_empty() && !ports.contains(name));
            }
            Request::Arm { ports, order } => return self.arm(ports, order),
            Request::Stop {} => {
                self.silence();
                self.armed = None;
            }
            Request::Go { at_ns } => return self.run_load(at_ns),
            Request::Counters { ports } => {
                let named = |name: &String| Some((name.clone(), self.ports.get(name)?.counters()));
                return Ok(Reply::Counters {
                    ports: ports.iter().filter_map(named).collect(),
                });
            }
            Request::Connections { ports } => {
                let named =
                    |name: &String| Some((name.clone(), self.ports.get(name)?.port.ends()?));
                return Ok(Reply::Connections {
                    ports: ports.iter().filter_map(named).collect(),
                });
            }
            Request::Stamps { ports } => {
                let named = |name: &String| Some((name.clone(), self.ports.get(name)?.stamps()));
                let all = ports
                    .iter()
                    .filter_map(named)
                    .map(|(name, stamps)| Ok((name, stamps?)));
                let ports = all
                    .collect::<Result<_, Error>>()
                    .map_err(|e| system("reading stamps", e))?;
                return Ok(Reply::Stamps { ports });
            }
            _ => {
                self.ports.clear();
                self.changes
                    .undo()
                    .map_err(|e| system("putting the cards' time stamps back", e))?;
            }
        }
        Ok(Reply::Done {})
    }

    fn arm(&mut self, names: Vec<String>, order: Order) -> Result<Reply, Fault> {
        self.armed = None;
        self.silence();
        // Interrupts and softirqs of a tester's cards may come to any of them.
        let cpus = cpu::online_cpus().unwrap_or_default();
        let turn = Turn::within(TURN_WITHIN, &order.turn, &cpus, || {
            self.cancel.load(Ordering::Relaxed)
        });
        let turn = match turn {
            Ok(turn) => turn,
            Err(taken) => return Ok(Reply::Busy { by: taken.words() }),
        };
        let waited_ns = turn.waited_ns;
        // Where frames go both ways, a receiver of the other direction takes the frames of the interface that answers come to.
        let hears = |made: &Made| order.answer && made.sends;
        let hearing = self
            .ports
            .iter()
            .filter(|(name, made)| names.contains(name) && hears(made));
        let hearing: Vec<u32> = hearing.map(|(_, made)| made.ifindex).collect();
        for made in self.ports.values_mut().filter(|made| !made.sends) {
            made.port.let_through(hearing.contains(&made.ifindex));
        }
        for (_, made) in self
            .ports
            .iter_mut()
            .filter(|(name, _)| names.contains(name))
        {
            made.answer(order.answer)
                .map_err(|e| system("preparing answers", e))?;
            if made.sends {
                // An earlier load's threads are waited for now, not at the start.
                made.port
                    .stop()
                    .map_err(|e| system("ending the load before", e))?;
            } else {
                made.port.set_clocks(&order.ahead_ns);
            }
            if let Some(opening) = &order.opening {
                made.port
                    .open(opening)
                    .map_err(|e| system("preparing connections", e))?;
            }
            made.read_before()
                .map_err(|e| system("arming the load", e))?;
        }
        self.armed = Some(Armed {
            ports: names,
            order,
            relatives: cpu::relatives(),
            _turn: turn,
        });
        Ok(Reply::Armed { waited_ns })
    }

    /// Nothing is answered any more.
    fn silence(&mut self) {
        self.ports
            .values_mut()
            .for_each(|made| made.answerer = None);
    }

    /// Runs the load that is armed. Its end is in the reply, also where a port failed; generators are stopped in any case.
    fn run_load(&mut self, at_ns: u64) -> Result<Reply, Fault> {
        let armed = self
            .armed
            .take()
            .ok_or_else(|| Fault::order("starting the load", "nothing is armed"))?;
        let ports = self
            .ports
            .iter_mut()
            .filter(|(name, _)| armed.ports.contains(name))
            .collect();
        let (at_ns, order) = (at_ns.max(monotonic_ns()), armed.order);
        let relatives = armed.relatives;
        let mut load = RunningLoad {
            at_ns,
            order,
            relatives: &relatives,
            ports,
            before: None,
            to: &self.to,
            cancel: &self.cancel,
        };
        let ran = load.start().and_then(|()| load.watch());
        let after = read_cpus(&relatives);
        let mut faults: Vec<String> = ran
            .err()
            .map(|error| error.to_string())
            .into_iter()
            .collect();
        for (name, made) in &mut load.ports {
            if made.sends
                && let Err(error) = made.port.stop()
            {
                faults.push(format!("{name}: {error}"));
            }
        }
        load.report();
        let busy: BTreeSet<u32> = load
            .ports
            .iter()
            .flat_map(|(_, made)| made.cpus())
            .collect();
        let cpus = load.before.zip(after).map(|(before, after)| {
            let mut shares = after.0.since(&before.0, Kernel::Linux);
            let others = cpu::of_others([&before.0, &after.0], [&before.1, &after.1]);
            for share in shares.iter_mut().filter(|share| busy.contains(&share.cpu)) {
                share.others = others.get(&share.cpu).copied();
            }
            shares
        });
        Ok(Reply::Ended {
            faults,
            cpus: cpus.unwrap_or_default(),
        })
    }
}

fn system(what: &str, why: impl ToString) -> Fault {
    Fault::new(
        what,
        why,
        "run the agent as root, and look at the host's kernel log",
    )
}

/// A load under way.
struct RunningLoad<'a> {
    at_ns: u64,
    order: Order,
    relatives: &'a [i32],
    ports: Vec<(&'a String, &'a mut Made)>,
    /// When the first frame was due. Before that, other programs have the CPUs for themselves.
    before: Option<Reading>,
    to: &'a SyncSender<Event>,
    cancel: &'a AtomicBool,
}

impl RunningLoad<'_> {
    /// Receivers count from now on; generators are ready to send at their moment.
    fn start(&mut self) -> Result<(), Error> {
        let load = Load {
            not_before_ns: self.at_ns,
            ..self.order.load
        };
        for (name, made) in self.ports.iter_mut().filter(|(_, made)| !made.sends) {
            made.port.start(&load)?;
            say(
                self.to,
                Reply::Began {
                    port: name.to_string(),
                    at_ns: monotonic_ns(),
                },
            );
        }
        self.sleep_until(self.at_ns.saturating_sub(AHEAD_NS), || false);
        if self.cancelled() {
            return Ok(());
        }
        let mut generators = self.ports.iter_mut().filter(|(_, made)| made.sends);
        generators.try_for_each(|(_, made)| made.port.start(&load))
    }

    /// Reports until the load is over.
    fn watch(&mut self) -> Result<(), Error> {
        let mut begun = vec![false; self.ports.len()];
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
                self.before = self.before.take().or_else(|| read_cpus(self.relatives));
                self.report();
                // A moment that was missed is not made up for: samples stay at multiples of their distance.
                next_ns += self.order.sample_ns * ((now - next_ns) / self.order.sample_ns + 1);
            }
            self.sleep_until(next_ns, || self.is_over());
        }
    }

    /// Reports generators whose first frame has left.
    fn announce(&self, begun: &mut [bool]) -> Result<(), Error> {
        let waiting = self
            .ports
            .iter()
            .zip(begun)
            .filter(|((_, made), begun)| made.sends && !**begun);
        for ((name, made), begun) in waiting {
            if let Some(at_ns) = made.port.began_ns() {
                *begun = true;
                say(
                    self.to,
                    Reply::Began {
                        port: name.to_string(),
                        at_ns,
                    },
                );
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
        let mut generators = self.ports.iter().filter(|(_, made)| made.sends).peekable();
        match generators.peek() {
            Some(_) => generators.all(|(_, made)| made.port.finished()),
            None => monotonic_ns() >= self.at_ns.saturating_add(self.order.load.duration_ns),
        }
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    fn report(&self) {
        for (name, made) in &self.ports {
            let (frames, closed) = (made.port.frames(), made.port.closed());
            let at_ns = monotonic_ns();
            say(
                self.to,
                Reply::Sample(Sample {
                    port: name.to_string(),
                    at_ns,
                    frames,
                    closed,
                }),
            );
        }
    }

    fn sleep_until(&self, at_ns: u64, over: impl Fn() -> bool) {
        sleep_until(at_ns, NAP, || self.cancelled() || over());
    }
}

fn say(to: &SyncSender<Event>, reply: Reply) {
    // Without a deciding thread, the process is about to end.
    let _ = to.send(Event::Said(reply));
}
