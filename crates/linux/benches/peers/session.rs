//! Programs that are started for a slice and ended for certain: each leads a session of its own, which is killed as a
//! whole. Generators hang: trafgen's children, for one, survive SIGINT and `timeout`.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// CPU seconds that a process may use: the kernel kills it then, also when this benchmark was killed before.
const CPU_SECONDS: libc::rlim_t = 20;

/// A program with all its children.
pub struct Session {
    child: Child,
}

impl Session {
    /// Starts a program, bound to one CPU if asked; what it prints goes to the end of `log`. Its standard input stays open.
    ///
    /// # Errors
    /// The program is not there, or the system has no room for it.
    pub fn start(mut command: Command, cpu: Option<u32>, log: &Path) -> io::Result<Session> {
        let out = File::options().create(true).append(true).open(log)?;
        command
            .stdin(Stdio::piped())
            .stdout(out.try_clone()?)
            .stderr(out);
        // SAFETY: between fork and exec the closure makes only system calls and neither allocates nor locks.
        unsafe { command.pre_exec(move || prepare(cpu)) };
        Ok(Session {
            child: command.spawn()?,
        })
    }

    /// The leader's process number, which is the session's.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the leader still runs.
    pub fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Session {
    /// Kills the session until nobody is left in it. The leader is reaped last, so that its number cannot be another's.
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            let members = members(self.child.id());
            if members.is_empty() {
                break;
            }
            for pid in members {
                // SAFETY: a signal to a process of a session that this benchmark has started.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.wait(); // it is dead; nothing is left to be said
    }
}

fn prepare(cpu: Option<u32>) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: CPU_SECONDS,
        rlim_max: CPU_SECONDS,
    };
    // SAFETY: no preconditions, and a valid structure.
    let status = unsafe {
        if libc::setsid() < 0 {
            return Err(io::Error::last_os_error());
        }
        // A session is an autogroup: before others, as ours is.
        let session = libc::open(
            c"/proc/self/autogroup".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        libc::write(session, c"-20".as_ptr().cast(), 3);
        libc::setrlimit(libc::RLIMIT_CPU, &limit)
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    go_first();
    cpu.map_or(Ok(()), linerate_linux::ports::pin_to_cpu)
}

/// Puts the calling thread before other programs on its CPU. Our own generator does so: so must all contestants, and the
/// thread that reads clock and counters. Where that is not allowed, it is not allowed to the generator either.
pub fn go_first() {
    // SAFETY: changes the nice value of the calling thread alone (who = 0, and Linux counts threads).
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

/// The living processes of a session.
fn members(session: u32) -> Vec<libc::pid_t> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| lives_in(*pid) == Some(session)).collect()
}

/// The session of a process that is not dead yet (proc_pid_stat(5): state, ppid, pgrp, session follow the name).
fn lives_in(pid: libc::pid_t) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let session = fields.nth(2)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(session)
}

/// A program's complaint: the first line that sounds like one, and the last one.
pub fn complaint(log: &Path) -> String {
    let text = fs::read(log)
        .map(|b| String::from_utf8_lossy(&b).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let bad = |l: &&&str| ["failed", "rror", "annot"].iter().any(|w| l.contains(w));
    let (first, last) = (lines.iter().find(bad), lines.last());
    match (first, last) {
        (Some(first), Some(last)) if first != last => format!("{first}; {last}"),
        (_, Some(last)) => (*last).to_string(),
        _ => "it says nothing".into(),
    }
}
