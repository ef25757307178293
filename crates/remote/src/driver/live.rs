//! A step whose session is open.

use crate::clock::{Offset, Probe, Stamp};
use crate::error::{Fault, RemoteError};
use crate::execution_target::{ExecutionTarget, SessionPermit};
use crate::run::not_started;
use crate::session::{Kind, Said, Session, Stream};
use linerate_hosts::phases::{Signal, Status};
use linerate_linux::ports::monotonic_ns;

/// How long a session may take to be ready.
const READY_WITHIN_NS: u64 = 10_000_000_000;
/// How much later than its session the end of a connection may be seen.
const NEWS_NS: u64 = 300_000_000;

/// A step whose session is open.
pub(crate) struct Live {
    pub(crate) session: Session,
    opened_ns: u64,
    ready: bool,
    asked_ns: Option<u64>,
    /// How often its clock was asked.
    pub(crate) questions: usize,
    pub(crate) probes: Vec<Probe>,
    /// When it was told to go.
    pub(crate) went_ns: Option<u64>,
    /// When its answer came, and what it said.
    pub(crate) began: Option<(u64, Option<Stamp>)>,
    /// When the session was closed without a word.
    pub(crate) closed_ns: Option<u64>,
    said: String,
}

/// What a driver has to know of what was heard.
pub(crate) enum Heard {
    Began,
    Wrote(Stream, Vec<u8>),
    /// The host ended it because it did not hear of linerate.
    Unheard,
    Over(Status),
}

impl Live {
    pub(crate) fn start(
        place: &ExecutionTarget,
        seat: SessionPermit,
        command: &str,
    ) -> Result<Live, RemoteError> {
        Session::start_in(place, seat, Kind::Watched, command, false).map(Live::of)
    }

    /// Of a session that was just started.
    pub(crate) fn of(session: Session) -> Live {
        Live {
            session,
            opened_ns: monotonic_ns(),
            ready: false,
            asked_ns: None,
            questions: 0,
            probes: Vec::new(),
            went_ns: None,
            began: None,
            closed_ns: None,
            said: String::new(),
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

    /// The host's clock against CLOCK_MONOTONIC of this machine.
    pub(crate) fn offset(&self) -> Option<Offset> {
        Offset::estimate(&self.probes)
    }

    /// When it began, in nanoseconds of CLOCK_MONOTONIC here, and how wrong that can be: by the host's clock, or between the order and
    /// the answer, whichever is known better.
    pub(crate) fn began_here(&self) -> Option<(u64, u64)> {
        let (answered, stamp) = self.began?;
        let went = self.went_ns?;
        let half = answered.saturating_sub(went) / 2;
        let by_clock = self.offset().zip(stamp).and_then(|(offset, stamp)| {
            let error_ns = offset.error_ns.saturating_add(stamp.error_ns);
            Some((u64::try_from(offset.here(stamp)).ok()?, error_ns))
        });
        Some(by_clock.filter(|(_, error)| *error < half).unwrap_or((went + half, half)))
    }

    pub(crate) fn ask_clock(&mut self) {
        self.asked_ns = Some(monotonic_ns());
        self.questions += 1;
        self.session.ask_clock();
    }

    pub(crate) fn go(&mut self, now: u64) {
        self.went_ns = Some(now);
        self.session.go();
    }

    pub(crate) fn end(&mut self, signal: Signal) {
        match signal {
            Signal::Terminate => self.session.terminate(),
            Signal::Kill => self.session.kill(),
        }
    }

    pub(crate) fn hear(&mut self, now: u64) -> std::io::Result<Vec<Heard>> {
        let mut heard = Vec::new();
        for said in self.session.read()? {
            match said {
                Said::Ready => self.ready = true,
                Said::Clock(text) => {
                    if let (Some(asked_ns), Some(there)) = (self.asked_ns.take(), Stamp::parse(&text)) {
                        self.probes.push(Probe { asked_ns, answered_ns: now, there });
                    }
                }
                Said::Began(text) => {
                    self.began = Some((now, Stamp::parse(&text)));
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

    /// Whether it is not what it should be, although its connection is there.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        let late = !self.ready && now.saturating_sub(self.opened_ns) > READY_WITHIN_NS;
        let asked = self.asked_ns.is_some_and(|asked| now.saturating_sub(asked) > READY_WITHIN_NS);
        late || asked || self.closed_ns.is_some_and(|closed| now.saturating_sub(closed) > NEWS_NS)
    }

    /// Why it was not started.
    pub(crate) fn not_started(&self, host: &str) -> RemoteError {
        if self.closed_ns.is_some() {
            return not_started(host, &self.said);
        }
        let said = format!("no shell within {} s", READY_WITHIN_NS / 1_000_000_000);
        RemoteError::new(host, Fault::NoShell, said)
    }
}
