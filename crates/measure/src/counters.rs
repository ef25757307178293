//! Counters of a port: the common language of generators and receivers.

use linerate_stats::histogram::Histogram;
use linerate_wire::{Observed, SequenceWindow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a generator or receiver has counted since it was started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortCounters {
    /// Test frames sent or received, every copy counted.
    pub frames: u64,
    /// Bytes of these, without FCS.
    pub bytes: u64,
    /// Generator: frames that the port could not be given. They were never sent.
    pub refused: u64,
    /// Generator: frames that its interface has counted as sent since the start, whoever sent them, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// Generator: frames that went to the broadcast address. They are no test frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broadcasts: u64,
    /// Generator: repeated bursts that ended, and the time from their first frame to their last, in nanoseconds, all together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bursts: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bursts_ns: u64,
    /// Receiver: frames that are not test frames of this campaign, by kind (`ARP`, `IPv4`, …).
    pub foreign: BTreeMap<String, u64>,
    /// Per CPU and queue.
    pub queues: Vec<QueueCounters>,
    /// Per stream (a generator thread's sequence space).
    pub streams: Vec<StreamCounters>,
    /// Latency of the stamped frames, in nanoseconds. Of connections: from the SYN to the ACK that reaches the server (RFC 3511, appendix
    /// B), of datagrams from the request to its answer, of one connection in 64.
    pub latency: Histogram,
    /// Receiver: frames that it answered. Generator: answers that came back. 0 if answers were not asked for.
    pub answers: u64,
    /// Generator: the longest gap, in nanoseconds, in which a frame was due and none left.
    pub stall_ns: u64,
    /// Generator: nanoseconds from its first frame to its last, where it knows them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_ns: u64,
    /// Receiver: the longest times without a frame of a stream, the longest first, where it looks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Receiver: when the first frame after the last lost one was sent, in nanoseconds since the load began: the lost frame was due one
    /// frame gap before. At the end of the load where no frame came after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss_ns: Option<u64>,
    /// Receiver: the delays of single frames, where it looks at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
}

/// Outages that are kept.
pub const OUTAGES: usize = 16;

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

/// A time in which no frame of a stream arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Stream id as the frames carry it.
    pub stream: u16,
    /// Arrival of the last frame before it and of the first after it, in nanoseconds since the load began.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Sequence numbers that are missing between the two.
    pub missing: u64,
}

/// Delays of the stamped frames of a trial, in nanoseconds (RFC 8219, section 7).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delays {
    /// Frames.
    pub frames: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Differences of successive frames of a stream, D(i) - D(i-1), where every frame is stamped: the least and the largest…
    pub least_ns: i64,
    pub most_ns: i64,
    /// …those below zero, as positive values, and the others.
    pub earlier: Histogram,
    pub later: Histogram,
    /// Neighbours that are left out because a frame between them was lost.
    pub broken: u64,
    /// Single frames with the time since the load began at which they were sent, and their delay.
    pub tagged: Vec<(u64, u64)>,
}

/// Test frames of one queue on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounters {
    /// The CPU that did the work.
    pub cpu: u32,
    /// The queue, as the driver numbers it.
    pub queue: u32,
    /// Test frames.
    pub frames: u64,
}

/// One stream: the frames of one generator thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Generator: its frames are IPv6, between those of IPv4.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
}

impl Delays {
    /// Adds the delays of other frames.
    pub fn add(&mut self, other: Delays) {
        let pairs = |of: &Delays| of.earlier.count() + of.later.count();
        if other.frames > 0 {
            self.min_ns = if self.frames > 0 {
                self.min_ns.min(other.min_ns)
            } else {
                other.min_ns
            };
            self.max_ns = self.max_ns.max(other.max_ns);
        }
        if pairs(&other) > 0 {
            let some = pairs(self) > 0;
            self.least_ns = if some {
                self.least_ns.min(other.least_ns)
            } else {
                other.least_ns
            };
            self.most_ns = if some {
                self.most_ns.max(other.most_ns)
            } else {
                other.most_ns
            };
        }
        self.frames += other.frames;
        self.earlier.merge(&other.earlier);
        self.later.merge(&other.later);
        self.broken += other.broken;
        self.tagged.extend(other.tagged);
    }
}

