//! Times at which network cards, or their drivers, saw test frames: kept at both ends of the DUT, and compared.

use crate::clock::Offset;
use linerate_wire::SplitMix64;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Most stamps that a port keeps of a load.
const MOST: usize = 8192;

/// A stamped frame: stream, sequence number, nanoseconds of the clock that stamps.
pub type Stamp = (u16, u64, u64);

/// The stamps of a load. If there are too many, half of the sequence numbers are given up, by a hash: two ends that see the same frames
/// keep the same ones, from all of the load.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    halved: u32,
    stamps: Vec<Stamp>,
}

impl Kept {
    /// Forgets all.
    pub fn clear(&mut self) {
        (self.halved, self.stamps) = (0, Vec::new());
    }

    /// A frame was stamped.
    pub fn add(&mut self, stamp: Stamp) {
        let stays = |(_, sequence, _): &Stamp, halved| {
            SplitMix64::new(*sequence).next_u64().trailing_zeros() >= halved
        };
        if !stays(&stamp, self.halved) {
            return;
        }
        while self.stamps.len() >= MOST {
            self.halved += 1;
            let halved = self.halved;
            self.stamps
                .retain(|kept| halved <= u64::BITS && stays(kept, halved));
        }
        if stays(&stamp, self.halved) {
            self.stamps.push(stamp);
        }
    }

    pub fn stamps(&self) -> &[Stamp] {
        &self.stamps
    }
}

/// The clock that stamps, read beside CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub monotonic_ns: u64,
    pub ns: u64,
    /// The true value is not further from `ns` than this.
    pub within_ns: u64,
}

/// The stamps of a port, with the clock that they are of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamps {
    /// The number N of the card's clock /dev/ptpN; none where the driver stamps, by CLOCK_REALTIME.
    pub card: Option<u32>,
    /// Why it is not the card, where it is not.
    pub why: Option<String>,
    /// The clock before the load and after it.
    pub clock: [Reading; 2],
    /// Streams, sequence numbers and times.
    pub frames: Vec<Stamp>,
}

impl Stamps {
    /// A time of the stamping clock on CLOCK_MONOTONIC. Both clocks ran evenly between the readings: cards' crystals differ by some
    /// 1e-5, which is more in a second than the readings' error.
    fn on_monotonic(&self, ns: u64) -> i128 {
        let before = self.clock[0];
        let since = i128::from(ns) - i128::from(before.ns);
        let [ran, passed] = self.passed();
        (since.saturating_mul(passed) / ran.max(1)).saturating_add(before.monotonic_ns.into())
    }

    /// Time that passed between the readings, by the stamping clock and by CLOCK_MONOTONIC.
    fn passed(&self) -> [i128; 2] {
        let [before, after] = self.clock;
        let between = |from: u64, to: u64| i128::from(to) - i128::from(from);
        [
            between(before.ns, after.ns),
            between(before.monotonic_ns, after.monotonic_ns),
        ]
    }

    fn within_ns(&self) -> u64 {
        self.clock
            .iter()
            .map(|reading| reading.within_ns)
            .max()
            .unwrap_or(0)
    }

    /// Whether the clock was set during the load: no clock is wrong by a thousandth.
    fn was_set(&self) -> bool {
        let [ran, passed] = self.passed();
        passed <= 0 || (ran - passed).abs() > passed / 1000 + 2 * i128::from(self.within_ns())
    }
}

