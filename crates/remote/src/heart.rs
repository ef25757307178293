//! The way to the input of sessions, and the thread that sends them linerate's signs of life.

use crate::would_block;
use linerate_linux::process::pipes;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often the thread looks around at least.
const LOOK: Duration = Duration::from_millis(100);

/// The input of a session.
#[derive(Debug)]
pub struct Control(Mutex<Option<File>>);

impl Control {
    /// The writing end of a pipe. Writers never wait for room in it.
    pub fn new(pipe: OwnedFd) -> io::Result<Arc<Control>> {
        pipes::no_waiting(&pipe)?;
        Ok(Arc::new(Control(Mutex::new(Some(File::from(pipe))))))
    }

    /// Writes as much as there is room for.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.pipe() {
            Some(pipe) => pipe.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Writes a line. Without room, the reader has been stuck for a long time, and the line is dropped.
    pub fn line(&self, line: &str) -> io::Result<()> {
        match self.write(format!("{line}\n").as_bytes()) {
            Err(e) if would_block(&e) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Writes all of it, for which there is room unless this user has very many pipes.
    pub fn write_all(&self, mut bytes: &[u8], within: Duration) -> io::Result<()> {
        let end = Instant::now() + within;
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(e) if would_block(&e) && Instant::now() < end => {
                    let Some(fd) = self.fd() else { return Err(e) };
                    pipes::poll(&[(fd, libc::POLLOUT)], LOOK)?;
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The descriptor to poll before writing.
    pub fn fd(&self) -> Option<RawFd> {
        self.pipe().as_ref().map(File::as_raw_fd)
    }

    /// The end of the input.
    pub fn close(&self) {
        *self.pipe() = None;
    }

    fn pipe(&self) -> MutexGuard<'_, Option<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that is kept alive.
struct Kept {
    control: Weak<Control>,
    every: Duration,
    due: Instant,
}

#[derive(Default)]
struct Heart {
    kept: Vec<Kept>,
    beats: bool,
}

static HEART: Mutex<Heart> = Mutex::new(Heart { kept: Vec::new(), beats: false });

/// Writes a beat every so often, for as long as the session exists. It does so on a thread of its own: a caller that waits for a disk
/// must not lose a host over it.
pub fn keep(control: &Arc<Control>, every: Duration) -> io::Result<()> {
    let mut heart = heart();
    heart.kept.push(Kept { control: Arc::downgrade(control), every, due: Instant::now() });
    if !heart.beats {
        thread::Builder::new().name("heart".into()).spawn(beat)?;
        heart.beats = true;
    }
    Ok(())
}

fn heart() -> MutexGuard<'static, Heart> {
    HEART.lock().unwrap_or_else(PoisonError::into_inner)
}

fn beat() {
    loop {
        let mut heart = heart();
        let now = Instant::now();
        heart.kept.retain_mut(|kept| {
            let Some(control) = kept.control.upgrade() else { return false };
            if kept.due <= now {
                kept.due = now + kept.every;
                return control.line(".").is_ok();
            }
            true
        });
        let Some(next) = heart.kept.iter().map(|kept| kept.due).min() else {
            heart.beats = false;
            return;
        };
        drop(heart);
        thread::sleep(next.saturating_duration_since(now).min(LOOK));
    }
}
