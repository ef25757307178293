//! Changes of a host as a variant wants them: each is journalled with what puts it back before it is made, and undone in reverse order.

mod input;
mod journal;
#[cfg(test)]
mod tests;

use super::error::RemoteError;
use super::execution_target::ExecutionTarget;
use super::files::{FedError, fed, spooled};
use super::run::{Ending, Finished, Order};
use super::words;
use journal::Journal;
use linerate_hosts::dut_changes::{INSTALLATION_NS, Input, Program, Step, Undoing};
use linerate_hosts::phases::Status;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// How long one change may take: tables of millions of entries are loaded.
const LIMIT: Duration = Duration::from_secs(300);
/// How long an installation may take, beside the time for its bytes to arrive; and its undoing.
const INSTALLATION: Duration = Duration::from_nanos(INSTALLATION_NS);
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
    /// The journal is about another machine.
    #[error(
        "{host}: {path} says what was changed on another machine at this address ({was}, and this is {is}), and putting that back here would spoil this one; put that machine back, or delete the file if it is gone"
    )]
    Another {
        /// What the host is called.
        host: String,
        /// The journal's file.
        path: PathBuf,
        /// The machine that was changed.
        was: String,
        /// This one.
        is: String,
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
        /// Whether it ended by itself: then it has done nothing that it was to do, and will not.
        by_itself: bool,
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
    #[error(
        "{host}: {count} of its changes could not be undone, and stay written down in {path}: {first}; whatever runs a plan on this host next tries again; a reboot of the host settles what does not outlive one; what was put back by hand can be deleted there"
    )]
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
    /// Whether a boot is owed: some of it counts from the next one on, or is undone by it.
    pub reboot: bool,
}

/// What stands in a journal for a boot that is owed: what was put back counts from it on only.
const OWED: &str = "the boot that is owed";

/// Whether two marks are of one boot: they are the same, or times of boots that differ by no more than clocks do.
pub(crate) fn is_same_boot(a: &str, b: &str) -> bool {
    let time = |mark: &str| mark.strip_prefix(BOOTED_AT)?.parse::<i64>().ok();
    match (time(a), time(b)) {
        (Some(a), Some(b)) => a.abs_diff(b) <= 2,
        _ => a == b,
    }
}

/// How a mark begins that is the time of a boot, by this machine's clock in seconds.
pub(crate) const BOOTED_AT: &str = "booted at ";

/// The changes of one host. Its journal is locked as long as this lives.
#[derive(Debug)]
pub struct Changes {
    place: Arc<ExecutionTarget>,
    journal: Journal,
    sudo: bool,
    /// What tells this boot of the host apart, where it tells.
    boot: Option<String>,
    /// What tells the machine apart.
    machine: Option<String>,
    /// How long a program may take.
    limit: Duration,
    /// Size and time of files that were installed.
    installed: BTreeMap<String, (u64, SystemTime)>,
}

