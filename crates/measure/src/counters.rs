//! Counters of a port: the common language of generators and receivers.

use linerate_stats::histogram::Histogram;
use linerate_wire::{Observed, SequenceWindow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a generator or receiver has counted since it was started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Test frames sent or received, every copy counted.
    pub frames: u64,
    /// Bytes of these, without FCS.
    pub bytes: u64,
    /// Generator: frames that the port could not be given. They were never sent.
    pub refused: u64,
    /// Receiver: frames that are not test frames of this campaign, by kind (`ARP`, `IPv4`, …).
    pub foreign: BTreeMap<String, u64>,
    /// Per CPU and queue.
    pub queues: Vec<QueueCounters>,
    /// Per stream (a generator thread's sequence space).
    pub streams: Vec<StreamCounters>,
    /// Latency of the stamped frames, in nanoseconds.
    pub latency: Histogram,
    /// Receiver: frames that it answered. Generator: answers that came back. 0 if answers were not asked for.
    pub answers: u64,
    /// Generator: the longest gap, in nanoseconds, in which a frame was due and none left.
    pub stall_ns: u64,
    /// Receiver: the longest times without a frame of a stream, the longest first, where it looks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Receiver: when the frame arrived that revealed the last loss, in nanoseconds since the load began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss_ns: Option<u64>,
    /// Receiver: the delay of every frame, where all are stamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
}

/// A time in which no frame of a stream arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Stream id as the frames carry it.
    pub stream: u16,
    /// Arrival of the last frame before it and of the first after it, in nanoseconds since the load began.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Sequence numbers that are missing between the two.
    pub missing: u64,
}

/// Delays of all frames of a trial, in nanoseconds (RFC 8219, section 7).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Frames.
    pub frames: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Differences of successive frames of a stream, D(i) - D(i-1): those below zero, as positive values, and the others.
    pub earlier: Histogram,
    pub later: Histogram,
    /// Pairs that are left out because a frame between them was lost.
    pub broken: u64,
    /// Single frames with the time since the load began at which they were sent, and their delay.
    pub tagged: Vec<(u64, u64)>,
}

/// Test frames of one queue on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueCounters {
    /// The CPU that did the work.
    pub cpu: u32,
    /// The queue, as the driver numbers it.
    pub queue: u32,
    /// Test frames.
    pub frames: u64,
}

/// One stream: the frames of one generator thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounters {
    /// Stream id as the frames carry it.
    pub stream: u16,
    /// Frames sent, or received with all copies.
    pub frames: u64,
    /// Received again: the second and later copies.
    pub duplicates: u64,
    /// Received after a later one on the same CPU (RFC 4737).
    pub reordered: u64,
    /// Received so late that a straggler and a duplicate look the same.
    pub too_late: u64,
    /// Highest sequence number seen plus one; sequence numbers start at 0.
    pub next_sequence: u64,
}

impl Delays {
    fn add(&mut self, other: Delays) {
        self.frames += other.frames;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.earlier.merge(&other.earlier);
        self.later.merge(&other.later);
        self.broken += other.broken;
        self.tagged.extend(other.tagged);
    }
}

impl StreamCounters {
    /// Counts a frame that was received.
    #[inline]
    pub fn count(&mut self, window: &mut SequenceWindow, sequence: u64) {
        self.frames += 1;
        self.next_sequence = self.next_sequence.max(sequence + 1);
        match window.observe(sequence) {
            Observed::New => {}
            Observed::Reordered => self.reordered += 1,
            Observed::Duplicate => self.duplicates += 1,
            Observed::TooLate => self.too_late += 1,
        }
    }
}

impl PortCounters {
    /// Adds another port's counters. Streams and queues stay separate, one for each port.
    pub fn add(&mut self, other: PortCounters) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.answers += other.answers;
        for (kind, frames) in other.foreign {
            *self.foreign.entry(kind).or_default() += frames;
        }
        self.queues.extend(other.queues);
        self.streams.extend(other.streams);
        self.latency.merge(&other.latency);
        self.stall_ns = self.stall_ns.max(other.stall_ns);
        self.outages.extend(other.outages);
        self.outages.sort_by_key(|outage| std::cmp::Reverse(outage.to_ns - outage.from_ns));
        self.last_loss_ns = self.last_loss_ns.max(other.last_loss_ns);
        match (&mut self.delays, other.delays) {
            (Some(delays), Some(others)) => delays.add(others),
            (mine, others) => *mine = mine.take().or(others),
        }
    }

    /// Sum of foreign frames.
    pub fn foreign_total(&self) -> u64 {
        self.foreign.values().sum()
    }

    /// Duplicates over all streams.
    pub fn duplicates(&self) -> u64 {
        self.streams.iter().map(|s| s.duplicates).sum()
    }

    /// Reordered frames over all streams.
    pub fn reordered(&self) -> u64 {
        self.streams.iter().map(|s| s.reordered).sum()
    }

    /// Frames too late to be judged, over all streams.
    pub fn too_late(&self) -> u64 {
        self.streams.iter().map(|s| s.too_late).sum()
    }

    /// Test frames received at least once.
    pub fn unique(&self) -> u64 {
        self.frames.saturating_sub(self.duplicates())
    }
}
