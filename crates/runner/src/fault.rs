//! A fault of linerate itself, a panic, ends the program at once: no destructor works on what the fault has left. A second linerate then
//! puts back what the first one had changed, from its journals, as after kill -9.
//!
//! The priority of a user's session must not wait for the next linerate: another process waits for the end of this one, and puts it back.

use linerate_linux::host::autogroup::Ahead;
use linerate_linux::net::Netns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::panic;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status that Rust's runtime gives a panic.
const STATUS: i32 = 101;

/// The option of `linerate lab restore` with which it is a successor.
const SUCCEEDS: &str = "--succeeds";

/// The option with which it puts back the priority of sessions only.
const PRIORITY: &str = "--priority";

/// Whether this program is linerate, and not a test of its libraries.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// The command that puts back what this process changes; empty as long as it changes nothing.
static SUCCESSOR: Mutex<Vec<OsString>> = Mutex::new(Vec::new());

/// From now on, this process changes its host, or the DUT of the lab that these arguments of `linerate lab restore` name.
pub fn changes(lab: Vec<OsString>) {
    // A fault of the successor itself has no further one.
    if std::env::args_os().any(|argument| argument == SUCCEEDS) {
        return;
    }
    let restore = ["/proc/self/exe", "lab", "restore", SUCCEEDS];
    succeeded_by(restore.into_iter().map(OsString::from).chain(lab).collect());
}

/// Names the program, with its arguments, that puts everything back. First of all, it calls [`succeed`].
pub fn succeeded_by(command: Vec<OsString>) {
    if let Ok(mut successor) = SUCCESSOR.lock() {
        *successor = command;
    }
}

/// In a successor, waits until the process at fault has ended: its pidfd is the standard input.
///
/// # Errors
/// The standard input cannot be waited for.
pub fn succeed() -> io::Result<()> {
    let pidfd = rustix::stdio::stdin();
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None)?;
    Ok(())
}

/// A linerate that puts the priority of this process's session back, should this process be killed. The destructor ends it.
#[derive(Debug)]
pub struct Watcher(Child);

impl Watcher {
    /// Starts one for a session that goes before others. `None` where there is no such session, or no process can be started: then the next
    /// linerate puts the priority back.
    pub fn of(ahead: Option<&Ahead>) -> Option<Watcher> {
        let watched = ahead.is_some() && INSTALLED.load(Ordering::Relaxed);
        watched.then(Watcher::start)?.ok()
    }

    /// In a process group of its own, which the terminal's Ctrl-C does not reach.
    fn start() -> io::Result<Watcher> {
        let this = pidfd_open(getpid(), PidfdFlags::empty())?;
        let child = Command::new("/proc/self/exe")
            .args(["lab", "restore", SUCCEEDS, PRIORITY])
            .current_dir("/")
            .stdin(Stdio::from(this))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Watcher(child))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Fails where it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// From now on, a panic ends the process.
pub fn install() {
    INSTALLED.store(true, Ordering::Relaxed);
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |fault| {
        static TOLD: AtomicBool = AtomicBool::new(false);
        while TOLD.swap(true, Ordering::Relaxed) {
            std::thread::park(); // the fault of another thread ends the process
        }
        tell(fault);
        eprintln!(
            "linerate: this is a fault of linerate itself: please report it with the lines above"
        );
        if let Err(error) = start_successor() {
            eprintln!(
                "linerate: its changes are not put back ({error}): `linerate lab restore` does that for this machine, `linerate lab restore LAB.toml` for a DUT"
            );
        }
        std::process::exit(STATUS);
    }));
}

/// Starts the successor in the network namespace of the process: the thread at fault may be in another.
fn start_successor() -> io::Result<()> {
    let Ok(command) = SUCCESSOR.try_lock() else {
        return Err(io::Error::other("it was about to be changed"));
    };
    let Some((program, arguments)) = command.split_first() else {
        return Ok(());
    };
    let home = Netns::open("/proc/self/ns/net").map_err(io::Error::other)?;
    let is_home = Netns::current().is_ok_and(|here| here == home);
    let mut command = if is_home {
        Command::new(program)
    } else {
        home.command(program)
    };
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    command.args(arguments).stdin(Stdio::from(this)).spawn()?;
    Ok(())
}
