//! Reads a tree with the layout of the public archive: any part of it, as it lies on the disk.
//!
//! The tree may hold anything. Links are not followed, only regular files are opened, files are read up to a size that their kind
//! never has, folders down to a depth that no archive has. A file that cannot be read is recorded as a problem.

use linerate_import::netbenches::assemble::Assembly;
use linerate_import::netbenches::config::Configs;
use linerate_import::netbenches::layout::{self, Kind};
use linerate_import::netbenches::{Archive, FileProblem, ResultDirectory};
use linerate_linux::Error;
use linerate_linux::files::{Entry, NOT_REGULAR, cannot_read, list, open_in};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folders below each other; the archive has ten.
const DEEPEST: usize = 64;

/// How far the reading is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub files: u64,
    pub bytes: u64,
}

/// Reads everything below `directory`, without the samples of its logs.
///
/// # Errors
/// `directory` is not a folder, or cannot be read. Problems below it are in [`Archive::problems`].
pub fn read_archive(
    directory: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Archive, Error> {
    let mut directories = Vec::new();
    let mut archive = visit(directory, false, progress, |found| {
        directories.push(found);
        Ok::<(), Error>(())
    })?;
    directories.sort_by(|a, b| a.path.cmp(&b.path));
    archive.directories = directories;
    Ok(archive)
}

/// Reads everything below `directory`, and hands over each results folder as soon as it is complete, with the samples of its
/// logs if `keep_samples`. The returned archive has no folders.
///
/// # Errors
/// `directory` is not a folder, or cannot be read; or the error of `each`.
pub fn visit<E: From<Error>>(
    directory: &Path,
    keep_samples: bool,
    progress: &mut dyn FnMut(Progress),
    mut each: impl FnMut(ResultDirectory) -> Result<(), E>,
) -> Result<Archive, E> {
    // Below the root an unreadable folder is a problem, the root itself is an error.
    let open =
        || std::fs::canonicalize(directory).and_then(|root| std::fs::read_dir(&root).map(|_| root));
    let root = open().map_err(|source| Error::System {
        operation: format!("read {}", directory.display()),
        source,
        detail: "; name a folder of the archive, or one that is laid out like it".into(),
    })?;
    let mut reader = Reader {
        root,
        archive: Archive::default(),
        configs: Configs::default(),
        seen: Progress::default(),
        buffer: Vec::new(),
        keep_samples,
        printed: BTreeMap::new(),
        progress,
        each: &mut each,
    };
    reader.results(".", 0)?;
    let mut archive = reader.archive;
    archive.bytes = reader.seen.bytes;
    archive
        .problems
        .sort_by(|a, b| (&a.path, &a.reason).cmp(&(&b.path, &b.reason)));
    Ok(archive)
}

struct Reader<'a, E> {
    root: PathBuf,
    archive: Archive,
    configs: Configs,
    seen: Progress,
    buffer: Vec<u8>,
    keep_samples: bool,
    /// Length and hash of outputs of tools, each with the first file that has it.
    printed: BTreeMap<(usize, u64), String>,
    progress: &'a mut dyn FnMut(Progress),
    each: &'a mut dyn FnMut(ResultDirectory) -> Result<(), E>,
}

