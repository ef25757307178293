//! Opens what is in a folder that is open already.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;

/// Opens `name` in `folder`; a link is not followed (ELOOP), and the descriptor is not handed on to programs.
///
/// # Errors
/// What the system says.
pub(crate) fn open_at(folder: &File, name: &OsStr, flags: libc::c_int) -> io::Result<File> {
    let name = CString::new(name.as_bytes())?;
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the descriptor and the terminated name live until after the call, which writes no memory.
    let descriptor = unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}
