//! The result of a bisection: which element of an ordered list made it slower.

use linerate_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which element of an ordered list made it slower. Elements are slots: cells that differ in the level of one factor alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bisected {
    /// Factor whose levels are the list, an index into the experiment's.
    pub factor: usize,
    pub verdict: BisectionVerdict,
    /// The rate of the last element that could be measured, divided by that of the first.
    pub ends: Option<Estimate>,
    /// The whole list, in its order.
    pub elements: Vec<Element>,
    /// The element from which on it is slower; the most probable one, if that is undecided. `None`: the ends do not differ, as far as is known.
    pub culprit: Option<Culprit>,
    /// A further change, before or after the culprit.
    pub second: Vec<SecondStep>,
}

/// The result of a bisection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BisectionVerdict {
    /// The culprit is known, and slower than the element before it.
    Found,
    /// The last element is faster than the first.
    Faster,
    /// Whether the ends differ is not known.
    UndecidedEnds,
    /// The last element is slower than the first, and from which element on is not certain.
    UndecidedCulprit,
    /// Fewer than two elements could be measured.
    NothingToCompare,
}

/// An element of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Element {
    pub slot: usize,
    /// Trials of the element, valid or not.
    pub trials: usize,
    /// The rate, divided by that of the first element in the same block.
    pub ratio: Option<Estimate>,
    /// Whether it belongs to the slow end; `None`: not known.
    pub slow: Option<bool>,
    /// The probability that the slow-down begins with it.
    pub probability: f64,
}

/// Where the slow-down begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Culprit {
    pub slot: usize,
    /// The element before it that could be measured.
    pub after: usize,
    /// Elements between these two: they could not be measured, and each may be the culprit.
    pub between: Vec<usize>,
    /// The probability that the slow-down begins there.
    pub probability: f64,
    /// The rate, divided by that of the element before it.
    pub ratio: Option<Estimate>,
}

/// A further change of the rate, somewhere between two elements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondStep {
    pub after: usize,
    pub until: usize,
    /// The rate of `until` divided by that of `after`, with an interval that excludes 1.
    pub ratio: Estimate,
}
