//! The counters of `linerate send` and `linerate receive`.

use crate::prelude::*;
use linerate_measure::counters::{PortCounters, StreamCounters};
use linerate_stats::histogram::Histogram;
use linerate_wire::FCS_LEN;
use linerate_wire::units::{Si, bits_layer_1, bits_layer_2};

/// The frames of a port, with their rates.
#[derive(Debug, Serialize)]
pub struct Totals {
    pub frames: u64,
    seconds: f64,
    frames_per_second: f64,
    average_len_fcs: f64,
    bits_per_second_layer_1: f64,
    bits_per_second_layer_2: f64,
    counters: PortCounters,
}

/// Frames sent, and the counters of the interface.
#[derive(Debug, Serialize)]
pub struct Sent {
    #[serde(flatten)]
    pub totals: Totals,
    pub interface: InterfaceCounts,
}

/// The interface's own counters.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct InterfaceCounts {
    pub sent: u64,
    /// Frames that found the other end's ring full.
    pub refused: u64,
}

/// Frames received.
#[derive(Debug, Serialize)]
pub struct Received {
    #[serde(flatten)]
    pub totals: Totals,
    lost_by_sequence: u64,
    duplicates: u64,
    reordered: u64,
    /// Stamped frames that no latency is known of: their stamps are of another clock than this host's.
    stamped_elsewhere: u64,
    /// Other frames, by kind.
    foreign: BTreeMap<String, u64>,
    /// Whether frames without a signature count as well: then nothing is known of their sequence.
    #[serde(skip)]
    unsigned: bool,
    /// The beginning of a frame of something else.
    #[serde(skip)]
    sample: Option<Vec<u8>>,
}

impl Totals {
    /// Rates over this number of seconds.
    pub fn new(counters: PortCounters, seconds: f64) -> Totals {
        let frames = counters.frames;
        let fps = if seconds > 0.0 {
            frames as f64 / seconds
        } else {
            0.0
        };
        let length = if frames > 0 {
            counters.bytes as f64 / frames as f64 + FCS_LEN as f64
        } else {
            0.0
        };
        Totals {
            frames,
            seconds,
            frames_per_second: fps,
            average_len_fcs: length,
            bits_per_second_layer_1: bits_layer_1(fps, length),
            bits_per_second_layer_2: bits_layer_2(fps, length),
            counters,
        }
    }

    fn sentence(&self, verb: &str) -> String {
        format!(
            "{verb} {} frames of {:.1} bytes with FCS in {:.3} s: {}pps, {}bit/s at layer 1, {}bit/s at layer 2",
            self.frames,
            self.average_len_fcs,
            self.seconds,
            Si(self.frames_per_second),
            Si(self.bits_per_second_layer_1),
            Si(self.bits_per_second_layer_2),
        )
    }
}

/// No frame is under way for longer.
const LONGEST_NS: u64 = 1_000_000_000;

/// Whether the ages of frames can be differences of one clock. By that of another host, frames were sent long ago, or are yet to be sent,
/// which counts as 0.
fn is_of_one_clock(ages: &Histogram) -> bool {
    ages.quantile(0.0)
        .is_none_or(|least| (1..LONGEST_NS).contains(&least))
}

impl Received {
    /// Frames received within `seconds`. `sample`: the beginning of a frame that is not linerate's.
    pub fn new(
        mut counters: PortCounters,
        seconds: f64,
        unsigned: bool,
        sample: Option<Vec<u8>>,
    ) -> Received {
        let stamped_elsewhere = if is_of_one_clock(&counters.latency) {
            0
        } else {
            counters.latency.count()
        };
        if stamped_elsewhere > 0 {
            counters.latency = Histogram::default();
        }
        // Sequence numbers begin at 0 with each sender.
        let missing = |s: &StreamCounters| s.next_sequence.saturating_sub(s.frames - s.duplicates);
        Received {
            lost_by_sequence: counters.streams.iter().map(missing).sum(),
            duplicates: counters.duplicates(),
            reordered: counters.reordered(),
            stamped_elsewhere,
            foreign: counters.foreign.clone(),
            totals: Totals::new(counters, seconds),
            unsigned,
            sample,
        }
    }
}

