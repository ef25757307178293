//! How a host's clock differs from this one's, from questions and answers over the connection.
//!
//! A question is sent at one time and answered at another; the host's time was read between the two. The answer that took the
//! shortest says most, as in NTP (Mills 1991): its middle is taken, and half of it is how wrong that can be.

/// Questions to a clock.
pub(crate) const PROBES: usize = 5;
/// A question to the clock of a host. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When it was asked, on a clock of this machine.
    pub asked_ns: u64,
    /// When the answer came, on the same clock.
    pub answered_ns: u64,
    /// The time of the host's clock, since 1970.
    pub there: Stamp,
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

/// The clock of a host against one of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// Is added to this machine's clock to give the host's.
    pub ns: i128,
    /// How wrong that can be.
    pub error_ns: u64,
}

impl Offset {
    /// The best that can be said from some probes.
    pub fn estimate(probes: &[Probe]) -> Option<Offset> {
        let offsets = probes.iter().map(|probe| {
            let round = probe.answered_ns.saturating_sub(probe.asked_ns);
            let middle = i128::from(probe.asked_ns) + i128::from(round / 2);
            Offset { ns: probe.there.ns - middle, error_ns: (round / 2).saturating_add(probe.there.error_ns) }
        });
        offsets.min_by_key(|offset| offset.error_ns)
    }

    /// When, on this machine's clock, the host's said this.
    pub fn here(&self, there: Stamp) -> i128 {
        there.ns - self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let there = |ns| Stamp { ns, error_ns: 0 };
        let slow = Probe { asked_ns: 0, answered_ns: 1000, there: there(100) };
        let quick = Probe { asked_ns: 2000, answered_ns: 2100, there: there(7050) };
        assert_eq!(Offset::estimate(&[slow, quick]), Some(Offset { ns: 5000, error_ns: 50 }));
        assert_eq!(Offset::estimate(&[]), None);
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_error(
            offset in -4_000_000_000_000i64..4_000_000_000_000,
            ways in prop::collection::vec((0u64..1 << 30, 0u64..1 << 24, 0u64..1 << 24), 1..9),
        ) {
            let probes: Vec<Probe> = ways.iter().map(|(asked_ns, way, back)| Probe {
                asked_ns: *asked_ns,
                answered_ns: asked_ns + way + back,
                there: Stamp { ns: i128::from(asked_ns + way) + i128::from(offset), error_ns: 0 },
            }).collect();
            let found = Offset::estimate(&probes).unwrap();
            prop_assert!((found.ns - i128::from(offset)).unsigned_abs() <= u128::from(found.error_ns) + 1);
        }
    }
}
