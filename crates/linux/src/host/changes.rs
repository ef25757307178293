//! Changes to the whole host, which a few experiments need: written down before they are made, and undone afterwards.
//!
//! A namespace goes with its process, a host-wide setting does not. So each change is journalled with the old and the new value
//! before it is made. They are undone in reverse order when the lab ends, whatever ends it; after kill -9 the next linerate does
//! it ([`Host::restore_remains`]).

use crate::error::{Doing, Error};
use crate::files::{is_plain, set_file};
use crate::journal::{Entry, Journal, lock};
use crate::net::Netns;
use crate::net::ethtool::Ethtool;
use crate::net::registry::DEFAULT_ROOT;
use crate::net::sysctl;
use crate::process::Job;
use linerate_hosts::dut_changes::same;
use linerate_plan::sysctl::swapped;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Whether the user agreed to changes outside linerate's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// No consent: changes of the host are refused, with the setting to make by hand.
    #[default]
    Refused,
    Allowed,
}

/// The value of a module that is there.
const LOADED: &str = "loaded";

/// A value that the host should have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The file below /: `proc/sys/net/netfilter/nf_conntrack_max`, `sys/module/nf_conntrack/parameters/hashsize`; or the folder of a
    /// module, `sys/module/nf_conntrack`; or `net/eth1/stamps`, the hardware time stamps of a card (`tx_type` and `rx_filter`).
    pub file: String,
    /// The value to write; of a module, [`LOADED`] or nothing.
    pub value: String,
    /// Whether a larger number will do as well.
    pub at_least: bool,
}

impl Change {
    /// A sysctl, in either spelling.
    ///
    /// # Errors
    /// The name is not plain, or the value is not one line.
    pub fn sysctl(name: &str, value: &str) -> Result<Change, Error> {
        sysctl::check_value(name, value)?;
        let file = format!("proc/sys/{}", sysctl::path_of(name)?);
        Ok(Change {
            file,
            value: value.trim().to_owned(),
            at_least: false,
        })
    }

    /// A module that is loaded.
    pub fn module(name: &str) -> Change {
        let file = format!("sys/module/{}", name.replace('-', "_"));
        Change {
            file,
            value: LOADED.into(),
            at_least: false,
        }
    }

    /// The frames that a card of this namespace stamps: `tx_type` and `rx_filter` of linux/net_tstamp.h.
    pub fn stamps(interface: &str, stamps: [u32; 2]) -> Change {
        Change {
            file: format!("net/{interface}/stamps"),
            value: words(stamps),
            at_least: false,
        }
    }

    /// The change, where a larger number will do as well.
    #[must_use]
    pub fn or_more(self) -> Change {
        Change {
            at_least: true,
            ..self
        }
    }

    /// The path of a sysctl below /proc/sys.
    pub(crate) fn key(&self) -> Option<&str> {
        self.file.strip_prefix("proc/sys/")
    }

