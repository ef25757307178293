//! Files in folders that are open already, and the descriptor that a program prints to.

use rustix::fs::{Mode, OFlags, fcntl_getfl, openat};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WRITABLE: AtomicBool = AtomicBool::new(true);

/// Runs before Rust's runtime, which opens /dev/null where a standard descriptor is closed: after that, nobody can tell.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_STDOUT: extern "C" fn() = look_at_stdout;

extern "C" fn look_at_stdout() {
    let flags = fcntl_getfl(rustix::stdio::stdout());
    let writable = flags.is_ok_and(|flags| flags & OFlags::RWMODE != OFlags::RDONLY);
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
pub(crate) fn open_at(folder: &File, name: &OsStr, flags: OFlags) -> io::Result<File> {
    Ok(openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?.into())
}
