//! Standard output and standard error: how all verbs print.

use linerate_linux::descriptors::stdout_was_writable;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Why standard output takes no more. It is kept until the verb has ended: a campaign that cannot print its page is still
/// measured and recorded.
static BROKEN: OnceLock<io::Error> = OnceLock::new();

/// Standard output. The first error is kept for [`finish`], so that whoever prints may ignore it.
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        attempt(|| io::stdout().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        attempt(|| io::stdout().flush())
    }
}

/// Prints a text.
pub fn print(text: &str) {
    let _ = Output.write_all(text.as_bytes());
}

/// Prints in a way of its own.
///
/// # Errors
/// Standard output takes nothing, or no more.
pub fn attempt(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if let Some(error) = BROKEN.get() {
        return Err(error.kind().into());
    }
    let closed = || Err(io::Error::from_raw_os_error(libc::EBADF));
    let written = if stdout_was_writable() { write() } else { closed() };
    written.map_err(|error| {
        let kind = error.kind();
        let _ = BROKEN.set(error);
        kind.into()
    })
}

/// The exit status of a verb that has ended with `code`: a failure where its output did not arrive. A reader that has gone away
/// (`| head`) is none.
pub fn finish(code: ExitCode) -> ExitCode {
    if stdout_was_writable() {
        let _ = Output.flush();
    }
    match BROKEN.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("linerate: cannot write to standard output: {error}");
            ExitCode::from(crate::commands::FAILED)
        }
        _ => code,
    }
}
