//! Changes are made: each is written down first, and all values are read again at the end.

#[cfg(test)]
mod tests;

use crate::boot::{is_other_boot, mark, within};
use crate::error::in_brackets;
use crate::{ExecutionTarget, Fault, Finished, Interrupt, Order, RemoteError, Result};
use linerate_hosts::dut_changes::{
    self as hosts, Check, INSTALLATION_NS, Input, LATER, Program, Step, Undoing,
};
use linerate_hosts::phases::{Outcome, Status};
use linerate_hosts::systems::Kernel;
use linerate_hosts::words::one_line;
use linerate_linux::journal::Journal;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long one change may take, beside the time for the rules and entries that it loads.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a rule or an entry of a table may take.
const RULE: Duration = Duration::from_millis(2);
/// How long an installation may take, beside the time for its bytes to arrive; and its undoing.
const INSTALLATION: Duration = Duration::from_nanos(INSTALLATION_NS);
/// How long a host may take to be reached again after a change that cut the connection.
const AGAIN: Duration = Duration::from_secs(30);
/// Bytes of an image that arrive and are installed in a second, at least.
const PACE: u64 = 1 << 20;
/// The longest output that is read before a change: files and saved rule sets.
const MOST: usize = 1 << 20;

/// Letters of a program and of its words in messages.
pub(crate) const SAID: usize = 300;
/// The outcome of undoing a change.
pub(super) const BACK: &str = "put back";
/// The entry of a journal for a pending boot: restored settings take effect only from that boot on.
pub(super) const OWED: &str = "the boot that is owed";

/// The changes of one host. Its journal is locked as long as this lives.
#[derive(Debug)]
pub struct Changes {
    pub(super) place: Arc<ExecutionTarget>,
    pub(super) journal: Journal<Undoing>,
    sudo: bool,
    /// Identifies this boot of the host, if the host has such an identity.
    pub(super) boot: Option<String>,
    /// Identifies the machine.
    pub(super) machine: Option<String>,
    /// How long a program may take.
    limit: Duration,
    /// Size and time of files that were installed.
    installed: BTreeMap<String, (u64, SystemTime)>,
}

impl Changes {
    /// Opens the journal of a host in a folder of this machine. `machine`: identifies the machine (an Ethernet address), whatever
    /// lab files call it and however ssh reaches it; `address`: where ssh reaches it, for those that do not tell. `sudo`: programs are run
    /// by `sudo -n`.
    ///
    /// # Errors
    /// The journal cannot be read or written, another linerate has it, or it is about another machine.
    pub fn open(
        place: Arc<ExecutionTarget>,
        address: &str,
        machine: Option<String>,
        folder: &Path,
        sudo: bool,
    ) -> Result<Changes> {
        let path = folder.join(format!(
            "{}.changes",
            file_name(machine.as_deref().unwrap_or(address))
        ));
        let journal = Journal::<Undoing>::open(&path).map_err(unjournalled(&place))?;
        let journal = journal.ok_or_else(|| place.error(Fault::Busy, ""))?;
        let pending = journal.pending().iter();
        let mut machines = pending.filter_map(|undoing| undoing.machine.as_ref());
        let other = machine
            .as_ref()
            .and_then(|is| Some((machines.find(|was| *was != is)?, is)));
        if let Some((was, is)) = other {
            let said = format!(
                "{} lists the changes of another machine at this address ({was}, and this is {is}); undoing them here would spoil this machine",
                journal.path().display()
            );
            return Err(place.error(Fault::AnotherMachine, said));
        }
        Ok(Changes {
            place,
            journal,
            sudo,
            boot: None,
            machine,
            limit: LIMIT,
            installed: BTreeMap::new(),
        })
    }

    /// Changes that have not been undone, oldest first: also those of a linerate that was killed.
    pub fn pending(&self) -> &[Undoing] {
        self.journal.pending()
    }

