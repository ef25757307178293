//! How far a command has come, and when and how it is ended.

use super::{Heard, Kind, Session};
use crate::{ExecutionTarget, Fault, RemoteError, Result, not_started};
use linerate_hosts::clock::Offset;
use linerate_hosts::phases::{Cause, Due, Outcome, Signal, Status};
use linerate_linux::ports::monotonic_ns;

/// How long a session may take to be ready, and how long its command may then take to begin.
const READY_WITHIN_NS: u64 = 10_000_000_000;
/// How much later than its session the end of a connection may be seen.
const NEWS_NS: u64 = 300_000_000;

impl Session {
    /// Whether it is ready for the order to go.
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

    /// When it began, in nanoseconds of CLOCK_MONOTONIC here, and the error of that: by the host's clock, or between the order
    /// and the answer, whichever error is smaller.
    pub(crate) fn began_here(&self) -> Option<(u64, u64)> {
        let (answered, stamp) = self.began?;
        let went = self.went_ns?;
        let half = answered.saturating_sub(went) / 2;
        let by_clock = Offset::of(&self.probes)
            .zip(stamp)
            .map(|(offset, stamp)| (offset.here(stamp.ns), offset.within_ns.saturating_add(stamp.error_ns)));
        Some(by_clock.filter(|(_, error)| *error < half).unwrap_or((went + half, half)))
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
        // Its limit counts anew when it reports that it has begun.
        self.supervision.begin(now.saturating_add(READY_WITHIN_NS));
        self.order("go");
    }

    /// Begins to end it by this signal, unless that was begun before.
    pub(crate) fn stop(&mut self, cause: Cause, signal: Signal, now: u64) {
        if self.supervision.stop(cause, signal, now) {
            self.send(signal);
        }
    }

    /// Whether its end was requested.
    pub(crate) fn is_ending(&self) -> bool {
        self.supervision.is_ending()
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

    /// Takes the step that is due by now. `true`: the command could not be ended, and is given up.
    pub(crate) fn press(&mut self, now: u64) -> bool {
        match self.supervision.due(now) {
            Some(Due::Send(signal)) => self.send(signal),
            Some(Due::GiveUp) => return true,
            None => {}
        }
        false
    }

    /// Takes the messages that have arrived, passes on its beginning and its output, and takes the steps that are due. Returns
    /// its outcome, once it is over. Its exit status is then in [`Session::status`].
    pub(crate) fn step(
        &mut self,
        place: &ExecutionTarget,
        now: u64,
        each: &mut dyn FnMut(Heard),
    ) -> Result<Option<Outcome>> {
        let heard = self.hear(now).map_err(|e| RemoteError::system(place.name(), "wait for ssh", &e))?;
        for heard in heard {
            match heard {
                Heard::Began | Heard::Wrote(..) => each(heard),
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

    /// When [`Session::press`] has something to do.
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

    /// Whether news of it is overdue although its connection is there.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        let late = !self.ready && now.saturating_sub(self.opened_ns) > READY_WITHIN_NS;
        let asked = self.asked_ns.is_some_and(|asked| now.saturating_sub(asked) > READY_WITHIN_NS);
        late || asked || self.closed_ns.is_some_and(|closed| now.saturating_sub(closed) > NEWS_NS)
    }

    /// The outcome of a command that is overdue: it was killed on its host, or never started.
    pub(crate) fn vanished(&mut self, host: &str) -> Result<Outcome> {
        match self.went_ns.is_some() || self.supervision.is_ending() {
            true => Ok(self.over(Status::Signal(libc::SIGKILL))),
            false => Err(self.not_started(host)),
        }
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
