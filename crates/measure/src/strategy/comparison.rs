//! Knowledge about a ratio, look after look.

use super::{Design, Outcomes};
use crate::experiment;
use linerate_stats::sequential::Boundary;
use linerate_stats::{Estimate, paired_ratio_between};

/// A moment at which the intervals were looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    /// Blocks that were over.
    pub blocks: u32,
    /// Share of the campaign that was over, 0..=1.
    pub share: f64,
}

/// How far a comparison has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not known well enough.
    Open,
    /// The interval is narrower than asked for; the comparison keeps it.
    Precise,
    /// One of its slots is never run.
    Nothing,
}

/// A comparison that is watched.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    watched: experiment::Comparison,
    pub(super) state: State,
    boundary: Boundary,
    /// The ratio as of the last look.
    pub(super) known: Option<Estimate>,
}

impl Comparison {
    pub(super) fn new(watched: experiment::Comparison, design: &Design) -> Comparison {
        let skipped = [watched.of, watched.than]
            .iter()
            .any(|slot| design.slots[*slot].skipped);
        let state = if skipped { State::Nothing } else { State::Open };
        Comparison {
            watched,
            state,
            boundary: Boundary::default(),
            known: None,
        }
    }

    pub(super) fn slots(&self) -> (usize, usize) {
        (self.watched.of, self.watched.than)
    }

    /// Whether the stopping rule can wait for it.
    pub(super) fn decides(&self) -> bool {
        self.watched.decides && self.state != State::Nothing
    }

    /// Looks at it. One that decides is closed by an interval that is narrow enough, and then keeps it: the trials that are
    /// run for other comparisons would make it neither wider nor much narrower.
    pub(super) fn look(&mut self, look: Look, outcomes: &Outcomes, relative_width: Option<f64>) {
        if self.state != State::Open {
            return;
        }
        let pairs = outcomes.pairs(self.slots(), look.blocks);
        self.known = paired_ratio_between(&pairs, |n| self.boundary.look(n, look.share));
        let narrow = relative_width
            .zip(self.known)
            .is_some_and(|(width, e)| e.relative_width() < width);
        if self.watched.decides && narrow {
            self.state = State::Precise;
        }
    }
}

/// The ratio of two slots as of the last of these looks; without looks, of all blocks and without an interval.
pub(super) fn repeated(
    outcomes: &Outcomes,
    slots: (usize, usize),
    looks: &[Look],
) -> Option<Estimate> {
    let Some((last, before)) = looks.split_last() else {
        return paired_ratio_between(&outcomes.pairs(slots, u32::MAX), |_| 0);
    };
    let mut boundary = Boundary::default();
    for look in before {
        boundary.look(outcomes.pairs(slots, look.blocks).len(), look.share);
    }
    paired_ratio_between(&outcomes.pairs(slots, last.blocks), |n| {
        boundary.look(n, last.share)
    })
}
