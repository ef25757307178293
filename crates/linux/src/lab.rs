//! The embedded lab: generator, DUT and receiver in network namespaces, joined by veth pairs.
//!
//! One generator and one receiver namespace serve all lanes; a lane is a variant with a DUT namespace and links of its own,
//! so that variants stand side by side and can alternate within fractions of a second. The namespaces have no names: they
//! exist as long as this process does, and the kernel removes them with everything inside, also after kill -9.

pub mod addresses;
mod cards;
pub mod collectors;
mod dut;
mod embedded;
pub mod end_hosts;
pub mod events;
pub mod http;
pub mod ledger;
mod node;
pub mod path;
mod rules;
pub mod setup;
pub mod support;
mod topology;
mod tunnels;
pub mod workspace;

pub use dut::DutEnd;
pub use embedded::{EmbeddedLab, Lane};
pub use node::{Interface, Node};
pub use rules::DROP_COUNTER;
pub use setup::Setup;

use crate::host::changes::Consent;
use linerate_measure::record::Mode;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a lab is laid out.
#[derive(Debug, Clone)]
pub struct LabSpec {
    pub mode: Mode,
    /// CPUs of the generator's threads; one queue for each CPU number up to the highest, when there are several.
    pub generator_cpus: Vec<u32>,
    /// CPUs of the DUT's NAPI threads, in threaded mode.
    pub dut_cpus: Vec<u32>,
    /// Whether frames go in both directions, so that the DUT's outside card and the tester's inside receive as well.
    pub both_ways: bool,
    /// Longest frame in bytes with FCS.
    pub longest_fcs: u16,
    /// Flows that connection tracking must have room for.
    pub flows: u64,
    /// Whether settings of the whole host may be changed, while the lab stands.
    pub host_changes: Consent,
    /// Set when the user wants to stop: programs that are running are then ended.
    pub interrupted: Option<&'static AtomicBool>,
}

impl LabSpec {
    /// Queues of every link: an XDP redirect on CPU c uses queue c modulo their number, so several generator CPUs need as
    /// many as the highest number plus one to keep out of each other's way.
    pub fn queues(&self) -> u32 {
        match self.generator_cpus.len() {
            0 | 1 => 1,
            _ => self.generator_cpus.iter().max().map_or(1, |m| m + 1),
        }
    }

    /// Whether the user wants to stop.
    fn is_interrupted(&self) -> bool {
        let stop = self.interrupted;
        stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Whether two generator CPUs send into one of a card's receive queues.
    fn shares(&self, queues: u32) -> bool {
        let used: BTreeSet<u32> = self
            .generator_cpus
            .iter()
            .map(|cpu| cpu % queues.max(1))
            .collect();
        used.len() < self.generator_cpus.len()
    }

    fn mtu(&self) -> u32 {
        u32::from(self.longest_fcs).saturating_sub(18).max(1500)
    }
}
