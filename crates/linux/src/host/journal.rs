//! Changes to the whole host, which a few experiments need: recorded before they are made, and undone afterwards.
//!
//! A namespace goes with its process, a host-wide setting does not. So each change is recorded on disk with the old and the new
//! value, and synchronised, before it is made. It is undone in reverse order when the lab ends, whatever ends it; after kill -9
//! the next linerate does it ([`Journal::restore_remains`]).

use crate::files::{self, Documents, is_plain};
use crate::process::{Job, Owner};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The form of journals that this program writes.
const VERSION: u32 = 2;

/// Reasons why the host was not changed, or not restored.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file of the journal, or of the host.
    #[error("cannot {operation} {}: {source}", .path.display())]
    System {
        /// The operation.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        source: io::Error,
    },
    /// A file or a module that a change may not touch.
    #[error("'{0}' is not a host setting: {1}")]
    NotASetting(String, &'static str),
    /// Another linerate, or the kernel, does not allow it.
    #[error("{0}")]
    Refused(String),
}

impl JournalError {
    fn system(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.into();
        move |source| JournalError::System { operation, path, source }
    }
}

/// Whether the user agreed to changes outside linerate's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// No consent: changes of the host are refused, with the setting to make by hand.
    #[default]
    Refused,
    Allowed,
}

/// A value that the host should have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The file below /: `proc/sys/net/netfilter/nf_conntrack_max`, `sys/module/nf_conntrack/parameters/hashsize`.
    pub file: String,
    /// The value to write.
    pub value: String,
    /// Whether a larger number will do as well.
    pub at_least: bool,
}

impl Change {
    /// A sysctl, in either spelling.
    ///
    /// # Errors
    /// The name is not plain, or the value is not one line.
    pub fn sysctl(name: &str, value: &str) -> Result<Change, crate::net::Error> {
        crate::net::sysctl::check_value(name, value)?;
        let file = format!("proc/sys/{}", crate::net::sysctl::path_of(name)?);
        Ok(Change { file, value: value.trim().to_owned(), at_least: false })
    }

    /// The same, where a larger number will do as well.
    #[must_use]
    pub fn or_more(self) -> Change {
        Change { at_least: true, ..self }
    }

    /// The command that makes the change by hand.
    pub fn by_hand(&self) -> String {
        match self.file.strip_prefix("proc/sys/") {
            Some(key) => {
                let swap = |c| match c {
                    '/' => '.',
                    '.' => '/',
                    other => other,
                };
                let quote = if self.value.contains(char::is_whitespace) { "'" } else { "" };
                format!(
                    "sysctl -w {}={quote}{}{quote}",
                    key.chars().map(swap).collect::<String>(),
                    self.value
                )
            }
            None => format!("echo {} > /{}", self.value, self.file),
        }
    }

    fn is_met_by(&self, current: &str) -> bool {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        match (self.at_least, number(current), number(&self.value)) {
            (true, Some(current), Some(wanted)) => current >= wanted,
            _ => same(current, &self.value),
        }
    }
}

/// Where changes are written down.
#[derive(Debug, Clone)]
pub struct Journal {
    books: PathBuf,
    host: PathBuf,
}

impl Journal {
    /// The journal under `state` ([`DEFAULT_ROOT`](crate::net::registry::DEFAULT_ROOT), or a folder of a test), about the host whose
    /// files are under `host` (`/`, or a folder of a test).
    pub fn new(state: impl AsRef<Path>, host: impl Into<PathBuf>) -> Journal {
        Journal { books: state.as_ref().join("host"), host: host.into() }
    }

    /// The journal of this host.
    pub fn of_this_host() -> Journal {
        Journal::new(crate::net::registry::DEFAULT_ROOT, "/")
    }

