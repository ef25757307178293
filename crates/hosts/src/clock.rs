//! The offset of another host's clock from ours, found by asking it for the time.
//!
//! The quickest of many answers is believed: its error is the smallest, at most half of the time that it took (the argument of
//! NTP's clock filter, RFC 5905 section 10). The only assumption about the network is that nothing arrives before it was sent.

/// One question and its answer, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When we asked, by our clock.
    pub asked: u64,
    /// When it was heard and when it was answered there, by their clock.
    pub there: [i128; 2],
    /// How far from the truth their clock may have been read.
    pub error_ns: u64,
    /// When the answer was here, by our clock.
    pub received: u64,
}

impl Probe {
    /// Time on the way, both ways; `None` for times that cannot be.
    fn round_trip(&self) -> Option<u64> {
        let [heard, answered] = self.there;
        let here = self.received.checked_sub(self.asked)?;
        here.checked_sub(u64::try_from(answered.checked_sub(heard)?).ok()?)
    }
}

/// Their clock as seen from ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offset {
    /// Their clock minus ours, in nanoseconds.
    pub ns: i128,
    /// The true value is not further away than this, in nanoseconds.
    pub within_ns: u64,
}

impl Offset {
    /// From the answer with the smallest error; `None` without a plausible answer.
    pub fn of(probes: &[Probe]) -> Option<Offset> {
        let offset = |probe: &Probe| {
            let within_ns = probe.round_trip()?.div_ceil(2).saturating_add(probe.error_ns);
            let here = i128::from(probe.asked) + i128::from(probe.received);
            Some(Offset { ns: (probe.there[0] + probe.there[1] - here) / 2, within_ns })
        };
        probes.iter().filter_map(offset).min_by_key(|offset| offset.within_ns)
    }

    /// A moment of our clock on theirs.
    pub fn there(&self, ours: u64) -> u64 {
        clamp(i128::from(ours) + self.ns)
    }

    /// A moment of their clock on ours.
    pub fn here(&self, theirs: i128) -> u64 {
        clamp(theirs - self.ns)
    }
}

fn clamp(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

/// A time as a host's `date` writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds since 1970; the middle of the second where the host knows no fractions.
    pub ns: i128,
    /// How far from it the time may have been.
    pub error_ns: u64,
}

impl Stamp {
    /// Reads `SECONDS.FRACTION`. A `date` that does not know %N writes no digits there.
    pub fn parse(text: &str) -> Option<Stamp> {
        let (seconds, fraction) = text.trim().split_once('.')?;
        let seconds = i128::from(seconds.parse::<i64>().ok()?) * 1_000_000_000;
        let digits = fraction.len() == 9 && fraction.bytes().all(|b| b.is_ascii_digit());
        match fraction.parse::<u32>() {
            Ok(ns) if digits => Some(Stamp { ns: seconds + i128::from(ns), error_ns: 0 }),
            _ => Some(Stamp { ns: seconds + 500_000_000, error_ns: 500_000_000 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_truth_is_within_what_is_stated(
            offset in -4_000_000_000_000i128..4_000_000_000_000,
            ways in prop::collection::vec((0u64..1 << 30, 0u64..1 << 24, 0u64..1_000_000, 0u64..1 << 24), 1..20),
        ) {
            let there = |t: u64| i128::from(t) + offset;
            let probe = |(asked, out, think, back): &(u64, u64, u64, u64)| Probe {
                asked: *asked,
                there: [there(asked + out), there(asked + out + think)],
                error_ns: 0,
                received: asked + out + think + back,
            };
            let found = Offset::of(&ways.iter().map(probe).collect::<Vec<_>>()).unwrap();
            prop_assert!((found.ns - offset).unsigned_abs() <= u128::from(found.within_ns) + 1);
            let begin = 5_000_000_000_000;
            prop_assert_eq!(found.here(found.there(begin).into()), begin);
        }

        #[test]
        fn no_times_make_it_panic(
            times in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..5),
        ) {
            let probe = |(asked, heard, answered, received): (u64, u64, u64, u64)| {
                Probe { asked, there: [heard.into(), answered.into()], error_ns: received, received }
            };
            if let Some(offset) = Offset::of(&times.into_iter().map(probe).collect::<Vec<_>>()) {
                let _ = (offset.there(u64::MAX), offset.here(i128::from(u64::MAX)), offset.there(0), offset.here(0));
            }
        }
    }

    #[test]
    fn dates_with_and_without_fractions_are_read() {
        let whole = Stamp { ns: 1_700_000_000_500_000_000, error_ns: 500_000_000 };
        assert_eq!(
            Stamp::parse("1700000000.000000007"),
            Some(Stamp { ns: 1_700_000_000_000_000_007, error_ns: 0 })
        );
        for without in ["1700000000.N", "1700000000.%N", "1700000000.", "1700000000.+00000001"] {
            assert_eq!(Stamp::parse(without), Some(whole), "{without}");
        }
        for hostile in ["", "none", "1", ".5", "99999999999999999999.0", "x.000000000"] {
            assert_eq!(Stamp::parse(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn the_quickest_answer_counts() {
        let slow = Probe { asked: 0, there: [100; 2], error_ns: 0, received: 1000 };
        let quick = Probe { asked: 2000, there: [7050; 2], error_ns: 0, received: 2100 };
        assert_eq!(Offset::of(&[slow, quick]), Some(Offset { ns: 5000, within_ns: 50 }));
        assert_eq!(Offset::of(&[]), None);
    }
}
