//! Steps that begin at the same instant on all hosts of a run.

use crate::Session;
use crate::session::{PROBES, Start};
use linerate_hosts::phases::StepId;
use linerate_linux::ports::monotonic_ns;
use std::collections::BTreeMap;

/// Clocks that are asked at the same time.
const AT_ONCE: usize = 4;

/// When the first steps of a run began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Each host's first step.
    pub starts: Vec<Start>,
    /// From the first to the last of them.
    pub skew_ns: u64,
    /// How wrong that can be.
    pub error_ns: u64,
}

/// Steps that begin together.
#[derive(Debug, Default)]
pub(super) struct StartGroup {
    went: bool,
    /// When they began, once they have.
    pub(super) steps: BTreeMap<StepId, Option<Start>>,
}

impl StartGroup {
    /// Removes a step that is over, or was lost. If it had begun by then, it still counts.
    pub(super) fn remove(&mut self, step: StepId) {
        if self.steps.get(&step) == Some(&None) {
            self.steps.remove(&step);
        }
    }

    /// A step has begun.
    pub(super) fn began(&mut self, step: StepId, start: Start) {
        self.steps
            .entry(step)
            .and_modify(|began| *began = Some(start));
    }

    /// Whether a step waits for the others.
    pub(super) fn contains(&self, step: StepId) -> bool {
        !self.went && self.steps.contains_key(&step)
    }

    /// Does all that is possible now; returns whether all is done.
    pub(super) fn advance(&mut self, live: &mut BTreeMap<StepId, Session>) -> bool {
        if !self.went {
            let ready = |step: &StepId| live.get(step).is_some_and(Session::is_ready);
            let asking = self
                .steps
                .keys()
                .filter(|step| live.get(step).is_some_and(Session::is_asked))
                .count();
            if asking == 0 && !self.steps.keys().all(ready) {
                return false;
            }
            if self.ask_clocks(live, asking) {
                return false;
            }
            for step in self.steps.keys() {
                if let Some(live) = live.get_mut(step) {
                    live.go(monotonic_ns());
                }
            }
            self.went = true;
        }
        self.steps.values().all(Option::is_some)
    }

    /// Asks the next clocks; whether answers are still awaited.
    fn ask_clocks(&self, live: &mut BTreeMap<StepId, Session>, mut asking: usize) -> bool {
        for step in self.firsts() {
            let Some(live) = live.get_mut(&step).filter(|live| live.is_ready()) else {
                continue;
            };
            if live.questions < PROBES && asking < AT_ONCE {
                live.ask_clock();
                asking += 1;
            }
        }
        asking > 0
    }

    /// Each host's first step.
    fn firsts(&self) -> Vec<StepId> {
        let mut firsts: Vec<StepId> = self.steps.keys().copied().collect();
        firsts.dedup_by_key(|step| step.host);
        firsts
    }

    /// When they began.
    pub(super) fn started(&self) -> Option<Started> {
        let starts: Vec<Start> = self
            .firsts()
            .iter()
            .filter_map(|step| *self.steps.get(step)?)
            .collect();
        let first = starts.iter().min_by_key(|start| start.at_ns)?;
        let last = starts.iter().max_by_key(|start| start.at_ns)?;
        let (skew_ns, error_ns) = (last.at_ns - first.at_ns, first.error_ns + last.error_ns);
        Some(Started {
            starts,
            skew_ns,
            error_ns,
        })
    }
}
