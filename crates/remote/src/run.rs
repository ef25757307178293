//! One command on a host, waited for.

use super::error::{Fault, RemoteError};
use super::execution_target::ExecutionTarget;
use super::session::{Kind, Said, Session, Stream};
use linerate_hosts::phases::{Output, Status};
use linerate_linux::process::pipes;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often is looked at the clock.
const LOOK: Duration = Duration::from_millis(20);
/// How long a command that was told to end may take before it is killed, and then, before it is given up.
const GRACE: Duration = Duration::from_secs(2);
/// How long a session may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How much later than its session the end of a connection may be seen.
const NEWS: Duration = Duration::from_millis(300);

/// A command, and the bounds that it is run in.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// What /bin/sh is given.
    pub command: &'a str,
    /// It is ended when it has run this long.
    pub limit: Duration,
    /// Bytes that are kept of each of its outputs: the first half and the last.
    pub most_output: usize,
    /// Whether it is run by `sudo -n`, with the shell that supervises it: that could not end it otherwise.
    pub sudo: bool,
}

impl<'a> Order<'a> {
    /// A command that may take half a minute, of whose outputs 64 KiB each are kept.
    pub fn new(command: &'a str) -> Order<'a> {
        Order { command, limit: Duration::from_secs(30), most_output: 64 * 1024, sudo: false }
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

/// How a command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself. What a shell calls 129 to 159 is a signal; 127 means that there is no such command.
    Ended(Status),
    /// It was ended at its limit.
    TimedOut,
    /// It was ended because the user wants to stop.
    Interrupted,
}

/// A command that is over.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// How long it ran.
    pub took: Duration,
}

impl Finished {
    /// Whether it ended by itself and with status 0.
    pub fn is_success(&self) -> bool {
        self.ending == Ending::Ended(Status::Exit(0))
    }

    /// What was kept of its standard output, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout.bytes()).into_owned()
    }

    /// What was kept of its standard error, as text.
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
        let mut kept = [Output::new(order.most_output), Output::new(order.most_output)];
        let mut exchange = Exchange::start(self, Kind::Watched, order, interrupted)?;
        let ending = exchange.finish(&mut |stream, bytes| kept[stream as usize].push(bytes))?;
        let [stdout, stderr] = kept;
        Ok(Finished { ending, stdout, stderr, took: exchange.began.elapsed() })
    }
}

/// A session that is waited for.
pub(super) struct Exchange<'a> {
    place: &'a ExecutionTarget,
    pub(super) session: Session,
    limit: Duration,
    interrupted: Option<&'a AtomicBool>,
    /// When the session was started, and then, when its command was.
    pub(super) began: Instant,
    running: bool,
    /// Whether what is written to it is its command's input: then the end of that is its end, and no order reaches it.
    fed: bool,
    ending: Option<(Ending, Instant)>,
    killed: bool,
}

impl<'a> Exchange<'a> {
    pub(super) fn start(
        place: &'a ExecutionTarget,
        kind: Kind,
        order: &Order<'_>,
        interrupted: Option<&'a AtomicBool>,
    ) -> Result<Exchange<'a>, RemoteError> {
        let (session, limit) = (Session::start_as(place, kind, order.command, order.sudo)?, order.limit);
        let (fed, began) = (kind == Kind::Fed, Instant::now());
        let running = fed;
        Ok(Exchange { place, session, limit, interrupted, began, running, fed, ending: None, killed: false })
    }

    /// Waits for the end.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(Stream, &[u8])) -> Result<Ending, RemoteError> {
        loop {
            self.wait(None)?;
            if let Some(ending) = self.step(each)? {
                return Ok(ending);
            }
        }
    }

    /// Waits until there is something to hear, or room for more input.
    pub(super) fn wait(&self, input: Option<RawFd>) -> Result<(), RemoteError> {
        let mut wanted: Vec<_> = self.session.watched().map(|fd| (fd, libc::POLLIN)).collect();
        wanted.extend(input.map(|fd| (fd, libc::POLLOUT)));
        pipes::poll(&wanted, LOOK).map(drop).map_err(|e| self.system(&e))
    }

    /// Takes what there is to hear, and looks at the clock.
    pub(super) fn step(
        &mut self,
        each: &mut dyn FnMut(Stream, &[u8]),
    ) -> Result<Option<Ending>, RemoteError> {
        for said in self.session.read().map_err(|e| self.system(&e))? {
            match said {
                Said::Ready if !self.running => self.session.go(),
                Said::Began(_) => (self.running, self.began) = (true, Instant::now()),
                Said::Wrote(stream, bytes) => each(stream, &bytes),
                Said::Over(status) => return Ok(Some(self.ending.map_or(Ending::Ended(status), |e| e.0))),
                Said::Closed(said) => return self.closed(&said).map(Some),
                Said::Unheard => {
                    let fault = Fault::Unheard(self.place.silence());
                    return Err(RemoteError::new(self.place.name(), fault, ""));
                }
                Said::Ready | Said::Clock(_) => {}
            }
        }
        if let Some(error) = self.place.lost() {
            return Err(error);
        }
        self.look_at_the_clock()
    }

    fn look_at_the_clock(&mut self) -> Result<Option<Ending>, RemoteError> {
        if !self.running && self.began.elapsed() > READY_WITHIN {
            let said = format!("no shell within {} s", READY_WITHIN.as_secs());
            return Err(RemoteError::new(self.place.name(), Fault::NoShell, said));
        }
        let Some((ending, since)) = self.ending else {
            let interrupted = self.interrupted.is_some_and(|i| i.load(Ordering::Relaxed));
            let late = self.running && self.began.elapsed() >= self.limit;
            if interrupted || late {
                let ending = if interrupted { Ending::Interrupted } else { Ending::TimedOut };
                self.ending = Some((ending, Instant::now()));
                if self.fed {
                    self.session.close_input();
                } else {
                    self.session.terminate();
                }
            }
            return Ok(None);
        };
        if since.elapsed() > GRACE && !self.killed {
            self.killed = true;
            if !self.fed {
                self.session.kill();
            }
        }
        Ok((since.elapsed() > GRACE * 2).then_some(ending))
    }

    /// A session that ended without its command's status: either the connection is gone, or something on the host killed it.
    fn closed(&self, said: &str) -> Result<Ending, RemoteError> {
        let end = Instant::now() + NEWS;
        while Instant::now() < end {
            if let Some(error) = self.place.lost() {
                return Err(error);
            }
            std::thread::sleep(LOOK);
        }
        match (self.ending, self.running) {
            (Some((ending, _)), _) => Ok(ending),
            (None, true) => Ok(Ending::Ended(Status::Signal(libc::SIGKILL))),
            (None, false) => Err(not_started(self.place.name(), said)),
        }
    }

    pub(super) fn system(&self, error: &std::io::Error) -> RemoteError {
        RemoteError::system(self.place.name(), "wait for ssh", error)
    }
}

/// A session that could not be had.
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
