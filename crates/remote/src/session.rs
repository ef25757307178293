//! One command on a host, supervised there by `shell.sh` and here by its deadline: its start and its messages.

use crate::channel::{Control, Part, Scanner, fresh_mark, keep_alive, spawn_piped};
use crate::{
    ExecutionTarget, Fault, Need, Order, RemoteError, Result, SessionPermit, Slot, not_started,
};
use linerate_hosts::clock::{Offset, Probe, Stamp};
use linerate_hosts::phases::{Cause, Due, Outcome, Output, Signal, Status, Supervision};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::pipes::Outlet;
use rustix::process::{self, Pid, kill_process_group};
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

/// The supervising shell.
const SHELL: &str = include_str!("shell.sh");
/// The longest command: script and command fit into a pipe, so that sending them never blocks.
pub const LONGEST: usize = 48 * 1024;
/// How long sending a command may take, should there not be room for it at once.
const SEND: Duration = Duration::from_secs(5);
/// Bytes that are kept of the output before the command begins.
const KEPT: usize = 4096;
/// The shortest pause of the watch: a process is started for each.
const SHORTEST: Duration = Duration::from_millis(200);

/// Questions to a clock.
pub(crate) const PROBES: usize = 5;

/// How a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command waits for [`Session::go`], has no input, and its process group is ended on order and when linerate has ended.
    Watched,
    /// The command begins at once, and the input of the session is its input. It is not supervised: it should end with its input.
    Fed,
}

/// An output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// When a command began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// When it got the order to go. All times are of CLOCK_MONOTONIC of this machine, in nanoseconds.
    pub went_ns: u64,
    /// When it began: by the host's clock, or between the order and the answer, whichever has the smaller error.
    pub at_ns: u64,
    /// Error of that.
    pub error_ns: u64,
}

/// News of a command.
pub(crate) enum Heard {
    Began(Start),
    Wrote(Stream, Vec<u8>),
    Over(Status),
}

/// One command on a host. When it is dropped, the command is ended.
#[derive(Debug)]
pub struct Session {
    child: Child,
    control: Arc<Control>,
    outlets: [Outlet; 2],
    scanners: [Scanner; 2],
    kind: Kind,
    supervision: Supervision,
    /// The first signal, if it has to end early.
    stop: Signal,
    /// When it said that it had begun, or else when it was opened.
    pub(crate) began_ns: u64,
    ready: bool,
    asked_ns: Option<u64>,
    /// How often its clock was asked.
    pub(crate) questions: usize,
    probes: Vec<Probe>,
    /// When it got the order to go.
    pub(crate) went_ns: Option<u64>,
    /// The number of the command's process there, once it is known.
    process: Option<u32>,
    /// Output that comes now is the command's own.
    own: bool,
    told: bool,
    killed: bool,
    /// The host did not hear of linerate for so long that it ended the command.
    unheard: bool,
    over: [Option<Status>; 2],
    /// When the session was closed without news of the command's end: it was killed, or the connection is lost.
    closed_ns: Option<u64>,
    finished: bool,
    /// Exit status; `None` also of a command that could not be ended.
    pub(crate) status: Option<Status>,
    /// Output that came before it was ready.
    before: String,
    /// Output, if it is kept here.
    pub(crate) output: Output,
    /// Dropped last: the room is free when the session has ended.
    permit: SessionPermit,
}

impl Session {
    /// Sends a command to a place. By `sudo -n`, the supervising shell is root's, too: it could not end what root runs otherwise. On this
    /// machine this is not necessary, and `sudo` is ignored.
    ///
    /// # Errors
    /// The command cannot be sent, or ssh not be run.
    pub fn start(place: &ExecutionTarget, kind: Kind, order: &Order) -> Result<Session> {
        Session::start_in(place, place.permit_in_time(Need::Last)?, kind, order)
    }

