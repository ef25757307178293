//! The pipes to and from a running program: none of them can make its reader or writer wait for ever.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

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
            let Some(file) = &mut self.0 else {
                return Ok(());
            };
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
    let open: Vec<(RawFd, libc::c_short)> = outlets
        .iter()
        .filter_map(Outlet::fd)
        .map(|fd| (fd, libc::POLLIN))
        .collect();
    poll(&open, longest).map(drop)
}

/// Waits until something can be done with one of the descriptors, or some time has passed. Says with which.
pub fn poll(wanted: &[(RawFd, libc::c_short)], longest: Duration) -> io::Result<Vec<bool>> {
    let mut fds: Vec<libc::pollfd> = wanted
        .iter()
        .map(|&(fd, events)| libc::pollfd {
            fd,
            events,
            revents: 0,
        })
        .collect();
    // Part of a millisecond counts as a whole one: no caller spins.
    let longest = longest
        .as_micros()
        .div_ceil(1000)
        .min(libc::c_int::MAX as u128) as libc::c_int;
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
