//! Counters of several hosts, put onto one line of time.
//!
//! Each port reports its counts at moments of its own clock. Moved to one clock, they never fall together exactly: between two
//! reports, a count is taken to grow evenly.

use super::message::Sample as Said;
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::collector::Counters;
use linerate_measure::counters::PortCounters;
use linerate_measure::record::Direction;
use linerate_measure::trial::{Sample, Timing};
use std::collections::BTreeMap;

/// A load of more than a day is not believed.
const MOST_SECONDS: usize = 86_400;

/// Counts of one port, at moments of one clock common to all: (nanoseconds, frames), ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series(Vec<(u64, u64)>);

impl Series {
    /// From reports in the order that they came, without those that go backward. `here` moves a moment to the common clock.
    pub fn of<'a>(said: impl IntoIterator<Item = &'a Said>, here: impl Fn(u64) -> u64) -> Series {
        Series::new(
            said.into_iter()
                .map(|sample| (here(sample.at_ns), sample.frames)),
        )
    }

    /// From counts at moments of the common clock, without those that go backward.
    pub fn new(counts: impl IntoIterator<Item = (u64, u64)>) -> Series {
        let mut points: Vec<(u64, u64)> = Vec::new();
        for point in counts {
            if points
                .last()
                .is_none_or(|last| last.0 < point.0 && last.1 <= point.1)
            {
                points.push(point);
            }
        }
        Series(points)
    }

    /// Frames at an even rate, from one moment to another, by the second.
    pub fn even(from_ns: u64, to_ns: u64, frames: u64) -> Series {
        let length = u128::from(to_ns.saturating_sub(from_ns)).max(1);
        let until = |ns: u64| (u128::from(frames) * u128::from(ns - from_ns) / length) as u64;
        let seconds = (from_ns..to_ns).step_by(1_000_000_000).take(MOST_SECONDS);
        Series::new(seconds.map(|ns| (ns, until(ns))).chain([(to_ns, frames)]))
    }

    /// The counts at the same moments, scaled to this number of frames in all.
    pub fn scaled(&self, to: u64) -> Series {
        let of = u128::from(self.0.last().map_or(0, |p| p.1)).max(1);
        let scale = |n: u64| (u128::from(n) * u128::from(to) / of) as u64;
        Series(self.0.iter().map(|(t, n)| (*t, scale(*n))).collect())
    }

    /// Beginning and end of the first interval that ends after `ns` and has frames.
    pub fn first_frames(&self, ns: u64) -> Option<(u64, u64)> {
        let flows = |pair: &&[(u64, u64)]| pair[1].0 > ns && pair[1].1 > pair[0].1;
        self.0
            .windows(2)
            .find(flows)
            .map(|pair| (pair[0].0, pair[1].0))
    }

    /// The last moment.
    pub fn end(&self) -> Option<u64> {
        self.0.last().map(|p| p.0)
    }

    /// The count at a moment; before the first and after the last report, that of the nearest one.
    fn at(&self, ns: u64) -> u64 {
        let after = self.0.partition_point(|(t, _)| *t <= ns);
        let (Some(b), Some(a)) = (
            self.0.get(after),
            after.checked_sub(1).and_then(|n| self.0.get(n)),
        ) else {
            return self
                .0
                .get(after.saturating_sub(1))
                .map_or(0, |(_, frames)| *frames);
        };
        let grown = u128::from(b.1 - a.1) * u128::from(ns - a.0) / u128::from(b.0 - a.0);
        a.1 + grown as u64
    }
}

/// The part of a load that counts, in nanoseconds of the common clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// When the load began.
    pub began: u64,
    pub from: u64,
    pub to: u64,
}

impl Window {
    /// The window of a load that began then.
    pub fn new(began: u64, timing: &Timing) -> Window {
        let from = began.saturating_add(timing.warm_up_ns);
        let to = from.saturating_add(timing.run_ns);
        Window { began, from, to }
    }

