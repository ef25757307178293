//! Ratios of slots, paired by block, as the campaign's strategy gives them.

use super::Row;
use crate::record::{Campaign, TrialRecord};
use crate::results::{Against, proven};
use crate::strategy::{Design, Figure, List, Observed, Stopped, Strategy, replay};
use linerate_stats::Estimate;

/// The strategy at the end of the campaign, whose intervals allow for having been looked at before.
pub(crate) struct Ratios<'a> {
    campaign: &'a Campaign,
    strategy: Box<dyn Strategy>,
    trials: Vec<Observed>,
}

impl<'a> Ratios<'a> {
    /// Of imported trials, and those of another linerate, another strategy chose the trials: then the intervals are those of a fixed list.
    pub fn new(campaign: &'a Campaign, trials: &[TrialRecord], stopped: Stopped) -> Ratios<'a> {
        let own = Design::of(campaign).and_then(|design| replay(design, trials).ok());
        let (mut strategy, trials) = own.unwrap_or_else(|| {
            let trials: Vec<Observed> = trials.iter().map(Observed::from).collect();
            (Box::new(List::of(&trials)), trials)
        });
        strategy.finish(stopped);
        Ratios { campaign, strategy, trials }
    }

    /// The ratio of two slots' rates, if it is a number that a record can hold.
    pub fn ratio(&self, of: usize, than: usize) -> Option<Estimate> {
        self.figure(of, than, Figure::Received)
    }

    fn figure(&self, of: usize, than: usize, figure: Figure) -> Option<Estimate> {
        let finite = |e: &Estimate| {
            e.median.is_finite() && e.low.is_none_or(f64::is_finite) && e.high.is_none_or(f64::is_finite)
        };
        let exist = of.max(than) < self.campaign.slots.len();
        exist.then(|| self.strategy.ratio(of, than, figure, &self.trials)).flatten().filter(finite)
    }

    /// Compares one slot with another.
    pub fn against(&self, rows: &[Row], of: usize, than: usize) -> Against {
        let ratio = self.ratio(of, than);
        let proven = ratio.as_ref().is_some_and(proven);
        Against { than, ratio, proven, cost: self.cost(rows, of, than) }
    }

    /// The cost of a frame in one slot, divided by the cost in another. `None` if neither drops frames, or if pacing, not cost,
    /// set the time between frames.
    fn cost(&self, rows: &[Row], of: usize, than: usize) -> Option<Estimate> {
        let row = |slot: usize| rows.get(slot).filter(|r| r.handled.median > 0.0);
        let paced = |slot: usize| self.campaign.slots[slot].asked_fps.is_some();
        let drops = row(of)?.drops() || row(than)?.drops();
        // The one that handles more frames a second has the lower cost.
        (drops && !paced(of) && !paced(than)).then(|| self.figure(than, of, Figure::Handled)).flatten()
    }
}
