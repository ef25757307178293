//! Commands of a plan that run on a host: after a load, or while it lasts. These start before it, are left alone under it, and are ended and
//! fetched after it: a host that answers nobody under load is waited for afterwards only.

use super::execution_target::ExecutionTarget;
use super::session::{Kind, Session};
use super::{Order, words};
use linerate_hosts::phases::{Cause, Outcome, Output, Signal, Status, Supervision};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::pipes;
use linerate_measure::collector::{Artefact, Collector};
use linerate_measure::record::Collected;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of each command's output that are kept: the first half and the last.
const MOST: usize = 64 * 1024;
/// How long a command after a load may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(30);
/// How long commands may take to begin, all together.
const BEGIN_NS: u64 = 10_000_000_000;
/// How long a command that was interrupted may take to end before it is told to, then before it is killed, then before it is given up.
const END_NS: u64 = 2_000_000_000;
/// How often orders are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Orders to the thread.
const WATCH: u8 = 0;
const END: u8 = 1;
const ABANDON: u8 = 2;

/// Commands of a plan that run on a host while a load does. When this is dropped, they are ended.
pub struct UnderLoad {
    host: Observed,
    commands: Vec<String>,
    order: Arc<AtomicU8>,
    thread: Option<JoinHandle<Vec<Collected>>>,
}

/// A host that is observed.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Where commands run.
    pub target: Arc<ExecutionTarget>,
    /// Whether they need sudo.
    pub sudo: bool,
}

impl UnderLoad {
    /// Lines for the shell, each in a session of its own.
    pub fn new(host: Observed, commands: Vec<String>) -> UnderLoad {
        UnderLoad { host, commands, order: Arc::new(AtomicU8::new(WATCH)), thread: None }
    }
}

impl Collector for UnderLoad {
    fn name(&self) -> &'static str {
        "during"
    }

    /// Starts the commands and waits until they run. What cannot be started is told with the outputs.
    fn before(&mut self) -> Result<(), String> {
        let (begun, all_begun) = channel();
        let Observed { target: place, sudo } = self.host.clone();
        let (commands, order) = (std::mem::take(&mut self.commands), Arc::clone(&self.order));
        self.thread = Some(thread::spawn(move || {
            let all = commands.into_iter().map(|command| Command::start(&place, command, sudo)).collect();
            Watch { place, all, order }.run(begun)
        }));
        let _ = all_begun.recv();
        Ok(())
    }

    /// Ends them (SIGINT, then SIGTERM) and gives what they have said, in the order of the commands.
    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        self.order.store(END, Ordering::Relaxed);
        let said = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        Ok(said.into_iter().map(Artefact::Output).collect())
    }
}

