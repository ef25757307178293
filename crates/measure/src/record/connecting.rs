//! Connections that a trial opened, and how far each came.

use crate::audit::Loss;
use linerate_wire::{ConnectionSpec, Exchange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The connections of a trial. Each is counted at both ends, by a bit for each stage that it reached; docs/connections.md names the stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionTrial {
    /// Connections whose first frame was sent.
    pub attempted: u64,
    /// Connections that reached each stage, each counted once.
    pub reached: Vec<u64>,
    /// Frames of each stage that arrived.
    pub arrived: Vec<u64>,
    /// Frames of each stage that had arrived before; they are in `arrived` as well.
    pub again: Vec<u64>,
    /// Frames whose sequence numbers are others than those that were sent: the DUT changes them.
    pub changed: u64,
    /// Frames of connections of an earlier trial.
    pub stale: u64,
    /// RST segments that neither end had sent.
    pub resets: u64,
    /// Frames that an end could not write.
    pub unwritten: u64,
    /// Connections that were given up, because no frame of any connection arrived for a while.
    pub given_up: u64,
    /// Time lost waiting for them, in nanoseconds, on the CPU that waited longest.
    pub idle_ns: u64,
    /// Places where frames of the connections were lost.
    pub lost: Vec<Loss>,
}

/// Share of a load's time that may pass while nothing arrives and no connection may be opened.
const MOST_IDLE: f64 = 0.02;

impl ConnectionTrial {
    /// Connections whose last frame arrived.
    pub fn closed(&self) -> u64 {
        self.reached.last().copied().unwrap_or(0)
    }

    /// Connections that failed before each stage. `None`: some stage was reached by more than the one before it.
    pub fn failed(&self) -> Option<Vec<u64>> {
        let before = std::iter::once(&self.attempted).chain(&self.reached);
        before
            .zip(&self.reached)
            .map(|(before, reached)| before.checked_sub(*reached))
            .collect()
    }

    /// Counts that contradict each other, and rates that are not the DUT's, in words. `load_ns`: the length of the load.
    pub fn faults(&self, spec: &ConnectionSpec, load_ns: u64) -> Vec<String> {
        let mut faults = Vec::new();
        let counted = self
            .arrived
            .iter()
            .zip(&self.again)
            .map(|(arrived, again)| arrived.saturating_sub(*again));
        if !counted.eq(self.reached.iter().copied()) {
            faults.push(format!(
                "the counts of frames and of connections differ: of {:?} frames {:?} were repeated; {}",
                self.arrived,
                self.again,
                self.stages(spec)
            ));
        }
        let idle = self.idle_ns as f64 / load_ns.max(1) as f64;
        if idle > MOST_IDLE {
            faults.push(format!(
                "{} failed connections kept others waiting for {:.1} % of the time, so the rate is not the DUT's: open connections at a rate that you choose, such as --mode threaded --rate 20kpps",
                self.given_up,
                100.0 * idle
            ));
        }
        if self.unwritten > 0 {
            faults.push(format!(
                "the tester could not write {} frames: use a shorter --object",
                self.unwritten
            ));
        }
        if self.failed().is_none() {
            faults.push(format!(
                "a stage of connections was reached by more of them than the stage before it: {}",
                self.stages(spec)
            ));
        }
        let failed = self.attempted.saturating_sub(self.closed());
        if self.given_up > failed {
            faults.push(format!(
                "{} connections were given up, and {failed} failed: the others were late, so more were under way than was allowed for: stop other programs, and run it again",
                self.given_up
            ));
        }
        if self.changed > 0 && self.closed() == 0 && spec.exchange.is_tcp() {
            faults.push("the DUT changes sequence numbers (SYN proxy, `modulate state`), by which linerate knows its connections: turn that off".into());
        }
        faults
    }

    /// The stages with the number of connections that reached each.
    fn stages(&self, spec: &ConnectionSpec) -> String {
        let stages = spec.exchange.stages().iter().zip(&self.reached);
        stages
            .map(|(stage, reached)| format!("{stage} {reached}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Connections that failed, by the frame that did not arrive.
    pub fn failures<'a>(
        &'a self,
        exchange: Exchange,
    ) -> impl Iterator<Item = (&'static str, u64)> + 'a {
        let failed = self.failed().unwrap_or_default();
        exchange
            .stages()
            .iter()
            .copied()
            .zip(failed)
            .filter(|(_, failed)| *failed > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(reached: [u64; 6]) -> ConnectionTrial {
        let (arrived, again) = (reached.to_vec(), vec![0; 6]);
        ConnectionTrial {
            attempted: 1000,
            reached: arrived.clone(),
            arrived,
            again,
            ..ConnectionTrial::default()
        }
    }

    #[test]
    fn those_that_failed_and_those_that_closed_are_all() {
        let found = trial([990, 990, 980, 975, 975, 970]);
        assert_eq!(found.failed().unwrap(), [10, 0, 10, 5, 0, 5]);
        assert_eq!(
            found.failed().unwrap().iter().sum::<u64>() + found.closed(),
            found.attempted
        );
        let named: Vec<_> = found.failures(Exchange::Request).collect();
        assert_eq!(
            named,
            [
                ("SYN", 10),
                ("request", 10),
                ("answer with FIN", 5),
                ("last ACK", 5)
            ]
        );
    }

    #[test]
    fn counts_that_contradict_each_other_are_found() {
        let spec = ConnectionSpec::new(Exchange::Request, 6);
        assert_eq!(
            trial([1000; 6]).faults(&spec, 1_000_000),
            Vec::<String>::new()
        );
        assert!(
            trial([990, 991, 990, 990, 990, 990]).faults(&spec, 1_000_000)[0]
                .contains("SYN 990, SYN/ACK 991")
        );
        let busy = ConnectionTrial {
            given_up: 11,
            ..trial([990; 6])
        };
        assert!(busy.faults(&spec, 1_000_000)[0].contains("11 connections were given up"));
        assert!(
            ConnectionTrial {
                given_up: 10,
                ..trial([990; 6])
            }
            .faults(&spec, 1_000_000)
            .is_empty()
        );
        let idle = ConnectionTrial {
            idle_ns: 30_000,
            given_up: 10,
            ..trial([990; 6])
        };
        assert!(idle.faults(&spec, 1_000_000)[0].contains("for 3.0 % of the time"));
        assert!(idle.faults(&spec, 2_000_000).is_empty());
        let twice = ConnectionTrial {
            again: vec![1, 0, 0, 0, 0, 0],
            ..trial([1000; 6])
        };
        assert!(twice.faults(&spec, 1_000_000)[0].contains("connections differ"));
        let changed = ConnectionTrial {
            changed: 7,
            ..trial([1000, 0, 0, 0, 0, 0])
        };
        assert!(changed.faults(&spec, 1_000_000)[0].contains("changes sequence numbers"));
    }
}
