//! The ports of both directions as one: generators that send towards each other, or the receivers at both ends.

use super::port::{Port, ThreadCounters};
use crate::error::Error;
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use linerate_wire::Load;

/// A port for each direction: forward, and reverse. A load is that of each.
pub struct Ends {
    ports: Vec<Box<dyn Port>>,
    /// How many of them are in use.
    used: usize,
}

impl Ends {
    /// A port for one direction, or one for each of the two; all are used.
    pub fn new(ports: Vec<Box<dyn Port>>) -> Ends {
        Ends {
            used: ports.len(),
            ports,
        }
    }

    /// Uses the ports of so many directions from the next start on.
    pub fn use_first(&mut self, directions: usize) {
        self.used = directions.clamp(1, self.ports.len());
    }

    fn ports(&self) -> &[Box<dyn Port>] {
        &self.ports[..self.used]
    }
}

impl Port for Ends {
    fn backend(&self) -> Backend {
        self.ports[0].backend()
    }

    fn aim(&mut self, target: usize) {
        self.ports.iter_mut().for_each(|port| port.aim(target));
    }

    fn start(&mut self, load: &Load) -> Result<(), Error> {
        self.ports[..self.used]
            .iter_mut()
            .try_for_each(|port| port.start(load))
    }

    fn threads(&self) -> Vec<ThreadCounters> {
        let all = self.ports().iter().zip([false, true]);
        let threads = all
            .flat_map(|(port, reverse)| port.threads().into_iter().map(move |one| (one, reverse)));
        threads
            .map(|(thread, reverse)| ThreadCounters { reverse, ..thread })
            .collect()
    }

    fn foreign_sample(&self) -> Option<Vec<u8>> {
        self.ports().iter().find_map(|port| port.foreign_sample())
    }

    fn let_through(&mut self, on: bool) -> bool {
        self.ports[0].let_through(on)
    }

    fn frames(&self) -> u64 {
        self.ports().iter().map(|port| port.frames()).sum()
    }

    fn frames_each(&self) -> Option<[u64; 2]> {
        match self.ports() {
            [forward, reverse] => Some([forward.frames(), reverse.frames()]),
            _ => None,
        }
    }

    fn counters(&self) -> PortCounters {
        let mut all = self.directions().into_iter();
        let mut sum = all.next().unwrap_or_default();
        all.for_each(|other| sum.add(other));
        sum
    }

    fn directions(&self) -> Vec<PortCounters> {
        self.ports().iter().map(|port| port.counters()).collect()
    }

    fn finished(&self) -> bool {
        self.ports().iter().all(|port| port.finished())
    }

    fn stop(&mut self) -> Result<(), Error> {
        // Each of them, whatever becomes of the other.
        let ended: Vec<Result<(), Error>> = self.ports[..self.used]
            .iter_mut()
            .map(|port| port.stop())
            .collect();
        ended.into_iter().collect()
    }
}