    /// Makes changes, in order; `lasting`: they outlive a boot. After a failure, those before it are still there, and in the journal.
    ///
    /// All values are read again at the end: a program may end well where the card or the kernel passed over its value, and a change may take
    /// back one before it.
    ///
    /// # Errors
    /// A program failed, the present value cannot be read, a setting did not take, or the host was lost.
    pub fn make(
        &mut self,
        steps: &[Step],
        lasting: bool,
        interrupted: Interrupt<'_>,
    ) -> Result<()> {
        for step in steps {
            if let Input::File(path) = &step.apply.input {
                self.installed.insert(path.clone(), self.unchanged(path)?);
            }
            let was = self.read(step, interrupted)?;
            if let Some(undoing) = step.undoing(&was) {
                let (boot, machine) = (self.boot.clone(), self.machine.clone());
                let undoing = Undoing {
                    lasting,
                    boot,
                    machine,
                    ..undoing
                };
                self.journal
                    .write(undoing)
                    .map_err(unjournalled(&self.place))?;
                let made = self.apply(step, &was, interrupted);
                // One that did not end by itself may be made yet: its undoing must succeed.
                let failed = |error: &RemoteError| error.fault == Fault::Failed;
                if !made.as_ref().is_err_and(failed) {
                    self.journal.made("").map_err(unjournalled(&self.place))?;
                }
                made?;
                continue;
            }
            self.apply(step, &was, interrupted)?;
        }
        for (nth, step) in steps.iter().enumerate() {
            // The last value of a setting holds.
            let is_last = || steps[nth + 1..].iter().all(|later| later.what != step.what);
            if let Some(check) = step.check.as_ref().filter(|_| is_last()) {
                self.check(&step.what, check, interrupted)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, step: &Step, was: &str, interrupted: Interrupt<'_>) -> Result<Finished> {
        let mut apply = Cow::Borrowed(&step.apply);
        if apply.input == Input::Was {
            apply.to_mut().input = Input::Text(was.into());
        }
        let limit = self.limit(step.within_ns);
        let made = self.run_within(limit, &step.what, "set", &apply, interrupted);
        match made {
            Err(_) if step.cuts && self.reach_again() => {
                self.run_within(limit, &step.what, "set", &apply, interrupted)
            }
            made => made,
        }
    }

    /// Makes another connection to a host whose connection is lost, if it is still in the same boot.
    pub(super) fn reach_again(&mut self) -> bool {
        let ExecutionTarget::Ssh(connection) = &*self.place else {
            return false;
        };
        let target = connection.target().clone();
        let connect = || Ok(ExecutionTarget::connect(&target, None).ok());
        if self.place.lost().is_none() {
            return false;
        }
        let Ok(Some(place)) = within(AGAIN, connect) else {
            return false;
        };
        // Firewalls that cut connections are BSD's.
        let same = !is_other_boot(&mark(&place, Kernel::OpenBsd), &self.boot);
        if same {
            self.place = Arc::new(place);
        }
        same
    }

    /// Whether a setting took.
    fn check(&self, what: &str, check: &Check, interrupted: Interrupt<'_>) -> Result<()> {
        let value = self.value(what, &check.read, interrupted)?;
        if check.is_met_by(&value) {
            return Ok(());
        }
        let (wanted, command) = (check.wanted.join(", "), shown(&check.read.program));
        let is = value.lines().collect::<Vec<_>>().join(", ");
        let said = format!(
            "{what} should be {wanted}, and is {} by `{command}`: the host did not take the value, or another setting changed it",
            one_line(&is, SAID)
        );
        Err(self.place.error(Fault::Untaken, said))
    }

    pub(super) fn limit(&self, within_ns: Option<u64>) -> Duration {
        within_ns.map_or(self.limit, Duration::from_nanos)
    }

    /// Size and time of a file that is installed. They must stay the same: otherwise figures of two files would appear as those of one.
    fn unchanged(&self, path: &str) -> Result<(u64, SystemTime)> {
        let facts = std::fs::metadata(path).and_then(|facts| Ok((facts.len(), facts.modified()?)));
        let facts = facts.map_err(|error| self.unreadable(path, &error))?;
        match self.installed.get(path) {
            Some(was) if *was != facts => {
                Err(self.unreadable(path, &"it has changed since it was installed before"))
            }
            _ => Ok(facts),
        }
    }

    /// The host has booted: it is reached by another connection, and changes that do not outlive a boot are gone. `boot`: the
    /// identity of this boot, if the host has one.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn booted(&mut self, place: Arc<ExecutionTarget>, boot: Option<String>) -> Result<()> {
        self.place = place;
        self.boot = boot;
        self.forget(|undoing| undoing.lasting && undoing.what != OWED)
    }

    /// Whether restored settings take effect only from the next boot on.
    pub fn owes_boot(&self) -> bool {
        self.journal
            .pending()
            .iter()
            .any(|undoing| undoing.what == OWED)
    }

    /// The host is reached by another connection.
    pub fn reached_by(&mut self, place: Arc<ExecutionTarget>) {
        self.place = place;
    }

    /// How the host is reached now.
    pub fn place(&self) -> &Arc<ExecutionTarget> {
        &self.place
    }

    /// Identifies this boot of the host, if known.
    pub fn boot(&self) -> Option<String> {
        self.boot.clone()
    }

    /// Sets the identity of the host's current boot. Changes of another boot that do not outlive it are gone.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn in_boot(&mut self, boot: Option<String>) -> Result<()> {
        self.boot.clone_from(&boot);
        self.forget(|undoing| {
            let lasting = undoing.lasting && undoing.what != OWED;
            lasting || !is_other_boot(&boot, &undoing.boot)
        })
    }

    fn forget(&mut self, keep: impl Fn(&Undoing) -> bool) -> Result<()> {
        let kept: Vec<Undoing> = self
            .journal
            .pending()
            .iter()
            .filter(|u| keep(u))
            .cloned()
            .collect();
        if kept.len() == self.journal.pending().len() {
            return Ok(());
        }
        self.journal
            .replace(kept)
            .map_err(unjournalled(&self.place))
    }

