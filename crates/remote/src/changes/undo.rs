//! Undoing changes, the last first: what was undone, what waits, and what could not be undone.

use super::making::{BACK, Changes, OWED, unjournalled};
use crate::boot::is_other_boot;
use crate::{Fault, Left, Result};
use linerate_hosts::dut_changes::{Input, Program, Undoing};

/// The result of undoing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Undone {
    /// The changes that were undone, in that order.
    pub what: Vec<String>,
    /// Changes that can be undone as a whole only when something has happened there. They stay written down.
    pub later: Vec<String>,
    /// Whether a boot is owed: some of it counts from the next one on, or is undone by it.
    pub reboot: bool,
}

impl Undone {
    /// Changes that are left, with what to do: interrupts and offloads wait ([`LATER`](linerate_hosts::dut_changes::LATER)).
    pub fn waits(&self, again: &str) -> Option<String> {
        (!self.later.is_empty()).then(|| {
            format!(
                "{}: an interrupt that has not come since it was moved goes back when it comes next, and an offload that cannot be changed now when it \
                 can be; then run `{again}`, which restores the rest",
                self.later.join(", ")
            )
        })
    }
}

impl Changes {
    /// Undoes all changes, the last first. A change that cannot be undone stays in the journal, and the rest is still undone,
    /// unless the host is lost or hangs.
    ///
    /// # Errors
    /// Some changes could not be undone.
    pub fn undo(&mut self) -> Result<Undone> {
        self.undo_to(0)
    }

    /// Undoes all changes but so many, the oldest.
    ///
    /// # Errors
    /// Some changes could not be undone.
    pub fn undo_to(&mut self, oldest: usize) -> Result<Undone> {
        let (mut undone, mut failed, mut kept) = (Undone::default(), None, Vec::new());
        let mut older = self.journal.pending().to_vec();
        let mut left = older.split_off(oldest.min(older.len()));
        while let Some(undoing) = left.pop() {
            match self.undo_one(&undoing) {
                Ok(true) => undone.what.push(undoing.what.clone()),
                Ok(false) => {}
                Err(error) if error.fault == Fault::Later => {
                    if !undone.later.contains(&undoing.what) {
                        undone.later.push(undoing.what.clone());
                    }
                    // An older one of the same setting restores what was there before both. Each that waits takes its time.
                    if !left
                        .iter()
                        .any(|older| older.what == undoing.what && older.argv == undoing.argv)
                    {
                        kept.insert(0, undoing);
                        continue;
                    }
                }
                Err(error) => {
                    // Where one program hangs, or cannot be run any more, the others would be waited for one after the other.
                    let hopeless = error.fault != Fault::Failed;
                    failed.get_or_insert(error);
                    kept.insert(0, undoing);
                    if hopeless {
                        kept.splice(0..0, std::mem::take(&mut left));
                    }
                    continue;
                }
            }
            undone.reboot |= undoing.argv.is_empty() || self.has_counted(&undoing);
            // At once, so that nothing is undone twice if linerate is killed.
            let owed = undone.reboot.then(|| self.owed());
            let others = older.iter().chain(&left).chain(&kept).cloned();
            let pending = owed.into_iter().chain(others).collect();
            self.journal
                .replace(pending)
                .map_err(unjournalled(&self.place))?;
        }
        let Some(first) = failed else {
            return Ok(undone);
        };
        let fault = match first.fault {
            Fault::Unended => Fault::NotUndoneYet,
            fault if fault.left() == Left::AllOnceBack => Fault::NotUndoneYet,
            _ => Fault::NotUndone,
        };
        let (count, path) = (kept.len(), self.journal.path().display());
        let said = format!(
            "{count} of its changes could not be undone, and stay written down in {path}: {first}"
        );
        Err(self.place.error(fault, said))
    }

    /// Puts one change back. `false`: it was written down and never made, or a boot undoes it.
    fn undo_one(&mut self, undoing: &Undoing) -> Result<bool> {
        if undoing.argv.is_empty() {
            return Ok(false);
        }
        let input = if undoing.input.is_empty() {
            Input::Nothing
        } else {
            Input::Text(undoing.input.clone())
        };
        let program = Program {
            argv: undoing.argv.clone(),
            input,
        };
        let limit = self.limit(undoing.within_ns);
        let mut undone = self.run_within(limit, &undoing.what, BACK, &program, None);
        if undone.is_err() && undoing.cuts && self.reach_again() {
            undone = self.run_within(limit, &undoing.what, BACK, &program, None);
        }
        match undone {
            Ok(_) => Ok(true),
            Err(error) if error.fault == Fault::Failed && !undoing.made => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a change that outlives boots has seen one, and so is in effect until the next.
    fn has_counted(&self, undoing: &Undoing) -> bool {
        undoing.lasting && is_other_boot(&self.boot, &undoing.boot)
    }

    fn owed(&self) -> Undoing {
        let (what, boot, machine) = (OWED.to_string(), self.boot.clone(), self.machine.clone());
        Undoing {
            what,
            lasting: true,
            boot,
            machine,
            made: true,
            ..Undoing::default()
        }
    }
}