    /// Sends a command to a place where room was found for it.
    pub(super) fn start_in(
        place: &ExecutionTarget,
        permit: SessionPermit,
        kind: Kind,
        order: &Order,
    ) -> Result<Session> {
        let (command, mut supervision) = (&order.command, order.supervision());
        if command.len() > LONGEST || command.contains('\0') {
            let length = command.len();
            let said = format!("{length} bytes; {LONGEST} bytes without a NUL are possible");
            return Err(place.error(Fault::Command, said));
        }
        let mark = fresh_mark().map_err(place.system("make a mark"))?;
        let spawned = spawn_piped(&mut place.command(order.sudo, &permit));
        let (child, stdin, outputs) = spawned.map_err(place.system("ssh"))?;
        let control = Control::new(stdin).map_err(place.system("prepare a pipe"))?;
        let pause = (place.silence() / 2).max(SHORTEST);
        let sent = control.write_all(script(&mark, kind, pause, command).as_bytes(), SEND);
        // One that is fed has begun.
        let (fed, began_ns) = (kind == Kind::Fed, monotonic_ns());
        if fed {
            supervision.begin(began_ns);
        }
        let session = Session {
            child,
            control,
            outlets: outputs.map(|pipe| Outlet::new(Some(pipe))),
            scanners: [Scanner::new(&mark), Scanner::new(&mark)],
            kind,
            supervision,
            stop: order.stop,
            began_ns,
            ready: fed,
            asked_ns: None,
            questions: 0,
            probes: Vec::new(),
            went_ns: fed.then_some(began_ns),
            process: None,
            own: false,
            told: false,
            killed: false,
            unheard: false,
            over: [None; 2],
            closed_ns: None,
            finished: false,
            status: None,
            before: String::new(),
            output: Output::new(0),
            permit,
        };
        // Where ssh ended before it read the command, it says why: that is heard in due course.
        if let Err(error) = sent
            && error.kind() != ErrorKind::BrokenPipe
        {
            return Err(place.system("send a command")(error));
        }
        if !fed {
            keep_alive(&session.control, pause / 4).map_err(place.system("start a thread"))?;
        }
        Ok(session)
    }

    /// An order that cannot be given any more is one to a session that is over: that is heard of in due course.
    fn order(&self, line: &str) {
        let _ = self.control.line(line);
    }

    /// Gives the command input: as much as there is room for. An error: the command reads no more.
    pub(crate) fn feed(&self, bytes: &[u8]) -> std::io::Result<usize> {
        self.control.write(bytes)
    }

    /// The descriptor to poll before [`Session::feed`].
    pub(crate) fn input(&self) -> Option<RawFd> {
        self.control.fd()
    }

    /// Ends the input. A command that is watched is ended with it.
    pub(crate) fn close_input(&self) {
        self.control.close();
    }

    /// The descriptors to poll before [`Session::step`].
    pub(crate) fn watched(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.outlets.iter().filter_map(Outlet::fd)
    }

    /// The host did not take the session: others are not tried over the same line for a while. Whether they are worth it at all.
    pub(super) fn refused(&self) -> bool {
        self.permit.as_ref().is_some_and(Slot::refused)
    }

    /// The news that have arrived.
    fn hear(&mut self, now: u64) -> std::io::Result<Vec<Heard>> {
        // Standard error of the command comes after the news on standard output that it begins. So it is read first, and sorted in last.
        let (mut heard, mut parts) = (Vec::new(), Vec::new());
        for stream in [Stream::Error, Stream::Output] {
            let outlet = &mut self.outlets[stream as usize];
            let scanner = &mut self.scanners[stream as usize];
            let (open, mut of_stream) = (!outlet.is_closed(), Vec::new());
            outlet.read(&mut |bytes| scanner.feed(bytes, &mut of_stream))?;
            if open && outlet.is_closed() {
                scanner.finish(&mut of_stream);
            }
            parts.push((stream, of_stream));
        }
        for (stream, of_stream) in parts.into_iter().rev() {
            of_stream
                .into_iter()
                .for_each(|part| self.take(stream, part, now, &mut heard));
        }
        self.judge(now, &mut heard);
        Ok(heard)
    }

