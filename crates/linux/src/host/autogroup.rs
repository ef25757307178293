//! Sessions that go before others. Where Linux groups the threads of each session (autogroups, sched(7)), a thread's nice value counts
//! within its session alone, and the nice value of the autogroup counts between sessions.
//!
//! The value belongs to the whole session, as to a user's shell, and to every linerate in it. So each of them holds a lock on a file that
//! has the value from before; the last one writes that back. After kill -9, a process that waited for the end of that linerate does, or the
//! next linerate ([`restore_remains`]).

use crate::error::{Doing, Error};
use crate::files::set_file;
use crate::journal::is_at;
use crate::net::registry::DEFAULT_ROOT;
use rustix::fs::{FlockOperation, flock};
use rustix::process::setpriority_process;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

/// Nice value of those who come first.
pub const FIRST: i32 = -20;

/// Begins the names of the files, and those of the kernel.
const PREFIX: &str = "autogroup-";

/// A session that goes before others, until this is dropped.
#[derive(Debug)]
pub struct Ahead {
    /// `/proc/PID/autogroup`.
    session: PathBuf,
    /// The file with the value from before.
    kept: PathBuf,
    /// Holds the lock on it.
    lock: File,
}

impl Ahead {
    /// Gives the session of a process this nice value. `None` if there are no autogroups here: then nice values count between all threads.
    ///
    /// # Errors
    /// The change is not allowed, or sessions share the CPUs by other weights.
    pub fn of(process: u32, nice: i32) -> Result<Option<Ahead>, Error> {
        Ahead::below(Path::new(DEFAULT_ROOT), process, nice)
    }

    /// This process's session, before all others.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn this() -> Result<Option<Ahead>, Error> {
        Ahead::of(std::process::id(), FIRST)
    }

    /// `state`: the folder of the files.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn below(state: &Path, process: u32, nice: i32) -> Result<Option<Ahead>, Error> {
        let session = PathBuf::from(format!("/proc/{process}/autogroup"));
        let enabled =
            fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
        let Some((name, _)) = read(&session).filter(|_| enabled.trim() == "1") else {
            return Ok(None);
        };
        if let Some(group) = weighed(process) {
            return Err(Error::Refused(format!(
                "its control group {group} shares the CPUs with others by weight, whatever their priorities"
            )));
        }
        let kept = state.join(name);
        let doing = || format!("set the priority of its session (/proc/{process}/autogroup)");
        let lock = hold(&kept, &session).doing(doing())?;
        let ahead = Ahead {
            session,
            kept,
            lock,
        };
        set_file(&ahead.session, &nice.to_string()).doing(doing())?;
        Ok(Some(ahead))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Fails where another one of this session holds the lock as well.
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = put_back(&self.kept, &self.session);
        }
        // Said, because a program that another thread is about to start has this descriptor until it begins.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Where this process's threads that send stand among other programs, in words; the error is the reason why they do not come first.
///
/// # Errors
/// They may not.
pub fn standing(ahead: &Result<Option<Ahead>, Error>) -> Result<String, String> {
    // On a thread that ends: its priority ends with it.
    let allowed = thread::scope(|scope| scope.spawn(|| setpriority_process(None, FIRST)).join());
    match (allowed, ahead) {
        (Ok(Ok(())), Ok(Some(_))) => Ok(format!(
            "before other programs: nice {FIRST}, autogroup {FIRST}"
        )),
        (Ok(Ok(())), Ok(None)) => Ok(format!(
            "before other programs: nice {FIRST}, no autogroups"
        )),
        (_, Err(error)) => Err(error.to_string()),
        (Ok(Err(error)), _) => Err(Error::system("raise a thread's priority", error).to_string()),
        (Err(panic), _) => std::panic::resume_unwind(panic),
    }
}

/// Puts sessions back whose linerate was killed. Whether no session is held any more: by another linerate, or by a program that the
/// killed one was about to start, until it begins.
pub fn restore_remains() -> bool {
    restore_below(Path::new(DEFAULT_ROOT))
}

/// `state`: the folder of the files.
pub fn restore_below(state: &Path) -> bool {
    let mut free = true;
    for kept in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = kept.file_name().to_string_lossy().into_owned();
        if !name.starts_with(PREFIX) {
            continue;
        }
        let Ok(file) = File::open(kept.path()) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            free = false;
        } else if is_at(&file, &kept.path()) {
            // A session without a process has no value.
            let _ = put_back(&kept.path(), &member(&name).unwrap_or_default());
        }
    }
    free
}

