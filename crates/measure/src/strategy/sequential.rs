//! All trials of one slot, then all of the next, as shell scripts do.

use super::blocks::probably_over;
use super::comparison::{self, Look};
use super::{Design, Figure, History, Observed, Outcomes, Strategy, TrialRequest};
use crate::record::Stopped;
use linerate_stats::Estimate;

/// One slot after the other. Of a budget each has its equal share, and at least one trial.
#[derive(Debug, Clone)]
pub struct Sequential {
    design: Design,
    /// The slots to come, the present one at the end, and how many there are in all.
    to_come: Vec<usize>,
    slots: usize,
    /// Trials of the present slot, and of all.
    own: u32,
    trials: u64,
    /// Whether time ended some slot's turn.
    cut: bool,
    /// The one look, at the end.
    looks: Vec<Look>,
}

impl Sequential {
    /// The slots of a design, in its order.
    pub fn new(design: Design) -> Sequential {
        let to_come: Vec<usize> = (0..design.slots.len())
            .rev()
            .filter(|slot| !design.slots[*slot].skipped)
            .collect();
        let slots = to_come.len();
        Sequential {
            design,
            to_come,
            slots,
            own: 0,
            trials: 0,
            cut: false,
            looks: Vec::new(),
        }
    }
}

impl Strategy for Sequential {
    fn next(&mut self, history: &History<'_>) -> Result<TrialRequest, Stopped> {
        while let Some(&slot) = self.to_come.last() {
            let full = self
                .design
                .trials
                .blocks
                .is_some_and(|most| self.own >= most);
            let turn = (self.slots - self.to_come.len() + 1) as u128;
            let late = self.design.trials.budget_ns.is_some_and(|budget| {
                probably_over(history.elapsed_ns, self.trials, 1)
                    > u128::from(budget) * turn / self.slots as u128
            });
            if !full && (!late || self.own == 0) {
                (self.own, self.trials) = (self.own + 1, self.trials + 1);
                return Ok(self.design.request(self.own - 1, slot));
            }
            self.cut |= !full;
            (self.own, _) = (0, self.to_come.pop());
        }
        let stopped = if self.cut {
            Stopped::Budget
        } else {
            Stopped::Trials
        };
        self.finish(stopped);
        Err(stopped)
    }

    fn finish(&mut self, stopped: Stopped) {
        if matches!(stopped, Stopped::Budget | Stopped::Trials) {
            self.looks = vec![Look {
                blocks: u32::MAX,
                share: 1.0,
            }];
        }
    }

    /// No interval before the end: the strategy has not looked at the data.
    fn ratio(
        &self,
        of: usize,
        than: usize,
        figure: Figure,
        trials: &[Observed],
    ) -> Option<Estimate> {
        comparison::repeated(&Outcomes::of(figure, trials), (of, than), &self.looks)
    }
}
