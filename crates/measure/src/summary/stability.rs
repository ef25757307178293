//! Frames of the trials that tell whether a DUT loses frames far below its rate.

use super::losses_by_place;
use crate::experiment::Benchmark;
use crate::record::{Searched, TrialRecord};

/// Counts the frames at each load.
pub(super) fn count(searches: &mut [Searched], trials: &[TrialRecord]) {
    for search in searches {
        let slot = search.slot;
        let loads = search.stability.iter_mut().flat_map(|of| &mut of.loads);
        for load in loads {
            let own = |trial: &&TrialRecord| {
                trial.slot == slot
                    && trial.audit.valid
                    && trial.benchmark == Some(Benchmark::Stability)
                    && trial.asked_fps == Some(load.load)
            };
            let own: Vec<&TrialRecord> = trials.iter().filter(own).collect();
            let sent = own.iter().map(|trial| trial.generator.frames);
            let arrived = own.iter().map(|trial| trial.receiver.unique());
            load.sent = sent.sum();
            load.lost = load.sent.saturating_sub(arrived.sum());
            load.losses = losses_by_place(&own);
        }
    }
}
