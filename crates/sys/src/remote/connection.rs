//! Connections: control masters of the system's OpenSSH client.
//!
//! A master is an ssh process with a first session of its own, which waits for the end of its input. Its input is a pipe from this
//! process. So whatever ends this process, `kill -9` too, ends the session, and with it the connection and all that runs over it.

use super::error::{Fault, RemoteError, classify};
use super::folder::Folder;
use super::target::Target;
use crate::process::pipes::{self, Outlet};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What the first session runs. Like all that is given to a login shell, which may be csh, it is constant.
const KEEP: &str = "exec /bin/sh -c 'echo linerate-is-ready; exec cat >/dev/null'";
/// How it is recognised behind what the files of a login shell may print.
const READY: &[u8] = b"linerate-is-ready\n";
/// What is kept of the output of a master.
const KEPT: usize = 16 * 1024;
/// How often is looked whether something has changed that no pipe tells.
const LOOK: Duration = Duration::from_millis(20);
/// How long a master may take to end.
const LEAVE: Duration = Duration::from_millis(500);
/// Connections that are made at the same time: jump hosts refuse more than ten that have not logged in (MaxStartups).
const AT_ONCE: usize = 8;
/// How often a host that closes the connection at once, as busy ones do, is tried.
const TRIES: u32 = 3;

/// A connection to a host. It ends when this is dropped.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    /// The path of its socket, as ssh takes paths in options.
    socket: String,
    master: Mutex<Master>,
    _folder: Arc<Folder>,
}

#[derive(Debug)]
struct Master {
    child: Child,
    /// Its end is the end of the master.
    _stdin: Option<ChildStdin>,
    outlets: [Outlet; 2],
    /// The last of what each outlet brought.
    said: [Vec<u8>; 2],
    ready: bool,
    lost: Option<RemoteError>,
}

impl Connection {
    /// Connects to a host.
    ///
    /// # Errors
    /// It cannot be reached, is not who it was, or does not let this user in.
    pub fn open(target: &Target, cancelled: Option<&AtomicBool>) -> Result<Connection, RemoteError> {
        let mut tries = 1;
        loop {
            match Connection::open_once(target, cancelled) {
                Err(e) if e.fault == Fault::Closed && tries < TRIES => {
                    thread::sleep(Duration::from_millis(200) * tries);
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    /// Connects to many hosts, several at a time. The answers are in the order of the hosts.
    pub fn open_all(
        targets: &[Target],
        cancelled: Option<&AtomicBool>,
    ) -> Vec<Result<Connection, RemoteError>> {
        allow_files();
        let next = AtomicUsize::new(0);
        let answers: Vec<Mutex<Option<Result<Connection, RemoteError>>>> =
            targets.iter().map(|_| Mutex::new(None)).collect();
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(target) = targets.get(at) else { return };
                let answer = Connection::open(target, cancelled);
                *answers[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            }
        };
        thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(targets.len()) {
                scope.spawn(work);
            }
        });
        let answer = |slot: Mutex<Option<_>>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.into_iter().filter_map(answer).collect()
    }

    fn open_once(target: &Target, cancelled: Option<&AtomicBool>) -> Result<Connection, RemoteError> {
        let folder = Folder::shared().map_err(|e| RemoteError::system(&target.name, "make a folder", &e))?;
        let socket = folder.socket().display().to_string().replace('%', "%%");
        let mut command = Command::new("ssh");
        command.args(target.arguments()?);
        command.args(["-o", "ControlMaster=yes", "-o", "ControlPersist=no", "-o", "LogLevel=INFO", "-o"]);
        command.arg(format!("ControlPath={socket}"));
        command.args(["--", &target.address, KEEP]).env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for linerate: the connection is still needed to put the host back.
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| RemoteError::system(&target.name, "ssh", &e))?;
        let stdin = child.stdin.take();
        let stdout = Outlet::new(child.stdout.take().map(Into::into));
        let stderr = Outlet::new(child.stderr.take().map(Into::into));
        let (said, lost, ready) = (Default::default(), None, false);
        let master = Master { child, _stdin: stdin, outlets: [stdout, stderr], said, ready, lost };
        let connection =
            Connection { target: target.clone(), socket, master: Mutex::new(master), _folder: folder };
        connection.wait_ready(cancelled)?;
        Ok(connection)
    }

