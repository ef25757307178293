//! How far another host's clock is from ours, found out by asking it for the time.
//!
//! The quickest of many answers is believed: in it, least can have gone wrong, and the error is at most half of the time that it
//! took (the argument of NTP's clock filter, RFC 5905 section 10). No assumption is made about the network but that nothing arrives
//! before it was sent.

use serde::{Deserialize, Serialize};

/// One question and its answer, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When we asked, by our clock.
    pub asked: u64,
    /// When it was heard there, by their clock.
    pub heard: u64,
    /// When it was answered there, by their clock.
    pub answered: u64,
    /// When the answer was here, by our clock.
    pub received: u64,
}

impl Probe {
    /// Time on the way, both ways; `None` for times that cannot be.
    fn round_trip(&self) -> Option<u64> {
        let here = self.received.checked_sub(self.asked)?;
        here.checked_sub(self.answered.checked_sub(self.heard)?)
    }
}

/// Their clock as seen from ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Their clock minus ours, in nanoseconds.
    pub ns: i128,
    /// The true value is not further away than this, in nanoseconds.
    pub within_ns: u64,
    /// Our clock when it was found out.
    pub at_ns: u64,
}

impl Offset {
    /// From the quickest of the answers; `None` where there is none that can be.
    pub fn of(probes: &[Probe]) -> Option<Offset> {
        let timed = probes.iter().filter_map(|probe| Some((probe.round_trip()?, probe)));
        let (round_trip, best) = timed.min_by_key(|(round_trip, _)| *round_trip)?;
        let there = i128::from(best.heard) + i128::from(best.answered);
        let here = i128::from(best.asked) + i128::from(best.received);
        Some(Offset { ns: (there - here) / 2, within_ns: round_trip.div_ceil(2), at_ns: best.received })
    }

    /// A moment of our clock on theirs.
    pub fn there(&self, ours: u64) -> u64 {
        clamp(i128::from(ours) + self.ns)
    }

    /// A moment of their clock on ours.
    pub fn here(&self, theirs: u64) -> u64 {
        clamp(i128::from(theirs) - self.ns)
    }

    /// By how much their clock gains on ours, in parts of a million, between an earlier offset and this one. As uncertain as both
    /// offsets over the time between them.
    pub fn drift_ppm(&self, earlier: &Offset) -> Option<f64> {
        let apart = self.at_ns.checked_sub(earlier.at_ns).filter(|ns| *ns > 0)?;
        Some((self.ns - earlier.ns) as f64 / apart as f64 * 1e6)
    }
}

fn clamp(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A probe of a clock that is ahead by `offset`, with these times on the way.
    fn probe(asked: u64, offset: i64, out: u64, think: u64, back: u64) -> Probe {
        let there = |t: u64| t.checked_add_signed(offset).unwrap();
        Probe {
            asked,
            heard: there(asked + out),
            answered: there(asked + out + think),
            received: asked + out + think + back,
        }
    }

    proptest! {
        #[test]
        fn the_truth_is_within_what_is_stated(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            ways in prop::collection::vec((0u64..10_000_000, 0u64..1_000_000, 0u64..10_000_000), 1..20),
        ) {
            let begin = 5_000_000_000_000;
            let probes: Vec<Probe> = ways.iter().map(|(o, t, b)| probe(begin, offset, *o, *t, *b)).collect();
            let found = Offset::of(&probes).unwrap();
            prop_assert!((found.ns - i128::from(offset)).unsigned_abs() <= u128::from(found.within_ns) + 1);
            prop_assert_eq!(found.here(found.there(begin)), begin);
        }

        #[test]
        fn no_times_make_it_panic(times in prop::collection::vec(prop::array::uniform4(any::<u64>()), 0..5)) {
            let probes: Vec<Probe> = times
                .into_iter()
                .map(|[asked, heard, answered, received]| Probe { asked, heard, answered, received })
                .collect();
            if let Some(offset) = Offset::of(&probes) {
                let _ = (offset.there(u64::MAX), offset.here(u64::MAX), offset.there(0), offset.here(0));
            }
        }
    }

    #[test]
    fn drift_is_the_change_over_time() {
        let at = |at_ns, ns| Offset { ns, within_ns: 0, at_ns };
        assert_eq!(at(2_000_000_000, 50_000).drift_ppm(&at(1_000_000_000, 0)), Some(50.0));
        assert_eq!(at(1, 0).drift_ppm(&at(1, 0)), None);
    }
}