impl Changes {
    /// Opens the journal of a host in a folder of this machine. `machine`: what tells the machine apart (an Ethernet address), whatever
    /// lab files call it and however ssh reaches it; `address`: where ssh reaches it, for those that do not tell. `sudo`: programs are run
    /// by `sudo -n`.
    ///
    /// # Errors
    /// It cannot be read or written, another linerate has it, or it is about another machine.
    pub fn open(
        place: Arc<ExecutionTarget>,
        address: &str,
        machine: Option<String>,
        folder: &Path,
        sudo: bool,
    ) -> Result<Changes, ChangeError> {
        let journal = Journal::open(place.name(), machine.as_deref().unwrap_or(address), folder)?;
        let machines = journal.pending().iter().filter_map(|undoing| undoing.machine.as_ref());
        if let Some((was, is)) = machines.zip(machine.iter().cycle()).find(|(was, is)| was != is) {
            let (host, path) = (place.name().to_string(), journal.path());
            return Err(ChangeError::Another { host, path, was: was.clone(), is: is.clone() });
        }
        Ok(Changes { place, journal, sudo, boot: None, machine, limit: LIMIT, installed: BTreeMap::new() })
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
            self.is_what_it_was(&step.apply.input)?;
            let was = self.read(step, interrupted)?;
            if let Some(undoing) = step.undoing(&was) {
                let (boot, machine) = (self.boot.clone(), self.machine.clone());
                self.journal.write(Undoing { lasting, boot, machine, ..undoing })?;
                let made = self.apply(step, interrupted);
                // One that did not end by itself may be made yet: its undoing must succeed.
                if !matches!(made, Err(ChangeError::Failed { by_itself: true, .. })) {
                    self.journal.made()?;
                }
                made?;
                continue;
            }
            self.apply(step, interrupted)?;
        }
        Ok(())
    }

    fn apply(&self, step: &Step, interrupted: Option<&AtomicBool>) -> Result<Finished, ChangeError> {
        self.run_within(self.limit(step.within_ns), &step.what, "set", &step.apply, interrupted)
    }

    fn limit(&self, within_ns: Option<u64>) -> Duration {
        within_ns.map_or(self.limit, Duration::from_nanos)
    }

    /// A file that is installed once more must be the same: figures of two would be told as those of one.
    fn is_what_it_was(&mut self, input: &Input) -> Result<(), ChangeError> {
        let Input::File(path) = input else { return Ok(()) };
        let here = |source| ChangeError::Here { host: self.place.name().into(), path: path.clone(), source };
        let facts = std::fs::metadata(path).and_then(|facts| Ok((facts.len(), facts.modified()?)));
        let facts = facts.map_err(here)?;
        match *self.installed.entry(path.clone()).or_insert(facts) == facts {
            true => Ok(()),
            false => Err(here(std::io::Error::other("it has changed since it was installed before"))),
        }
    }

    /// The host has booted: it is reached by another connection, and what does not outlive a boot is gone. `boot`: what tells this boot
    /// apart, where the host tells.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn booted(&mut self, place: Arc<ExecutionTarget>, boot: Option<String>) -> Result<(), ChangeError> {
        self.place = place;
        self.boot = boot;
        self.forget(|undoing| undoing.lasting && undoing.what != OWED)
    }

    /// Whether what was put back counts from the next boot on only.
    pub fn owes_boot(&self) -> bool {
        self.journal.pending().iter().any(|undoing| undoing.what == OWED)
    }

    /// The host is reached by another connection.
    pub fn reached_by(&mut self, place: Arc<ExecutionTarget>) {
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
            let lasting = undoing.lasting && undoing.what != OWED;
            lasting
                || boot.as_ref().zip(undoing.boot.as_ref()).is_none_or(|(now, then)| is_same_boot(now, then))
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

    /// Puts back what has been changed, the last first. What fails is kept in the journal, and the rest is put back all the same, unless
    /// the host is lost or hangs.
    ///
    /// # Errors
    /// Some of it could not be put back.
    pub fn undo(&mut self) -> Result<Undone, ChangeError> {
        let (mut undone, mut failed, mut kept) = (Undone::default(), None, Vec::new());
        let mut left = self.journal.pending().to_vec();
        while let Some(undoing) = left.pop() {
            match self.undo_one(&undoing) {
                Ok(true) => undone.what.push(undoing.what.clone()),
                Ok(false) => {}
                Err(error) => {
                    // Where one program hangs, or cannot be run any more, the others would be waited for one after the other.
                    let hopeless = !matches!(error, ChangeError::Failed { by_itself: true, .. });
                    failed.get_or_insert(error);
                    kept.insert(0, undoing);
                    if hopeless {
                        kept.splice(0..0, std::mem::take(&mut left));
                    }
                    continue;
                }
            }
            undone.reboot |= undoing.argv.is_empty() || self.has_counted(&undoing);
            // At once, so that nothing is put back twice should this be killed.
            let owed = undone.reboot.then(|| self.owed());
            self.journal.replace(owed.into_iter().chain(left.iter().chain(&kept).cloned()).collect())?;
        }
        let (host, path, count) = (self.place.name().to_string(), self.journal.path(), kept.len());
        match failed {
            None => Ok(undone),
            Some(first) => Err(ChangeError::Left { host, count, path, first: Box::new(first) }),
        }
    }

    /// Puts one change back; whether there was one. What was written down and never made is none; what a boot undoes is not done here.
    fn undo_one(&self, undoing: &Undoing) -> Result<bool, ChangeError> {
        if undoing.argv.is_empty() {
            return Ok(false);
        }
        let input =
            if undoing.input.is_empty() { Input::Nothing } else { Input::Text(undoing.input.clone()) };
        let program = Program { argv: undoing.argv.clone(), input };
        let limit = self.limit(undoing.within_ns);
        match self.run_within(limit, &undoing.what, "put back", &program, None) {
            Ok(_) => Ok(true),
            Err(ChangeError::Failed { by_itself: true, .. }) if !undoing.made => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a change that outlives boots has seen one, and so is in effect until the next.
    fn has_counted(&self, undoing: &Undoing) -> bool {
        let same = self.boot.as_ref().zip(undoing.boot.as_ref()).map(|(now, then)| is_same_boot(now, then));
        undoing.lasting && same == Some(false)
    }

    fn owed(&self) -> Undoing {
        let (what, boot, machine) = (OWED.to_string(), self.boot.clone(), self.machine.clone());
        let (argv, input) = (Vec::new(), String::new());
        Undoing { what, argv, input, lasting: true, boot, machine, made: true, within_ns: None }
    }

    fn read(&self, step: &Step, interrupted: Option<&AtomicBool>) -> Result<String, ChangeError> {
        let Some(read) = &step.read else { return Ok(String::new()) };
        let finished = self.run_within(self.limit, &step.what, "read", &read.program, interrupted)?;
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

    /// Images are streamed: their scripts know their length. All else is there as a whole before a program sees it.
    fn feed(
        &self,
        program: &Program,
        order: &Order<'_>,
        input: &mut dyn Read,
        interrupted: Option<&AtomicBool>,
    ) -> Result<Finished, FedError> {
        if matches!(program.input, Input::File(_)) {
            return fed(&self.place, order, input, interrupted);
        }
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map_err(FedError::Here)?;
        spooled(&self.place, order, &bytes, interrupted)
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
        let command = format!("exec {}", words::line(&program.argv, false));
        let order = Order { command: &command, limit, most_output: MOST, sudo: self.sudo };
        let finished = match input {
            None => self.place.run(&order, interrupted)?,
            Some(mut input) => match self.feed(program, &order, &mut *input, interrupted) {
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
            Ending::TimedOut => format!("took longer than {} s", limit.as_secs_f64()),
            Ending::Interrupted => "was interrupted".into(),
        };
        let why = format!("`{}` {how}{said}", shown(program));
        let by_itself = matches!(finished.ending, Ending::Ended(_));
        Err(ChangeError::Failed { host: host(), what: what.into(), doing, why, by_itself })
    }
}

/// A program for people.
fn shown(program: &Program) -> String {
    short(&program.shown())
}

/// The beginning of what was said, in one line.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(300).map(|c| if c.is_control() { '?' } else { c }).collect();
    if cut.len() < line.len() { format!("{cut} ...") } else { cut }
}