/// A lock on the file, which has the value from before. Several processes may hold it.
fn hold(kept: &Path, session: &Path) -> io::Result<File> {
    fs::create_dir_all(kept.parent().unwrap_or(Path::new(".")))?;
    loop {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(kept)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let mut before = String::new();
            file.read_to_string(&mut before)?;
            // One that was killed has left the value.
            if before.is_empty() {
                let (_, nice) = read(session).ok_or(io::ErrorKind::NotFound)?;
                write!(file, "{nice}")?;
            }
        }
        flock(&file, FlockOperation::LockShared)?;
        // The last of the others may have put the value back meanwhile.
        if is_at(&file, kept) && file.metadata()?.len() > 0 {
            return Ok(file);
        }
    }
}

/// Writes the value from before, and removes its file. Called with the lock, and alone.
fn put_back(kept: &Path, session: &Path) -> io::Result<()> {
    let before = fs::read_to_string(kept)?;
    match set_file(session, before.trim()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_file(kept),
    }
}

/// Name and nice value of an autogroup: `/autogroup-9 nice 0`.
fn read(session: &Path) -> Option<(String, i32)> {
    let text = fs::read_to_string(session).ok()?;
    let (name, nice) = text.trim().strip_prefix('/')?.split_once(" nice ")?;
    name.strip_prefix(PREFIX)?.parse::<u64>().ok()?;
    Some((name.into(), nice.parse().ok()?))
}

/// The autogroup's file in /proc, by one of the processes of the session.
fn member(name: &str) -> Option<PathBuf> {
    let mut files = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .map(|process| process.path().join("autogroup"));
    files.find(|file| read(file).is_some_and(|(of, _)| of == name))
}

/// The control group of a process, if groups share the CPUs: an autogroup counts for nothing in it (sched(7)).
fn weighed(process: u32) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let weight = || {
            Path::new("/sys/fs/cgroup")
                .join(group.trim_start_matches('/'))
                .join("cpu.weight")
        };
        let shares = match controllers {
            "" => weight().exists(),
            first => group != "/" && first.split(',').any(|controller| controller == "cpu"),
        };
        shares.then(|| group.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    /// A process that leads a session of its own, until it is dropped.
    struct Session(Child);

    impl Session {
        fn new() -> Session {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped());
            // SAFETY: setsid is async-signal-safe, and changes only the child.
            unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) };
            Session(command.spawn().unwrap())
        }

        fn nice(&self) -> i32 {
            read(Path::new(&format!("/proc/{}/autogroup", self.0.id())))
                .unwrap()
                .1
        }
    }

    impl Drop for Session {
        fn drop(&mut self) {
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("linerate-autogroup-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    #[ignore = "needs root"]
    fn the_last_of_a_session_puts_its_value_back() {
        let (session, state) = (Session::new(), folder("last"));
        let ahead = || Ahead::below(&state, session.0.id(), FIRST).unwrap();
        let Some(first) = ahead() else { return };
        let second = ahead();
        assert_eq!(session.nice(), FIRST);
        drop(first);
        assert_eq!(session.nice(), FIRST, "another one is still there");
        drop(second);
        assert_eq!(
            (session.nice(), fs::read_dir(&state).unwrap().count()),
            (0, 0)
        );
        fs::remove_dir_all(&state).unwrap();
    }

    #[test]
    #[ignore = "needs root"]
    fn the_next_one_puts_back_what_a_killed_one_left() {
        let (session, state) = (Session::new(), folder("killed"));
        let Some(killed) = Ahead::below(&state, session.0.id(), FIRST).unwrap() else {
            return;
        };
        assert!(!restore_below(&state));
        assert_eq!(session.nice(), FIRST, "it still runs");
        // The end of the thread closes its descriptors.
        let Ahead { lock, .. } = &killed;
        flock(lock, FlockOperation::Unlock).unwrap();
        std::mem::forget(killed);
        let next = Ahead::below(&state, session.0.id(), FIRST).unwrap();
        drop(next);
        assert_eq!(session.nice(), 0, "the value from before both");
        let Some(killed) = Ahead::below(&state, session.0.id(), FIRST).unwrap() else {
            return;
        };
        flock(&killed.lock, FlockOperation::Unlock).unwrap();
        std::mem::forget(killed);
        assert!(restore_below(&state));
        assert_eq!(
            (session.nice(), fs::read_dir(&state).unwrap().count()),
            (0, 0)
        );
        fs::remove_dir_all(&state).unwrap();
    }
}
