//! The report of a running tool.

use super::fault::{Fault, FaultKind};

/// One interval of a tool's own clock, usually a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Its end in microseconds, on the tool's clock: pkt-gen's begins anywhere, the others' with the test.
    pub end_us: u64,
    /// Its length in microseconds.
    pub interval_us: u64,
    /// Frames in it, where the tool counts them.
    pub packets: Option<u64>,
    /// Bits/s, at the tool's layer: pkt-gen counts frames without FCS, iperf3 and netperf their payload.
    pub bps: Option<f64>,
}

impl Sample {
    /// Whether anything passed in it.
    pub fn has_traffic(&self) -> bool {
        self.packets.map_or(self.bps.is_some_and(|bps| bps > 0.0), |packets| packets > 0)
    }
}

/// A tool's own totals, or the sums of its samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Frames sent or received, where the tool counts them.
    pub packets: Option<u64>,
    /// Bytes, at the tool's layer.
    pub bytes: Option<u64>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Frames that the far end did not get, by the tool's own count.
    pub lost: Option<u64>,
    /// Whether they are the tool's own totals. Otherwise these are the sums of its samples, and frames after the last one are
    /// missing.
    pub said: bool,
}

/// State of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Frames that come now are not counted yet: it has said nothing, or waits for its link.
    #[default]
    Starting,
    /// It is ready, or runs.
    Up,
    /// It is through, or gave up: see the faults.
    Over,
}

/// Samples that are kept: a day of seconds. Later ones count only in the totals.
pub const MOST_SAMPLES: usize = 90_000;

/// Everything that a tool has said so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub state: State,
    /// Its intervals, the first [`MOST_SAMPLES`].
    pub samples: Vec<Sample>,
    /// Totals.
    pub totals: Totals,
    /// Faults, each kind once.
    pub faults: Vec<Fault>,
}

impl Report {
    /// Whether a frame has passed.
    pub fn has_traffic(&self) -> bool {
        let counted = self.totals.packets.or(self.totals.bytes).unwrap_or(0);
        counted > 0 || self.samples.iter().any(Sample::has_traffic)
    }

    /// The fault that ended it, if one did.
    pub fn fatal(&self) -> Option<&Fault> {
        self.faults.iter().find(|f| f.kind.is_fatal())
    }

    pub(super) fn sample(&mut self, sample: Sample) {
        self.moves(State::Up);
        if !self.totals.said {
            let add = |sum: &mut Option<u64>, more: Option<u64>| {
                if let Some(more) = more {
                    *sum = Some(sum.unwrap_or(0).saturating_add(more));
                }
            };
            add(&mut self.totals.packets, sample.packets);
            let seconds = sample.interval_us as f64 * 1e-6;
            add(&mut self.totals.bytes, sample.bps.map(|bps| (bps * seconds / 8.0).round() as u64));
            self.totals.seconds = Some(self.totals.seconds.unwrap_or(0.0) + seconds);
        }
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// Goes on to a state, never back.
    pub(super) fn moves(&mut self, to: State) {
        self.state = self.state.max(to);
    }

    /// Enters the tool's own totals, which are its last output.
    pub(super) fn says(&mut self, totals: Totals) {
        self.totals = Totals { said: true, ..totals };
        self.moves(State::Over);
    }

    pub(super) fn fault(&mut self, kind: FaultKind, message: &[u8]) {
        if let Some(known) = self.faults.iter_mut().find(|f| f.kind == kind) {
            known.count = known.count.saturating_add(1);
        } else {
            self.faults.push(Fault::new(kind, message));
        }
        if kind.is_fatal() {
            self.moves(State::Over);
        }
    }
}
