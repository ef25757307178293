//! Shared parts of sockets with shared memory (AF_PACKET, AF_XDP): options, addresses, mappings, namespaces.

use super::{PortError, Target};
use crate::net::netns::Netns;
use crate::sockets::new_socket;
use linerate_wire::Traffic;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;

/// Runs `f` in a namespace: a socket stays in the one where it was made.
pub(crate) fn inside<T: Send>(
    namespace: &Netns,
    f: impl FnOnce() -> Result<T, PortError> + Send,
) -> Result<T, PortError> {
    namespace.enter(f).map_err(PortError::system("enter", "the port's network namespace"))?
}

/// The interface's MTU.
pub(crate) fn mtu(namespace: &Netns, ifindex: u32) -> Result<usize, PortError> {
    let ask = || {
        let socket = new_socket(AddressFamily::INET, SocketType::DGRAM)?;
        let name = index_to_name(&socket, ifindex).map_err(|_| Errno::NXIO)?;
        let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_mtu: 0 };
        let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: the request is a valid ifreq, with a terminated name, that outlives the call.
        if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: SIOCGIFMTU has just written this member.
        Ok(unsafe { request.ifr_ifru.ifru_mtu } as usize)
    };
    inside(namespace, || {
        ask().map_err(PortError::system("read the MTU of", format!("interface number {ifindex}")))
    })
}

/// Refuses frames that an interface would refuse one by one.
pub(crate) fn check_length(
    namespace: &Netns,
    targets: &[Target],
    traffic: &Traffic,
) -> Result<(), PortError> {
    let (longest, header) =
        (usize::from(traffic.mix.max_len_fcs()), traffic.frame.l2_len() + linerate_wire::frame::FCS_LEN);
    for Target { ifindex, .. } in targets {
        let mtu = mtu(namespace, *ifindex)?;
        if longest > mtu + header {
            let need = longest - header;
            return Err(PortError::Unsuitable(format!(
                "frames of {longest} bytes (with FCS) need an MTU of {need}; interface number {ifindex} has {mtu}"
            )));
        }
    }
    Ok(())
}

/// Memory shared with the kernel, unmapped when dropped.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to no thread; users of the pointers document how they keep apart from other users.
unsafe impl Send for Mapping {}
// SAFETY: as above: a shared reference gives out nothing but a raw pointer and a length.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of our own: page-aligned, zero, in place already.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, 0)
    }

    /// Maps memory of a socket or a BPF map at `offset`.
    pub(crate) fn shared(fd: impl AsFd, len: usize, offset: i64) -> io::Result<Self> {
        Self::map(len, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_fd().as_raw_fd(), offset)
    }

    fn map(len: usize, flags: i32, fd: i32, offset: i64) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; the result is checked.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(base.cast())
            .map(|base| Mapping { base, len })
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Its first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; owners of pointers into it own this value as well.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Waits until one of the descriptors is readable, or `ms` milliseconds.
pub(crate) fn wait_readable(descriptors: &mut [PollFd], ms: i64) -> io::Result<()> {
    match poll(descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 })) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
