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
