//! Rates of a host between two samples.

use super::limit::Limit;
use super::sample::Table;
use serde::Serialize;

/// Activity of a host between two samples. All rates are per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rates {
    /// The host; empty for this machine.
    pub host: String,
    /// When the later sample was taken, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Seconds between the samples.
    pub seconds: f64,
    /// All interfaces together, without those that count the frames of others again.
    pub total: Totals,
    /// In the order of their names.
    pub interfaces: Vec<InterfaceRates>,
    /// By number.
    pub cpus: Vec<CpuRates>,
    /// Interrupts that came, the most frequent first.
    pub interrupts: Vec<InterruptRates>,
    /// By CPU.
    pub softnet: Vec<SoftnetRates>,
    /// Connections or states that the firewall tracks now.
    pub states: Option<Table>,
    /// Rules that met frames, the busiest first, between the last two readings of the rules.
    pub rules: Vec<Moving>,
    /// Other counters of the host that moved.
    pub moving: Vec<Moving>,
    /// Where the limit is, the most likely first; empty if nothing is near its limit.
    pub limits: Vec<Limit>,
    /// Why parts are missing.
    pub missing: Vec<String>,
}

/// Both directions of many interfaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    pub rx: SideRates,
    pub tx: SideRates,
    pub collisions: f64,
}

/// One direction of an interface or a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SideRates {
    /// Frames.
    pub pps: f64,
    /// Bytes as the counter has them, without FCS.
    pub bytes: f64,
    /// Bit/s of the frames with their FCS; 0 for a queue whose bytes the driver does not count.
    pub bits_layer_2: f64,
    /// Bit/s with preamble and gap, as on the wire.
    pub bits_layer_1: f64,
    /// Frames dropped, `overruns` included.
    pub drops: f64,
    /// Frames with errors.
    pub errors: f64,
    /// Frames that found no room in the card's ring.
    pub overruns: f64,
}

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct InterfaceRates {
    pub name: String,
    /// Whether it can carry frames; unknown on some hosts.
    pub carrier: Option<bool>,
    /// Bit/s of the wire.
    pub speed: Option<f64>,
    /// Whether it counts the frames of other interfaces again.
    pub stacked: bool,
    /// Whether its other end is here as well, and counts what it does not receive: `rx.drops` are the other end's `tx.drops`.
    pub peer_here: bool,
    /// Whether it is new, or its counters were reset: its rates are then unknown, and shown as 0.
    pub is_new: bool,
    pub rx: SideRates,
    pub tx: SideRates,
    /// Collisions of half duplex.
    pub collisions: f64,
    /// By number.
    pub queues: Vec<QueueRates>,
    /// The driver's other counters that moved.
    pub moving: Vec<Moving>,
}

/// A queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct QueueRates {
    pub rx: Option<SideRates>,
    pub tx: Option<SideRates>,
}

/// Shares of a CPU's time, 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CpuRates {
    pub cpu: u32,
    /// With nice.
    pub user: f64,
    pub system: f64,
    pub softirq: f64,
    /// Interrupts; on FreeBSD with the work of their threads.
    pub irq: f64,
    /// With the wait for disks.
    pub idle: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

/// An interrupt that came.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct InterruptRates {
    pub name: String,
    /// On all CPUs.
    pub per_second: f64,
    /// On those CPUs where it came; empty where the host does not say which.
    pub by_cpu: Vec<(u32, f64)>,
}

/// Work of the network stack on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SoftnetRates {
    pub cpu: u32,
    pub processed: f64,
    /// Packets that found the backlog full.
    pub dropped: f64,
    /// How often the budget was used up while there was more to do.
    pub squeezed: f64,
}

/// A counter that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moving {
    pub name: String,
    pub per_second: f64,
}

impl SideRates {
    pub(super) fn add(&mut self, other: &SideRates) {
        let sums = [
            (&mut self.pps, other.pps),
            (&mut self.bytes, other.bytes),
            (&mut self.bits_layer_2, other.bits_layer_2),
            (&mut self.bits_layer_1, other.bits_layer_1),
            (&mut self.drops, other.drops),
            (&mut self.errors, other.errors),
            (&mut self.overruns, other.overruns),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum += more);
    }
}

impl CpuRates {
    /// Share of time that was not idle, 0 to 1.
    pub fn busy(&self) -> f64 {
        (1.0 - self.idle).clamp(0.0, 1.0)
    }
}
