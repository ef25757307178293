//! The folder of a dataset: files that are there whole or not at all, whoever else writes, and folders that change places at once.
//!
//! A file is written below `.drafts`, put on the disk and renamed. Writers hold the lock of the dataset together; who replaces what is
//! there holds it alone. The kernel frees the lock of a writer that is killed.

use crate::error::{Doing, Error};
use crate::files;
use crate::records::sync_directory;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder of files that are being written.
const DRAFTS: &str = ".drafts";
/// The file whose lock is that of the dataset.
const LOCK: &str = ".lock";

/// A dataset.
#[derive(Debug)]
pub struct DatasetFolder {
    root: PathBuf,
}

/// A lock; `None` in it where the file system has none.
#[derive(Debug)]
pub struct Held(Option<File>);

impl Held {
    /// Whether nobody else can hold it.
    pub fn is_sure(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Said, because a program that another thread starts may have this descriptor for a moment.
        if let Some(file) = &self.0 {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

impl DatasetFolder {
    /// Makes the folder, or takes one that is there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn create(root: &Path) -> Result<Self, Error> {
        let made = fs::create_dir_all(root.join(DRAFTS));
        made.doing(format_args!("make the archive {}", root.display()))?;
        Ok(DatasetFolder { root: root.into() })
    }

    /// Takes a folder that is there.
    ///
    /// # Errors
    /// The folder is not there, or is no dataset.
    pub fn open(root: &Path) -> Result<Self, Error> {
        fs::read_dir(root).doing(format_args!("read {}", root.display()))?;
        // Object stores have no empty folders.
        if ![DRAFTS, "trials"]
            .iter()
            .any(|name| root.join(name).is_dir())
        {
            let root = root.display();
            return Err(Error::Refused(format!(
                "{root} is no archive: `linerate archive add DIR --to {root}` makes one"
            )));
        }
        Ok(DatasetFolder { root: root.into() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Waits for the lock: together with other writers, or `alone`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn lock(&self, alone: bool) -> Result<Held, Error> {
        let path = self.root.join(LOCK);
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).read(true).open(&path);
        let refused = [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];
        let file = match file {
            // A reader needs no lock.
            Err(error) if !alone && refused.contains(&error.kind()) => return Ok(Held(None)),
            other => other.doing(format_args!("open {}", path.display()))?,
        };
        let how = if alone {
            FlockOperation::LockExclusive
        } else {
            FlockOperation::LockShared
        };
        loop {
            return match flock(&file, how) {
                Err(Errno::INTR) => continue,
                Ok(()) => Ok(Held(Some(file))),
                // Some network file systems have no locks.
                Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    Ok(Held(None))
                }
                Err(error) => {
                    Err(io::Error::from(error)).doing(format_args!("lock {}", path.display()))
                }
            };
        }
    }

    /// The entries of a folder by name, each with whether it is a folder; none without the folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<(String, bool)>, Error> {
        let folder = self.root.join(path);
        let read = || {
            let mut entries = Vec::new();
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                entries.push((name, entry.file_type()?.is_dir()));
            }
            entries.sort();
            Ok::<_, io::Error>(entries)
        };
        match read() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            other => other.doing(format_args!("read {}", folder.display())),
        }
    }

    /// Opens a file; `None` without it.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn file(&self, path: &str) -> Result<Option<File>, Error> {
        let path = self.root.join(path);
        match files::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => other
                .map(Some)
                .doing(format_args!("open {}", path.display())),
        }
    }

    /// Writes a file, whole or not at all, in the place of one that is there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let draft = self.draft();
        let to = self.root.join(path);
        let put = || {
            fs::create_dir_all(self.root.join(DRAFTS))?;
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            self.make_parents(path)?;
            fs::rename(&draft, &to)
        };
        put()
            .inspect_err(|_| drop(fs::remove_file(&draft)))
            .doing(format_args!("write {}", to.display()))?;
        to.parent().map_or(Ok(()), sync_directory)
    }

    /// Makes the folders above a file, and puts their names on the disk.
    fn make_parents(&self, path: &str) -> io::Result<()> {
        let mut at = self.root.clone();
        let mut parts: Vec<&str> = path.split('/').collect();
        parts.pop();
        for part in parts {
            let above = at.clone();
            at.push(part);
            match fs::create_dir(&at) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    sync_directory(&above).map_err(io::Error::other)?;
                }
            }
        }
        Ok(())
    }

    /// Puts a folder with this one file in the place of a folder, at once: a reader finds the old files or the new one. A kill leaves
    /// the old folder among the drafts.
    ///
    /// # Errors
    /// The file cannot be written, or the file system cannot exchange folders.
    pub fn replace_folder(
        &self,
        folder: &str,
        name: &str,
        write: impl FnOnce(File) -> io::Result<()>,
    ) -> Result<(), Error> {
        let (draft, to) = (self.draft(), self.root.join(folder));
        let put = || {
            fs::create_dir(&draft)?;
            let path = draft.join(name);
            write(File::create(&path)?)?;
            File::open(&path)?.sync_all()?;
            sync_directory(&draft).map_err(io::Error::other)?;
            exchange(&draft, &to)
        };
        put()
            .inspect_err(|_| drop(fs::remove_dir_all(&draft)))
            .doing(format_args!("replace {}", to.display()))?;
        to.parent().map_or(Ok(()), sync_directory)?;
        fs::remove_dir_all(&draft).doing(format_args!("remove {}", draft.display()))
    }

    /// Whether the file system can exchange folders.
    pub fn exchanges(&self) -> bool {
        let drafts = [self.draft(), self.draft()];
        let made = drafts.iter().all(|draft| fs::create_dir(draft).is_ok());
        let exchanged = made && exchange(&drafts[0], &drafts[1]).is_ok();
        drafts.iter().for_each(|draft| drop(fs::remove_dir(draft)));
        exchanged
    }

    /// Paths, below the root, of everything that is being written, or was when its writer was killed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn drafts(&self) -> Result<Vec<String>, Error> {
        let of = |(name, _)| format!("{DRAFTS}/{name}");
        Ok(self.list(DRAFTS)?.into_iter().map(of).collect())
    }

    /// Removes one of them.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove_draft(&self, draft: &str) -> Result<(), Error> {
        let path = self.root.join(draft);
        let removed = if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.doing(format_args!("remove {}", path.display()))
    }

    /// A path that no other writer has.
    fn draft(&self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Processes of several hosts may have one number, and each host begins at another time.
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let (pid, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("{pid}-{next}-{:x}", since.as_nanos());
        self.root.join(DRAFTS).join(name)
    }
}

fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}