impl Drop for UnderLoad {
    fn drop(&mut self) {
        self.order.store(ABANDON, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Commands of a plan that run on a host after a load.
pub struct AfterLoad {
    host: Observed,
    commands: Vec<String>,
}

impl AfterLoad {
    /// Lines for the shell.
    pub fn new(host: Observed, commands: Vec<String>) -> AfterLoad {
        AfterLoad { host, commands }
    }
}

impl Collector for AfterLoad {
    fn name(&self) -> &'static str {
        "commands"
    }

    fn after(&mut self) -> Result<Vec<Artefact>, String> {
        let said = |command: &String| {
            let output = self.host.output(command);
            Artefact::Output(Collected { command: command.clone(), output })
        };
        Ok(self.commands.iter().map(said).collect())
    }
}

impl Observed {
    /// The output of a line for the shell.
    ///
    /// # Errors
    /// Why there is none.
    pub fn output(&self, command: &str) -> Result<String, String> {
        let words = ["sh", "-c", command].map(String::from);
        let command = words::line(&words, false);
        let order = Order { command: &command, limit: COMMAND_WITHIN, most_output: MOST, sudo: self.sudo };
        match self.target.run(&order, None) {
            Ok(finished) if finished.is_success() => Ok(finished.text()),
            Ok(finished) if finished.outcome == Outcome::TimedOut => {
                Err(format!("it was killed: it had not ended after {} s", COMMAND_WITHIN.as_secs()))
            }
            Ok(finished) => Err(match finished.outcome {
                Outcome::Ended(status) => how_it_ended(status, finished.errors().trim()),
                _ => "linerate was interrupted".into(),
            }),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// All commands of a host.
struct Watch {
    place: Arc<ExecutionTarget>,
    all: Vec<Command>,
    order: Arc<AtomicU8>,
}

impl Watch {
    fn run(mut self, begun: Sender<()>) -> Vec<Collected> {
        let (mut begun, since) = (Some(begun), monotonic_ns());
        loop {
            let now = monotonic_ns();
            self.all.iter_mut().for_each(|collector| collector.hear(&self.place, now));
            if self.all.iter().all(Command::is_under_way) || now.saturating_sub(since) > BEGIN_NS {
                begun = None;
            }
            let over = self.all.iter().all(|collector| collector.result.is_some());
            match self.order.load(Ordering::Relaxed) {
                ABANDON => return Vec::new(),
                END if over => break,
                END => self.all.iter_mut().for_each(|collector| collector.end(now)),
                _ => {}
            }
            // Outputs that a command has left open say nothing more.
            let running = self.all.iter().filter(|c| c.result.is_none()).filter_map(|c| c.session.as_ref());
            let wanted: Vec<_> =
                running.flat_map(|session| session.watched()).map(|fd| (fd, libc::POLLIN)).collect();
            if begun.is_none() && over || pipes::poll(&wanted, LOOK).is_err() {
                thread::sleep(LOOK);
            }
        }
        self.all.into_iter().filter_map(Command::collected).collect()
    }
}

/// One command.
struct Command {
    command: String,
    session: Option<Session>,
    kept: [Output; 2],
    /// Once it is over: why there is nothing of it, if that is so.
    result: Option<Result<(), String>>,
}

impl Command {
    fn start(place: &ExecutionTarget, command: String, sudo: bool) -> Command {
        let words = ["sh", "-c", &command].map(String::from);
        let line = format!("exec {}", words::line(&words, false));
        let supervision = Supervision::new(None, END_NS);
        let (session, result) = match Session::start_as(place, Kind::Watched, &line, sudo, supervision) {
            Ok(session) => (Some(session), None),
            Err(error) => (None, Some(Err(error.to_string()))),
        };
        let kept = [Output::new(MOST), Output::new(MOST)];
        Command { command, session, kept, result }
    }

    /// Whether it runs, or will not any more.
    fn is_under_way(&self) -> bool {
        self.result.is_some() || self.session.as_ref().is_some_and(|session| session.began.is_some())
    }

    fn hear(&mut self, place: &ExecutionTarget, now: u64) {
        let Some(session) = self.session.as_mut().filter(|_| self.result.is_none()) else { return };
        let kept = &mut self.kept;
        self.result = match session.step(place, now, &mut |stream, bytes| kept[stream as usize].push(bytes)) {
            Ok(None) => None,
            Ok(Some(Outcome::Ended(status))) if status != Status::Exit(0) => {
                Some(Err(how_it_ended(status, String::from_utf8_lossy(&kept[1].bytes()).trim())))
            }
            Ok(Some(_)) => Some(Ok(())),
            Err(error) => Some(Err(error.to_string())),
        };
        if session.is_ready() {
            session.go(now);
        }
    }

    /// Ends it: asked to, told to, killed, given up.
    fn end(&mut self, now: u64) {
        if let Some(session) = self.session.as_mut().filter(|_| self.result.is_none()) {
            session.stop(Cause::Trial, Signal::Interrupt, now);
        }
    }

    fn collected(self) -> Option<Collected> {
        let output = self.result?.map(|()| String::from_utf8_lossy(&self.kept[0].bytes()).into_owned());
        Some(Collected { command: self.command, output })
    }
}

/// Why a command has no output; `said`: its errors.
fn how_it_ended(status: Status, said: &str) -> String {
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    match status {
        Status::Exit(status) => format!("it ended with status {status}{said}"),
        Status::Signal(signal) => format!("it was ended by signal {signal}{said}"),
    }
}
