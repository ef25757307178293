//! The result of a trial over hosts, whoever sends and counts there: agents or tools.

use linerate_hosts::agent::connecting::EndCounts;
use linerate_hosts::agent::merge::{Series, Window};
use linerate_linux::trial::Outcome;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Clocks, CpuShare, Stamped};
use std::collections::BTreeMap;

/// Result of a trial.
#[derive(Debug, Clone, Default)]
pub struct TrialResult {
    /// Samples and faults, on our clock.
    pub outcome: Outcome,
    /// All generators' counters together, by direction.
    pub sent: Vec<PortCounters>,
    /// All receivers', by direction.
    pub received: Vec<PortCounters>,
    /// Delay of each generator's first frame, by our clock: host and port, nanoseconds; exact to `within_ns`.
    pub late: Vec<(String, i64)>,
    /// The largest uncertainty of a comparison of clocks, in nanoseconds.
    pub within_ns: u64,
    /// The comparison of clocks behind the latencies, if generators and receivers are agents.
    pub clocks: Option<Clocks>,
    /// The source of the stamps, if the plan asks for those of cards.
    pub stamped: Option<Stamped>,
    /// How far connections came, if the load was one of connections: then a frame in the fields above is a connection.
    pub ends: Option<EndCounts>,
    /// How long it waited for its turn, while another linerate measured on one of the hosts.
    pub waited_ns: u64,
    /// How busy each host's CPUs were.
    pub cpus: BTreeMap<String, Vec<CpuShare>>,
}

impl TrialResult {
    /// An outcome without counts for frames of `ways` directions.
    pub(crate) fn of_ways(ways: usize) -> TrialResult {
        let none = vec![PortCounters::default(); ways];
        TrialResult {
            sent: none.clone(),
            received: none,
            ..TrialResult::default()
        }
    }

    /// Nanoseconds between the first generator's beginning and the last one's.
    pub fn skew_ns(&self) -> u64 {
        let late = || self.late.iter().map(|(_, ns)| *ns);
        late()
            .max()
            .zip(late().min())
            .map_or(0, |(last, first)| last.abs_diff(first))
    }

    /// A generator has begun so much later than it should, by our clock, exact to `within_ns`.
    pub(crate) fn began(&mut self, name: String, late_ns: i64, within_ns: u64) {
        self.late.push((name, late_ns));
        self.within_ns = self.within_ns.max(within_ns);
    }

    /// Enters the samples of a window.
    pub(crate) fn count(&mut self, window: &Window, sent: &[Series], received: &[Series]) {
        self.outcome.began_ns = window.began;
        self.outcome.samples = window.samples(sent, received);
        if !self.outcome.samples.is_empty() {
            self.outcome.warm_up = window.warm_up(sent, received);
        }
    }
}
