//! The journal of a host's changes, on this machine: a line for each, synchronised before the change is made.

use crate::error::{Fault, RemoteError};
use linerate_hosts::dut_changes::Undoing;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// No journal is nearly this long.
const LONGEST: u64 = 256 << 20;

/// The line that marks the change before it as made.
const MADE: &str = "\"made\"";

#[derive(Debug)]
pub struct Journal {
    host: String,
    path: PathBuf,
    /// Holds the lock.
    file: File,
    pending: Vec<Undoing>,
}

impl Journal {
    /// `machine`: identifies the host.
    pub fn open(host: &str, machine: &str, folder: &Path) -> Result<Journal, RemoteError> {
        let path = folder.join(format!("{}.changes", file_name(machine)));
        let failed = |doing| failed(host, &path, doing);
        fs::create_dir_all(folder).map_err(failed("created"))?;
        let mut file = loop {
            let opened = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path);
            let file = opened.map_err(failed("opened"))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // The previous holder may have put another in its place meanwhile.
                Ok(()) if is_at(&file, &path) => break file,
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(RemoteError::new(host, Fault::Busy, "")),
                Err(e) => return Err(failed("locked")(e.into())),
            }
        };
        let mut text = String::new();
        (&mut file).take(LONGEST).read_to_string(&mut text).map_err(failed("read"))?;
        let pending = pending(&text).map_err(failed("read"))?;
        let mut journal = Journal { host: host.into(), path, file, pending };
        if !text.is_empty() && !text.ends_with('\n') {
            // The change of a line that is not whole was never made.
            let pending = journal.pending.clone();
            journal.replace(pending)?;
        }
        Ok(journal)
    }

    pub fn pending(&self) -> &[Undoing] {
        &self.pending
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a change that is about to be made.
    pub fn write(&mut self, undoing: Undoing) -> Result<(), RemoteError> {
        let line = line(&undoing);
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .map_err(failed(&self.host, &self.path, "written"))?;
        self.pending.push(undoing);
        Ok(())
    }

    /// The change that was written last has been made. Should this be lost, it counts as one that may not have been.
    pub fn made(&mut self) -> Result<(), RemoteError> {
        if let Some(last) = self.pending.last_mut() {
            last.made = true;
        }
        self.file.write_all(format!("{MADE}\n").as_bytes()).map_err(failed(&self.host, &self.path, "written"))
    }

    /// Leaves these: in a new file that takes the place of the old one, and its lock.
    pub fn replace(&mut self, pending: Vec<Undoing>) -> Result<(), RemoteError> {
        let text: String = pending.iter().map(line).collect();
        let beside = self.path.with_extension("new");
        let written = || -> io::Result<File> {
            let _ = fs::remove_file(&beside);
            let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&beside)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)?;
            Ok(file)
        };
        self.file = written().map_err(failed(&self.host, &self.path, "written"))?;
        self.pending = pending;
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Said, because a program that another thread is about to start has this descriptor until it begins.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn failed(host: &str, path: &Path, doing: &str) -> impl Fn(io::Error) -> RemoteError {
    let what = format!("the journal {} of its changes cannot be {doing}", path.display());
    move |error| RemoteError::new(host, Fault::Journal, format!("{what}: {error}"))
}

/// Whether a path still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |(a, b): (fs::Metadata, fs::Metadata)| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().ok().zip(fs::metadata(path).ok()).is_some_and(same)
}

fn line(undoing: &Undoing) -> String {
    let json = serde_json::to_string(undoing);
    format!("{}\n", json.unwrap_or_else(|_| unreachable!("texts can always be written")))
}

/// The whole lines of a journal.
fn pending(text: &str) -> io::Result<Vec<Undoing>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut pending: Vec<Undoing> = Vec::new();
    for line in whole.lines() {
        if line == MADE {
            pending.iter_mut().next_back().into_iter().for_each(|last| last.made = true);
        } else {
            let read = serde_json::from_str(line);
            pending.push(read.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?);
        }
    }
    Ok(pending)
}

/// The identity of a host as a name of a file: no two hosts have the same.
fn file_name(host: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '@');
    host.chars().map(|c| if plain(c) { c.to_string() } else { format!(".{:x}.", c as u32) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        }
    }

    #[test]
    fn what_is_pending_outlives_the_program() {
        let folder = tempfile();
        let mut journal = Journal::open("host", "r1", &folder).unwrap();
        journal.write(Undoing { made: false, ..undoing(1) }).unwrap();
        journal.made().unwrap();
        journal.write(undoing(2)).unwrap();
        assert_eq!(Journal::open("host", "r1", &folder).unwrap_err().fault, Fault::Busy);
        assert!(Journal::open("host", "r2", &folder).is_ok());
        drop(journal);
        // Killed in the middle of a line.
        let path = folder.join("r1.changes");
        let mut text = fs::read_to_string(&path).unwrap();
        text += "{\"what\":\"ch";
        fs::write(&path, &text).unwrap();
        let mut journal = Journal::open("host", "r1", &folder).unwrap();
        assert_eq!(journal.pending(), [undoing(1), undoing(2)]);
        journal.write(undoing(3)).unwrap();
        journal.replace(vec![undoing(3)]).unwrap();
        drop(journal);
        assert_eq!(Journal::open("host", "r1", &folder).unwrap().pending(), [undoing(3)]);
        fs::write(&path, "nonsense\n").unwrap();
        let error = Journal::open("host", "r1", &folder).unwrap_err().to_string();
        assert!(error.contains("r1.changes") && error.contains("cannot be read"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }

    fn tempfile() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("linerate-changes-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    proptest! {
        #[test]
        fn hosts_have_files_of_their_own(a in "[a-z./@ :]{1,8}", b in "[a-z./@ :]{1,8}") {
            prop_assert_eq!(a == b, file_name(&a) == file_name(&b));
            prop_assert!(!file_name(&a).contains('/'));
        }
    }
}
