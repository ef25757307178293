//! Events that interrupt the DUT while a load runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event, as it was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DutEvent {
    /// Kind, as plans call it.
    pub what: String,
    pub class: EventClass,
    /// When it began, and when it ended or was undone, in nanoseconds since the load began. On a host, its commands ran in between. A
    /// boot ends once the host has the command.
    pub began_ns: u64,
    pub ended_ns: u64,
    /// Everything that was done, in order.
    pub ran: Vec<String>,
}

/// How long the power is off, in nanoseconds. The time of a reset does not include it (RFC 6201, section 4.3.1).
pub const POWER_OFF_NS: u64 = 15_000_000_000;

/// The class of an event by RFC 6201. The last two are not resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventClass {
    /// Section 4.2.1.
    OsReset,
    /// Section 4.2.2.
    ProcessReset,
    /// Section 4.3.1.
    PowerInterruption,
    /// Rules or settings change.
    Reconfiguration,
    /// Forwarding, or a link, is off for a while.
    Interruption,
}
