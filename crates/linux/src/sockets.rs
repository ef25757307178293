//! Sockets, their options and the memory that they share with the kernel, as far as rustix has no types for them.

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

/// A socket that is closed on exec.
pub(crate) fn new_socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// `setsockopt` with a plain value.
pub(crate) fn set_option<T: Copy>(
    socket: &OwnedFd,
    level: i32,
    option: i32,
    value: &T,
) -> io::Result<()> {
    let (pointer, len) = (
        std::ptr::from_ref(value).cast(),
        size_of::<T>() as libc::socklen_t,
    );
    // SAFETY: `value` is plain data of that many bytes, and outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, len) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `getsockopt` into a plain value; bytes that the kernel does not fill in stay.
pub(crate) fn get_option<T: Copy>(
    socket: &OwnedFd,
    level: i32,
    option: i32,
    mut value: T,
) -> io::Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is plain data (only integers are asked for in this crate) of `len` bytes, and outlives the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    if result == 0 {
        Ok(value)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `bind` with an address of any family.
pub(crate) fn bind<T: Copy>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    let (pointer, len) = (
        std::ptr::from_ref(address).cast(),
        size_of::<T>() as libc::socklen_t,
    );
    // SAFETY: `address` is a plain socket address of that many bytes, and outlives the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), pointer, len) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
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
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        Self::of(
            unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) },
            len,
        )
    }

    /// Maps memory of a socket or a BPF map at `offset`.
    pub(crate) fn shared(fd: impl AsFd, len: usize, offset: u64) -> io::Result<Self> {
        let (access, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::POPULATE,
        );
        // SAFETY: as in `anonymous`.
        Self::of(
            unsafe { mmap(null_mut(), len, access, flags, fd, offset) },
            len,
        )
    }

    fn of(mapped: Result<*mut std::ffi::c_void, Errno>, len: usize) -> io::Result<Self> {
        let base = NonNull::new(mapped?.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, len })
    }

    /// First byte of the mapping.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; owners of pointers into it own this value as well.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Waits until one of the descriptors is readable, or `ms` milliseconds.
pub(crate) fn wait_readable(descriptors: &mut [PollFd], ms: i64) -> io::Result<()> {
    match poll(
        descriptors,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: ms * 1_000_000,
        }),
    ) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