    /// The changes that the host does not meet yet.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn outstanding(&self, changes: &[Change]) -> Result<Vec<Change>, JournalError> {
        let unmet = |change: &Change| match self.read(&change.file) {
            Ok(current) => (!change.is_met_by(&current)).then(|| Ok(change.clone())),
            Err(error) => Some(Err(error)),
        };
        changes.iter().filter_map(unmet).collect()
    }

    /// Keeps other campaigns that may change the host from beginning, as long as it is held.
    ///
    /// # Errors
    /// Another one holds it, or there is no place for it.
    pub fn reserve(&self) -> Result<Lock, JournalError> {
        let path = self.books.join("campaign");
        let mut file = self.lockable(&path)?;
        for attempt in 0.. {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                // Of a holder that was killed, a program that it was just starting may have it for a moment.
                Err(Errno::WOULDBLOCK | Errno::INTR) if attempt < 10 => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(Errno::WOULDBLOCK) => {
                    let mut pid = String::new();
                    let _ = file.take(20).read_to_string(&mut pid);
                    return Err(JournalError::Refused(format!(
                        "another linerate (process {}) may change settings of this host now (--allow-host-changes): wait for its end, then start this one again",
                        pid.trim()
                    )));
                }
                Err(error) => return Err(JournalError::system("lock", path)(error.into())),
            }
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(JournalError::system("write", path))?;
        Ok(Lock(file))
    }

    /// Ensures that only one process at a time changes the host or undoes changes of another.
    fn lock(&self) -> Result<Lock, JournalError> {
        let path = self.books.join("lock");
        let file = self.lockable(&path)?;
        let locked = retry_on_intr(|| flock(&file, FlockOperation::LockExclusive));
        locked.map_err(|e| JournalError::system("lock", path)(e.into()))?;
        Ok(Lock(file))
    }

    fn lockable(&self, path: &Path) -> Result<File, JournalError> {
        fs::create_dir_all(&self.books).map_err(JournalError::system("create", &self.books))?;
        let mut options = OpenOptions::new();
        let open = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        open.map_err(JournalError::system("open", path))
    }

    /// All journals, each with its file, or why it cannot be understood.
    fn list(&self) -> Result<Documents<Book>, JournalError> {
        let listed = files::documents(&self.books, "journal", |_, text| parse(text));
        listed.map_err(JournalError::system("list the journals in", &self.books))
    }

    /// Begins changes; nothing is written before the first.
    pub fn begin(&self) -> HostChanges {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (number, owner) = (NEXT.fetch_add(1, Ordering::Relaxed), Owner::this());
        let name = format!("{}-{}-{number}.journal", owner.pid, owner.pid_started.unwrap_or(0));
        let book = Book { version: VERSION, owner, steps: Vec::new() };
        HostChanges { path: self.books.join(name), journal: self.clone(), book }
    }

    /// Undoes changes of processes that have ended; returns what was done, in words. Changes that cannot be undone stay in the
    /// journal, and the next call tries again.
    ///
    /// # Errors
    /// The journal cannot be read or locked. Damaged entries and failures to undo are only reported.
    pub fn restore_remains(&self) -> Result<Vec<String>, JournalError> {
        if !self.books.exists() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        let mut done = Vec::new();
        for (path, book) in self.list()? {
            match book {
                Err(reason) => {
                    done.push(format!("{} is damaged and was left alone: {reason}", path.display()))
                }
                Ok(book) if book.owner.runs() => {}
                Ok(book) => done.extend(self.undo_book(&path, &book.steps)?),
            }
        }
        Ok(done)
    }

    fn undo_book(&self, path: &Path, steps: &[Written]) -> Result<Vec<String>, JournalError> {
        let (mut done, mut left) = (Vec::new(), false);
        for written in steps.iter().rev() {
            match self.undo(written) {
                Ok(words) => done.extend(words),
                Err(error) => {
                    left = true;
                    done.push(error.to_string());
                }
            }
        }
        if !left {
            fs::remove_file(path).map_err(JournalError::system("remove", path))?;
        }
        Ok(done)
    }

    /// Undoes one step; returns what was done, in words, if anything was.
    fn undo(&self, written: &Written) -> Result<Option<String>, JournalError> {
        match &written.step {
            Step::Set { file, old, new } => self.put_back(file, old, new, written.became.as_deref()),
            Step::Module(name) => {
                if !self.host.join("sys/module").join(name).exists() {
                    return Ok(None);
                }
                modprobe("remove", &["-r", name.as_str()], name)?;
                Ok(Some(format!("removed kernel module {name}")))
            }
        }
    }

    fn put_back(
        &self,
        file: &str,
        old: &str,
        new: &str,
        became: Option<&str>,
    ) -> Result<Option<String>, JournalError> {
        let current = match self.read(file) {
            Ok(current) => current,
            // Its module is unloaded, and the setting is removed with it.
            Err(JournalError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        if same(&current, old) {
            return Ok(None);
        }
        // The value that the change led to is known: any other value was set by another program.
        if became.is_some_and(|became| !same(&current, became) && !same(&current, new)) {
            return Ok(Some(format!(
                "/{file} was {old} before linerate made it {new}, and another program has set it to {current} since: left alone"
            )));
        }
        self.write(file, old)?;
        Ok(Some(format!("/{file} is {old} again")))
    }

    fn read(&self, file: &str) -> Result<String, JournalError> {
        check(file).map_err(|reason| JournalError::NotASetting(file.to_owned(), reason))?;
        let path = self.host.join(file);
        let text = fs::read_to_string(&path).map_err(JournalError::system("read", &path))?;
        Ok(text.trim().to_owned())
    }

    fn write(&self, file: &str, value: &str) -> Result<(), JournalError> {
        let path = self.host.join(file);
        // No O_CREAT: only existing files can be set.
        let open = OpenOptions::new().write(true).truncate(true).open(&path);
        let written = open.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(JournalError::system("write", path))
    }
}

/// The changes of one lab; dropped, they are undone.
#[derive(Debug)]
pub struct HostChanges {
    journal: Journal,
    path: PathBuf,
    book: Book,
}

impl HostChanges {
    /// Makes a change, unless the host meets it already.
    ///
    /// # Errors
    /// Another linerate has changed the same, the kernel does not take it, or it cannot be written down: then it is not made.
    pub fn set(&mut self, change: &Change) -> Result<(), JournalError> {
        let (file, new) = (change.file.clone(), change.value.clone());
        let old = self.journal.read(&file)?;
        let _lock = self.journal.lock()?;
        // Also where the value is right: the other process would put it back in the middle of our measurement.
        self.check_not_held(&file)?;
        if change.is_met_by(&old) {
            return Ok(());
        }
        self.note(Step::Set { file: file.clone(), old, new: new.clone() })?;
        self.journal.write(&file, &new)?;
        let found = self.journal.read(&file)?;
        self.became(&found)?;
        if same(&found, &new) || rounded_up(&file, &new, &found) {
            return Ok(());
        }
        Err(JournalError::Refused(format!("/{file} should be {new} and the kernel made it {found}")))
    }

    /// Loads a module, unless it is there already.
    ///
    /// # Errors
    /// As [`HostChanges::set`].
    pub fn load_module(&mut self, name: &str) -> Result<(), JournalError> {
        check_module(name).map_err(|reason| JournalError::NotASetting(name.to_owned(), reason))?;
        if self.journal.host.join("sys/module").join(name.replace('-', "_")).exists() {
            return Ok(());
        }
        let _lock = self.journal.lock()?;
        self.note(Step::Module(name.to_owned()))?;
        modprobe("load", &[name], name)?;
        self.became("loaded")
    }

    /// Undoes everything, the last change first. Returns what was done, in words.
    ///
    /// # Errors
    /// The journal cannot be written. The words name changes that could not be undone; the next start tries again.
    pub fn undo(&mut self) -> Result<Vec<String>, JournalError> {
        if self.book.steps.is_empty() {
            return Ok(Vec::new());
        }
        let _lock = self.journal.lock()?;
        self.journal.undo_book(&self.path, &std::mem::take(&mut self.book.steps))
    }

    fn check_not_held(&self, file: &str) -> Result<(), JournalError> {
        let sets = |w: &Written| matches!(&w.step, Step::Set { file: other, .. } if other == file);
        for (path, book) in self.journal.list()? {
            if let Ok(book) = book
                && path != self.path
                && book.steps.iter().any(sets)
            {
                return Err(JournalError::Refused(format!(
                    "/{file} was set by another linerate (process {}), which has not ended: wait for it, or end it",
                    book.owner.pid
                )));
            }
        }
        Ok(())
    }

    /// Writes a step down before it is made.
    fn note(&mut self, step: Step) -> Result<(), JournalError> {
        self.book.steps.push(Written { step, became: None });
        self.save().inspect_err(|_| drop(self.book.steps.pop()))
    }

    /// Writes down the value found after the last step.
    fn became(&mut self, found: &str) -> Result<(), JournalError> {
        self.book.steps.last_mut().expect("a step was noted").became = Some(found.to_owned());
        self.save()
    }

    /// Whole or not at all. Who saves has the lock, so one name for drafts is enough.
    fn save(&self) -> Result<(), JournalError> {
        let draft = self.path.with_file_name("draft");
        files::replace(&self.path, &draft, &self.book).map_err(JournalError::system("write", &self.path))
    }
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        // Changes that cannot be undone now stay in the journal for the next start.
        let _ = self.undo();
    }
}

