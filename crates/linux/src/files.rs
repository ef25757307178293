//! Files that a user names, and documents that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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

/// No record or journal is nearly this long.
const LONGEST: usize = 1 << 20;

/// Files with the parsed text of each, or the reason why it cannot be parsed.
pub(crate) type Documents<T> = Vec<(PathBuf, Result<T, String>)>;

/// The files of a folder with this extension, by path: the result of `parse` for each text, or the reason why it cannot be
/// parsed. A missing folder has no files, and files that are deleted meanwhile are left out.
pub(crate) fn documents<T>(
    folder: &Path,
    extension: &str,
    parse: impl Fn(&Path, &str) -> Result<T, String>,
) -> io::Result<Documents<T>> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == extension));
    paths.sort();
    let document = |path: PathBuf| match read(&path, LONGEST) {
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => Some((path, Err(e.to_string()))),
        Ok(bytes) => {
            let parsed = parse(&path, &String::from_utf8_lossy(&bytes));
            Some((path, parsed))
        }
    };
    Ok(paths.into_iter().filter_map(document).collect())
}

/// Writes a document under another name, puts it on the disk, and renames it: a reader sees the old document or the new one,
/// also after a power failure.
pub(crate) fn replace(path: &Path, draft: &Path, document: &impl serde::Serialize) -> io::Result<()> {
    let write = || {
        let mut text = serde_json::to_string_pretty(document)?;
        text.push('\n');
        let mut file = File::create(draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(draft, path)
    };
    // The draft may not be there; the error to report is the first one.
    write().inspect_err(|_| drop(fs::remove_file(draft)))
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
