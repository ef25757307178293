//! A command under supervision: its session, how far it has come, and when it is ended.

use crate::error::{Fault, RemoteError};
use crate::execution_target::ExecutionTarget;
use crate::run::not_started;
use crate::session::{Kind, Said, Session, Stream};
use linerate_hosts::clock::{Offset, Probe, Stamp};
use linerate_hosts::phases::{Cause, Due, Outcome, Output, Signal, Status, Supervision};
use linerate_linux::ports::monotonic_ns;

/// Questions to a clock.
pub(crate) const PROBES: usize = 5;
/// How long a session may take to be ready, and how long its command may then take to begin.
const READY_WITHIN_NS: u64 = 10_000_000_000;
/// How much later than its session the end of a connection may be seen.
const NEWS_NS: u64 = 300_000_000;

/// A command whose session is open.
pub(crate) struct Live {
    pub(crate) session: Session,
    supervision: Supervision,
    opened_ns: u64,
    ready: bool,
    asked_ns: Option<u64>,
    /// How often its clock was asked.
    pub(crate) questions: usize,
    probes: Vec<Probe>,
    /// When it was told to go.
    pub(crate) went_ns: Option<u64>,
    /// When it said that it had begun, and its own time of that.
    pub(crate) began: Option<(u64, Option<Stamp>)>,
    /// When the session was closed without a word.
    closed_ns: Option<u64>,
    said: String,
    /// The status that it ended with, where that is known.
    pub(crate) status: Option<Status>,
    /// Its output, where that is kept here.
    pub(crate) output: Output,
}

/// News of a command.
pub(crate) enum Heard {
    Began,
    Wrote(Stream, Vec<u8>),
    /// The host ended it because it did not hear of linerate.
    Unheard,
    Over(Status),
}

impl Live {
    /// Of a session that was just started. One that is fed has begun.
    pub(crate) fn of(session: Session, mut supervision: Supervision, most_output: usize) -> Live {
        let (fed, opened_ns) = (session.kind() == Kind::Fed, monotonic_ns());
        if fed {
            supervision.begin(opened_ns);
        }
        Live {
            session,
            supervision,
            opened_ns,
            ready: fed,
            asked_ns: None,
            questions: 0,
            probes: Vec::new(),
            went_ns: fed.then_some(opened_ns),
            began: fed.then_some((opened_ns, None)),
            closed_ns: None,
            said: String::new(),
            status: None,
            output: Output::new(most_output),
        }
    }

