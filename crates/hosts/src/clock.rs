//! The offset of another host's clock from ours, found by asking it for the time.
//!
//! Each answer bounds the offset on both sides: their clock read no less when the question was heard than ours when it was asked,
//! and no more when the answer left than ours when it was here. All answers together bound it best (Marzullo's intersection, the
//! idea of RFC 5905 section 11.2.1). The only assumption about the network is that nothing arrives before it was sent.

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
    /// The least and the largest offset that it allows for; `None` for times that cannot be.
    fn bounds(&self) -> Option<[i128; 2]> {
        let ([heard, answered], error) = (self.there, i128::from(self.error_ns));
        let least = answered - i128::from(self.received) - error;
        let most = heard - i128::from(self.asked) + error;
        (least <= most && heard <= answered).then_some([least, most])
    }
}

/// A host's clock as seen from ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offset {
    /// The host's clock minus ours, in nanoseconds.
    pub ns: i128,
    /// The true value is not further away than this, in nanoseconds.
    pub within_ns: u64,
}

impl Offset {
    /// The middle of the offsets that all answers allow for; `None` without a plausible answer. A clock that is set between two
    /// answers makes them contradict each other: then everything between both is possible.
    pub fn of(probes: &[Probe]) -> Option<Offset> {
        let bounds = || probes.iter().filter_map(Probe::bounds);
        let least = bounds().map(|[least, _]| least).max()?;
        let most = bounds().map(|[_, most]| most).min()?;
        let within = least.abs_diff(most).div_ceil(2);
        Some(Offset {
            ns: (least + most) / 2,
            within_ns: u64::try_from(within).unwrap_or(u64::MAX),
        })
    }

    /// This clock as seen from another one, when both were compared with ours.
    pub fn from(&self, other: &Offset) -> Offset {
        Offset {
            ns: self.ns - other.ns,
            within_ns: self.within_ns.saturating_add(other.within_ns),
        }
    }

    /// How far from the truth this offset has been at most, in nanoseconds, until it was measured again: clocks drift, in between
    /// in one direction.
    pub fn error_until(&self, later: &Offset) -> u64 {
        let drift = u64::try_from((later.ns - self.ns).unsigned_abs()).unwrap_or(u64::MAX);
        self.within_ns.max(drift.saturating_add(later.within_ns))
    }

    /// Whether both clocks may be one.
    pub fn may_be_none(&self) -> bool {
        self.ns.unsigned_abs() <= self.within_ns.into()
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
            Ok(ns) if digits => Some(Stamp {
                ns: seconds + i128::from(ns),
                error_ns: 0,
            }),
            _ => Some(Stamp {
                ns: seconds + 500_000_000,
                error_ns: 500_000_000,
            }),
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

        /// Two clocks that drift evenly, compared with ours before and after: the offset of one from the other is never further
        /// from the first comparison than is stated.
        #[test]
        fn drift_is_within_what_is_stated(
            [a, b, c, d] in prop::array::uniform4(-4_000_000_000_000i128..4_000_000_000_000),
            errors in prop::array::uniform4((0u64..1 << 30, -100i128..=100)),
            share in 0i128..=100,
        ) {
            let compared = |truth: i128, (within_ns, at): (u64, i128)| {
                Offset { ns: truth + i128::from(within_ns) * at / 100, within_ns }
            };
            let [e, f, g, h] = errors;
            let (before, after) = (compared(a, e).from(&compared(b, f)), compared(c, g).from(&compared(d, h)));
            let truth = (a - b) + ((c - d) - (a - b)) * share / 100;
            prop_assert!((truth - before.ns).unsigned_abs() <= u128::from(before.error_until(&after)) + 1);
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
                let _ = offset.from(&Offset { ns: -offset.ns, ..offset }).error_until(&offset);
            }
        }
    }

    #[test]
    fn dates_with_and_without_fractions_are_read() {
        let whole = Stamp {
            ns: 1_700_000_000_500_000_000,
            error_ns: 500_000_000,
        };
        assert_eq!(
            Stamp::parse("1700000000.000000007"),
            Some(Stamp {
                ns: 1_700_000_000_000_000_007,
                error_ns: 0
            })
        );
        for without in [
            "1700000000.N",
            "1700000000.%N",
            "1700000000.",
            "1700000000.+00000001",
        ] {
            assert_eq!(Stamp::parse(without), Some(whole), "{without}");
        }
        for hostile in [
            "",
            "none",
            "1",
            ".5",
            "99999999999999999999.0",
            "x.000000000",
        ] {
            assert_eq!(Stamp::parse(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn answers_bound_the_offset_together() {
        let slow = Probe {
            asked: 0,
            there: [5100; 2],
            error_ns: 0,
            received: 1000,
        };
        let quick = Probe {
            asked: 2000,
            there: [7050; 2],
            error_ns: 0,
            received: 2100,
        };
        assert_eq!(
            Offset::of(&[slow, quick]),
            Some(Offset {
                ns: 5000,
                within_ns: 50
            })
        );
        // Quick questions and slow answers, and the other way about.
        let there = Probe {
            asked: 0,
            there: [5010; 2],
            error_ns: 0,
            received: 200,
        };
        let back = Probe {
            asked: 1000,
            there: [6190; 2],
            error_ns: 0,
            received: 1200,
        };
        assert_eq!(
            Offset::of(&[there, back]),
            Some(Offset {
                ns: 5000,
                within_ns: 10
            })
        );
        let moved = Probe {
            there: [9010; 2],
            ..there
        };
        assert_eq!(
            Offset::of(&[there, moved]),
            Some(Offset {
                ns: 6910,
                within_ns: 1900
            }),
            "it was set"
        );
        assert_eq!(Offset::of(&[]), None);
    }
}