    fn wait_ready(&self, cancelled: Option<&AtomicBool>) -> Result<(), RemoteError> {
        // ssh keeps to the limit for the connection alone, and then can say what was too slow.
        let within = self.target.connect_within + Duration::from_secs(2);
        let began = Instant::now();
        let mut master = self.master();
        loop {
            pipes::wait(&master.outlets, LOOK)
                .map_err(|e| RemoteError::system(&self.target.name, "wait for ssh", &e))?;
            if let Some(error) = master.check(&self.target) {
                return Err(error);
            }
            if master.ready {
                return Ok(());
            }
            let given_up = cancelled.is_some_and(|c| c.load(Ordering::Relaxed));
            if given_up || began.elapsed() > within {
                let said = String::from_utf8_lossy(&master.said[1]);
                let said = format!("no shell within {} s {}", within.as_secs(), said.trim());
                return Err(RemoteError::new(&self.target.name, Fault::TimedOut, said.trim_end()));
            }
        }
    }

    /// The host.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Why the connection is over, if it is.
    pub fn lost(&self) -> Option<RemoteError> {
        self.master().check(&self.target)
    }

    /// What tells, by having something to read or by being closed, that [`Connection::lost`] is worth a look.
    pub fn watched(&self) -> Vec<RawFd> {
        self.master().outlets.iter().filter_map(Outlet::fd).collect()
    }

    /// The number of the ssh process that holds the connection.
    pub fn process(&self) -> u32 {
        self.master().child.id()
    }

    /// An ssh process that runs a command line over this connection: one that every login shell takes in the same way.
    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = Command::new("ssh");
        // Nothing is read of the user's configuration again. Should the master be gone, ssh would make a connection of its own:
        // the proxy that cannot be run prevents that.
        command.args(["-F", "/dev/null", "-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]);
        command.args(["-o", "ProxyCommand=/nonexistent", "-o", "EscapeChar=none", "-S"]);
        command.arg(&self.socket).args(["--", "linerate", line]).env("LC_ALL", "C").process_group(0);
        command
    }

    fn master(&self) -> MutexGuard<'_, Master> {
        self.master.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Master {
    fn check(&mut self, target: &Target) -> Option<RemoteError> {
        if self.lost.is_none() {
            self.read();
            let status = self.child.try_wait().ok().flatten()?;
            self.read();
            let said = String::from_utf8_lossy(&self.said[1]).into_owned();
            self.lost = Some(match status.signal() {
                Some(signal) => RemoteError::new(&target.name, Fault::MasterDead, format!("signal {signal}")),
                // The last of ssh's words count: it may have warned of something long ago.
                None if self.ready => classify(&target.name, last_lines(&said), true, target.silence),
                // ssh itself fails with 255: this is the status of the first session.
                None if status.code() != Some(255) => {
                    let said = format!("{}{said}", String::from_utf8_lossy(&self.said[0]));
                    RemoteError::new(&target.name, Fault::NoShell, last_lines(&said).trim())
                }
                None => classify(&target.name, &said, false, target.silence),
            });
        }
        self.lost.clone()
    }

    fn read(&mut self) {
        for (outlet, said) in self.outlets.iter_mut().zip(&mut self.said) {
            let _ = outlet.read(&mut |bytes| {
                said.extend_from_slice(bytes);
                said.drain(..said.len().saturating_sub(KEPT));
            });
        }
        self.ready |= memchr::memmem::find(&self.said[0], READY).is_some();
    }
}

/// The end of a text, in whole lines.
fn last_lines(said: &str) -> &str {
    let lines = said.match_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < said.len());
    let beginnings: Vec<usize> = std::iter::once(0).chain(lines).collect();
    &said[beginnings[beginnings.len().saturating_sub(4)]..]
}

impl Drop for Master {
    fn drop(&mut self) {
        self._stdin = None;
        let pid = self.child.id() as libc::pid_t;
        // SAFETY: takes numbers only; the process is a child that has not been waited for, or is gone already.
        let signal = |number| unsafe { libc::kill(pid, number) };
        if self.lost.is_none() {
            signal(libc::SIGTERM);
        }
        let end = Instant::now() + LEAVE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > end {
                signal(libc::SIGKILL);
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Many hosts need many pipes: the number of open files is raised to what this user may have.
pub(super) fn allow_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a structure that outlives the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max.min(65536).max(limit.rlim_cur);
        // SAFETY: as above; a refusal leaves the limit as it is.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    }
}

/// Whether a call was put off only because nothing was there.
pub(super) fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
