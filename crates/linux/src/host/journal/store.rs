//! A journal on disk: a file for each lab that changes the host, a line for each step, synchronised before the step is taken.

use super::JournalError;
use crate::files;
use crate::process::Owner;
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The form of journals that this program writes.
const VERSION: u32 = 1;

/// Something that is done to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// A setting gets another value.
    Set {
        /// The file below /.
        file: String,
        /// The value before.
        old: String,
        /// The value that is written.
        new: String,
    },
    /// A module is loaded that was not.
    Module(String),
}

/// A step as it was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub step: Step,
    /// The value that was found afterwards, if the process lived to read it.
    pub became: Option<String>,
}

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    /// The first: who writes.
    Begin {
        version: u32,
        #[serde(flatten)]
        owner: Owner,
    },
    Step(Step),
    /// The value found after the step before it.
    Became(String),
}

/// The journal of one lab.
#[derive(Debug)]
pub struct Book {
    /// Who writes it; `None` where it was killed before it had written its first line.
    pub owner: Option<Owner>,
    pub steps: Vec<Written>,
}

impl Book {
    pub fn create(path: &Path) -> Result<Book, JournalError> {
        let owner = Owner::this();
        append(path, &Line::Begin { version: VERSION, owner }, true)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        // The name must last as long as what is written under it.
        let synced = File::open(folder).and_then(|f| f.sync_all());
        synced.map_err(JournalError::system("synchronise", folder))?;
        Ok(Book { owner: Some(owner), steps: Vec::new() })
    }

    pub fn append(&mut self, path: &Path, step: Step) -> Result<(), JournalError> {
        append(path, &Line::Step(step.clone()), false)?;
        self.steps.push(Written { step, became: None });
        Ok(())
    }

    pub fn became(&mut self, path: &Path, found: &str) -> Result<(), JournalError> {
        append(path, &Line::Became(found.to_owned()), false)?;
        if let Some(last) = self.steps.last_mut() {
            last.became = Some(found.to_owned());
        }
        Ok(())
    }
}

fn append(path: &Path, line: &Line, new: bool) -> Result<(), JournalError> {
    let write = || {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let mut file = OpenOptions::new().append(true).create_new(new).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(JournalError::system("write", path))
}

/// A journal's file, and its content, or why it cannot be understood.
pub type Found = (PathBuf, Result<Book, String>);

/// All journals in a folder.
pub fn list(folder: &Path) -> Result<Vec<Found>, JournalError> {
    let failed = JournalError::system("list the journals in", folder);
    files::documents(folder, "journal", |_, text| parse(text)).map_err(failed)
}

/// Reads a journal. A last line that was cut off in the middle is of a step that was not taken: steps are taken only once their
/// line is complete.
pub fn parse(text: &str) -> Result<Book, String> {
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = complete.lines().map(serde_json::from_str::<Line>);
    let owner = match lines.next() {
        Some(Ok(Line::Begin { version: VERSION, owner })) => Some(owner),
        Some(Ok(Line::Begin { version, .. })) => {
            return Err(format!("version {version} is not known, only {VERSION}"));
        }
        None => None,
        _ => return Err("it does not begin with who writes".into()),
    };
    let mut book = Book { owner, steps: Vec::new() };
    for (number, line) in lines.enumerate() {
        match line {
            Ok(Line::Step(step)) => book.steps.push(Written { step, became: None }),
            Ok(Line::Became(found)) if !book.steps.is_empty() => {
                book.steps.last_mut().expect("not empty").became = Some(found);
            }
            _ => return Err(format!("line {} makes no sense", number + 2)),
        }
    }
    Ok(book)
}

/// Only one process at a time changes the host or undoes what another changed. The kernel gives the lock back when the process
/// is gone.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    pub fn take(folder: &Path) -> Result<Lock, JournalError> {
        let path = folder.join("lock");
        let file = lockable(&path)?;
        lock(&file, FlockOperation::LockExclusive).map_err(JournalError::system("lock", path))?;
        Ok(Lock(file))
    }
}

/// The right to begin a campaign that may change the host. Its holder's number is in the file, for who comes next.
#[derive(Debug)]
pub struct Reservation(#[expect(dead_code, reason = "held, not read")] File);

impl Reservation {
    /// Takes it.
    ///
    /// # Errors
    /// Another process has it, or its file cannot be made.
    pub(super) fn take(folder: &Path) -> Result<Reservation, JournalError> {
        let path = folder.join("campaign");
        let mut file = lockable(&path)?;
        // Of a holder that was killed, a program that it was just starting may have it for a moment.
        let mut held = lock(&file, FlockOperation::NonBlockingLockExclusive);
        for _ in 0..10 {
            if !matches!(&held, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
            held = lock(&file, FlockOperation::NonBlockingLockExclusive);
        }
        match held {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let mut pid = String::new();
                let _ = file.take(20).read_to_string(&mut pid);
                return Err(JournalError::Reserved { pid: pid.trim().into() });
            }
            other => other.map_err(JournalError::system("lock", &path))?,
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(JournalError::system("write", path))?;
        Ok(Reservation(file))
    }
}

fn lockable(path: &Path) -> Result<File, JournalError> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    open.map_err(JournalError::system("open", path))
}

fn lock(file: &File, operation: FlockOperation) -> io::Result<()> {
    Ok(retry_on_intr(|| flock(file, operation))?)
}