/// The page of `linerate send`. Other programs read its lines.
pub fn sent(record: &Sent) -> Document {
    let mut page = Document::default();
    let InterfaceCounts { sent, refused } = record.interface;
    page.code(&record.totals.sentence("Sent"), Tone::Strong);
    let mut text =
        format!("Interface: {sent} sent, {refused} refused by a full ring at the other end\n");
    let stalled_ms = record.totals.counters.stall_ns / 1_000_000;
    if stalled_ms > 10 {
        text +=
            &format!("The generator was kept from running for up to {stalled_ms} ms at a time\n");
    }
    page.code(&text, Tone::Plain);
    page
}

/// The page of `linerate receive`. Other programs read its lines.
pub fn received(record: &Received) -> Document {
    let mut page = Document::default();
    let counters = &record.totals.counters;
    page.code(&record.totals.sentence("Received"), Tone::Strong);
    let mut text = String::new();
    if !record.unsigned {
        text += &format!(
            "{}: {} lost (by sequence numbers), {} duplicates, {} reordered, {} too late to judge\n",
            counted(counters.streams.len(), "stream"),
            record.lost_by_sequence,
            record.duplicates,
            record.reordered,
            counters.too_late(),
        );
    }
    if counters.refused > 0 {
        let refused = counters.refused;
        text += &format!(
            "{refused} frames found the receiver's ring full: the receiver was too slow for them\n"
        );
    }
    let micro = |q| counters.latency.quantile(q).map(|ns| ns as f64 / 1e3);
    if let (Some(p50), Some(p99), Some(p999)) = (micro(0.5), micro(0.99), micro(0.999)) {
        text += &format!(
            "Latency of {} stamped frames: p50 {p50:.1} us, p99 {p99:.1} us, p99.9 {p999:.1} us (stamps of one clock)\n",
            counters.latency.count()
        );
    }
    if record.stamped_elsewhere > 0 {
        text += &format!(
            "No latency: the stamps of {} frames are of another host's clock. `linerate run` compares the clocks of hosts; stamps of \
             cards, or the round trip to one host, need no comparison\n",
            record.stamped_elsewhere
        );
    }
    for queue in &counters.queues {
        text += &format!(
            "  CPU {} queue {}: {} frames\n",
            queue.cpu, queue.queue, queue.frames
        );
    }
    if !record.foreign.is_empty() {
        let kinds = record
            .foreign
            .iter()
            .map(|(kind, n)| format!("{n} {kind}"))
            .joined(", ");
        text += &format!("Other frames: {kinds}\n");
    }
    if let Some(bytes) = &record.sample {
        let hex = bytes.iter().map(|byte| format!("{byte:02x}")).joined(" ");
        text += &format!("  the first of them begins {hex}\n");
    }
    page.code(&text, Tone::Plain);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(ages: &[u64]) -> String {
        let mut latency = Histogram::default();
        ages.iter().for_each(|age| latency.record(*age));
        let counters = PortCounters {
            frames: 3,
            latency,
            ..PortCounters::default()
        };
        let record = Received::new(counters, 1.0, false, None);
        let json = serde_json::to_value(&record).unwrap();
        let known = json["counters"]["latency"]["buckets"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let text = received(&record).text(crate::format::Style::default());
        assert_eq!(known, text.contains("p50"), "{json}");
        text
    }

    #[test]
    fn stamps_of_another_clock_give_no_latency() {
        assert!(page(&[900, 1_000, 1_100]).contains("Latency of 3 stamped frames: p50 1.0 us"));
        // A sender that has run for longer than this host, and one that booted an hour later.
        for ages in [
            [0; 3],
            [3_600_000_000_000, 3_600_000_001_000, 3_600_000_002_000],
        ] {
            let text = page(&ages);
            assert!(
                text.contains("No latency: the stamps of 3 frames are of another host's clock"),
                "{text}"
            );
        }
        assert!(!page(&[]).contains("atency"));
    }
}
