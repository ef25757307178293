//! One direction of a path: a bounded queue before a link of a given rate, and then a delay. Frames leave in the order they came.

use super::segments::{Flows, Shape};
use linerate_measure::record::PathCounts;
use std::collections::VecDeque;

/// The queue holds so many bytes at least, two super-frames of 64 KiB, and as many as pass in so long: TCP sends a millisecond's worth at
/// once.
const LEAST_QUEUE: f64 = 131_072.0;
const LEAST_QUEUE_NS: f64 = 4e6;

/// A link in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// How long a frame is on its way, in nanoseconds, beside its time in the queue and on the wire.
    pub delay_ns: u64,
    /// Bit/s at layer 1: preamble, FCS and gap count. `None`: no limit.
    pub rate: Option<f64>,
    /// Bytes at layer 1 that wait at most. A frame for which there is no room is dropped (drop-tail).
    pub queue: f64,
}

impl Link {
    /// Half of a path with this round-trip time. Its queue holds the bandwidth-delay product, the rule of thumb for one connection, or a little more.
    pub fn half(rtt_ns: u64, rate: Option<f64>) -> Link {
        let held = rate.unwrap_or(0.0) * (rtt_ns as f64).max(LEAST_QUEUE_NS) / 8e9;
        Link {
            delay_ns: rtt_ns / 2,
            rate,
            queue: held.max(LEAST_QUEUE),
        }
    }
}

/// A frame on its way.
struct Held {
    due_ns: u64,
    shape: Shape,
    bytes: Vec<u8>,
}

/// The frames of one direction that are on their way.
pub struct Line {
    link: Link,
    held: VecDeque<Held>,
    /// When the link has sent all that it took.
    free_ns: u64,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
    pub counts: PathCounts,
    pub flows: Flows,
}

/// Buffers that are kept.
const SPARE: usize = 256;

impl Line {
    pub fn new(link: Link) -> Line {
        let (held, spare) = (VecDeque::new(), Vec::new());
        Line {
            link,
            held,
            free_ns: 0,
            spare,
            counts: PathCounts::default(),
            flows: Flows::default(),
        }
    }

    /// Takes a frame as a TAP gives it, with its header of virtio-net, at this time; or drops it.
    pub fn take(&mut self, frame: &[u8], now_ns: u64) {
        let shape = Shape::of(frame);
        self.counts.frames_in += shape.frames;
        self.counts.bytes_in += shape.packet;
        self.flows.sent(frame);
        let mut due_ns = now_ns;
        if let Some(rate) = self.link.rate {
            let waiting = self.free_ns.saturating_sub(now_ns) as f64 * rate / 8e9;
            if waiting + shape.wire as f64 > self.link.queue {
                self.counts.frames_dropped += shape.frames;
                self.counts.bytes_dropped += shape.packet;
                return;
            }
            self.free_ns = self.free_ns.max(now_ns) + (shape.wire as f64 * 8e9 / rate) as u64;
            due_ns = self.free_ns;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        self.held.push_back(Held {
            due_ns: due_ns + self.link.delay_ns,
            shape,
            bytes,
        });
    }

    /// When the next frame leaves.
    pub fn due_ns(&self) -> Option<u64> {
        self.held.front().map(|held| held.due_ns)
    }

    /// Hands the frames that are due to `send`, which says whether a frame was taken.
    pub fn release(&mut self, now_ns: u64, mut send: impl FnMut(&[u8]) -> bool) {
        while self.held.front().is_some_and(|held| held.due_ns <= now_ns) {
            let Some(Held {
                due_ns,
                shape,
                bytes,
            }) = self.held.pop_front()
            else {
                return;
            };
            if send(&bytes) {
                self.counts.frames_out += shape.frames;
                self.counts.bytes_out += shape.packet;
            } else {
                self.counts.frames_refused += shape.frames;
                self.counts.bytes_refused += shape.packet;
            }
            let late = now_ns - due_ns;
            self.counts.late_ns = self
                .counts
                .late_ns
                .saturating_add(late.saturating_mul(shape.frames));
            self.counts.latest_ns = self.counts.latest_ns.max(late);
            if self.spare.len() < SPARE {
                self.spare.push(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame of UDP with this many bytes after the header of virtio-net.
    fn frame(bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; 10 + bytes];
        frame[22..24].copy_from_slice(&[8, 0]);
        frame
    }

    fn release(line: &mut Line, now_ns: u64) -> usize {
        let mut frames = 0;
        line.release(now_ns, |_| {
            frames += 1;
            true
        });
        frames
    }

    #[test]
    fn a_frame_is_on_its_way_for_its_time_on_the_wire_and_the_delay() {
        let mut line = Line::new(Link::half(20_000_000, Some(1e9)));
        line.take(&frame(1514), 1000);
        line.take(&frame(1514), 1000);
        // 1,538 bytes of layer 1 take 12,304 ns each.
        assert_eq!(line.due_ns(), Some(1000 + 12_304 + 10_000_000));
        assert_eq!(release(&mut line, 10_013_303), 0);
        assert_eq!(release(&mut line, 10_013_304), 1);
        assert_eq!(line.due_ns(), Some(10_013_304 + 12_304));
        assert_eq!(
            (
                line.counts.frames_in,
                line.counts.frames_out,
                line.counts.latest_ns
            ),
            (2, 1, 0)
        );
    }

    #[test]
    fn the_queue_is_bounded_and_drops_are_counted() {
        let mut line = Line::new(Link {
            delay_ns: 0,
            rate: Some(8e6),
            queue: 3100.0,
        });
        (0..5).for_each(|_| line.take(&frame(1514), 0));
        assert_eq!((line.counts.frames_in, line.counts.frames_dropped), (5, 3));
        assert_eq!(release(&mut line, u64::MAX), 2);
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut line = Line::new(Link::half(0, None));
        line.take(&frame(60), 7);
        assert_eq!(line.due_ns(), Some(7));
        line.release(7, |_| false);
        assert_eq!((line.counts.frames_refused, line.counts.frames_out), (1, 0));
    }

    proptest! {
        #[test]
        fn no_frame_is_lost_without_being_counted(frames in prop::collection::vec((any::<Vec<u8>>(), 0u64..1_000_000), 0..99)) {
            let mut line = Line::new(Link { delay_ns: 5000, rate: Some(1e9), queue: 1000.0 });
            let mut now_ns = 0;
            for (bytes, pause) in frames {
                now_ns += pause;
                line.take(&bytes, now_ns);
                release(&mut line, now_ns);
            }
            release(&mut line, u64::MAX);
            let PathCounts { frames_in, frames_out, frames_dropped, bytes_in, bytes_out, bytes_dropped, .. } = line.counts;
            prop_assert_eq!(frames_in, frames_out + frames_dropped);
            prop_assert_eq!(bytes_in, bytes_out + bytes_dropped);
        }
    }
}
