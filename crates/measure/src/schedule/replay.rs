//! A schedule taken up from the records of its campaign.

use super::{Design, Schedule, Stopped};
use crate::record::TrialRecord;

/// Recorded trials that this design would not have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("trial {trial} is recorded as block {}, slot {}; by the schedule it would be {}", .recorded.0, .recorded.1, expected(.due))]
pub struct Mismatch {
    /// Number of the first trial that differs.
    pub trial: u64,
    /// Its block and slot in the records.
    pub recorded: (u32, usize),
    /// What the schedule would have run, or why it would have stopped.
    pub due: Result<(u32, usize), Stopped>,
}

fn expected(due: &Result<(u32, usize), Stopped>) -> String {
    match due {
        Ok((block, slot)) => format!("block {block}, slot {slot}"),
        Err(_) => "none, since the campaign was over".into(),
    }
}

impl Schedule {
    /// The schedule after these trials. Tell it with [`Schedule::finish`] why the campaign ended, where it did.
    ///
    /// # Errors
    /// The trials are not those that this design runs: other settings, another order, another program.
    pub fn replay(design: Design, trials: &[TrialRecord]) -> Result<Schedule, Mismatch> {
        let mut schedule = Schedule::new(design);
        for trial in trials {
            let recorded = (trial.block, trial.slot);
            let due = schedule.next(trial.began_ns);
            if due != Ok(recorded) {
                return Err(Mismatch { trial: trial.trial, recorded, due });
            }
            let rate = trial.rates.filter(|_| trial.audit.valid).map(|r| r.received);
            schedule.observe(trial.block, trial.slot, rate);
        }
        Ok(schedule)
    }
}