    /// The command that makes the change by hand.
    pub fn by_hand(&self) -> String {
        match self.key() {
            Some(key) => {
                let quote = if self.value.contains(char::is_whitespace) {
                    "'"
                } else {
                    ""
                };
                format!("sysctl -w {}={quote}{}{quote}", swapped(key), self.value)
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

/// A machine: its settings, and the journal of their changes.
#[derive(Debug, Clone)]
pub struct Host {
    journal: PathBuf,
    /// The folder with its files.
    root: PathBuf,
}

impl Host {
    /// The host whose files are under `root` (`/`, or a folder of a test), with its journal under `state` ([`DEFAULT_ROOT`], or a
    /// folder of a test).
    pub fn new(state: impl AsRef<Path>, root: impl Into<PathBuf>) -> Host {
        Host {
            journal: state.as_ref().join("host.changes"),
            root: root.into(),
        }
    }

    /// The host that this process runs on.
    pub fn this() -> Host {
        Host::new(DEFAULT_ROOT, "/")
    }

    /// The changes that the host does not meet yet.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn outstanding(&self, changes: &[Change]) -> Result<Vec<Change>, Error> {
        let unmet = |change: &Change| match self.read(&change.file) {
            Ok(current) => (!change.is_met_by(&current)).then(|| Ok(change.clone())),
            Err(error) => Some(Err(error)),
        };
        changes.iter().filter_map(unmet).collect()
    }

    /// Keeps other campaigns that may change the host from beginning, as long as the file is open.
    ///
    /// # Errors
    /// Another one holds it, or there is no place for it.
    pub fn reserve(&self) -> Result<File, Error> {
        let path = self.journal.with_extension("campaign");
        let doing = || format!("lock {}", path.display());
        let Some(mut file) = lock(&path).doing(doing())? else {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            return Err(Error::Refused(format!(
                "another linerate (process {}) may change settings of this host now (--allow-host-changes): wait for its end, then start this one again",
                holder.trim()
            )));
        };
        file.set_len(0)
            .and_then(|()| write!(file, "{}", std::process::id()))
            .doing(doing())?;
        Ok(file)
    }

    /// Begins changes; nothing is written before the first.
    pub fn begin(&self) -> HostChanges {
        HostChanges {
            host: self.clone(),
            journal: None,
        }
    }

    /// Undoes changes of a process that has ended; returns what was done, in words. Changes that cannot be undone stay in the
    /// journal, and the next call tries again.
    ///
    /// # Errors
    /// The journal cannot be written. A damaged one and failures to undo are only reported.
    pub fn restore_remains(&self) -> Result<Vec<String>, Error> {
        if !self.journal.exists() {
            return Ok(Vec::new());
        }
        match Journal::open(&self.journal) {
            Ok(Some(mut journal)) => self.undo_all(&mut journal),
            Ok(None) => Ok(Vec::new()),
            Err(error) => Ok(vec![format!("{error}: left alone")]),
        }
    }

    fn undo_all(&self, journal: &mut Journal<Written>) -> Result<Vec<String>, Error> {
        let (mut done, mut left) = (Vec::new(), Vec::new());
        for written in journal.pending().iter().rev() {
            match self.undo(written) {
                Ok(words) => done.extend(words),
                Err(error) => {
                    left.insert(0, written.clone());
                    done.push(error.to_string());
                }
            }
        }
        if !journal.pending().is_empty() {
            journal.replace(left)?;
        }
        Ok(done)
    }

    /// Undoes one step; returns what was done, in words, if anything was.
    fn undo(
        &self,
        Written {
            file,
            old,
            new,
            became,
        }: &Written,
    ) -> Result<Option<String>, Error> {
        let current = match self.read(file) {
            // The setting's module is unloaded, and the setting is removed with it.
            Err(error) if error.is_missing() => return Ok(None),
            other => other?,
        };
        if same(&current, old) {
            return Ok(None);
        }
        // The value that the change led to is known: any other value was set by another program.
        if became
            .as_ref()
            .is_some_and(|became| !same(&current, became) && !same(&current, new))
        {
            return Ok(Some(format!(
                "/{file} was {old} before linerate made it {new}, and another program has set it to {current} since: left alone"
            )));
        }
        self.write(file, old)?;
        Ok(Some(match module_of(file) {
            Some(name) => format!("removed kernel module {name}"),
            None => format!("/{file} is {old} again"),
        }))
    }

    fn read(&self, file: &str) -> Result<String, Error> {
        check(file).map_err(|reason| {
            Error::Refused(format!("'{file}' is not a host setting: {reason}"))
        })?;
        if let Some(card) = card_of(file) {
            return Ok(words(
                Ethtool::open(&Netns::current()?)?.hardware_stamps(card)?,
            ));
        }
        let path = self.root.join(file);
        if module_of(file).is_some() {
            return Ok(if path.exists() { LOADED } else { "" }.to_owned());
        }
        let text = fs::read_to_string(&path).doing(format_args!("read {}", path.display()))?;
        Ok(text.trim().to_owned())
    }

    /// Writes a value; a module is loaded or removed.
    fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        if let Some(card) = card_of(file) {
            let mut numbers = value.split(' ').map(|number| number.parse().unwrap_or(0));
            let stamps = [(); 2].map(|()| numbers.next().unwrap_or(0));
            return Ethtool::open(&Netns::current()?)?
                .set_hardware_stamps(card, stamps)
                .map(drop);
        }
        let Some(module) = module_of(file) else {
            let path = self.root.join(file);
            return set_file(&path, value).doing(format_args!("write {}", path.display()));
        };
        let (operation, args) = if value == LOADED {
            ("load", vec![module])
        } else {
            ("remove", vec!["-r", module])
        };
        let job = Job::new("modprobe", &args).within(Duration::from_secs(20));
        let run = job.run(|path| Command::new(path), None);
        run.map(drop)
            .map_err(|e| Error::Refused(format!("cannot {operation} kernel module {module}: {e}")))
    }
}

/// The changes of one lab; dropped, they are undone.
#[derive(Debug)]
pub struct HostChanges {
    host: Host,
    journal: Option<Journal<Written>>,
}

impl HostChanges {
    /// Makes a change, unless the host meets it already.
    ///
    /// # Errors
    /// Another linerate changes this host, the kernel does not take the value, or it cannot be written down: then it is not made.
    pub fn set(&mut self, change: &Change) -> Result<(), Error> {
        let host = self.host.clone();
        // Also where the value is right: another process would put it back in the middle of our measurement.
        let journal = self.journal()?;
        let (file, new) = (&change.file, &change.value);
        let old = host.read(file)?;
        if change.is_met_by(&old) {
            return Ok(());
        }
        journal.write(Written {
            file: file.clone(),
            old,
            new: new.clone(),
            became: None,
        })?;
        host.write(file, new)?;
        let found = host.read(file)?;
        journal.made(&found)?;
        if same(&found, new) || rounded_up(file, new, &found) {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "/{file} should be {new} and the kernel made it {found}"
        )))
    }

