//! Files that a user names, and documents that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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
