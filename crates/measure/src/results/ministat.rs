//! The judgement of ministat on two sets of rates, as papers print it.

use super::proven;
use crate::record::TrialRecord;
use linerate_stats::Estimate;
use linerate_stats::ministat::{Confidence, Dataset, Era, difference};
use serde::{Deserialize, Serialize};

/// ministat's verdict, at 95 % confidence, in the arithmetic of today's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ministat {
    /// Whether it is proven.
    pub proven: bool,
    /// The difference of the averages in percent of A's.
    pub percent: f64,
    /// Half the width of its interval, in percent.
    pub percent_error: f64,
}

/// How ministat and paired ratios disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disagreement {
    /// Pairs prove a difference that ministat does not see.
    OnlyPairs,
    /// ministat proves a difference that pairs do not.
    OnlyMinistat,
    /// Each proves the opposite of the other.
    Opposite,
}

/// `None` for fewer than two rates on a side, and where the arithmetic overflows.
pub(super) fn of(trials: &[TrialRecord], of: usize, than: usize) -> Option<Ministat> {
    let set = |slot: usize| {
        let valid = trials.iter().filter(|t| t.slot == slot && t.audit.valid);
        let rates: Vec<f64> = valid.filter_map(|t| Some(t.rates?.received)).collect();
        (rates.len() >= 2).then(|| Dataset::new("", rates).summary(Era::default()))
    };
    let d = difference(&set(than)?, &set(of)?, Confidence::default(), Era::default());
    let verdict = Ministat { proven: d.proven, percent: d.percent, percent_error: d.percent_error };
    (d.percent.is_finite() && d.percent_error.is_finite()).then_some(verdict)
}

impl Ministat {
    /// Without an interval, pairs say nothing yet, which is no disagreement.
    pub(super) fn disagreement(&self, ratio: &Estimate) -> Option<Disagreement> {
        ratio.low?;
        match (self.proven, proven(ratio)) {
            (false, true) => Some(Disagreement::OnlyPairs),
            (true, false) => Some(Disagreement::OnlyMinistat),
            (true, true) if (self.percent > 0.0) != (ratio.median > 1.0) => Some(Disagreement::Opposite),
            _ => None,
        }
    }
}
