//! Files in folders that are open already, and the descriptor that a program prints to.

use rustix::fs::{Mode, OFlags, fcntl_getfl, openat};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WRITABLE: AtomicBool = AtomicBool::new(true);

/// Runs before Rust's runtime, which opens /dev/null for a closed standard descriptor: later, the two cases look alike.
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

/// Opens the file `name` in `folder`: does not follow a link, does not wait for a FIFO, and does not pass the descriptor on to
/// programs. The error is the reason why the file is not read.
pub(crate) fn open_in(folder: &File, name: &OsStr) -> Result<(File, Metadata), String> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || {
        let file = File::from(openat(folder, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        Ok((file, metadata))
    };
    open().map_err(cannot_read)
}

pub(crate) fn cannot_read(error: io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ELOOP) => "a link: links are not followed".to_string(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Why something else than a file or a folder is not read.
pub(crate) const NOT_REGULAR: &str = "not a regular file: not read";