    fn take(&mut self, stream: Stream, part: Part, now: u64, heard: &mut Vec<Heard>) {
        match part {
            // The start files of a login shell may print something, which is not the command's.
            Part::Bytes(bytes) if !self.own => {
                let room = KEPT.saturating_sub(self.before.len());
                self.before
                    .extend(String::from_utf8_lossy(&bytes).chars().take(room));
            }
            Part::Bytes(bytes) => match heard.last_mut() {
                Some(Heard::Wrote(of, all)) if *of == stream => all.extend(bytes),
                _ => heard.push(Heard::Wrote(stream, bytes)),
            },
            Part::Marked(text) => match text.split_once(' ').unwrap_or((&text, "")) {
                ("ready", _) => {
                    self.own |= self.kind == Kind::Fed;
                    self.ready = true;
                }
                ("clock", time) => {
                    if let (Some(asked), Some(Stamp { ns, error_ns })) =
                        (self.asked_ns.take(), Stamp::parse(time))
                    {
                        self.probes.push(Probe {
                            asked,
                            there: [ns; 2],
                            error_ns,
                            received: now,
                        });
                    }
                }
                ("process", number) => self.process = number.parse().ok(),
                ("began", time) => {
                    (self.own, self.began_ns) = (true, now);
                    self.supervision.begin(now);
                    heard.push(Heard::Began(self.begin(Stamp::parse(time))));
                }
                ("over", told) => {
                    let (number, silent) = told.split_once(' ').unwrap_or((told, ""));
                    self.over[stream as usize] = number.parse().ok().map(Status::of_shell);
                    self.unheard |= silent == "silent";
                }
                _ => {}
            },
        }
    }

    fn judge(&mut self, now: u64, heard: &mut Vec<Heard>) {
        if self.finished {
            return;
        }
        let closed = self.outlets.iter().all(Outlet::is_closed);
        let end = match self.over {
            [Some(status), Some(_)] => {
                // The processes that the command left behind are ended now. After a request to end, they may still write output.
                self.control.close();
                (closed || !self.told).then_some(Heard::Over(status))
            }
            _ if closed && self.killed => Some(Heard::Over(Status::Signal(libc::SIGKILL))),
            [Some(status), _] | [_, Some(status)] if closed => Some(Heard::Over(status)),
            _ if closed => {
                self.closed_ns = Some(now);
                None
            }
            _ => None,
        };
        self.finished = end.is_some() || closed;
        heard.extend(end);
    }
}

/// The text that is sent: the supervising shell without its comments, its settings, and the command by lines.
fn script(mark: &str, kind: Kind, pause: Duration, command: &str) -> String {
    let remark = |line: &&str| !line.trim_start().starts_with('#');
    let mut text: String = SHELL
        .lines()
        .filter(remark)
        .flat_map(|line| [line.trim_start(), "\n"])
        .collect();
    let mode = match kind {
        Kind::Watched => "watched",
        Kind::Fed => "feed",
    };
    let lines = command.split('\n').count();
    text += &format!(
        ".\n{mark} {mode} {:.3} {lines}\n{command}\n",
        pause.as_secs_f64()
    );
    text
}

impl Drop for Session {
    fn drop(&mut self) {
        self.control.close();
        // The child leads its group and has not been waited for: its number is its own.
        let _ = kill_process_group(Pid::from_child(&self.child), process::Signal::KILL);
        let _ = self.child.wait();
    }
}

/// How long a session may take to be ready, and how long its command may then take to begin.
const READY_WITHIN_NS: u64 = 10_000_000_000;
/// How much later than its session the end of a connection may be seen, on a busy machine.
const NEWS_NS: u64 = 2_000_000_000;

