//! Connections: control masters of the system's OpenSSH client.
//!
//! sshd takes ten sessions over a connection. Where more are wanted, further masters to the same host make lines of one connection:
//! they are lost together, and end together.
//!
//! A master is an ssh process with a first session of its own, which waits for the end of its input. Its input is a pipe from this
//! process. So whatever ends this process, `kill -9` too, ends the session, and with it the connection and all that runs over it.

use crate::{Fault, Interrupt, RemoteError, Result, Target, classify, end_within, spawn_piped};
use linerate_linux::process::pipes::{self, Outlet};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setpriority_process, setrlimit,
};
use std::fs::{self, DirBuilder};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{io, thread};

/// The command of the first session. Like every text for a login shell, which may be csh, it is constant.
const KEEP: &str = "exec /bin/sh -c 'echo linerate-is-ready; exec cat >/dev/null'";
/// Answer to that command, behind whatever the start files of a login shell print.
const READY: &[u8] = b"linerate-is-ready\n";
/// Keeps a session from making a connection of its own.
const PROXY: &str = "ProxyCommand=/nonexistent";
/// Bytes of a master's output that are kept.
const KEPT: usize = 16 * 1024;
/// Interval of checks for changes that no pipe reports.
const LOOK: Duration = Duration::from_millis(20);
/// How long a master may take to end.
const LEAVE: Duration = Duration::from_millis(500);
/// Masters to one host at most: room for a few hundred sessions.
const LINES: usize = 32;
/// How often a host that closes the connection at once, as busy ones do, is tried.
const TRIES: u32 = 3;

/// A connection to a host. It ends when this is dropped.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    /// At least one.
    lines: Mutex<Vec<ControlMaster>>,
}

/// One master, and the sessions that it has room for. It ends when this is dropped.
#[derive(Debug)]
struct ControlMaster {
    /// The path of its socket, as ssh takes paths in options.
    socket: String,
    master: Master,
    room: Arc<Capacity>,
    _folder: Arc<Folder>,
}

#[derive(Debug)]
struct Master {
    child: Child,
    /// Input whose end is the end of the master.
    _stdin: Option<OwnedFd>,
    outlets: [Outlet; 2],
    /// The last bytes of each outlet.
    said: [Vec<u8>; 2],
    ready: bool,
    lost: Option<RemoteError>,
}

impl Connection {
    /// Connects to a host.
    ///
    /// # Errors
    /// The host cannot be reached, is not who it was, or does not let this user in.
    pub fn open(target: &Target, cancelled: Interrupt<'_>) -> Result<Connection> {
        let line = ControlMaster::open(target, cancelled)?;
        Ok(Connection {
            target: target.clone(),
            lines: Mutex::new(vec![line]),
        })
    }

    /// The host.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Why the connection is over, if it is.
    pub fn lost(&self) -> Option<RemoteError> {
        self.lines()
            .iter_mut()
            .find_map(|line| line.master.check(&self.target))
    }

    /// Descriptors that become readable, or are closed, when [`Connection::lost`] may have changed.
    pub fn watched(&self) -> Vec<RawFd> {
        let lines = self.lines();
        let outlets = lines.iter().flat_map(|line| &line.master.outlets);
        outlets.filter_map(Outlet::fd).collect()
    }

    /// The number of the ssh process that holds the connection: of the first of them.
    pub fn process(&self) -> u32 {
        self.lines()[0].master.child.id()
    }

    /// Room for a session, if there is some.
    fn slot(&self, need: Need) -> Option<Slot> {
        self.lines()
            .iter()
            .find_map(|line| line.room.take(need, &line.socket))
    }

    /// Room for a session. If there is none, makes a further connection, or else takes the last room, if `need` allows it.
    pub(super) fn slot_in_time(&self, need: Need) -> Result<Slot> {
        if let Some(slot) = self.slot(Need::Usual) {
            return Ok(slot);
        }
        let mut error = self.target.error(Fault::Sessions, "");
        if self.lines().len() < LINES {
            match ControlMaster::open(&self.target, None) {
                Ok(line) => {
                    let mut lines = self.lines();
                    line.room
                        .beside(lines.iter().map(|line| line.room.most()).min().unwrap_or(1));
                    lines.push(line);
                }
                Err(why) => error = why.no_more_sessions(),
            }
        }
        self.slot(need).ok_or(error)
    }

    /// An ssh process that runs a command line over this connection: one that every login shell takes in the same way.
    pub(super) fn command(&self, line: &str, slot: Option<&Slot>) -> Command {
        let mut command = Command::new("ssh");
        // Nothing is read of the user's configuration again. Should the master be gone, ssh would make a connection of its own:
        // the proxy that cannot be run prevents that.
        command.args(["-F", "/dev/null", "-T", "-o", "BatchMode=yes", "-o"]);
        command.args(["LogLevel=ERROR", "-o", PROXY, "-o", "EscapeChar=none", "-S"]);
        let first = || self.lines()[0].socket.clone();
        command.arg(slot.map_or_else(first, |slot| slot.socket.clone()));
        command
            .args(["--", "linerate", line])
            .env("LC_ALL", "C")
            .process_group(0);
        command
    }

