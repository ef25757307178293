//! Commands that begin at the same instant on all hosts.
//!
//! All sessions are made ready first. Then the hosts' clocks are compared with this machine's, a few at a time, so that questions
//! do not wait for each other. Then all get the order to start, one right after the other.

use crate::session::{PROBES, Session};
use linerate_hosts::phases::StepId;
use linerate_linux::ports::monotonic_ns;
use std::collections::{BTreeMap, BTreeSet};

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

/// When a step began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// CLOCK_MONOTONIC of this machine, in nanoseconds.
    pub at_ns: u64,
    /// Error of that: from the host's clock, or else from the times of the order and of its answer.
    pub error_ns: u64,
}

/// Steps that begin together.
#[derive(Debug, Default)]
pub(super) struct Volley {
    steps: BTreeSet<StepId>,
    went: bool,
    starts: BTreeMap<StepId, Start>,
}

impl Volley {
    pub(super) fn add(&mut self, step: StepId) {
        self.steps.insert(step);
    }

    /// Removes a step that is over, or was lost. If it had begun by then, it still counts.
    pub(super) fn remove(&mut self, step: StepId) {
        if !self.starts.contains_key(&step) {
            self.steps.remove(&step);
        }
    }

    /// A step has begun.
    pub(super) fn began(&mut self, step: StepId, session: &Session) {
        if let Some((at_ns, error_ns)) = session.began_here().filter(|_| self.steps.contains(&step)) {
            self.starts.insert(step, Start { at_ns, error_ns });
        }
    }

    /// Whether a step waits for the others.
    pub(super) fn contains(&self, step: StepId) -> bool {
        !self.went && self.steps.contains(&step)
    }

    /// Does all that is possible now; returns whether all is done.
    pub(super) fn advance(&mut self, live: &mut BTreeMap<StepId, Session>) -> bool {
        if !self.went {
            let ready = |step: &StepId| live.get(step).is_some_and(Session::is_ready);
            let asking =
                self.steps.iter().filter(|step| live.get(step).is_some_and(Session::is_asked)).count();
            if asking == 0 && !self.steps.iter().all(ready) {
                return false;
            }
            if self.ask_clocks(live, asking) {
                return false;
            }
            for step in &self.steps {
                if let Some(live) = live.get_mut(step) {
                    live.go(monotonic_ns());
                }
            }
            self.went = true;
        }
        self.steps.iter().all(|step| self.starts.contains_key(step))
    }

    /// Asks the next clocks; whether answers are still awaited.
    fn ask_clocks(&self, live: &mut BTreeMap<StepId, Session>, mut asking: usize) -> bool {
        let firsts = self.firsts();
        if firsts.len() > 1 {
            for step in firsts {
                let Some(live) = live.get_mut(&step).filter(|live| live.is_ready()) else { continue };
                if live.questions < PROBES && asking < AT_ONCE {
                    live.ask_clock();
                    asking += 1;
                }
            }
        }
        asking > 0
    }

    /// Each host's first step.
    fn firsts(&self) -> Vec<StepId> {
        let mut firsts: Vec<StepId> = self.steps.iter().copied().collect();
        firsts.dedup_by_key(|step| step.host);
        firsts
    }

    /// When they began.
    pub(super) fn started(&self) -> Option<Started> {
        let starts: Vec<Start> =
            self.firsts().iter().filter_map(|step| self.starts.get(step)).copied().collect();
        let first = starts.iter().min_by_key(|start| start.at_ns)?;
        let last = starts.iter().max_by_key(|start| start.at_ns)?;
        let (skew_ns, error_ns) = (last.at_ns - first.at_ns, first.error_ns + last.error_ns);
        Some(Started { starts, skew_ns, error_ns })
    }
}
