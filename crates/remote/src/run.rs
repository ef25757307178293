//! One command on a host, waited for.

use super::error::{Fault, RemoteError};
use super::execution_target::ExecutionTarget;
use super::files::Feed;
use super::session::{Heard, Kind, Session};
use linerate_hosts::phases::{Cause, Outcome, Output, Signal, Status, Supervision};
use linerate_linux::ports::monotonic_ns;
use linerate_linux::process::pipes;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often is looked at the clock.
const LOOK: Duration = Duration::from_millis(20);
/// Time from the request to end until a command is killed, and then until it is given up.
const GRACE_NS: u64 = 2_000_000_000;

/// A command, and the bounds that it is run in.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// The command for /bin/sh.
    pub command: &'a str,
    /// It is ended when it has run this long.
    pub limit: Duration,
    /// Bytes that are kept of each of its outputs: the first half and the last.
    pub most_output: usize,
    /// The first signal, if it has to end early.
    pub stop: Signal,
    /// Whether it is run by `sudo -n`, with the shell that supervises it: that could not end it otherwise.
    pub sudo: bool,
}

impl<'a> Order<'a> {
    /// A command that may take half a minute, of whose outputs 64 KiB each are kept.
    pub fn new(command: &'a str) -> Order<'a> {
        Order {
            command,
            limit: Duration::from_secs(30),
            most_output: 64 * 1024,
            stop: Signal::Terminate,
            sudo: false,
        }
    }

    /// By `sudo -n`, if that is wanted.
    #[must_use]
    pub fn by_sudo(mut self, sudo: bool) -> Order<'a> {
        self.sudo = sudo;
        self
    }

    /// With another limit.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Order<'a> {
        self.limit = limit;
        self
    }
}

/// A command that is over.
#[derive(Debug, Clone)]
pub struct Finished {
    /// [`Outcome::Ended`], [`Outcome::TimedOut`] or [`Outcome::Interrupted`].
    pub outcome: Outcome,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
}

impl Finished {
    /// Whether it ended by itself and with status 0.
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Ended(Status::Exit(0))
    }

    /// Its standard output as far as it was kept, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout.bytes()).into_owned()
    }

    /// Its standard error as far as it was kept, as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr.bytes()).into_owned()
    }
}

impl ExecutionTarget {
    /// Runs a command and waits for its end. A command that fails is no error.
    ///
    /// # Errors
    /// The host was lost, or runs no commands.
    pub fn run(&self, order: &Order<'_>, interrupted: Option<&AtomicBool>) -> Result<Finished, RemoteError> {
        self.run_fed(order, None, interrupted)?
            .map_err(|e| RemoteError::system(self.name(), "run a command", &e))
    }

    /// The same with an input. The inner error: the input cannot be read.
    pub(super) fn run_fed(
        &self,
        order: &Order<'_>,
        input: Option<Feed<'_>>,
        interrupted: Option<&AtomicBool>,
    ) -> Result<io::Result<Finished>, RemoteError> {
        let mut kept = [Output::new(order.most_output), Output::new(order.most_output)];
        let mut each = |heard| {
            if let Heard::Wrote(stream, bytes) = heard {
                kept[stream as usize].push(&bytes);
            }
        };
        let outcome = self.exchange(order, input, interrupted, &mut each)?;
        let [stdout, stderr] = kept;
        Ok(outcome.map(|outcome| Finished { outcome, stdout, stderr }))
    }

    /// Runs a command, passes on its output, and waits for its end.
    pub(super) fn exchange(
        &self,
        order: &Order<'_>,
        mut input: Option<Feed<'_>>,
        interrupted: Option<&AtomicBool>,
        each: &mut dyn FnMut(Heard),
    ) -> Result<io::Result<Outcome>, RemoteError> {
        let kind = if input.is_some() { Kind::Fed } else { Kind::Watched };
        let supervision = Supervision::new(u64::try_from(order.limit.as_nanos()).ok(), GRACE_NS);
        let mut session = Session::start_as(self, kind, order.command, order.sudo, supervision)?;
        loop {
            let mut wanted: Vec<_> = session.watched().map(|fd| (fd, libc::POLLIN)).collect();
            if let Some(feed) = &mut input {
                if let Err(error) = feed.go_on(&session) {
                    return Ok(Err(error));
                }
                let room = session.input().filter(|_| feed.has_more());
                wanted.extend(room.map(|fd| (fd, libc::POLLOUT)));
            }
            pipes::poll(&wanted, LOOK).map_err(|e| RemoteError::system(self.name(), "wait for ssh", &e))?;
            let now = monotonic_ns();
            if let Some(outcome) = session.step(self, now, each)? {
                return Ok(Ok(outcome));
            }
            if session.is_ready() {
                session.go(now);
            }
            if interrupted.is_some_and(|interrupted| interrupted.load(Ordering::Relaxed)) {
                session.stop(Cause::Interrupt, order.stop, now);
            }
        }
    }
}

/// The error of a session that could not be started.
pub(super) fn not_started(host: &str, said: &str) -> RemoteError {
    let refused =
        ["session request failed", "open refused", "open failed"].iter().any(|sign| said.contains(sign));
    if refused {
        return RemoteError::new(host, Fault::Sessions, "");
    }
    // How a session is kept from making a connection of its own is nothing that a user could do something about.
    let ours = |line: &str| {
        ["/nonexistent", "kex_exchange_identification", "UNKNOWN port"].iter().any(|sign| line.contains(sign))
    };
    let said: Vec<&str> =
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !ours(line)).collect();
    RemoteError::new(host, Fault::NoShell, said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_of_our_own_doing_is_not_told() {
        let ours = "/bin/bash: line 1: /nonexistent: No such file or directory\r\n\
                    kex_exchange_identification: Connection closed by remote host\r\n\
                    Connection closed by UNKNOWN port 65535\r\n";
        let refused = not_started(
            "r1",
            &format!(
                "mux_client_request_session: session request failed: Session open refused by peer\n{ours}"
            ),
        );
        assert_eq!((refused.fault, refused.said.as_str()), (Fault::Sessions, ""));
        let shell = not_started("r1", &format!("no home\r\n\r\n{ours}This account is not available.\n"));
        assert_eq!(
            (shell.fault, shell.said.as_str()),
            (Fault::NoShell, "no home; This account is not available.")
        );
    }
}
