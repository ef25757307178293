//! Locates lost frames of a trial over several hosts, by the counters of the device under test before and after it.
//!
//! Cards count every frame that passes, also those of other protocols (ARP, LLDP), and few count alike. So losses are located as
//! far as the counters explain them, never more than the missing frames, and the rest remains open.

use linerate_measure::audit::{Cause, Loss, Side};
use std::collections::BTreeMap;

/// A device's counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// By interface: frames that came in (`rx_packets`), found no room in the receive ring (`rx_missed`), went out (`tx_packets`), were to go
    /// out and did not (`tx_dropped`).
    pub links: BTreeMap<String, BTreeMap<String, u64>>,
    /// Packets that the host dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// Locates the missing ones of `sent` frames when `unique` arrived. `inside`, `outside`: the device's interfaces.
pub fn losses(
    sent: u64,
    unique: u64,
    before: &Seen,
    after: &Seen,
    [inside, outside]: [&str; 2],
) -> Vec<Loss> {
    let grown = |link: &str, counter: &str| {
        let value = |seen: &Seen| seen.links.get(link).and_then(|c| c.get(counter)).copied().unwrap_or(0);
        value(after).saturating_sub(value(before))
    };
    let (entered, ring_full) = (grown(inside, "rx_packets"), grown(inside, "rx_missed"));
    let (left, refused) = (grown(outside, "tx_packets"), grown(outside, "tx_dropped"));
    let mut open = sent.saturating_sub(unique);
    let mut found = Vec::new();
    let mut locate = |place: &str, frames: u64, side: Side, cause: Cause| {
        let frames = frames.min(open);
        if frames > 0 {
            open -= frames;
            found.push(Loss { place: place.into(), frames, side, cause });
        }
    };
    locate("DUT in: receive ring full", ring_full, Side::Dut, Cause::QueueFull);
    locate(
        "between generator and DUT",
        sent.saturating_sub(entered + ring_full),
        Side::Tester,
        Cause::Dropped,
    );
    locate("inside the DUT", entered.saturating_sub(left + refused), Side::Dut, Cause::Unexplained);
    locate("DUT out: transmit queue full", refused, Side::Dut, Cause::QueueFull);
    locate("between DUT and receiver", left.saturating_sub(unique), Side::Tester, Cause::Dropped);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(inside: &[(&str, u64)], outside: &[(&str, u64)]) -> Seen {
        let counters = |all: &[(&str, u64)]| all.iter().map(|(name, n)| (name.to_string(), *n)).collect();
        let links = [("in".to_string(), counters(inside)), ("out".to_string(), counters(outside))].into();
        Seen { links, ..Seen::default() }
    }

    fn places(losses: &[Loss]) -> Vec<(&str, u64)> {
        losses.iter().map(|l| (l.place.as_str(), l.frames)).collect()
    }

    #[test]
    fn each_place_is_found() {
        let before = seen(&[("rx_packets", 5)], &[("tx_packets", 7)]);
        let after =
            seen(&[("rx_packets", 905), ("rx_missed", 60)], &[("tx_packets", 807), ("tx_dropped", 10)]);
        let found = losses(1000, 780, &before, &after, ["in", "out"]);
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
    fn others_frames_do_not_make_up_losses() {
        let after = seen(&[("rx_packets", 1003)], &[("tx_packets", 1009)]);
        assert_eq!(losses(1000, 1000, &Seen::default(), &after, ["in", "out"]), []);
        assert_eq!(losses(1000, 990, &Seen::default(), &Seen::default(), ["in", "out"]).len(), 1);
    }

    proptest! {
        #[test]
        fn no_more_is_located_than_is_missing(counters in prop::array::uniform4(0u64..2000), sent in 0u64..1500, unique in 0u64..1500) {
            let [rx, missed, tx, dropped] = counters;
            let after = seen(&[("rx_packets", rx), ("rx_missed", missed)], &[("tx_packets", tx), ("tx_dropped", dropped)]);
            let found = losses(sent, unique, &Seen::default(), &after, ["in", "out"]);
            prop_assert!(found.iter().map(|l| l.frames).sum::<u64>() <= sent.saturating_sub(unique));
        }
    }
}
