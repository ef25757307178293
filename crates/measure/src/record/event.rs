//! What befalls the DUT while a load runs.

use serde::{Deserialize, Serialize};

/// An event, as it was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutEvent {
    /// Its kind, as plans call it.
    pub what: String,
    pub class: EventClass,
    /// When it began, and when it was undone or had passed, in nanoseconds since the load began. On a host, its commands were under way
    /// in between. A boot has passed once the host has been told to.
    pub began_ns: u64,
    pub ended_ns: u64,
    /// Everything that was done, in order.
    pub ran: Vec<String>,
}

/// How long the power is off. The time of a reset does not include it (RFC 6201, section 4.3.1).
pub const POWER_OFF_NS: u64 = 15_000_000_000;

/// What RFC 6201 calls an event. The last two are no resets, and it has no names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
