//! Findings of a receiver about single frames, if a load asks for them: outages, the last loss, exact delays and their
//! differences, and tagged frames. receiver.bpf.c finds the same; change both. Times are of the receiver's CLOCK_MONOTONIC.

use linerate_measure::counters::{Delays, OUTAGES, Outage, PortCounters};
use linerate_stats::histogram::{BUCKETS, Histogram, bucket};
use linerate_wire::{Findings, Load};
use std::collections::BTreeMap;

/// Delays of a stream that are remembered for their neighbours; `RECENT` in receiver.bpf.c.
pub(super) const RECENT: usize = 8192;
/// Tagged frames at most; `TAGS` in receiver.bpf.c.
pub(super) const TAGS: usize = 2048;
/// Tagged frames that a load is to have: RFC 8219, section 7.2 wants 500 at least.
const WANTED_TAGS: u64 = 1024;

/// Nanoseconds between tagged frames.
pub(super) fn tag_gap_ns(load: &Load, findings: Findings) -> u64 {
    load.duration_ns.saturating_sub(findings.tag_after_ns) / WANTED_TAGS
}

/// The account of single frames of a load, for receivers in user space.
pub(super) struct Finder {
    findings: Findings,
    tag_gap_ns: u64,
    /// When the first frame was sent.
    first_ns: Option<u64>,
    tag_next_ns: u64,
    delays: Delays,
    pairs: u64,
    /// Differences below zero, and the others.
    differences: [Vec<u64>; 2],
    /// By the low byte of the stream.
    streams: BTreeMap<usize, Stream>,
}

#[derive(Default)]
struct Stream {
    last_ns: u64,
    /// The highest sequence number plus one.
    next: u64,
    lost_ns: Option<u64>,
    outages: Vec<Outage>,
    /// Sequence number and delay.
    recent: Vec<(u64, u64)>,
}

impl Finder {
    /// Of a load that asks for it.
    pub fn of(load: &Load) -> Option<Finder> {
        let findings = load.findings?;
        Some(Finder {
            findings,
            tag_gap_ns: tag_gap_ns(load, findings),
            first_ns: None,
            tag_next_ns: 0,
            delays: Delays::default(),
            pairs: 0,
            differences: [vec![0; BUCKETS], vec![0; BUCKETS]],
            streams: BTreeMap::new(),
        })
    }

    /// Looks at a frame that is no copy of another.
    pub fn observe(&mut self, id: usize, stream: u16, sequence: u64, now_ns: u64, delay_ns: u64) {
        let sent_ns = now_ns.saturating_sub(delay_ns);
        let Delays {
            frames,
            min_ns,
            max_ns,
            tagged,
            ..
        } = &mut self.delays;
        *min_ns = if *frames > 0 {
            (*min_ns).min(delay_ns)
        } else {
            delay_ns
        };
        *max_ns = (*max_ns).max(delay_ns);
        *frames += 1;
        let first_ns = *self.first_ns.get_or_insert(sent_ns);
        let due = sent_ns >= self.tag_next_ns && sent_ns >= first_ns + self.findings.tag_after_ns;
        if due && tagged.len() < TAGS {
            self.tag_next_ns = sent_ns + self.tag_gap_ns;
            tagged.push((sent_ns, delay_ns));
        }
        if self.findings.every_frame {
            let of = self.streams.entry(id).or_default();
            of.find_outage(stream, sequence, now_ns, sent_ns);
            for difference in of.differences(sequence, delay_ns).into_iter().flatten() {
                let Delays {
                    least_ns, most_ns, ..
                } = &mut self.delays;
                *least_ns = if self.pairs > 0 {
                    (*least_ns).min(difference)
                } else {
                    difference
                };
                *most_ns = if self.pairs > 0 {
                    (*most_ns).max(difference)
                } else {
                    difference
                };
                self.pairs += 1;
                self.differences[usize::from(difference >= 0)]
                    [bucket(difference.unsigned_abs())] += 1;
            }
        }
    }

    /// Adds the findings to a receiver's counters.
    pub fn report(&self, counters: &mut PortCounters) {
        let [earlier, later] = self
            .differences
            .each_ref()
            .map(|dense| Histogram::from_dense(dense));
        report(
            counters,
            Delays {
                earlier,
                later,
                ..self.delays.clone()
            },
            self.streams.len() as u64,
        );
        for stream in self.streams.values() {
            counters.outages.extend(&stream.outages);
            counters.last_loss_ns = counters.last_loss_ns.max(stream.lost_ns);
        }
        counters.sort_outages();
    }
}

/// Adds delays to a receiver's counters. `streams`: those whose frames were looked at one by one.
pub(super) fn report(counters: &mut PortCounters, delays: Delays, streams: u64) {
    let pairs = delays.earlier.count() + delays.later.count();
    let broken = if streams > 0 {
        delays.frames.saturating_sub(streams + pairs)
    } else {
        0
    };
    counters.delays = Some(Delays { broken, ..delays });
}

impl Stream {
    fn find_outage(&mut self, stream: u16, sequence: u64, now_ns: u64, sent_ns: u64) {
        let (last_ns, next) = (std::mem::replace(&mut self.last_ns, now_ns), self.next);
        self.next = next.max(sequence + 1);
        if last_ns == 0 {
            return;
        }
        let missing = sequence.saturating_sub(next);
        if missing > 0 {
            self.lost_ns = self.lost_ns.max(Some(sent_ns));
        }
        let length = |outage: &Outage| outage.to_ns - outage.from_ns;
        let outage = Outage {
            stream,
            from_ns: last_ns,
            to_ns: now_ns.max(last_ns),
            missing,
        };
        let shortest = self
            .outages
            .last()
            .filter(|_| self.outages.len() == OUTAGES)
            .map_or(0, length);
        if length(&outage) > shortest {
            let at = self
                .outages
                .partition_point(|longer| length(longer) >= length(&outage));
            self.outages.insert(at, outage);
            self.outages.truncate(OUTAGES);
        }
    }

    /// Differences of this frame's delay to those of its neighbours, as far as they have arrived, in the order of the stream.
    fn differences(&mut self, sequence: u64, delay_ns: u64) -> [Option<i64>; 2] {
        if self.recent.is_empty() {
            self.recent = vec![(u64::MAX, 0); RECENT];
        }
        let at = |sequence: u64| sequence as usize % RECENT;
        self.recent[at(sequence)] = (sequence, delay_ns);
        let delay_of = |sequence: u64| {
            let known = Some(self.recent[at(sequence)]).filter(|known| known.0 == sequence)?;
            Some(known.1 as i64)
        };
        let before = sequence.checked_sub(1).and_then(delay_of);
        let after = delay_of(sequence + 1);
        [
            before.map(|before| delay_ns as i64 - before),
            after.map(|after| after - delay_ns as i64),
        ]
    }
}
