//! The pipes to and from a running program: none of them can make the reader or the writer wait for ever.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Requested size of the pipe to a program that reads in large pieces; the kernel may give less by the user's limit.
const PIPE: usize = 1 << 20;
/// How often a writer looks whether anyone still waits for the program.
const LOOK: Duration = Duration::from_millis(50);

/// The writing end of a program's standard input.
pub struct Inlet(File);

impl Inlet {
    pub fn new(pipe: OwnedFd) -> Inlet {
        // A refusal leaves the pipe as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE);
        Inlet(pipe.into())
    }

    /// Writes the output of `write`, and closes the pipe. Gives up when `given_up` becomes true.
    pub fn feed(self, given_up: &AtomicBool, write: &std::sync::Arc<super::Writer>) -> io::Result<()> {
        no_waiting(&self.0)?;
        let mut out = BufWriter::with_capacity(64 * 1024, Patient { file: self.0, given_up });
        write(&mut out).and_then(|()| out.flush())
    }
}

/// A writer that waits for room in a pipe, but not for ever.
struct Patient<'a> {
    file: File,
    given_up: &'a AtomicBool,
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.given_up.load(Ordering::Relaxed) {
                return Err(io::Error::from_raw_os_error(libc::EPIPE));
            }
            poll(&[(self.file.as_raw_fd(), libc::POLLOUT)], LOOK)?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The reading end of a program's output; nothing once it is closed.
#[derive(Debug)]
pub struct Outlet(Option<File>);

impl Outlet {
    pub fn new(pipe: Option<OwnedFd>) -> Outlet {
        Outlet(pipe.filter(|pipe| no_waiting(pipe).is_ok()).map(File::from))
    }

    /// The descriptor to wait for; `None` once it is closed.
    pub fn fd(&self) -> Option<RawFd> {
        self.0.as_ref().map(File::as_raw_fd)
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_none()
    }

    /// Passes on available output, a bounded part of it: a program with endless output must not keep its reader from looking at
    /// the clock.
    pub fn read(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        for _ in 0..16 {
            let Some(file) = &mut self.0 else { return Ok(()) };
            match file.read(&mut buffer) {
                Ok(0) => self.0 = None,
                Ok(length) => each(&buffer[..length]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// Waits until one of the pipes has something to say or is closed, or some time has passed.
pub fn wait(outlets: &[Outlet], longest: Duration) -> io::Result<()> {
    let open: Vec<(RawFd, libc::c_short)> =
        outlets.iter().filter_map(Outlet::fd).map(|fd| (fd, libc::POLLIN)).collect();
    poll(&open, longest).map(drop)
}

/// Waits until something can be done with one of the descriptors, or some time has passed. Says with which.
pub fn poll(wanted: &[(RawFd, libc::c_short)], longest: Duration) -> io::Result<Vec<bool>> {
    let mut fds: Vec<libc::pollfd> =
        wanted.iter().map(|&(fd, events)| libc::pollfd { fd, events, revents: 0 }).collect();
    // Part of a millisecond counts as a whole one: no caller spins.
    let longest = longest.as_micros().div_ceil(1000).min(libc::c_int::MAX as u128) as libc::c_int;
    // SAFETY: pointer and length describe `fds`, which outlives the call.
    match unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, longest) } {
        -1 => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(vec![false; wanted.len()]),
            e => Err(e),
        },
        _ => Ok(fds.iter().map(|fd| fd.revents != 0).collect()),
    }
}

/// Makes a descriptor non-blocking.
pub fn no_waiting(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}