impl<E> Reader<'_, E> {
    /// A folder that is not a part of another's results: its own files with those of its RAW and PMC folders, then the rest.
    fn results(&mut self, path: &str, depth: usize) -> Result<(), E> {
        let folder = self.root.join(path);
        let parts: Vec<_> = folder
            .iter()
            .map(OsStr::to_string_lossy)
            .filter(|part| part != "/")
            .collect();
        let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
        let mut assembly = Assembly::new(path, layout::place(&parts), self.keep_samples);
        // Configurations describe the results beside them, so they come first as well.
        let is_own = |path: &String| {
            let name = path.rsplit('/').next().unwrap_or_default();
            layout::is_raw(name) || layout::is_profiling(name) || layout::is_configs(name)
        };
        let subs = self.files(path, &mut assembly, depth);
        let (own, others): (Vec<String>, Vec<String>) = subs.into_iter().partition(is_own);
        for sub in own {
            self.below(&sub, &mut assembly, depth + 1);
        }
        let (directory, problems) = assembly.finish(&self.configs);
        self.archive.problems.extend(problems);
        if let Some(directory) = directory {
            (self.each)(directory)?;
        }
        others
            .iter()
            .try_for_each(|sub| self.results(sub, depth + 1))
    }

    /// Everything below a folder that belongs to another's results.
    fn below(&mut self, path: &str, assembly: &mut Assembly, depth: usize) {
        for sub in self.files(path, assembly, depth) {
            self.below(&sub, assembly, depth + 1);
        }
    }

    /// Reads the files of a folder, in the order of their names, and returns the paths of its folders.
    fn files(&mut self, path: &str, assembly: &mut Assembly, depth: usize) -> Vec<String> {
        if depth > DEEPEST {
            self.problem(
                path,
                "folder",
                format!("more than {DEEPEST} folders deep: not read"),
            );
            return Vec::new();
        }
        let (handle, entries) = match listed(&self.root.join(path)) {
            Ok(listed) => listed,
            Err(error) => {
                self.problem(path, "folder", cannot_read(error));
                return Vec::new();
            }
        };
        let mut folders = Vec::new();
        let mut sub = if path == "." {
            String::new()
        } else {
            format!("{path}/")
        };
        let prefix = sub.len();
        for (name, kind) in entries {
            sub.truncate(prefix);
            sub.push_str(&name.to_string_lossy());
            match kind {
                Ok(kind) if kind.is_dir() && name.to_str().is_some() => folders.push(sub.clone()),
                Ok(kind) if kind.is_dir() => {
                    self.problem(&sub, "folder", "not read: its name is not UTF-8".into());
                }
                Ok(kind) if kind.is_file() => self.file(&handle, &name, &sub, assembly),
                Ok(kind) => self.count(if kind.is_symlink() {
                    "link, not followed"
                } else {
                    "special, not read"
                }),
                Err(error) => self.problem(&sub, "file", cannot_read(error)),
            }
        }
        folders
    }

    fn file(&mut self, folder: &File, name: &OsStr, path: &str, assembly: &mut Assembly) {
        let kind = layout::kind(path);
        let read = match kind {
            Kind::Config if !Configs::wants(path) => Ok(kind.name()),
            Kind::PmcLog | Kind::Other(_) => Ok(assembly.file(path, kind, &[])),
            Kind::Profile(_) => {
                end_of(folder, name).map(|(length, last)| assembly.end(path, kind, length, last))
            }
            _ => self.whole(folder, name, kind).map(|length| {
                let bytes = &self.buffer[..length];
                self.seen.bytes += bytes.len() as u64;
                if kind == Kind::Printed && length > 0 {
                    let mut hash = DefaultHasher::new();
                    bytes.hash(&mut hash);
                    let first = self
                        .printed
                        .entry((length, hash.finish()))
                        .or_insert_with(|| path.into());
                    if first != path {
                        let reason =
                            format!("a copy of {first}: it is the result of one test at most");
                        assembly.problem(path, kind.name(), reason);
                    }
                }
                if kind == Kind::Config {
                    self.configs.file(path, bytes);
                    return kind.name();
                }
                assembly.file(path, kind, bytes)
            }),
        };
        let read = read.unwrap_or_else(|reason| {
            assembly.problem(path, kind.name(), reason);
            kind.name()
        });
        self.count(read);
        (self.progress)(self.seen);
    }

    /// Fills the buffer, and returns how much of it.
    fn whole(&mut self, folder: &File, name: &OsStr, kind: Kind) -> Result<usize, String> {
        let (file, length) = open(folder, name)?;
        let largest = kind.largest();
        match kind {
            _ if length <= largest => {}
            // An unknown file may be anything, and large.
            Kind::Unknown => return Ok(0),
            _ => {
                return Err(format!(
                    "larger than {} MiB, which no such file is: not read",
                    largest >> 20
                ));
            }
        }
        // A file that grows meanwhile is read as far as it was.
        let length = length as usize;
        self.buffer.resize(self.buffer.len().max(length), 0);
        (&file)
            .read_exact(&mut self.buffer[..length])
            .map_err(cannot_read)?;
        Ok(length)
    }

    fn count(&mut self, kind: &'static str) {
        *self.archive.files.entry(kind).or_default() += 1;
        self.seen.files += 1;
    }

    fn problem(&mut self, path: &str, kind: &'static str, reason: String) {
        self.archive.problems.push(FileProblem {
            path: path.into(),
            kind,
            reason,
            set: None,
        });
    }
}

/// A folder, to open its files by, and its entries.
fn listed(folder: &Path) -> io::Result<(File, Vec<Entry>)> {
    let mut options = OpenOptions::new();
    let handle = options
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(folder)?;
    let entries = list(&handle, usize::MAX)?;
    Ok((handle, entries))
}

/// Opens a regular file of a folder, and nothing else. Gives its length as well.
fn open(folder: &File, name: &OsStr) -> Result<(File, u64), String> {
    // Since the folder was listed it may have become something else.
    match open_in(folder, name)? {
        (file, metadata) if metadata.is_file() => Ok((file, metadata.len())),
        _ => Err(NOT_REGULAR.into()),
    }
}

/// Length and last byte.
fn end_of(folder: &File, name: &OsStr) -> Result<(u64, Option<u8>), String> {
    let (file, length) = open(folder, name)?;
    let mut last = [0];
    let read = match length.checked_sub(1) {
        Some(at) => file.read_at(&mut last, at).map_err(cannot_read)?,
        None => 0,
    };
    Ok((length, (read == 1).then_some(last[0])))
}