    /// Samples of the window, with times since the load began: at both its ends and wherever the first sender reported in between. None if it has no
    /// duration.
    pub fn samples(&self, senders: &[Series], receivers: &[Series]) -> Vec<Sample> {
        if self.to <= self.from {
            return Vec::new();
        }
        let first = senders.iter().take(1).flat_map(|series| &series.0);
        let inner = first
            .map(|(t, _)| *t)
            .filter(|t| (self.from + 1..self.to).contains(t));
        let sum = |all: &[Series], t: u64| all.iter().map(|series| series.at(t)).sum();
        let sample = |t: u64| Sample {
            t_ns: t.saturating_sub(self.began),
            sent: sum(senders, t),
            received: sum(receivers, t),
        };
        let moments = [self.from].into_iter().chain(inner).chain([self.to]);
        moments.map(sample).collect()
    }

    /// Samples of the load before the window.
    pub fn warm_up(&self, senders: &[Series], receivers: &[Series]) -> Vec<Sample> {
        let before = Window {
            from: self.began,
            to: self.from,
            ..*self
        };
        let mut samples = before.samples(senders, receivers);
        samples.pop();
        samples
    }
}

/// A device's counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// By interface: see [`crate::systems::Facts::counters`].
    pub links: BTreeMap<String, Counters>,
    /// Everything else that the host counts: see [`crate::counters`].
    pub counters: Counters,
}

/// Frames of its own (ARP, neighbour discovery, LLDP) that a device may send while its counters are read and the receiver does not
/// count yet.
const OWN_FRAMES: u64 = 10;

/// Places where frames get lost, without the inside of the DUT, in the order of their way.
const PLACES: [&str; 5] = [
    "between generator and DUT",
    "DUT in: receive ring full",
    "DUT in: queue of received packets full",
    "DUT out: transmit queue full",
    "between DUT and receiver",
];
const REVERSE_PLACES: [&str; 5] = [
    "between outside generator and DUT",
    "DUT out: receive ring full",
    "DUT out: queue of received packets full",
    "DUT in: transmit queue full",
    "between DUT and inside receiver",
];