    fn lines(&self) -> MutexGuard<'_, Vec<ControlMaster>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlMaster {
    fn open(target: &Target, cancelled: Interrupt<'_>) -> Result<ControlMaster> {
        let mut tries = 1;
        loop {
            match ControlMaster::open_once(target, cancelled) {
                Err(e) if e.fault == Fault::Closed && tries < TRIES => {
                    thread::sleep(Duration::from_millis(200) * tries);
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    fn open_once(target: &Target, cancelled: Interrupt<'_>) -> Result<ControlMaster> {
        let folder =
            Folder::shared().map_err(|e| RemoteError::system(&target.name, "make a folder", &e))?;
        let socket = folder.socket().display().to_string().replace('%', "%%");
        let mut command = Command::new("ssh");
        command.args(target.arguments()?);
        command.args(["-o", "ControlMaster=yes", "-o", "ControlPersist=no"]);
        command.args(["-o", "LogLevel=INFO", "-o"]);
        command.arg(format!("ControlPath={socket}"));
        command
            .args(["--", &target.address, KEEP])
            .env("LC_ALL", "C");
        // Ctrl-C is for linerate: the connection is still needed to put the host back.
        command.process_group(0);
        let spawned = spawn_piped(&mut command);
        let (child, stdin, outputs) =
            spawned.map_err(|e| RemoteError::system(&target.name, "ssh", &e))?;
        // Generators may share this machine, and signs of life must come through. Not being allowed to is no error.
        let _ = setpriority_process(Some(Pid::from_child(&child)), -10);
        let master = Master {
            child,
            _stdin: Some(stdin),
            outlets: outputs.map(|pipe| Outlet::new(Some(pipe))),
            said: Default::default(),
            ready: false,
            lost: None,
        };
        let mut line = ControlMaster {
            socket,
            master,
            room: Capacity::new(),
            _folder: folder,
        };
        line.wait_ready(target, cancelled)?;
        Ok(line)
    }

    fn wait_ready(&mut self, target: &Target, cancelled: Interrupt<'_>) -> Result<()> {
        // ssh applies the limit to the connection alone, and then can name the slow step.
        let within = target.connect_within + Duration::from_secs(2);
        let began = Instant::now();
        let master = &mut self.master;
        loop {
            pipes::wait(&master.outlets, LOOK)
                .map_err(|e| RemoteError::system(&target.name, "wait for ssh", &e))?;
            if let Some(error) = master.check(target) {
                return Err(error);
            }
            if master.ready {
                return Ok(());
            }
            let given_up = cancelled.is_some_and(|c| c.load(Ordering::Relaxed));
            if given_up || began.elapsed() > within {
                let said = String::from_utf8_lossy(&master.said[1]);
                let said = format!("no shell within {} s {}", within.as_secs(), said.trim());
                return Err(target.error(Fault::TimedOut, said.trim_end()));
            }
        }
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
                Some(signal) => target.error(Fault::MasterDead, format!("signal {signal}")),
                // The last of ssh's words count: it may have warned of something long ago.
                None if self.ready => {
                    classify(&target.name, last_lines(&said), true, target.silence)
                }
                // ssh itself fails with 255: this is the status of the first session.
                None if status.code() != Some(255) => {
                    let said = format!("{}{said}", String::from_utf8_lossy(&self.said[0]));
                    target.error(Fault::NoShell, last_lines(&said).trim())
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
    let lines = said
        .match_indices('\n')
        .map(|(at, _)| at + 1)
        .filter(|at| *at < said.len());
    let beginnings: Vec<usize> = std::iter::once(0).chain(lines).collect();
    &said[beginnings[beginnings.len().saturating_sub(4)]..]
}

impl Drop for Master {
    fn drop(&mut self) {
        self._stdin = None;
        if self.lost.is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        end_within(&mut self.child, LEAVE);
    }
}

/// Many hosts need many pipes: raises the number of open files to the user's limit.
pub(super) fn allow_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(65536, |maximum| maximum.min(65536));
    let limit = Rlimit {
        current: current.map(|current| current.max(most)),
        maximum,
    };
    // A refusal leaves the limit as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Beginning of a folder's name; the number of its process follows.
const FOLDER: &str = "linerate-ssh-";
/// The longest path of a folder: ssh adds a name of its own, and a socket's path has 107 bytes.
const LONGEST_FOLDER: usize = 107 - 20 - 17;

/// A folder that only its owner can enter. It goes with the last connection.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of this process.
    pub fn shared() -> io::Result<Arc<Folder>> {
        static SHARED: Mutex<Weak<Folder>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = shared.upgrade() {
            return Ok(folder);
        }
        let folder = Arc::new(Folder::new()?);
        *shared = Arc::downgrade(&folder);
        Ok(folder)
    }

    fn new() -> io::Result<Folder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let long = |path: &PathBuf| path.as_os_str().as_bytes().len() > LONGEST_FOLDER - 40;
        let above = Some(std::env::temp_dir())
            .filter(|path| !long(path))
            .unwrap_or_else(|| PathBuf::from("/tmp"));
        clear_folders(&above);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = above.join(format!("{FOLDER}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(io::Error::new(e.kind(), format!("{}: {e}", path.display()))),
            }
        }
    }

    /// A path for a socket that no other has.
    pub fn socket(&self) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.0
            .join(format!("m{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes folders whose process was killed. One that is not empty is still in use.
fn clear_folders(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(FOLDER)?.split('-').next());
        if owner.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Sessions beside the one that holds the connection, with sshd's own MaxSessions of 10.
const USUAL: usize = 9;
/// How long a connection that took no more is left alone: on the host, a session ends a little later than here.
const PAUSE: Duration = Duration::from_secs(2);

/// The room of one connection.
#[derive(Debug)]
pub(super) struct Capacity(Mutex<Taken>);

#[derive(Debug)]
struct Taken {
    used: usize,
    /// Whether a session was ever tried before the present ones.
    tried: bool,
    most: usize,
    /// Whether a session is kept free for commands that put the host back.
    keeps_one: bool,
    refused: Option<Instant>,
}

/// Room for one session. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    room: Arc<Capacity>,
    /// The path of the connection's socket.
    pub(super) socket: String,
}

/// For whom room is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// For any command: one session stays free for commands that put the host back.
    Usual,
    /// For a command that puts the host back.
    Last,
}

impl Capacity {
    pub(super) fn new() -> Arc<Capacity> {
        Arc::new(Capacity(Mutex::new(Taken {
            used: 0,
            tried: false,
            most: USUAL,
            keeps_one: true,
            refused: None,
        })))
    }

    /// How many sessions it takes, as far as is known.
    pub(super) fn most(&self) -> usize {
        self.taken().most
    }

    /// Beside others to the same host: it takes no more than they do, and need not leave a place.
    pub(super) fn beside(&self, most: usize) {
        let mut taken = self.taken();
        (taken.most, taken.keeps_one) = (most, false);
    }

    /// Capacity on the connection with this socket, if there is some.
    pub(super) fn take(self: &Arc<Capacity>, need: Need, socket: &str) -> Option<Slot> {
        let mut taken = self.taken();
        let kept = usize::from(taken.keeps_one && need == Need::Usual && taken.most > 1);
        if taken.refused.is_some_and(|at| at.elapsed() < PAUSE) || taken.used + kept >= taken.most {
            return None;
        }
        taken.used += 1;
        Some(Slot {
            room: self.clone(),
            socket: socket.to_owned(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The host did not take this session: there is no more room than for the others. Whether it is worth trying others: not where
    /// the very first one of a connection was refused.
    pub(super) fn refused(&self) -> bool {
        let mut taken = self.room.taken();
        let worth = taken.tried || taken.used > 1;
        taken.most = taken.most.min((taken.used - 1).max(1));
        taken.refused = Some(Instant::now());
        worth
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        taken.used -= 1;
        taken.tried = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_its_owner_can_enter_it_and_it_goes_with_its_last_user() {
        let folder = Folder::new().unwrap();
        let path = folder.0.clone();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_ne!(folder.socket(), folder.socket());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_last_place_is_for_putting_back() {
        let room = Capacity::new();
        let mut slots: Vec<Slot> = std::iter::from_fn(|| room.take(Need::Usual, "m0")).collect();
        assert_eq!(slots.len(), USUAL - 1);
        slots.extend(room.take(Need::Last, "m0"));
        assert_eq!(
            (slots.len(), room.take(Need::Last, "m0").is_none()),
            (USUAL, true)
        );
        drop(slots);
        assert!(room.take(Need::Usual, "m0").is_some());
    }

    #[test]
    fn a_refusal_tells_how_much_room_there_is() {
        let room = Capacity::new();
        let slots: Vec<Slot> = (0..3)
            .filter_map(|_| room.take(Need::Usual, "m0"))
            .collect();
        assert!(slots[2].refused());
        assert!(room.take(Need::Last, "m0").is_none());
        assert_eq!(room.taken().most, 2);
        // On the host, the others may only be about to end.
        drop(slots);
        room.taken().refused = None;
        assert!(room.take(Need::Last, "m0").unwrap().refused());
        room.taken().refused = None;
        assert!(room.take(Need::Usual, "m0").is_some());
        let other = Capacity::new();
        other.beside(room.most());
        assert!(!other.take(Need::Usual, "m1").unwrap().refused());
    }
}
