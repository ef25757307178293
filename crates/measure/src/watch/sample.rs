//! The counters of a host at one moment.

use crate::collector::Counters;
use crate::record::RuleCount;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that was read of a host at one moment. Parts that the host lacks are empty, and `missing` has the reasons.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// The host; empty for this machine.
    pub host: String,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// Nanoseconds on a clock that only goes forward: the host's where it has one that is fine enough, or else ours.
    pub at_ns: u64,
    /// By name.
    pub interfaces: BTreeMap<String, Interface>,
    /// Ticks of each CPU since boot: user, nice, system, idle with iowait, nothing, irq, softirq, steal.
    pub cpus: BTreeMap<u32, [u64; 8]>,
    /// CPUs that the counts of `interrupts` belong to. Without any, each interrupt has one count for all CPUs.
    pub interrupt_cpus: Vec<u32>,
    /// Interrupts and soft interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Work of the network stack by CPU (Linux), or of the netisr workers (FreeBSD).
    pub softnet: BTreeMap<u32, Softnet>,
    /// Connections or states that the firewall tracks.
    pub states: Option<Table>,
    /// Rules that count. They are read less often than the rest: `None` in samples in between.
    pub rules: Option<Vec<RuleCount>>,
    /// Counters of the host that mean a lost packet, such as `Ip.InDiscards`.
    pub counters: Counters,
    /// Why parts are missing.
    pub missing: Vec<String>,
}

/// Counters of an interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Number of the interface, which a later one of the same name does not have; 0 if unknown.
    pub index: u32,
    /// Whether it can carry frames; unknown on some hosts.
    pub carrier: Option<bool>,
    /// Bit/s of the wire.
    pub speed: Option<f64>,
    /// Whether it stands on other interfaces, whose frames it counts again (VLAN, bridge, bond), or is the loopback interface.
    pub stacked: bool,
    /// Whether it is a virtual link (veth) whose other end is here as well: a frame that is lost between them counts at both.
    pub peer_here: bool,
    pub rx: Side,
    pub tx: Side,
    /// Collisions of half duplex.
    pub collisions: u64,
    /// When the driver was asked for the counters below, on the clock of [`Sample::at_ns`]; 0: with the others.
    pub driver_at_ns: u64,
    /// By number.
    pub queues: Vec<Queue>,
    /// The driver's other counters, without those that are 0.
    pub driver: Counters,
}

/// Counters of one direction of an interface, or of a queue in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    /// Frames.
    pub packets: u64,
    /// Bytes of the frames, without FCS.
    pub bytes: u64,
    /// Frames dropped, `overruns` included.
    pub drops: u64,
    /// Frames with errors.
    pub errors: u64,
    /// Frames that found no room in the card's ring.
    pub overruns: u64,
}

/// Counters of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Frames that arrived; `None` if the driver does not count them.
    pub rx: Option<Side>,
    /// Frames that left.
    pub tx: Option<Side>,
}

/// An interrupt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Number or name, and device: `36 virtio1-req.0`, `NET_RX`, `irq265: em0:rxq0`.
    pub name: String,
    /// How often it came, by the CPUs of [`Sample::interrupt_cpus`].
    pub counts: Vec<u64>,
}

/// Work of the network stack on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Softnet {
    /// Packets.
    pub processed: u64,
    /// Packets that found the backlog full.
    pub dropped: u64,
    /// How often the budget was used up while there was more to do.
    pub squeezed: u64,
}

/// A table that can be full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub entries: u64,
    /// Most entries; 0 if unknown.
    pub limit: u64,
}

impl Table {
    /// How full it is, 0 to 1; unknown without a limit.
    pub fn fill(&self) -> Option<f64> {
        (self.limit > 0).then(|| self.entries as f64 / self.limit as f64)
    }
}
