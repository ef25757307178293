//! The description of an embedded testbed.

use linerate_linux::host::journal::Consent;
use linerate_linux::lab::Setup;
use linerate_measure::record::Roles;
use linerate_plan::Backend;
use linerate_plan::campaign::Collect;
use linerate_plan::settings::Mode;
use linerate_wire::Traffic;

/// The path and the frames of a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotLoad {
    /// The lane that it is sent through.
    pub lane: usize,
    /// The kind of traffic.
    pub kind: usize,
}

/// A kind of traffic: the slots that differ in nothing but the variant share it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficKind {
    /// The frames. Ethernet addresses, campaign and streams are filled in by the testbed.
    pub traffic: Traffic,
    /// The generator's CPUs, one thread on each.
    pub cpus: Vec<u32>,
}

/// The description of an embedded testbed.
#[derive(Debug, Clone)]
pub struct EmbeddedPlan {
    /// Inline or threaded.
    pub mode: Mode,
    /// CPUs; the generator's are those of all kinds together.
    pub roles: Roles,
    /// Lanes.
    pub setups: Vec<Setup>,
    /// Kinds of traffic.
    pub kinds: Vec<TrafficKind>,
    /// Lane and kind of each slot.
    pub slots: Vec<SlotLoad>,
    /// High byte of the stream ids.
    pub campaign: u8,
    /// Flows that connection tracking must have room for.
    pub flows: u64,
    /// Whether settings of the whole host may be changed.
    pub host_changes: Consent,
    /// How frames leave and arrive.
    pub backend: Backend,
    /// What is collected with each trial, beyond the counters.
    pub collect: Collect,
}