/// The ages in nanoseconds of frames that both ends stamped, and the most that all of them may be wrong by: 0 where one clock stamps
/// at both ends. `ahead`: the sending host's CLOCK_MONOTONIC as seen from the receiving host's; none where one machine has both.
///
/// # Errors
/// A clock was set during the load.
pub fn ages(
    sent: &Stamps,
    received: &Stamps,
    ahead: Option<Offset>,
) -> Result<(Vec<i128>, u64), String> {
    if let Some(set) = [sent, received].into_iter().find(|stamps| stamps.was_set()) {
        let name = set.card.map_or("CLOCK_REALTIME".into(), |card| {
            format!("the clock ptp{card}")
        });
        return Err(format!("{name} was set during the load"));
    }
    let mut left: HashMap<(u16, u64), u64> = HashMap::new();
    for (stream, sequence, ns) in &sent.frames {
        left.insert((*stream, *sequence), *ns);
    }
    let one_clock = ahead.is_none() && sent.card == received.card;
    let ahead = ahead.unwrap_or_default();
    let age = |(stream, sequence, ns): &Stamp| {
        // Once: a duplicate is no second frame.
        let left = left.remove(&(*stream, *sequence))?;
        Some(match one_clock {
            true => i128::from(*ns) - i128::from(left),
            false => received
                .on_monotonic(*ns)
                .saturating_sub(sent.on_monotonic(left))
                .saturating_add(ahead.ns),
        })
    };
    let ages = received.frames.iter().filter_map(age).collect();
    let error = sent
        .within_ns()
        .saturating_add(received.within_ns())
        .saturating_add(ahead.within_ns);
    Ok((ages, if one_clock { 0 } else { error }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamps(card: Option<u32>, offset: u64, ppm: u64, frames: &[Stamp]) -> Stamps {
        let clock = [1_000_000_000u64, 2_000_000_000].map(|monotonic_ns| Reading {
            monotonic_ns,
            ns: offset + monotonic_ns + monotonic_ns / 1_000_000 * ppm,
            within_ns: 200,
        });
        let by_clock = |&(stream, sequence, ns): &Stamp| {
            (stream, sequence, offset + ns + ns / 1_000_000 * ppm)
        };
        Stamps {
            card,
            clock,
            frames: frames.iter().map(by_clock).collect(),
            ..Stamps::default()
        }
    }

    /// Frames that leave 1.5 s after the boot and need 7 us.
    const LEFT: [Stamp; 3] = [
        (1, 5, 1_500_000_000),
        (1, 6, 1_600_000_000),
        (1, 9, 1_700_000_000),
    ];
    const CAME: [Stamp; 3] = [
        (1, 6, 1_600_007_000),
        (1, 5, 1_500_007_000),
        (1, 6, 1_650_000_000),
    ];

    #[test]
    fn one_clock_has_no_error() {
        let (sent, received) = (stamps(Some(0), 7, 0, &LEFT), stamps(Some(0), 7, 0, &CAME));
        assert_eq!(ages(&sent, &received, None), Ok((vec![7_000, 7_000], 0)));
    }

    #[test]
    fn clocks_that_drift_apart_are_compared_with_the_systems() {
        // Two cards, one of which counts TAI and is 20 ppm fast, the other one from 0.
        let (sent, received) = (
            stamps(Some(0), 37 << 50, 20, &LEFT),
            stamps(Some(1), 0, 0, &CAME),
        );
        assert_eq!(ages(&sent, &received, None), Ok((vec![7_000, 7_000], 400)));
        // On another machine, card 0 is another one.
        let (sent, received) = (stamps(None, 5, 0, &LEFT), stamps(None, 9, 30, &CAME));
        let ahead = Some(Offset {
            ns: 3_000,
            within_ns: 50_000,
        });
        let (found, error) = ages(&sent, &received, ahead).unwrap();
        assert!(
            found.len() == 2 && found.iter().all(|age| age.abs_diff(10_000) <= 1),
            "{found:?}"
        );
        assert_eq!(error, 50_400);
    }

    #[test]
    fn a_clock_that_was_set_gives_no_ages() {
        let sent = stamps(Some(0), 0, 0, &LEFT);
        let mut set = stamps(Some(3), 0, 0, &CAME);
        set.clock[1].ns += 2_000_000;
        assert_eq!(
            ages(&sent, &set, None),
            Err("the clock ptp3 was set during the load".into())
        );
    }

    #[test]
    fn both_ends_keep_the_same_frames_of_all_the_load() {
        let (mut sent, mut received) = (Kept::default(), Kept::default());
        for sequence in 0..100_000 {
            sent.add((1, sequence, 0));
            // A tenth is lost.
            if sequence % 10 > 0 {
                received.add((1, sequence, 0));
            }
        }
        let (sent, received) = (sent.stamps(), received.stamps());
        assert!(
            (MOST / 4..=MOST).contains(&sent.len()) && received.len() <= MOST,
            "{}",
            sent.len()
        );
        let fewer = sent.iter().filter(|frame| received.contains(frame)).count();
        assert!(fewer * 10 >= sent.len().min(received.len()) * 8, "{fewer}");
        let late = sent
            .iter()
            .filter(|(_, sequence, _)| *sequence >= 50_000)
            .count();
        assert!(
            late.abs_diff(sent.len() / 2) < sent.len() / 10,
            "{late} of {}",
            sent.len()
        );
    }

    #[test]
    fn one_frame_again_and_again_is_bounded() {
        let mut kept = Kept::default();
        (0..20 * MOST as u64).for_each(|_| kept.add((1, 3, 0)));
        assert!(kept.stamps().len() <= MOST);
    }

    proptest! {
        #[test]
        fn no_stamps_make_it_panic(
            times in prop::collection::vec(any::<(u16, u64, u64)>(), 0..5),
            readings in any::<[[u64; 3]; 2]>(),
        ) {
            let clock = readings.map(|[monotonic_ns, ns, within_ns]| Reading { monotonic_ns, ns, within_ns });
            let hostile = Stamps { clock, frames: times.clone(), ..Stamps::default() };
            let ahead = Offset { ns: i64::MIN.into(), within_ns: u64::MAX };
            let _ = ages(&hostile, &stamps(Some(1), 0, 0, &times), Some(ahead));
        }
    }
}
