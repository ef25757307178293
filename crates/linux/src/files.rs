//! Files that a user names, files in folders that are open already, documents that are there whole or not at all, and the
//! descriptor that a program prints to.
//!
//! Folders of small files, as configuration sets are, are read whole, within bounds, and never through a link: each folder and file
//! is opened by its name in the folder above, which is already open, so that no link can be inserted on the way. Files that are not
//! read are listed with the reason.

use crate::error::{Doing, Error};
use linerate_hosts::folder::{File as SmallFile, Folder, MOST_BYTES};
use rustix::fs::{Mode, OFlags, ResolveFlags, fcntl_getfl, openat, openat2};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
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
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    match () {
        () if kind.is_file() => Ok(file),
        () if kind.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        () => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// The content of a regular file: one byte more than `most` is enough to know that it is too large.
///
/// # Errors
/// As [`open`], or it cannot be read.
pub fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?
        .take((most as u64).saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content of a regular file below a folder, without links on the way to it.
///
/// # Errors
/// As [`read`], or it is larger than `most`, hidden, or elsewhere.
pub fn read_below(folder: &Path, name: &str, most: usize) -> io::Result<Vec<u8>> {
    if name.split('/').any(|part| part.starts_with('.')) {
        return Err(ErrorKind::NotFound.into());
    }
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = File::from(openat2(
        File::open(folder)?,
        name,
        flags,
        Mode::empty(),
        beneath,
    )?);
    let there = file.metadata()?;
    if !there.is_file() || there.len() > most as u64 {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a path leads down from where it begins, and nowhere else.
pub(crate) fn is_plain(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Writes to a file of /proc or /sys. Only one that is there can be set: with O_CREAT, a missing one would be "permission denied".
pub(crate) fn set_file(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)?
        .write_all(value.as_bytes())
}

/// Writes a document.
pub(crate) fn write(path: &Path, document: &impl serde::Serialize) -> io::Result<File> {
    let mut file = BufWriter::new(File::create(path)?);
    document_into(&mut file, document)?;
    Ok(file.into_inner()?)
}

fn document_into(file: &mut impl Write, document: &impl serde::Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

/// Writes a document under another name, puts it on the disk, and renames it: a reader sees the old document or the new one,
/// also after a power failure.
pub(crate) fn replace(path: &Path, document: &impl serde::Serialize) -> io::Result<()> {
    replace_by(path, |file| document_into(file, document))
}

/// Writes a file in the same way; something else than a regular file, such as a pipe, as it is.
///
/// # Errors
/// The file cannot be written.
pub fn replace_by(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let mut file = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        return write(&mut file).and_then(|()| file.flush());
    }
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let into = |draft: &Path| {
        let mut file = BufWriter::new(File::create(draft)?);
        write(&mut file)?;
        file.into_inner()?.sync_all()
    };
    let written = into(&draft);
    let replaced = written.and_then(|()| fs::rename(&draft, path));
    // The draft may not be there; the error to report is the first one.
    replaced.inspect_err(|_| drop(fs::remove_file(&draft)))
}

/// Removes the drafts of these documents, which writers that were killed have left.
pub(crate) fn remove_drafts(folder: &Path, documents: &[&str]) {
    let is_of = |stem: &str| {
        documents
            .iter()
            .any(|document| document.strip_suffix(".json") == Some(stem))
    };
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        let draft = name
            .to_str()
            .and_then(|name| name.strip_suffix(".draft")?.rsplit_once('.'));
        if draft.is_some_and(|(stem, pid)| is_of(stem) && pid.parse::<u32>().is_ok()) {
            let _ = fs::remove_file(file.path());
        }
    }
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
pub fn open_in(folder: &File, name: &OsStr) -> Result<(File, Metadata), String> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || {
        let file = File::from(openat(folder, name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        Ok((file, metadata))
    };
    open().map_err(cannot_read)
}

pub fn cannot_read(error: io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ELOOP) => "a link: links are not followed".to_string(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Why something else than a file or a folder is not read.
pub const NOT_REGULAR: &str = "not a regular file: not read";

/// A folder's entry: its name and its type.
pub type Entry = (OsString, io::Result<FileType>);

/// The entries of an open folder by name, `most` of them.
pub fn list(folder: &File, most: usize) -> io::Result<Vec<Entry>> {
    let listed = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))?.take(most);
    let entries = listed.map(|entry| entry.map(|entry| (entry.file_name(), entry.file_type())));
    let mut entries = entries.collect::<io::Result<Vec<Entry>>>()?;
    // Sorting comes first: so a bound leaves out the same names however the disk lists them.
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}

/// Folders below each other at most.
const DEEPEST: usize = 32;
/// Files and folders at most.
const MOST_ENTRIES: usize = 20_000;
/// Bytes of all files at most.
const MOST_TOTAL: usize = 64 << 20;

/// Reads all files below a folder. A link is followed only if it is `path` itself.
///
/// # Errors
/// `path` is not a folder, or cannot be read. Unreadable files below it are in [`Folder::unread`].
pub fn read_folder(path: &Path) -> Result<Folder, Error> {
    let open = || {
        let root = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(path)?;
        Ok::<_, io::Error>((list(&root, MOST_ENTRIES + 1)?, root))
    };
    let (entries, root) = open().doing(format_args!("read the folder {}", path.display()))?;
    let mut reader = Reader {
        folder: Folder::default(),
        entries: 0,
        bytes: 0,
    };
    reader.below(&root, entries, "", 0);
    let mut folder = reader.folder;
    folder.path = path.to_string_lossy().into_owned();
    folder.files.sort_by(|a, b| a.path.cmp(&b.path));
    folder.unread.sort();
    Ok(folder)
}

struct Reader {
    folder: Folder,
    entries: usize,
    bytes: usize,
}

impl Reader {
    fn below(&mut self, folder: &File, entries: Vec<Entry>, prefix: &str, depth: usize) {
        for (name, _) in entries {
            let path = format!("{prefix}{}", name.to_string_lossy());
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                self.unread(
                    path,
                    format!("not read: more than {MOST_ENTRIES} files and folders"),
                );
                return;
            }
            if name.to_str().is_none() {
                self.unread(path, "not read: its name is not UTF-8".into());
            } else if let Err(reason) = self.entry(folder, &name, &path, depth) {
                self.unread(path, reason);
            }
        }
    }

    /// Reads a file, or all files below a folder. The error is the reason why it is not read.
    fn entry(
        &mut self,
        folder: &File,
        name: &OsStr,
        path: &str,
        depth: usize,
    ) -> Result<(), String> {
        let (opened, metadata) = open_in(folder, name)?;
        if metadata.is_dir() {
            if depth == DEEPEST {
                return Err(format!("not read: more than {DEEPEST} folders deep"));
            }
            let entries = list(&opened, MOST_ENTRIES + 1).map_err(cannot_read)?;
            self.below(&opened, entries, &format!("{path}/"), depth + 1);
            return Ok(());
        }
        if !metadata.is_file() {
            return Err(NOT_REGULAR.into());
        }
        let mut bytes = Vec::new();
        opened
            .take(MOST_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(cannot_read)?;
        if bytes.len() > MOST_BYTES {
            return Err(format!("not read: larger than {} MiB", MOST_BYTES >> 20));
        }
        if self.bytes + bytes.len() > MOST_TOTAL {
            return Err(format!(
                "not read: all files have more than {} MiB",
                MOST_TOTAL >> 20
            ));
        }
        self.bytes += bytes.len();
        let executable = metadata.permissions().mode() & 0o111 != 0;
        self.folder.files.push(SmallFile {
            path: path.into(),
            bytes,
            executable,
        });
        Ok(())
    }

    fn unread(&mut self, path: String, reason: String) {
        self.folder.unread.push((path, reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    #[test]
    fn paths_that_lead_elsewhere_are_not_plain() {
        for path in ["", "/", "/sys", "..", "a/../b", "a//b", "./a", "a/"] {
            assert!(!is_plain(path), "{path:?}");
        }
        assert!(is_plain("class/net/g0.5/threaded"));
    }

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir()
                .join(format!("linerate-folders-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn reason<'f>(folder: &'f Folder, path: &str) -> &'f str {
        let found = folder.unread.iter().find(|(p, _)| p == path);
        &found
            .unwrap_or_else(|| panic!("{path} is not among {:?}", folder.unread))
            .1
    }

    #[test]
    fn files_are_read_whole_and_in_the_order_of_their_paths() {
        let scratch = Scratch::new("whole");
        let root = &scratch.0;
        fs::create_dir_all(root.join("b/etc")).unwrap();
        fs::write(root.join("b/etc/rc.conf"), "x=1\n").unwrap();
        fs::write(root.join("a"), [0xff, 0]).unwrap();
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        let folder = read_folder(root).unwrap();
        let files: Vec<(&str, usize, bool)> = folder
            .files
            .iter()
            .map(|f| (f.path.as_str(), f.bytes.len(), f.executable))
            .collect();
        assert_eq!(files, [("a", 2, true), ("b/etc/rc.conf", 4, false)]);
        assert!(folder.unread.is_empty());
        // The folder itself may be named by a link.
        let link = root.with_extension("link");
        let _ = fs::remove_file(&link);
        symlink(root, &link).unwrap();
        assert_eq!(read_folder(&link).unwrap().files, folder.files);
        fs::remove_file(&link).unwrap();
        let error = read_folder(&root.join("a")).unwrap_err().to_string();
        assert!(
            error.contains("cannot read the folder") && error.contains("Not a directory"),
            "{error}"
        );
    }

    #[test]
    fn drafts_of_named_documents_are_removed() {
        let scratch = Scratch::new("drafts");
        let names = [
            "summary.1.draft",
            "summary.json",
            "summary.x.draft",
            "page.1.draft",
            "summary.draft",
        ];
        names
            .iter()
            .for_each(|name| fs::write(scratch.0.join(name), "").unwrap());
        remove_drafts(&scratch.0, &["summary.json"]);
        let left = names.map(|name| scratch.0.join(name).exists());
        assert_eq!(left, [false, true, true, true, true]);
    }

    #[test]
    fn what_leaves_the_folder_or_has_no_end_is_told_and_not_read() {
        let scratch = Scratch::new("hostile");
        let root = &scratch.0;
        symlink("/etc/passwd", root.join("file")).unwrap();
        symlink("/etc", root.join("folder")).unwrap();
        symlink(".", root.join("loop")).unwrap();
        let fifo = std::process::Command::new("mkfifo")
            .arg(root.join("pipe"))
            .status()
            .unwrap();
        assert!(fifo.success());
        fs::write(root.join(OsString::from_vec(b"\xff".to_vec())), "x").unwrap();
        fs::File::create(root.join("large"))
            .unwrap()
            .set_len(100 << 30)
            .unwrap();
        let mut deep = root.clone();
        (0..DEEPEST + 2).for_each(|_| deep.push("d"));
        fs::create_dir_all(&deep).unwrap();
        let folder = read_folder(root).unwrap();
        assert!(folder.files.is_empty(), "{:?}", folder.files);
        for link in ["file", "folder", "loop"] {
            assert_eq!(reason(&folder, link), "a link: links are not followed");
        }
        assert_eq!(reason(&folder, "pipe"), "not a regular file: not read");
        assert_eq!(
            reason(&folder, "\u{fffd}"),
            "not read: its name is not UTF-8"
        );
        assert_eq!(reason(&folder, "large"), "not read: larger than 1 MiB");
        assert!(
            folder
                .unread
                .iter()
                .any(|(_, why)| why.contains("32 folders deep"))
        );
        assert_eq!(folder.unread.len(), 7);
    }
}