    /// Undoes everything, the last change first. Returns what was done, in words.
    ///
    /// # Errors
    /// The journal cannot be written. The words name changes that could not be undone; the next start tries again.
    pub fn undo(&mut self) -> Result<Vec<String>, Error> {
        self.journal.take().map_or(Ok(Vec::new()), |mut journal| {
            self.host.undo_all(&mut journal)
        })
    }

    fn journal(&mut self) -> Result<&mut Journal<Written>, Error> {
        if self.journal.is_none() {
            self.journal = Journal::open(&self.host.journal)?;
        }
        self.journal.as_mut().ok_or_else(|| Error::Refused(
            "settings of this host are changed by another linerate, which has not ended: wait for it, or end it".into(),
        ))
    }
}

impl Drop for HostChanges {
    fn drop(&mut self) {
        // Changes that cannot be undone now stay in the journal for the next start.
        let _ = self.undo();
    }
}

/// A change as it was written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Written {
    /// The file below /.
    file: String,
    /// The value before.
    old: String,
    /// The value that is written.
    new: String,
    /// The value that was found afterwards, if the process lived to read it.
    became: Option<String>,
}

impl Entry for Written {
    fn made(&mut self, found: String) {
        self.became = Some(found);
    }
}

/// The kernel makes a hash table as large as its pages are, at least (`nf_ct_alloc_hashtable` in net/netfilter/nf_conntrack_core.c:
/// 512 buckets with pages of 4 KiB).
fn rounded_up(file: &str, wanted: &str, found: &str) -> bool {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let more = number(found)
        .zip(number(wanted))
        .and_then(|(found, wanted)| found.checked_sub(wanted));
    file.ends_with("_buckets") && more.is_some_and(|more| more < 8192)
}

/// Only sysctls and modules' parameters, by a path that does not wander.
fn check(file: &str) -> Result<(), &'static str> {
    let known = |c: char| c.is_ascii_alphanumeric() || "/._-@:+".contains(c);
    if !is_plain(file) || !file.chars().all(known) {
        return Err("its path is not plain");
    }
    match file.split('/').collect::<Vec<&str>>().as_slice() {
        ["proc", "sys", _, _, ..] | ["sys", "module", _, "parameters", _] => Ok(()),
        ["sys", "module", name] => check_module(name),
        ["net", _, "stamps"] => Ok(()),
        _ => {
            Err("only files below /proc/sys, modules and their parameters, and stamps of cards are")
        }
    }
}

pub(crate) fn check_module(name: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 60 || name.starts_with('-') || !name.chars().all(plain) {
        return Err("a module's name has letters, digits, '_' and '-'");
    }
    Ok(())
}

/// The module that a change is about, and not its parameters.
fn module_of(file: &str) -> Option<&str> {
    file.strip_prefix("sys/module/")
        .filter(|name| !name.contains('/'))
}

/// The card whose hardware time stamps a change is about.
fn card_of(file: &str) -> Option<&str> {
    file.strip_prefix("net/")?.strip_suffix("/stamps")
}

fn words([tx, rx]: [u32; 2]) -> String {
    format!("{tx} {rx}")
}

#[cfg(test)]
mod tests;
