//! Files in folders that are open already, and the descriptor that a program prints to.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WRITABLE: AtomicBool = AtomicBool::new(true);

/// Runs before Rust's runtime, which opens /dev/null where a standard descriptor is closed: after that, nobody can tell.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_STDOUT: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    // SAFETY: F_GETFL takes no argument and writes no memory; a closed descriptor is an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let writable = flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
    STDOUT_WRITABLE.store(writable, Ordering::Relaxed);
}

/// Whether standard output was open for writing when the program began.
pub fn stdout_was_writable() -> bool {
    STDOUT_WRITABLE.load(Ordering::Relaxed)
}

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
