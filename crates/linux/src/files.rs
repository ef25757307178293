//! Files that a user names, files in folders that are open already, documents that are there whole or not at all, and the
//! descriptor that a program prints to.

use rustix::fs::{Mode, OFlags, fcntl_getfl, openat};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Paths under which a shell passes files that it has opened itself: `/dev/stdin`, and `<(...)`.
const HANDED_OVER: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Opens a regular file. A FIFO or a terminal would be waited for, without end.
///
/// # Errors
/// The system refuses it, or it is something else.
pub fn open(path: &Path) -> io::Result<File> {
    if HANDED_OVER.iter().any(|place| path.starts_with(place)) {
        return File::open(path);
    }
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_file() => Ok(file),
        () if kind.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        () => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The content of a regular file: one byte more than `most` is enough to know that it is too large.
///
/// # Errors
/// As [`open`], or it cannot be read.
pub fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take((most as u64).saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a path leads down from where it begins, and nowhere else.
pub(crate) fn is_plain(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Writes to a file of /proc or /sys. Only one that is there can be set: with O_CREAT, a missing one would be "permission denied".
pub(crate) fn set_file(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}

/// Writes a document.
pub(crate) fn write(path: &Path, document: &impl serde::Serialize) -> io::Result<File> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    Ok(file.into_inner()?)
}

/// Writes a document under another name, puts it on the disk, and renames it: a reader sees the old document or the new one,
/// also after a power failure.
pub(crate) fn replace(path: &Path, document: &impl serde::Serialize) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let written = write(&draft, document).and_then(|file| file.sync_all());
    let replaced = written.and_then(|()| fs::rename(&draft, path));
    // The draft may not be there; the error to report is the first one.
    replaced.inspect_err(|_| drop(fs::remove_file(&draft)))
}

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

/// A folder's entry: its name and its type.
pub(crate) type Entry = (OsString, io::Result<FileType>);

/// The entries of an open folder by name, `most` of them.
pub(crate) fn list(folder: &File, most: usize) -> io::Result<Vec<Entry>> {
    let listed = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))?.take(most);
    let entries = listed.map(|entry| entry.map(|entry| (entry.file_name(), entry.file_type())));
    let mut entries = entries.collect::<io::Result<Vec<Entry>>>()?;
    // What a bound leaves out does not depend on how the disk lists them.
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_not_plain() {
        for path in ["", "/", "/sys", "..", "a/../b", "a//b", "./a", "a/"] {
            assert!(!is_plain(path), "{path:?}");
        }
        assert!(is_plain("class/net/g0.5/threaded"));
    }
}
