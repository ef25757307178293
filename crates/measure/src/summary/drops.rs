//! Frames that the DUT drops. If they are many, the forwarding rate does not show the cost of a frame.

use super::Row;
use crate::audit::{Cause, Side};
use crate::record::{Campaign, Mode, TrialRecord};
use crate::trial::Rates;

/// Below this share of dropped frames, the rate alone decides.
const NOTICEABLE: f64 = 0.01;

impl TrialRecord {
    /// Frames that the DUT handled and then dropped: by a rule, or for a reason of the kernel. Frames that found a queue full are not
    /// counted: the DUT did no work for them.
    pub fn dropped(&self) -> u64 {
        let by_dut = self.losses.iter().filter(|l| l.side == Side::Dut && l.cause != Cause::QueueFull);
        by_dut.map(|l| l.frames).sum()
    }

    /// Frames/s that the DUT handled: forwarded and dropped ones.
    pub fn handled(&self) -> Option<f64> {
        let Rates { offered, received, .. } = self.rates?;
        let dropped = self.dropped() as f64;
        Some(match self.receiver.unique() {
            0 if self.generator.frames > 0 => offered * dropped / self.generator.frames as f64,
            0 => 0.0,
            once => received * (1.0 + dropped / once as f64),
        })
    }
}

/// Whether this share of dropped frames is so large that the rate does not show the cost of a frame.
pub fn is_noticeable(dropped: f64) -> bool {
    dropped >= NOTICEABLE
}

impl Row {
    /// Whether the DUT drops too many frames for its rate to show the cost of a frame.
    pub fn drops(&self) -> bool {
        is_noticeable(self.dropped)
    }
}

/// The DUT's dropped frames by the frames that it handled. 0 in a lab of hosts, where the same counters also count overload.
pub fn share(campaign: &Campaign, valid: &[&TrialRecord]) -> f64 {
    let dropped: u64 = valid.iter().map(|t| t.dropped()).sum();
    let once: u64 = valid.iter().map(|t| t.receiver.unique()).sum();
    if campaign.asked.mode == Mode::Hosts || dropped == 0 {
        return 0.0;
    }
    dropped as f64 / (dropped + once) as f64
}

/// The loss ratio: lost frames by sent frames.
pub fn lost(valid: &[&TrialRecord]) -> f64 {
    let sent: u64 = valid.iter().map(|t| t.generator.frames).sum();
    let lost: u64 = valid.iter().map(|t| t.generator.frames.saturating_sub(t.receiver.unique())).sum();
    if sent > 0 { lost as f64 / sent as f64 } else { 0.0 }
}