impl StreamCounters {
    /// Counts a frame that was received, and returns what it is.
    #[inline]
    pub fn count(&mut self, window: &mut SequenceWindow, sequence: u64) -> Observed {
        self.frames += 1;
        self.next_sequence = self.next_sequence.max(sequence + 1);
        let observed = window.observe(sequence);
        match observed {
            Observed::New => {}
            Observed::Reordered => self.reordered += 1,
            Observed::Duplicate => self.duplicates += 1,
            Observed::TooLate => self.too_late += 1,
        }
        observed
    }
}

impl PortCounters {
    /// Adds another port's counters. Streams and queues stay separate, one for each port.
    pub fn add(&mut self, other: PortCounters) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.left = self
            .left
            .into_iter()
            .chain(other.left)
            .reduce(|all, one| all + one);
        self.broadcasts += other.broadcasts;
        self.bursts += other.bursts;
        self.bursts_ns += other.bursts_ns;
        self.answers += other.answers;
        for (kind, frames) in other.foreign {
            *self.foreign.entry(kind).or_default() += frames;
        }
        self.queues.extend(other.queues);
        self.streams.extend(other.streams);
        self.latency.merge(&other.latency);
        self.stall_ns = self.stall_ns.max(other.stall_ns);
        self.outages.extend(other.outages);
        self.sort_outages();
        self.active_ns = self.active_ns.max(other.active_ns);
        self.last_loss_ns = self.last_loss_ns.max(other.last_loss_ns);
        match (&mut self.delays, other.delays) {
            (Some(delays), Some(others)) => delays.add(others),
            (mine, others) => *mine = mine.take().or(others),
        }
    }

    /// The longest outages first, and no more of them than are kept of a stream.
    pub fn sort_outages(&mut self) {
        self.outages
            .sort_by_key(|outage| std::cmp::Reverse(outage.to_ns.saturating_sub(outage.from_ns)));
        self.outages.truncate(OUTAGES);
    }

    /// Counts the times of its findings, which are by a clock, from this moment of it.
    pub fn since(&mut self, began_ns: u64) {
        self.by_clock(|ns| ns.saturating_sub(began_ns));
    }

    /// Reads the times of its findings by another clock.
    pub fn by_clock(&mut self, read: impl Fn(u64) -> u64) {
        self.last_loss_ns = self.last_loss_ns.map(&read);
        for outage in &mut self.outages {
            (outage.from_ns, outage.to_ns) = (read(outage.from_ns), read(outage.to_ns));
        }
        let tagged = self.delays.iter_mut().flat_map(|delays| &mut delays.tagged);
        tagged.for_each(|(sent_ns, _)| *sent_ns = read(*sent_ns));
    }

    /// Where a stream's last frames are missing, no frame came after the last loss: it is at the end of the generator's load.
    pub fn end_loss(&mut self, generator: &PortCounters) {
        let next = |stream: u16| {
            self.streams
                .iter()
                .find(|one| one.stream == stream)
                .map(|s| s.next_sequence)
        };
        let missing = |sent: &StreamCounters| next(sent.stream) != Some(sent.next_sequence);
        let looked =
            self.delays.is_some() && self.last_loss_ns.is_some() | !self.outages.is_empty();
        if looked && generator.streams.iter().any(missing) {
            self.last_loss_ns = self.last_loss_ns.max(Some(generator.active_ns));
        }
    }

    /// IPv6 frames that a generator sent between IPv4 ones, and those of them that its receiver got, each once.
    pub fn ipv6(&self, receiver: &PortCounters) -> (u64, u64) {
        let own = || self.streams.iter().filter(|stream| stream.ipv6);
        let received = receiver
            .streams
            .iter()
            .filter(|of| own().any(|sent| sent.stream == of.stream));
        (
            own().map(|of| of.frames).sum(),
            received
                .map(|of| of.frames.saturating_sub(of.duplicates))
                .sum(),
        )
    }

    /// Sum of foreign frames.
    pub fn foreign_total(&self) -> u64 {
        self.foreign.values().sum()
    }

    /// Broadcast frames of a generator that passed the DUT: they carry no signature.
    pub fn passed_broadcasts(&self, generator: &PortCounters) -> u64 {
        self.foreign
            .get("IPv4")
            .copied()
            .unwrap_or(0)
            .min(generator.broadcasts)
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
