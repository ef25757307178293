//! What is known of a running tool.

use super::fault::{Fault, FaultKind};
use crate::pktgen::steady::{Steady, steady_rates};
use serde::Serialize;

/// One interval of a tool's own clock, usually a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Its end in microseconds, on the tool's clock: pkt-gen's begins anywhere, the others' with the test.
    pub end_us: u64,
    /// Its length in microseconds.
    pub interval_us: u64,
    /// Frames in it, where the tool counts them.
    pub packets: Option<u64>,
    /// Frames/s, where the tool counts frames.
    pub pps: Option<f64>,
    /// Bits/s, at the tool's layer: pkt-gen counts frames without FCS, iperf3 and netperf their payload.
    pub bps: Option<f64>,
    /// Frames lost in it, where the tool knows (iperf3's UDP receiver).
    pub lost: Option<u64>,
}

impl Sample {
    /// Frames/s, or bits/s from a tool that counts no frames.
    pub fn rate(&self) -> f64 {
        self.pps.or(self.bps).unwrap_or(0.0)
    }
}

/// What a tool says at its end, or what its samples add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Frames sent or received, where the tool counts them.
    pub packets: Option<u64>,
    /// Bytes, at the tool's layer.
    pub bytes: Option<u64>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Frames that the far end did not get, by the tool's own count.
    pub lost: Option<u64>,
    /// Whether the tool said so at its end. Otherwise these are the sums of its samples, and what passed after the last one is
    /// missing.
    pub said: bool,
}

impl Totals {
    /// Frames/s over the whole time.
    pub fn pps(&self) -> Option<f64> {
        let seconds = self.seconds.filter(|s| *s > 0.0)?;
        Some(self.packets? as f64 / seconds)
    }

    /// Bits/s over the whole time, at the tool's layer.
    pub fn bps(&self) -> Option<f64> {
        let seconds = self.seconds.filter(|s| *s > 0.0)?;
        Some(8.0 * self.bytes? as f64 / seconds)
    }
}

/// What a tool is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It has said nothing yet, or only what it was told.
    #[default]
    Starting,
    /// It has opened the interface, which takes the link down, and waits for it.
    WaitingForLink,
    /// It is ready: a receiver counts from here on.
    Ready,
    /// It runs, and no frame has passed since its last sample, or at all.
    AtZero,
    /// Frames pass.
    Running,
    /// It is through, and has said its totals or been ended.
    Ended,
    /// It gave up: see the faults.
    Failed,
}

/// Samples that are kept: a day of seconds. What comes later is counted only.
pub const MOST_SAMPLES: usize = 90_000;

/// Everything that a tool has said so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// What it does.
    pub state: State,
    /// Its intervals, the first [`MOST_SAMPLES`].
    pub samples: Vec<Sample>,
    /// Intervals beyond those.
    pub samples_beyond: u64,
    /// Totals.
    pub totals: Totals,
    /// What went wrong, each kind once.
    pub faults: Vec<Fault>,
    /// Lines that are not the tool's, or too garbled to read.
    pub foreign_lines: u64,
}

impl Report {
    /// The steady rate, frames/s (bits/s from a tool that counts no frames): the median without ramp-up and tail, as imported
    /// archives are judged. `None` with fewer than three samples, or where most are 0.
    pub fn steady(&self) -> Option<Steady> {
        steady_rates(&self.samples.iter().map(Sample::rate).collect::<Vec<_>>())
    }

    /// Whether a frame has passed.
    pub fn has_traffic(&self) -> bool {
        let counted = self.totals.packets.or(self.totals.bytes).unwrap_or(0);
        counted > 0 || self.samples.iter().any(|s| s.rate() > 0.0)
    }

    /// The fault that ended it, if one did.
    pub fn fatal(&self) -> Option<&Fault> {
        self.faults.iter().find(|f| f.fatal)
    }

    pub(super) fn sample(&mut self, sample: Sample) {
        self.moves(if sample.rate() > 0.0 { State::Running } else { State::AtZero });
        if !self.totals.said {
            let add = |sum: &mut Option<u64>, more: Option<u64>| {
                if let Some(more) = more {
                    *sum = Some(sum.unwrap_or(0).saturating_add(more));
                }
            };
            add(&mut self.totals.packets, sample.packets);
            add(&mut self.totals.lost, sample.lost);
            let seconds = sample.interval_us as f64 * 1e-6;
            add(&mut self.totals.bytes, sample.bps.map(|bps| (bps * seconds / 8.0).round() as u64));
            self.totals.seconds = Some(self.totals.seconds.unwrap_or(0.0) + seconds);
        }
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(sample);
        } else {
            self.samples_beyond = self.samples_beyond.saturating_add(1);
        }
    }

    /// Goes on to a state; a failure stays one.
    pub(super) fn moves(&mut self, to: State) {
        if self.state != State::Failed {
            self.state = to;
        }
    }

    pub(super) fn fault(&mut self, kind: FaultKind, message: &[u8]) {
        if let Some(known) = self.faults.iter_mut().find(|f| f.kind == kind) {
            known.count = known.count.saturating_add(1);
        } else {
            self.faults.push(Fault::new(kind, message));
        }
        if kind.is_fatal() {
            self.state = State::Failed;
        }
    }
}
