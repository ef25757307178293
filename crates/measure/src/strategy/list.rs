//! A fixed list of trials: those of a record that linerate did not choose, or of a test.

use super::{History, Observed, Strategy, TrialRequest};
use crate::record::Stopped;

/// Asks for the trials of a list, one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List(Vec<TrialRequest>);

impl List {
    /// These trials, in this order.
    pub fn new(trials: Vec<TrialRequest>) -> List {
        List(trials)
    }

    /// The recorded trials, whatever strategy chose them.
    pub fn of(trials: &[Observed]) -> List {
        List(trials.iter().map(|trial| trial.request).collect())
    }
}

impl Strategy for List {
    fn next(&mut self, history: &History<'_>) -> Result<TrialRequest, Stopped> {
        self.0
            .get(history.trials.len())
            .copied()
            .ok_or(Stopped::Trials)
    }
}