impl Session {
    /// Whether it is ready for the order to go.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready && self.went_ns.is_none() && self.asked_ns.is_none()
    }

    /// Whether its clock was asked and has not answered.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked_ns.is_some()
    }

    /// When it began, by its own time of that, now that it has said so.
    fn begin(&self, stamp: Option<Stamp>) -> Start {
        let went_ns = self.went_ns.unwrap_or(self.began_ns);
        let half = self.began_ns.saturating_sub(went_ns) / 2;
        let by_clock = Offset::of(&self.probes).zip(stamp).map(|(offset, stamp)| {
            let error_ns = offset.within_ns.saturating_add(stamp.error_ns);
            (offset.here(stamp.ns), error_ns)
        });
        let (at_ns, error_ns) = by_clock
            .filter(|(_, error)| *error < half)
            .unwrap_or((went_ns + half, half));
        Start {
            went_ns,
            at_ns,
            error_ns,
        }
    }

    /// Asks for the time, before the command is started only.
    pub(crate) fn ask_clock(&mut self) {
        self.asked_ns = Some(monotonic_ns());
        self.questions += 1;
        self.order("clock");
    }

    /// Starts the command.
    pub(crate) fn go(&mut self, now: u64) {
        self.went_ns = Some(now);
        // The limit counts anew when the command reports that it has begun.
        self.supervision.begin(now.saturating_add(READY_WITHIN_NS));
        self.order("go");
    }

    /// Begins to end it, unless that was begun before.
    pub(crate) fn stop(&mut self, cause: Cause, now: u64) {
        if self.supervision.stop(cause, self.stop, now) {
            self.send(self.stop);
        }
    }

    /// Sends an interrupt to the command's own process alone: many programs print their totals then, but some end at a second
    /// interrupt without a word. The other signals go to all processes of the command. A command that is fed ends with its input:
    /// no order reaches it.
    fn send(&mut self, signal: Signal) {
        if self.kind == Kind::Fed {
            return self.close_input();
        }
        match (signal, self.process) {
            (Signal::Interrupt, Some(process)) => return self.order(&format!("int {process}")),
            (Signal::Kill, _) => {
                self.killed = true;
                self.order("kill");
            }
            _ => self.order("term"),
        }
        self.told = true;
    }

    /// Takes the messages that have arrived, keeps and passes on its output, passes on its beginning, and takes the steps that are due.
    /// Returns its outcome, once it is over. Its exit status is then in [`Session::status`].
    pub(crate) fn step(
        &mut self,
        place: &ExecutionTarget,
        now: u64,
        each: &mut dyn FnMut(Heard),
    ) -> Result<Option<Outcome>> {
        let heard = self.hear(now).map_err(place.system("wait for ssh"))?;
        for heard in heard {
            match &heard {
                Heard::Over(status) => {
                    let outcome = self.over(*status);
                    let unheard = Fault::Unheard(place.silence());
                    return match self.unheard {
                        true => Err(place.error(unheard, "")),
                        false => Ok(Some(outcome)),
                    };
                }
                Heard::Wrote(_, bytes) => self.output.push(bytes),
                Heard::Began(_) => {}
            }
            each(heard);
        }
        if self.is_overdue(now) {
            return match place.lost() {
                Some(lost) => Err(lost),
                // Killed on its host, or else never started.
                None if self.went_ns.is_some() || self.supervision.is_ending() => {
                    Ok(Some(self.over(Status::Signal(libc::SIGKILL))))
                }
                None => Err(self.not_started(place.name())),
            };
        }
        match self.supervision.due(now) {
            Some(Due::Send(signal)) => self.send(signal),
            Some(Due::GiveUp) => return Ok(Some(self.outcome())),
            None => {}
        }
        Ok(None)
    }

    /// When [`Session::step`] has something to do, whatever arrives.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.supervision.deadline_ns()
    }

    /// Whether [`Session::step`] has something to do by now, whatever has arrived.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.deadline_ns().is_some_and(|at| at <= now) || self.is_overdue(now)
    }

    fn over(&mut self, status: Status) -> Outcome {
        self.status = Some(status);
        self.outcome()
    }

    /// Outcome of the command, now that it has ended, or is given up.
    pub(crate) fn outcome(&self) -> Outcome {
        self.supervision.outcome(self.status)
    }

    /// Whether news of it is overdue although its connection is there.
    fn is_overdue(&self, now: u64) -> bool {
        let over = |since: Option<u64>, most| since.is_some_and(|at| now.saturating_sub(at) > most);
        over((!self.ready).then_some(self.began_ns), READY_WITHIN_NS)
            || over(self.asked_ns, READY_WITHIN_NS)
            || over(self.closed_ns, NEWS_NS)
    }

    /// Why it was not started.
    fn not_started(&self, host: &str) -> RemoteError {
        if self.closed_ns.is_some() {
            return not_started(host, self.before.trim());
        }
        let said = format!("no shell within {} s", READY_WITHIN_NS / 1_000_000_000);
        RemoteError::new(host, Fault::NoShell, said)
    }
}
