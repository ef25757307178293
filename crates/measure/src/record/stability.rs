//! Whether a DUT loses frames far below its rate.

use crate::audit::Loss;
use linerate_stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a DUT that loses frames far below its rate has no rate without loss.
pub(crate) const UNSTABLE: &str = "the DUT is unstable: it loses frames far below its rate";

/// The trials before a search, at shares of the DUT's rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stability {
    /// The rate that the DUT forwarded at the highest load of the search, in frames/s of each direction.
    pub rate: f64,
    /// In ascending order.
    pub loads: Vec<LowLoad>,
}

impl Stability {
    /// The lowest load for which the DUT is named unstable.
    pub fn unstable(&self) -> Option<&LowLoad> {
        self.loads.iter().find(|load| load.unstable)
    }
}

/// Trials at a share of the DUT's rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LowLoad {
    /// Of the DUT's rate.
    pub share: f64,
    /// Frames/s of each direction.
    pub load: f64,
    /// Valid trials, and those that lost frames.
    pub trials: usize,
    pub lossy: usize,
    /// Frames of the valid trials, and those that were lost.
    pub sent: u64,
    pub lost: u64,
    /// Loss ratio of a trial.
    pub loss: Estimate,
    /// Where frames were lost.
    pub losses: Vec<Loss>,
    /// Whether six successive trials lost frames, on a machine where the tester alone lost none in some of its trials.
    pub unstable: bool,
}