    fn read(&self, step: &Step, interrupted: Interrupt<'_>) -> Result<String> {
        step.read.as_ref().map_or(Ok(String::new()), |read| {
            self.value(&step.what, read, interrupted)
        })
    }

    /// The answer to a question.
    fn value(&self, what: &str, read: &hosts::Read, interrupted: Interrupt<'_>) -> Result<String> {
        let finished = self.run_within(self.limit, what, "read", &read.program, interrupted)?;
        let text = String::from_utf8(finished.stdout.bytes())
            .ok()
            .filter(|_| finished.stdout.missing() == 0);
        text.and_then(|text| read.form.value(&text)).ok_or_else(|| {
            let said = match finished.stdout.missing() {
                0 => one_line(&finished.text(), SAID),
                _ => format!("it has {} bytes, and {MOST} can be kept", finished.stdout.total()),
            };
            let command = shown(&read.program);
            let said = format!(
                "{what}: `{command}` does not say what it is now, and linerate changes nothing that it could not put back: {said}"
            );
            self.place.error( Fault::Unread, said)
        })
    }

    fn unreadable(&self, path: &str, error: &dyn Display) -> RemoteError {
        let host = self.place.name();
        let said = format!("{path}, which is to be installed on {host}, cannot be read: {error}");
        RemoteError::new(host, Fault::Here, said)
    }

    pub(super) fn run_within(
        &self,
        limit: Duration,
        what: &str,
        doing: &'static str,
        program: &Program,
        interrupted: Interrupt<'_>,
    ) -> Result<Finished> {
        let order = Order {
            most_output: MOST,
            ..Order::program(&program.argv)
                .within(limit)
                .by_sudo(self.sudo)
        };
        let (mut limit, place) = (limit, &self.place);
        let finished = match &program.input {
            // Steps are undone with the recorded state in its place.
            Input::Nothing | Input::Was => place.run(&order, interrupted)?,
            // All but images is there as a whole before a program sees it.
            Input::Text(text) => place.run_with(&order, text.as_bytes(), interrupted)?,
            Input::Rules(set, part) => {
                let mut bytes = Vec::new();
                set.write_part(*part, &set.comments(*part), &mut bytes)
                    .map_err(|error| {
                        RemoteError::system(place.name(), "make a program's input", &error)
                    })?;
                limit += Duration::from_nanos(set.size().saturating_mul(RULE.as_nanos() as u64));
                place.run_with(&order.within(limit), &bytes, interrupted)?
            }
            // Images are streamed: their scripts know their length.
            Input::File(path) => {
                let (size, mut image) =
                    image(path).map_err(|error| self.unreadable(path, &error))?;
                limit = INSTALLATION + Duration::from_secs(size / PACE);
                let finished = place.exchange(
                    &order.within(limit),
                    Some(&mut image),
                    interrupted,
                    &mut |_| {},
                );
                self.unchanged(path)?;
                finished.map_err(|error| match error.fault {
                    Fault::Here => self.unreadable(path, &error.said),
                    _ => error,
                })?
            }
        };
        if finished.is_success() {
            return Ok(finished);
        }
        let said = [finished.errors(), finished.text()].map(|said| one_line(&said, SAID));
        let said = said.iter().find(|said| !said.is_empty());
        let said = said.map_or_else(String::new, |said| in_brackets(said));
        let how = match finished.outcome {
            Outcome::Ended(status) => status.to_string(),
            Outcome::TimedOut => format!("took longer than {} s", limit.as_secs_f64()),
            _ => "was interrupted".into(),
        };
        let fault = match finished.outcome {
            Outcome::Ended(Status::Exit(status)) if status == i32::from(LATER) && doing == BACK => {
                Fault::Later
            }
            Outcome::Ended(_) => Fault::Failed,
            _ => Fault::Unended,
        };
        let said = format!(
            "{what} could not be {doing}: `{}` {how}{said}",
            shown(program)
        );
        Err(self.place.error(fault, said))
    }
}

/// The number of a file's bytes, and a line with it followed by these bytes.
fn image(path: &str) -> io::Result<(u64, impl Read)> {
    let file = File::open(path)?;
    let facts = file.metadata()?;
    match facts.is_file() {
        true => Ok((
            facts.len(),
            Cursor::new(format!("{}\n", facts.len())).chain(file.take(facts.len())),
        )),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// A program for people.
fn shown(program: &Program) -> String {
    one_line(&program.shown(), SAID)
}

pub(super) fn unjournalled(
    place: &ExecutionTarget,
) -> impl FnOnce(linerate_linux::Error) -> RemoteError {
    move |error| place.error(Fault::Journal, error.to_string())
}

/// The identity of a host as a name of a file: no two hosts have the same.
fn file_name(host: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '@');
    host.chars()
        .map(|c| {
            if plain(c) {
                c.to_string()
            } else {
                format!(".{:x}.", c as u32)
            }
        })
        .collect()
}