/// Locates the missing ones of the frames of a direction. `inside`, `outside`: the device's interfaces.
pub fn losses(
    direction: Direction,
    [sent, received]: [&PortCounters; 2],
    before: &Seen,
    after: &Seen,
    [inside, outside]: [&str; 2],
) -> Vec<Loss> {
    let grown = |link: &str, counter: &str| {
        let value = |seen: &Seen| {
            seen.links
                .get(link)
                .and_then(|c| c.get(counter))
                .copied()
                .unwrap_or(0)
        };
        value(after).saturating_sub(value(before))
    };
    let ([before_it, ring, software, queue, behind_it], [enters, leaves]) = match direction {
        Direction::Reverse => (REVERSE_PLACES, [outside, inside]),
        _ => (PLACES, [inside, outside]),
    };
    let (entered, ring_full) = (grown(enters, "rx_packets"), grown(enters, "rx_missed"));
    // OpenBSD's, and among those that entered.
    let dropped = grown(enters, "rx_dropped");
    let (mut left, refused) = (grown(leaves, "tx_packets"), grown(leaves, "tx_dropped"));
    let (sent, unique) = (sent.frames, received.unique());
    let mut open = sent.saturating_sub(unique);
    // Where it lost frames, a few that left beside those that arrived are its own, and no loss behind it.
    let beside = left.saturating_sub(unique);
    if beside < open && beside <= received.foreign_total() + OWN_FRAMES {
        left = unique;
    }
    let mut found = Vec::new();
    let mut locate = |place: &str, frames: u64, side: Side, cause: Cause| {
        let frames = frames.min(open);
        if frames > 0 {
            open -= frames;
            found.push(Loss {
                place: place.into(),
                frames,
                side,
                cause,
            });
        }
    };
    locate(ring, ring_full, Side::Dut, Cause::QueueFull);
    locate(
        before_it,
        sent.saturating_sub(entered + ring_full),
        Side::Tester,
        Cause::Dropped,
    );
    locate(software, dropped, Side::Dut, Cause::QueueFull);
    locate(
        "inside the DUT",
        entered.saturating_sub(dropped + left + refused),
        Side::Dut,
        Cause::Unexplained,
    );
    locate(queue, refused, Side::Dut, Cause::QueueFull);
    locate(
        behind_it,
        left.saturating_sub(unique),
        Side::Tester,
        Cause::Dropped,
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(points: &[(u64, u64)]) -> Series {
        let said: Vec<Said> = points
            .iter()
            .map(|(at_ns, frames)| Said {
                port: "x".into(),
                at_ns: *at_ns,
                frames: *frames,
                closed: 0,
            })
            .collect();
        Series::of(&said, |t| t)
    }

    #[test]
    fn counts_grow_evenly_between_reports() {
        let sender = series(&[(100, 0), (200, 1000), (300, 2000), (400, 3000)]);
        let receiver = series(&[(150, 400), (350, 2400)]);
        let both = [sender.clone(), sender];
        let window = |began, from, to| Window { began, from, to };
        let received = std::slice::from_ref(&receiver);
        let samples = window(100, 150, 350).samples(&both, received);
        let expected = [
            (50, 1000, 400),
            (100, 2000, 900),
            (200, 4000, 1900),
            (250, 5000, 2400),
        ];
        let seen = |all: &[Sample]| {
            all.iter()
                .map(|s| (s.t_ns, s.sent, s.received))
                .collect::<Vec<_>>()
        };
        assert_eq!(seen(&samples), expected);
        let before = window(100, 250, 350).warm_up(&both, received);
        assert_eq!(seen(&before), [(0, 0, 400), (100, 2000, 900)]);
        assert_eq!(window(100, 100, 350).warm_up(&both, received), []);
    }

    #[test]
    fn what_runs_backwards_is_left_out() {
        assert_eq!(
            series(&[(1, 5), (1, 6), (2, 4), (3, 7)]),
            Series(vec![(1, 5), (3, 7)])
        );
        let window = Window {
            began: 0,
            from: 1,
            to: 2,
        };
        assert_eq!(window.samples(&[], &[series(&[])])[0].received, 0);
    }

    #[test]
    fn a_part_of_what_was_sent() {
        let s = 1_000_000_000;
        let sent = Series::even(s, 5 * s, 400);
        assert_eq!(
            sent.0,
            [
                (s, 0),
                (2 * s, 100),
                (3 * s, 200),
                (4 * s, 300),
                (5 * s, 400)
            ]
        );
        assert_eq!(
            sent.scaled(100).0,
            [(s, 0), (2 * s, 25), (3 * s, 50), (4 * s, 75), (5 * s, 100)]
        );
        assert_eq!(Series::even(s, s, 7).0, [(s, 7)]);
        assert_eq!(Series::default().scaled(9), Series::default());
    }

    proptest! {
        #[test]
        fn counts_never_fall(
            sent in prop::collection::vec((0u64..1000, 0u64..u64::MAX / 4), 0..20),
            window in (0u64..1000, 0u64..1000),
        ) {
            let (from, to) = (window.0.min(window.1), window.0.max(window.1) + 1);
            let sender = series(&sent);
            let both = [sender];
            let samples = Window { began: 0, from, to }.samples(&both, &both);
            prop_assert!(samples.windows(2).all(|w| w[0].sent <= w[1].sent && w[0].t_ns <= w[1].t_ns));
        }
    }

    fn frames(frames: u64) -> PortCounters {
        PortCounters {
            frames,
            ..PortCounters::default()
        }
    }

    fn seen(inside: &[(&str, u64)], outside: &[(&str, u64)]) -> Seen {
        let counters =
            |all: &[(&str, u64)]| all.iter().map(|(name, n)| (name.to_string(), *n)).collect();
        let links = [
            ("in".to_string(), counters(inside)),
            ("out".to_string(), counters(outside)),
        ]
        .into();
        Seen {
            links,
            ..Seen::default()
        }
    }

    fn places(losses: &[Loss]) -> Vec<(&str, u64)> {
        losses
            .iter()
            .map(|l| (l.place.as_str(), l.frames))
            .collect()
    }

    #[test]
    fn each_place_is_found() {
        let before = seen(&[("rx_packets", 5)], &[("tx_packets", 7)]);
        let after = seen(
            &[("rx_packets", 905), ("rx_missed", 60)],
            &[("tx_packets", 807), ("tx_dropped", 10)],
        );
        let found = losses(
            Direction::Forward,
            [&frames(1000), &frames(780)],
            &before,
            &after,
            ["in", "out"],
        );
        let expected = [
            ("DUT in: receive ring full", 60),
            ("between generator and DUT", 40),
            ("inside the DUT", 90),
            ("DUT out: transmit queue full", 10),
            ("between DUT and receiver", 20),
        ];
        assert_eq!(places(&found), expected);
        assert_eq!(found.iter().map(|l| l.frames).sum::<u64>(), 220);
    }

    #[test]
    fn each_direction_has_its_own_places() {
        let inside = [
            ("rx_packets", 1000),
            ("tx_packets", 780),
            ("tx_dropped", 10),
        ];
        let outside = [("rx_packets", 900), ("rx_missed", 60), ("tx_packets", 1000)];
        let after = seen(&inside, &outside);
        let of = |direction, unique| {
            losses(
                direction,
                [&frames(1000), &frames(unique)],
                &Seen::default(),
                &after,
                ["in", "out"],
            )
        };
        assert_eq!(of(Direction::Forward, 1000), []);
        let expected = [
            ("DUT out: receive ring full", 60),
            ("between outside generator and DUT", 40),
            ("inside the DUT", 110),
            ("DUT in: transmit queue full", 10),
            ("between DUT and inside receiver", 20),
        ];
        assert_eq!(places(&of(Direction::Reverse, 760)), expected);
    }

    #[test]
    fn others_frames_do_not_make_up_losses() {
        let after = seen(&[("rx_packets", 1003)], &[("tx_packets", 1009)]);
        let none = Seen::default();
        let of = |unique, after| {
            losses(
                Direction::Forward,
                [&frames(1000), &frames(unique)],
                &none,
                after,
                ["in", "out"],
            )
        };
        assert_eq!(of(1000, &after), []);
        assert_eq!(of(990, &none).len(), 1);
        // Of 20 that are missing, it dropped all, and sent 9 of its own, or the receiver saw how many.
        let after = seen(&[("rx_packets", 1000)], &[("tx_packets", 989)]);
        assert_eq!(places(&of(980, &after)), [("inside the DUT", 20)]);
        let more = seen(&[("rx_packets", 1000)], &[("tx_packets", 992)]);
        assert_eq!(
            places(&of(980, &more)),
            [("inside the DUT", 8), ("between DUT and receiver", 12)]
        );
        let told = PortCounters {
            foreign: [("ARP".into(), 2)].into(),
            ..frames(980)
        };
        let found = losses(
            Direction::Forward,
            [&frames(1000), &told],
            &none,
            &more,
            ["in", "out"],
        );
        assert_eq!(places(&found), [("inside the DUT", 20)]);
        // One that dropped none has lost none.
        let none_inside = seen(&[("rx_packets", 1000)], &[("tx_packets", 1000)]);
        assert_eq!(
            places(&of(995, &none_inside)),
            [("between DUT and receiver", 5)]
        );
    }

    proptest! {
        #[test]
        fn no_more_is_located_than_is_missing(counters in prop::array::uniform4(0u64..2000), sent in 0u64..1500, unique in 0u64..1500) {
            let [rx, missed, tx, dropped] = counters;
            let after = seen(&[("rx_packets", rx), ("rx_missed", missed)], &[("tx_packets", tx), ("tx_dropped", dropped)]);
            let found = losses(Direction::Forward, [&frames(sent), &frames(unique)], &Seen::default(), &after, ["in", "out"]);
            prop_assert!(found.iter().map(|l| l.frames).sum::<u64>() <= sent.saturating_sub(unique));
        }
    }
}
