//! Changes to the whole host, which a few experiments cannot do without: written down before they are made, and put back.
//!
//! A namespace goes with its process, a host-wide setting does not. So each change is recorded on disk with the old and the new
//! value, and synchronised, before it is made. It is undone in reverse order when the lab ends, whatever ends it; after kill -9
//! the next linerate does it ([`Journal::restore_remains`]).

mod error;
mod store;

pub use error::JournalError;
pub use store::{Reservation, Step, Written};

use crate::files::is_plain;
use crate::process::{Job, Owner};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use store::{Book, Lock};

/// Whether the user agreed to changes outside linerate's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// No: what needs one is refused, with what to set by hand.
    #[default]
    Refused,
    Allowed,
}

/// A value that the host should have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The file below /: `proc/sys/net/netfilter/nf_conntrack_max`, `sys/module/nf_conntrack/parameters/hashsize`.
    pub file: String,
    /// What should be in it.
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

    /// What to do by hand instead.
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
    pub fn reserve(&self) -> Result<Reservation, JournalError> {
        fs::create_dir_all(&self.books).map_err(JournalError::system("create", &self.books))?;
        Reservation::take(&self.books)
    }

    /// Begins changes; nothing is written before the first.
    pub fn begin(&self) -> HostChanges {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (number, owner) = (NEXT.fetch_add(1, Ordering::Relaxed), Owner::this());
        let name = format!("{}-{}-{number}.journal", owner.pid, owner.pid_started.unwrap_or(0));
        HostChanges { path: self.books.join(name), journal: self.clone(), book: None }
    }

    /// Puts back what processes that are gone have left changed; gives what was done, in words. What cannot be put back stays
    /// written down, and the next call tries again.
    ///
    /// # Errors
    /// The journal cannot be read or locked. What is damaged or cannot be undone is only reported.
    pub fn restore_remains(&self) -> Result<Vec<String>, JournalError> {
        if !self.books.exists() {
            return Ok(Vec::new());
        }
        let _lock = Lock::take(&self.books)?;
        let mut done = Vec::new();
        for (path, book) in store::list(&self.books)? {
            match book {
                Err(reason) => {
                    done.push(format!("{} is damaged and was left alone: {reason}", path.display()))
                }
                Ok(book) if book.owner.is_some_and(|owner| owner.runs()) => {}
                Ok(book) => done.extend(self.undo_book(&path, &book)?),
            }
        }
        Ok(done)
    }

    fn undo_book(&self, path: &Path, book: &Book) -> Result<Vec<String>, JournalError> {
        let (mut done, mut left) = (Vec::new(), false);
        for written in book.steps.iter().rev() {
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

    /// Undoes one step; says what was done, if anything was.
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
        check(file).map_err(|reason| JournalError::NotASetting { file: file.to_owned(), reason })?;
        let current = match self.read(file) {
            Ok(current) => current,
            // Its module has gone, and the setting with it.
            Err(JournalError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        if same(&current, old) {
            return Ok(None);
        }
        // Once it is known what the change led to, anything else is somebody else's doing.
        if became.is_some_and(|became| !same(&current, became) && !same(&current, new)) {
            return Ok(Some(format!(
                "/{file} was {old} before linerate made it {new}, and somebody has made it {current} since: left alone"
            )));
        }
        self.write(file, old)?;
        Ok(Some(format!("/{file} is {old} again")))
    }

    fn read(&self, file: &str) -> Result<String, JournalError> {
        check(file).map_err(|reason| JournalError::NotASetting { file: file.to_owned(), reason })?;
        let path = self.host.join(file);
        let text = fs::read_to_string(&path).map_err(JournalError::system("read", &path))?;
        Ok(text.trim().to_owned())
    }

    fn write(&self, file: &str, value: &str) -> Result<(), JournalError> {
        let path = self.host.join(file);
        // No O_CREAT: only what is there can be set.
        let open = fs::OpenOptions::new().write(true).truncate(true).open(&path);
        let written = open.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
        written.map_err(JournalError::system("write", path))
    }
}

/// The changes of one lab; dropped, they are undone.
#[derive(Debug)]
pub struct HostChanges {
    journal: Journal,
    path: PathBuf,
    book: Option<Book>,
}

impl HostChanges {
    /// Makes a change, unless the host meets it already.
    ///
    /// # Errors
    /// Another linerate has changed the same, the kernel does not take it, or it cannot be written down: then it is not made.
    pub fn set(&mut self, change: &Change) -> Result<(), JournalError> {
        let (file, new) = (change.file.clone(), change.value.clone());
        let old = self.journal.read(&file)?;
        let _lock = self.lock()?;
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
        Err(JournalError::NotTaken { file, wanted: new, found })
    }

    /// Loads a module, unless it is there already.
    ///
    /// # Errors
    /// As [`HostChanges::set`].
    pub fn load_module(&mut self, name: &str) -> Result<(), JournalError> {
        check_module(name).map_err(|reason| JournalError::NotASetting { file: name.to_owned(), reason })?;
        if self.journal.host.join("sys/module").join(name.replace('-', "_")).exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        self.note(Step::Module(name.to_owned()))?;
        modprobe("load", &[name], name)?;
        self.became("loaded")
    }

    /// Undoes everything, the last change first. Gives what was done, in words.
    ///
    /// # Errors
    /// The journal cannot be written. What could not be undone is in the words, and the next start tries again.
    pub fn undo(&mut self) -> Result<Vec<String>, JournalError> {
        let Some(book) = self.book.take() else { return Ok(Vec::new()) };
        let _lock = Lock::take(&self.journal.books)?;
        self.journal.undo_book(&self.path, &book)
    }

    fn lock(&self) -> Result<Lock, JournalError> {
        fs::create_dir_all(&self.journal.books)
            .map_err(JournalError::system("create", &self.journal.books))?;
        Lock::take(&self.journal.books)
    }

    fn check_not_held(&self, file: &str) -> Result<(), JournalError> {
        for (path, book) in store::list(&self.journal.books)? {
            if let Ok(book) = book
                && path != self.path
                && book.steps.iter().any(|w| matches!(&w.step, Step::Set { file: f, .. } if f == file))
            {
                let pid = book.owner.map_or(0, |owner| owner.pid);
                return Err(JournalError::Held { file: file.to_owned(), pid });
            }
        }
        Ok(())
    }

    /// Writes a step down before it is made.
    fn note(&mut self, step: Step) -> Result<(), JournalError> {
        if self.book.is_none() {
            self.book = Some(Book::create(&self.path)?);
        }
        let book = self.book.as_mut().expect("it has just been made");
        book.append(&self.path, step)
    }

    /// Writes down the value found after the last step.
    fn became(&mut self, found: &str) -> Result<(), JournalError> {
        self.book.as_mut().expect("a step was noted").became(&self.path, found)
    }
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        // What fails now stays written down for the next start.
        let _ = self.undo();
    }
}

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

fn modprobe(operation: &'static str, args: &[&str], module: &str) -> Result<(), JournalError> {
    let job = Job::new("modprobe", args).within(Duration::from_secs(20));
    let run = job.run(|path| Command::new(path), None);
    run.map(drop).map_err(|e| JournalError::Module {
        operation,
        module: module.to_owned(),
        reason: e.to_string(),
    })
}

#[cfg(test)]
mod tests;
