//! A journal of changes that must be undone: a line for each, on the disk before the change is made. Whoever has it open holds its
//! lock, so that a journal whose lock is free has no owner, whatever ended that one.

use crate::error::{Doing, Error};
use linerate_hosts::dut_changes::Undoing;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Serialize, de::DeserializeOwned};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// No journal is nearly this long.
const LONGEST: u64 = 256 << 20;

/// A change, as it is written down.
pub trait Entry: Serialize + DeserializeOwned + Clone {
    /// The change has been made, with this result.
    fn made(&mut self, found: String);
}

impl Entry for Undoing {
    fn made(&mut self, _: String) {
        self.made = true;
    }
}

/// A journal that is open, and locked.
#[derive(Debug)]
pub struct Journal<E> {
    path: PathBuf,
    /// Holds the lock.
    file: File,
    pending: Vec<E>,
}

impl<E: Entry> Journal<E> {
    /// Opens a journal, and makes it if there is none; `None` if another process has it.
    ///
    /// # Errors
    /// The journal cannot be read or written.
    pub fn open(path: &Path) -> Result<Option<Journal<E>>, Error> {
        let open = || -> io::Result<Option<Journal<E>>> {
            let Some(mut file) = lock(path)? else {
                return Ok(None);
            };
            let mut text = String::new();
            (&mut file).take(LONGEST).read_to_string(&mut text)?;
            let mut journal = Journal {
                path: path.into(),
                file,
                pending: entries(&text)?,
            };
            if !text.is_empty() && !text.ends_with('\n') {
                // The change of a line that is not whole was never made.
                journal.rewrite()?;
            }
            Ok(Some(journal))
        };
        open().doing(format_args!("open the journal {}", path.display()))
    }

    /// The changes that are not undone, oldest first.
    pub fn pending(&self) -> &[E] {
        &self.pending
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a change that is about to be made.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn write(&mut self, entry: E) -> Result<(), Error> {
        let written = self
            .file
            .write_all(line(&entry).as_bytes())
            .and_then(|()| self.file.sync_data());
        self.writing(written)?;
        self.pending.push(entry);
        Ok(())
    }

    /// The change that was written last has been made. Should this be lost, it counts as one that may not have been.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn made(&mut self, found: &str) -> Result<(), Error> {
        self.pending
            .iter_mut()
            .next_back()
            .into_iter()
            .for_each(|last| last.made(found.into()));
        let written = self.file.write_all(line(&found).as_bytes());
        self.writing(written)
    }

    /// Leaves only these changes.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn replace(&mut self, pending: Vec<E>) -> Result<(), Error> {
        self.pending = pending;
        let written = self.rewrite();
        self.writing(written)
    }

    /// A new file takes the place of the old one, and its lock.
    fn rewrite(&mut self) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let _ = fs::remove_file(&beside);
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(self.pending.iter().map(line).collect::<String>().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        self.file = file;
        Ok(())
    }

    fn writing<T>(&self, written: io::Result<T>) -> Result<T, Error> {
        written.doing(format_args!("write the journal {}", self.path.display()))
    }
}

impl<E> Drop for Journal<E> {
    fn drop(&mut self) {
        // Nothing is to be undone. Whoever waits for the lock of this file sees that it is gone, and makes another.
        if self.pending.is_empty() && is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
        // Said, because a program that another thread is about to start has this descriptor until it begins.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Opens a file, which is made if there is none, and locks it for as long as it is open; `None` if another process has it.
pub(crate) fn lock(path: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    for _ in 0..10 {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_at(&file, path) => return Ok(Some(file)),
            // The holder before has put another file in its place; or a program that a killed holder was just starting has the
            // lock for a moment.
            Ok(()) | Err(Errno::INTR | Errno::WOULDBLOCK) => {
                std::thread::sleep(Duration::from_millis(20))
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

/// Whether a path still leads to this file.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let same = |(a, b): (fs::Metadata, fs::Metadata)| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata()
        .ok()
        .zip(fs::metadata(path).ok())
        .is_some_and(same)
}

fn line(entry: &impl Serialize) -> String {
    let json = serde_json::to_string(entry);
    format!(
        "{}\n",
        json.unwrap_or_else(|_| unreachable!("texts can always be written"))
    )
}

/// The whole lines of a journal: changes, each with a text behind it if it has been made.
fn entries<E: Entry>(text: &str) -> io::Result<Vec<E>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut entries: Vec<E> = Vec::new();
    for line in whole.lines() {
        match (serde_json::from_str(line), entries.last_mut()) {
            (Ok(found), Some(last)) => last.made(found),
            _ => entries.push(serde_json::from_str(line)?),
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undoing(n: usize) -> Undoing {
        Undoing {
            what: format!("change {n}"),
            argv: vec!["true".into(), "a\nb".into()],
            input: "ä\n".into(),
            lasting: n == 2,
            machine: Some("02:00:00:00:00:01".into()),
            boot: Some("b".into()),
            made: n == 1,
            within_ns: (n == 1).then_some(5),
            cuts: n == 2,
        }
    }

    fn open(path: &Path) -> Option<Journal<Undoing>> {
        Journal::open(path).unwrap()
    }

    #[test]
    fn changes_outlive_the_program() {
        let folder = std::env::temp_dir().join(format!("linerate-changes-{}", std::process::id()));
        let path = folder.join("r1.changes");
        let mut journal = open(&path).unwrap();
        journal
            .write(Undoing {
                made: false,
                ..undoing(1)
            })
            .unwrap();
        journal.made("").unwrap();
        journal.write(undoing(2)).unwrap();
        assert!(open(&path).is_none(), "it is held");
        assert!(open(&folder.join("r2.changes")).is_some());
        drop(journal);
        // Killed in the middle of a line.
        let mut text = fs::read_to_string(&path).unwrap();
        text += "{\"what\":\"ch";
        fs::write(&path, &text).unwrap();
        let mut journal = open(&path).unwrap();
        assert_eq!(journal.pending(), [undoing(1), undoing(2)]);
        journal.write(undoing(3)).unwrap();
        journal.replace(vec![undoing(3)]).unwrap();
        drop(journal);
        let mut journal = open(&path).unwrap();
        assert_eq!(journal.pending(), [undoing(3)]);
        journal.replace(Vec::new()).unwrap();
        drop(journal);
        assert!(!path.exists(), "a journal of nothing is no file");
        drop(open(&path).unwrap());
        assert!(!path.exists());
        fs::write(&path, "nonsense\n").unwrap();
        let error = Journal::<Undoing>::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("cannot open the journal") && error.contains("r1.changes"),
            "{error}"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
