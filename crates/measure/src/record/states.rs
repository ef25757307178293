//! Connections through a DUT that keeps their states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far the connections of the test traffic are when a trial begins, on a device that keeps states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum States {
    /// Each flow has been seen in both directions.
    #[default]
    Established,
    /// No flow has been seen: each opens a connection with its first frame.
    New,
    /// Each flow has been seen in the direction of the load only.
    OneWay,
}

impl fmt::Display for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The connections of the test traffic in a DUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// State of the connections when the trial began. `one-way` also if they could not be answered.
    pub states: States,
    /// Connections in the DUT's table, if it can be asked.
    pub tracked: Option<u64>,
    /// Connections that the table holds at most, where the trial opened connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Connections among them that have never been answered; looked at where none should be.
    pub unanswered: Option<u64>,
}

impl Connections {
    /// Beyond this share of its limit, a table drops connections and closes some early.
    const SHARE: f64 = 0.95;

    /// The limit of the table, if it was full.
    pub fn full(&self) -> Option<u64> {
        let (tracked, limit) = self.tracked.zip(self.limit)?;
        (tracked as f64 >= Self::SHARE * limit as f64).then_some(limit)
    }
}