/// Something that is done to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
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
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    step: Step,
    /// The value that was found afterwards, if the process lived to read it.
    became: Option<String>,
}

/// The journal of one lab.
#[derive(Debug, Serialize, Deserialize)]
struct Book {
    version: u32,
    /// Who writes it.
    #[serde(flatten)]
    owner: Owner,
    steps: Vec<Written>,
}

fn parse(text: &str) -> Result<Book, String> {
    let book: Book = serde_json::from_str(text).map_err(|e| e.to_string())?;
    match book.version {
        VERSION => Ok(book),
        version => Err(format!("version {version} is not known, only {VERSION}")),
    }
}

/// A locked file. The kernel releases the lock when the file is closed, or the process ends.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

/// The kernel makes a hash table as large as its pages are, at least (`nf_ct_alloc_hashtable` in net/netfilter/nf_conntrack_core.c:
/// 512 buckets with pages of 4 KiB).
fn rounded_up(file: &str, wanted: &str, found: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let more = number(found).zip(number(wanted)).and_then(|(found, wanted)| found.checked_sub(wanted));
    file.ends_with("_buckets") && more.is_some_and(|more| more < 8192)
}

/// Numbers and words are compared, not the white space between them.
fn same(a: &str, b: &str) -> bool {
    a.split_whitespace().eq(b.split_whitespace())
}

/// Only sysctls and modules' parameters, by a path that does not wander.
fn check(file: &str) -> Result<(), &'static str> {
    let known = |c: char| c.is_ascii_alphanumeric() || "/._-@:+".contains(c);
    if !is_plain(file) || !file.chars().all(known) {
        return Err("its path is not plain");
    }
    match file.split('/').collect::<Vec<&str>>().as_slice() {
        ["proc", "sys", _, _, ..] | ["sys", "module", _, "parameters", _] => Ok(()),
        _ => Err("only files below /proc/sys and modules' parameters are"),
    }
}

pub(crate) fn check_module(name: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 60 || name.starts_with('-') || !name.chars().all(plain) {
        return Err("a module's name has letters, digits, '_' and '-'");
    }
    Ok(())
}

fn modprobe(operation: &str, args: &[&str], module: &str) -> Result<(), JournalError> {
    let job = Job::new("modprobe", args).within(Duration::from_secs(20));
    let run = job.run(|path| Command::new(path), None);
    let failed = |e| JournalError::Refused(format!("cannot {operation} kernel module {module}: {e}"));
    run.map(drop).map_err(failed)
}

#[cfg(test)]
mod tests;
