//! Changes of a host as a variant wants them: each is journalled with what puts it back before it is made, and undone in reverse order.

mod input;
mod journal;
#[cfg(test)]
mod tests;

use super::error::RemoteError;
use super::files::{FedError, fed};
use super::place::Place;
use super::run::{Ending, Finished, Order};
use super::words;
use journal::Journal;
use linerate_core::phases::Status;
use linerate_core::reconfigure::{Input, Program, Step, Undoing};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long one change may take: tables of millions of entries are loaded.
const LIMIT: Duration = Duration::from_secs(300);
/// How long an installation may take, beside the time for its bytes to arrive; and its undoing.
const INSTALLATION: Duration = Duration::from_secs(1800);
/// Bytes of what was there before a change, at most: files and saved rule sets.
const MOST: usize = 1 << 20;

/// A change that could not be made or undone.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The connection.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The journal.
    #[error("{host}: the journal {path} of its changes cannot be {doing}: {source}")]
    Journal {
        /// What the host is called.
        host: String,
        /// The journal's file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another linerate changes this host.
    #[error("{host}: another linerate has changed it and is still running: wait for it, or use another host")]
    Busy {
        /// What the host is called.
        host: String,
    },
    /// A file of this machine.
    #[error("{path}, which is to be installed on {host}, cannot be read: {source}")]
    Here {
        /// What the host is called.
        host: String,
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A program failed.
    #[error("{host}: {what} could not be {doing}: {why}")]
    Failed {
        /// What the host is called.
        host: String,
        /// What was to be changed.
        what: String,
        /// Read, set or put back.
        doing: &'static str,
        /// The program, how it ended, and what it said.
        why: String,
    },
    /// What a program printed does not have the value.
    #[error("{host}: {what}: `{command}` does not say what it is now, so it could not be put back: {said}")]
    Unread {
        /// What the host is called.
        host: String,
        /// What was to be changed.
        what: String,
        /// The program with its arguments.
        command: String,
        /// What it printed.
        said: String,
    },
    /// Changes that are still there.
    #[error("{host}: {count} of its changes could not be undone and stay in {path}: {first}")]
    Left {
        /// What the host is called.
        host: String,
        /// How many.
        count: usize,
        /// The journal's file.
        path: PathBuf,
        /// The first that failed.
        first: Box<ChangeError>,
    },
}

/// What undoing came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Undone {
    /// What was put back, in that order.
    pub what: Vec<String>,
    /// Whether some of it outlives a boot, and so may count from the next one on.
    pub lasting: bool,
    /// Whether the rest takes a reboot.
    pub reboot: bool,
}

/// The changes of one host. Its journal is locked as long as this lives.
#[derive(Debug)]
pub struct Changes {
    place: Arc<Place>,
    journal: Journal,
    sudo: bool,
    /// What tells this boot of the host apart, where it tells.
    boot: Option<String>,
}

impl Changes {
    /// Opens the journal of a host in a folder of this machine. `address`: where ssh reaches the host, which tells it apart from those
    /// that other lab files call the same. `sudo`: programs are run by `sudo -n`.
    ///
    /// # Errors
    /// It cannot be read or written, or another linerate has it.
    pub fn open(place: Arc<Place>, address: &str, folder: &Path, sudo: bool) -> Result<Changes, ChangeError> {
        let journal = Journal::open(place.name(), address, folder)?;
        Ok(Changes { place, journal, sudo, boot: None })
    }

    /// What has been changed and not been put back, oldest first: also by a linerate that was killed.
    pub fn pending(&self) -> &[Undoing] {
        self.journal.pending()
    }

    /// Makes changes, in order; `lasting`: they outlive a boot. After a failure, those before it are still there, and in the journal.
    ///
    /// # Errors
    /// A program failed, what there is cannot be read, or the host was lost.
    pub fn make(
        &mut self,
        steps: &[Step],
        lasting: bool,
        interrupted: Option<&AtomicBool>,
    ) -> Result<(), ChangeError> {
        for step in steps {
            let was = self.read(step, interrupted)?;
            if let Some(undoing) = step.undoing(&was) {
                self.journal.write(Undoing { lasting, boot: self.boot.clone(), ..undoing })?;
                self.run(&step.what, "set", &step.apply, interrupted)?;
                self.journal.made()?;
                continue;
            }
            self.run(&step.what, "set", &step.apply, interrupted)?;
        }
        Ok(())
    }

