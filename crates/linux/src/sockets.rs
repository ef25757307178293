//! Sockets and their options, as far as rustix has no types for them.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A socket that is closed on exec.
pub(crate) fn new_socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, None)?)
}

/// `setsockopt` with a plain value.
pub(crate) fn set_option<T: Copy>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let (pointer, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` is plain data of that many bytes, and outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `getsockopt` into a plain value; bytes that the kernel does not fill in stay.
pub(crate) fn get_option<T: Copy>(socket: &OwnedFd, level: i32, option: i32, mut value: T) -> io::Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is plain data (only integers are asked for in this crate) of `len` bytes, and outlives the call.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut len) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// `bind` with an address of any family.
pub(crate) fn bind<T: Copy>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    let (pointer, len) = (std::ptr::from_ref(address).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `address` is a plain socket address of that many bytes, and outlives the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), pointer, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