    /// Whether it could be told to go.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready && self.went_ns.is_none() && self.asked_ns.is_none()
    }

    /// Whether its clock was asked and has not answered.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked_ns.is_some()
    }

    /// When it began, or else when its session was opened.
    pub(crate) fn began_ns(&self) -> u64 {
        self.began.map_or(self.opened_ns, |(at, _)| at)
    }

    /// When it began, in nanoseconds of CLOCK_MONOTONIC here, and how wrong that can be: by the host's clock, or between the order and
    /// the answer, whichever is known better.
    pub(crate) fn began_here(&self) -> Option<(u64, u64)> {
        let (answered, stamp) = self.began?;
        let went = self.went_ns?;
        let half = answered.saturating_sub(went) / 2;
        let by_clock = Offset::of(&self.probes)
            .zip(stamp)
            .map(|(offset, stamp)| (offset.here(stamp.ns), offset.within_ns.saturating_add(stamp.error_ns)));
        Some(by_clock.filter(|(_, error)| *error < half).unwrap_or((went + half, half)))
    }

    pub(crate) fn ask_clock(&mut self) {
        self.asked_ns = Some(monotonic_ns());
        self.questions += 1;
        self.session.ask_clock();
    }

    pub(crate) fn go(&mut self, now: u64) {
        self.went_ns = Some(now);
        // Its limit counts anew when it says that it has begun.
        self.supervision.begin(now.saturating_add(READY_WITHIN_NS));
        self.session.go();
    }

    /// Begins to end it by this signal, unless that was begun before.
    pub(crate) fn stop(&mut self, cause: Cause, signal: Signal, now: u64) {
        if self.supervision.stop(cause, signal, now) {
            self.send(signal);
        }
    }

    /// Whether it was told to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.supervision.is_ending()
    }

    fn send(&mut self, signal: Signal) {
        match signal {
            Signal::Interrupt => self.session.interrupt(),
            Signal::Terminate => self.session.terminate(),
            Signal::Kill => self.session.kill(),
        }
    }

    /// Does what is due by now. `true`: it could not be ended, and is given up.
    pub(crate) fn press(&mut self, now: u64) -> bool {
        match self.supervision.due(now) {
            Some(Due::Send(signal)) => self.send(signal),
            Some(Due::GiveUp) => return true,
            None => {}
        }
        false
    }

    /// Takes what there is to hear, hands on what was written, and does what is due; its outcome, once it is over. The status that it
    /// ended with is then in [`Live::status`].
    pub(crate) fn step(
        &mut self,
        place: &ExecutionTarget,
        now: u64,
        each: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Option<Outcome>, RemoteError> {
        let heard = self.hear(now).map_err(|e| RemoteError::system(place.name(), "wait for ssh", &e))?;
        for heard in heard {
            match heard {
                Heard::Began => {}
                Heard::Wrote(stream, bytes) => each(stream, &bytes),
                Heard::Unheard => {
                    return Err(RemoteError::new(place.name(), Fault::Unheard(place.silence()), ""));
                }
                Heard::Over(status) => return Ok(Some(self.over(status))),
            }
        }
        if let Some(lost) = place.lost() {
            return Err(lost);
        }
        if self.is_overdue(now) {
            return self.vanished(place.name()).map(Some);
        }
        Ok(self.press(now).then(|| self.given_up()))
    }

    /// When [`Live::press`] has something to do.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.supervision.deadline_ns()
    }

    /// Its outcome, now that it has ended.
    pub(crate) fn over(&mut self, status: Status) -> Outcome {
        self.status = Some(status);
        self.supervision.outcome(self.status)
    }

    /// Its outcome where it could not be ended.
    pub(crate) fn given_up(&self) -> Outcome {
        self.supervision.outcome(None)
    }

    pub(crate) fn hear(&mut self, now: u64) -> std::io::Result<Vec<Heard>> {
        let mut heard = Vec::new();
        for said in self.session.read()? {
            match said {
                Said::Ready => self.ready = true,
                Said::Clock(text) => {
                    if let (Some(asked), Some(Stamp { ns, error_ns })) =
                        (self.asked_ns.take(), Stamp::parse(&text))
                    {
                        self.probes.push(Probe { asked, there: [ns; 2], error_ns, received: now });
                    }
                }
                Said::Began(text) => {
                    self.began = Some((now, Stamp::parse(&text)));
                    self.supervision.begin(now);
                    heard.push(Heard::Began);
                }
                Said::Wrote(stream, bytes) => heard.push(Heard::Wrote(stream, bytes)),
                Said::Unheard => heard.push(Heard::Unheard),
                Said::Over(status) => heard.push(Heard::Over(status)),
                Said::Closed(said) => (self.closed_ns, self.said) = (Some(now), said),
            }
        }
        Ok(heard)
    }

    /// Whether news of it is overdue although its connection is there.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        let late = !self.ready && now.saturating_sub(self.opened_ns) > READY_WITHIN_NS;
        let asked = self.asked_ns.is_some_and(|asked| now.saturating_sub(asked) > READY_WITHIN_NS);
        late || asked || self.closed_ns.is_some_and(|closed| now.saturating_sub(closed) > NEWS_NS)
    }

    /// What became of one that is overdue: somebody killed it on its host, or it was never started.
    pub(crate) fn vanished(&mut self, host: &str) -> Result<Outcome, RemoteError> {
        match self.went_ns.is_some() || self.supervision.is_ending() {
            true => Ok(self.over(Status::Signal(libc::SIGKILL))),
            false => Err(self.not_started(host)),
        }
    }

    /// Why it was not started.
    fn not_started(&self, host: &str) -> RemoteError {
        if self.closed_ns.is_some() {
            return not_started(host, &self.said);
        }
        let said = format!("no shell within {} s", READY_WITHIN_NS / 1_000_000_000);
        RemoteError::new(host, Fault::NoShell, said)
    }
}