    /// The host has booted: it is reached by another connection, and what does not outlive a boot is gone. `boot`: what tells this boot
    /// apart, where the host tells.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn booted(&mut self, place: Arc<Place>, boot: Option<String>) -> Result<(), ChangeError> {
        self.place = place;
        self.boot = boot;
        self.forget(|undoing| undoing.lasting)
    }

    /// The host is reached by another connection.
    pub fn reached_by(&mut self, place: Arc<Place>) {
        self.place = place;
    }

    /// What tells this boot of the host apart, as far as is known.
    pub fn boot(&self) -> Option<String> {
        self.boot.clone()
    }

    /// Which boot of the host this is. What was changed in another one and does not outlive it is gone.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn in_boot(&mut self, boot: Option<String>) -> Result<(), ChangeError> {
        self.boot.clone_from(&boot);
        self.forget(|undoing| {
            undoing.lasting || boot.is_none() || undoing.boot.is_none() || undoing.boot == boot
        })
    }

    fn forget(&mut self, keep: impl Fn(&Undoing) -> bool) -> Result<(), ChangeError> {
        match self.journal.pending().iter().all(&keep) {
            true => Ok(()),
            false => {
                self.journal.replace(self.journal.pending().iter().filter(|u| keep(u)).cloned().collect())
            }
        }
    }

    /// Puts back what has been changed, the last first. What fails is kept in the journal, and the rest is put back all the same.
    ///
    /// # Errors
    /// Some of it could not be put back.
    pub fn undo(&mut self) -> Result<Undone, ChangeError> {
        let (mut undone, mut failed, mut kept) = (Undone::default(), None, Vec::new());
        for undoing in self.journal.pending().to_vec().into_iter().rev() {
            if undoing.argv.is_empty() {
                undone.reboot = true;
                continue;
            }
            undone.lasting |= undoing.lasting;
            let input =
                if undoing.input.is_empty() { Input::Nothing } else { Input::Text(undoing.input.clone()) };
            let program = Program { argv: undoing.argv.clone(), input };
            let limit = if undoing.slow { INSTALLATION } else { LIMIT };
            match self.run_within(limit, &undoing.what, "put back", &program, None) {
                Ok(_) => undone.what.push(undoing.what),
                // Written down, and then perhaps never made: there is nothing to be put back.
                Err(ChangeError::Failed { .. }) if !undoing.made => {}
                Err(error) => {
                    failed.get_or_insert(error);
                    kept.push(undoing);
                }
            }
        }
        kept.reverse();
        let (host, path, count) = (self.place.name().to_string(), self.journal.path(), kept.len());
        self.journal.replace(kept)?;
        match failed {
            None => Ok(undone),
            Some(first) => Err(ChangeError::Left { host, count, path, first: Box::new(first) }),
        }
    }

    fn read(&self, step: &Step, interrupted: Option<&AtomicBool>) -> Result<String, ChangeError> {
        let Some(read) = &step.read else { return Ok(String::new()) };
        let finished = self.run(&step.what, "read", &read.program, interrupted)?;
        let text = String::from_utf8(finished.stdout.bytes()).ok().filter(|_| finished.stdout.missing() == 0);
        text.and_then(|text| read.form.value(&text)).ok_or_else(|| ChangeError::Unread {
            host: self.place.name().into(),
            what: step.what.clone(),
            command: shown(&read.program),
            said: match finished.stdout.missing() {
                0 => short(&finished.text()),
                _ => format!("it has {} bytes, and {MOST} can be kept", finished.stdout.total()),
            },
        })
    }

    fn run(
        &self,
        what: &str,
        doing: &'static str,
        program: &Program,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Finished, ChangeError> {
        self.run_within(LIMIT, what, doing, program, interrupted)
    }

    fn run_within(
        &self,
        limit: Duration,
        what: &str,
        doing: &'static str,
        program: &Program,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Finished, ChangeError> {
        let host = || self.place.name().to_string();
        let here = |source| {
            let Input::File(path) = &program.input else { unreachable!("memory can be read") };
            ChangeError::Here { host: host(), path: path.clone(), source }
        };
        let (input, limit) = input::of(&program.input, limit).map_err(here)?;
        let command = format!("exec {}", words::line(&program.argv, self.sudo));
        let order = Order { command: &command, limit, most_output: MOST };
        let finished = match input {
            None => self.place.run(&order, interrupted)?,
            Some(mut input) => match fed(&self.place, &order, &mut *input, interrupted) {
                Ok(finished) => finished,
                Err(FedError::Remote(error)) => return Err(error.into()),
                Err(FedError::Here(error)) => return Err(here(error)),
            },
        };
        if finished.is_success() {
            return Ok(finished);
        }
        let said = [finished.errors(), finished.text()].into_iter().find(|s| !s.trim().is_empty());
        let said = said.map_or(String::new(), |said| format!(" ({})", short(&said)));
        let how = match finished.ending {
            Ending::Ended(Status::Exit(status)) => format!("ended with status {status}"),
            Ending::Ended(Status::Signal(signal)) => format!("was ended by signal {signal}"),
            Ending::TimedOut => format!("took longer than {} s", limit.as_secs()),
            Ending::Interrupted => "was interrupted".into(),
        };
        let why = format!("`{}` {how}{said}", shown(program));
        Err(ChangeError::Failed { host: host(), what: what.into(), doing, why })
    }
}

/// A program for people: scripts are ours, and long.
fn shown(program: &Program) -> String {
    let words: Vec<&str> = match &program.argv[..] {
        [sh, c, _, name, rest @ ..] if sh == "sh" && c == "-c" && name == "linerate" => {
            std::iter::once("a script of linerate with").chain(rest.iter().map(String::as_str)).collect()
        }
        argv => argv.iter().map(String::as_str).collect(),
    };
    short(&words.join(" "))
}

/// The beginning of what was said, in one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(300).map(|c| if c.is_control() { '?' } else { c }).collect();
    if cut.len() < line.len() { format!("{cut} ...") } else { cut }
}
