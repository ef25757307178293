//! A TAP device: an interface of a namespace whose frames a program reads and writes, large ones whole.

use crate::error::{Doing, Error};
use crate::net::Netns;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

const DEVICE: &str = "/dev/net/tun";
/// linux/if_tun.h.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const IFF_TAP: u16 = 2;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
/// Checksums, TCP over IPv4 and IPv6, and with ECN: the reader takes super-frames.
const OFFLOADS: libc::c_ulong = 1 | 2 | 4 | 8;

/// The program's end of a TAP.
pub struct Tap(File);

impl Tap {
    /// Makes the interface in a namespace. It goes with this value.
    ///
    /// # Errors
    /// No privilege, or a kernel without TAPs.
    pub fn new(namespace: &Netns, name: &str) -> Result<Tap, Error> {
        let open = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(DEVICE)
        };
        let file = namespace.enter(open)?.doing(format_args!(
            "open {DEVICE}, which joins the end hosts (modprobe tun; in a container: --device {DEVICE})"
        ))?;
        let mut request = [0u8; 40];
        let named = name.len().min(15);
        request[..named].copy_from_slice(&name.as_bytes()[..named]);
        request[16..18].copy_from_slice(&(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR).to_ne_bytes());
        // SAFETY: the kernel reads and writes a `struct ifreq`, which is as long as the buffer, and outlives the call.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()) };
        check(made).doing(format_args!(
            "make the interface {name} in namespace {}",
            namespace.label()
        ))?;
        // SAFETY: the argument is a number.
        let set = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD, OFFLOADS) };
        check(set).doing(format_args!("let {name} take large frames whole"))?;
        Ok(Tap(file))
    }

    /// The next frame, with its header; `None` if there is none now.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // The interface is not up, or no more.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a frame with its header to the interface, or `false`.
    pub fn write(&self, frame: &[u8]) -> bool {
        (&self.0)
            .write(frame)
            .is_ok_and(|written| written == frame.len())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
