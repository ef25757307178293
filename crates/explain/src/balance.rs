//! How evenly frames are spread over receive queues, or over the CPUs of receive packet steering (RPS).

use crate::case::Case;
use linerate_hosts::watch::queues::Layout;
use linerate_measure::record::{Balance, Place};
use linerate_measure::watch::Interface;
use linerate_stats::median;
use std::collections::{BTreeMap, BTreeSet};

/// The shares of each place in the frames of a trial; empty where all frames come to one place.
pub fn balance(case: &Case<'_>) -> Vec<Balance> {
    let Ok(card) = case.inside() else {
        return Vec::new();
    };
    let trials = |kind| {
        let counted = case
            .trials
            .iter()
            .map(|trial| frames_by_place(&trial.dut, kind));
        counted.filter(|counted| !counted.is_empty()).collect()
    };
    let steered: BTreeSet<u32> = card
        .receive
        .values()
        .flat_map(|queue| queue.rps.iter().copied())
        .collect();
    match card.receive_queues() {
        _ if !steered.is_empty() => shares(Place::Cpu, steered, trials(Place::Cpu)),
        Some(queues @ 2..) => shares(Place::Queue, (0..queues).collect(), trials(Place::Queue)),
        _ => Vec::new(),
    }
}

/// The CPU that frames entered the network stack on: with RPS, the one that they were steered to.
fn entered(name: &str) -> Option<u32> {
    name.strip_prefix("CPU")?
        .strip_suffix(": softnet processed")?
        .parse()
        .ok()
}

/// `places`: those without a frame have no counter that grew.
fn shares(
    place: Place,
    mut places: BTreeSet<u32>,
    trials: Vec<BTreeMap<u32, u64>>,
) -> Vec<Balance> {
    if trials.is_empty() {
        return Vec::new();
    }
    places.extend(trials.iter().flat_map(BTreeMap::keys));
    let of_place = |number: u32| {
        let share = |trial: &BTreeMap<u32, u64>| {
            trial.get(&number).copied().unwrap_or(0) as f64
                / trial.values().sum::<u64>().max(1) as f64
        };
        let shares: Vec<f64> = trials.iter().map(share).collect();
        let (least, greatest) = shares
            .iter()
            .fold((1.0, 0.0), |(l, g): (f64, f64), s| (l.min(*s), g.max(*s)));
        Balance {
            place,
            number,
            shares: [least, median(&shares).unwrap_or(0.0), greatest],
        }
    };
    places.into_iter().map(of_place).collect()
}

/// The frames of a trial by its DUT's counters: by place of a kind.
pub fn frames_by_place(counters: &BTreeMap<String, u64>, kind: Place) -> BTreeMap<u32, u64> {
    let named = counters.iter().map(|(name, n)| (name.as_str(), *n));
    match kind {
        Place::Queue => by_queue(named),
        Place::Cpu => by_cpu(named),
    }
}

/// Frames by receive queue of the inside interface: `in: rx_queue_3_packets`, `in: dev.ix.0.queue3.rx_packets`. A queue without a
/// frame may have no counter.
pub(crate) fn by_queue<'a>(
    counters: impl IntoIterator<Item = (&'a str, u64)>,
) -> BTreeMap<u32, u64> {
    let of_driver = |name: &'a str| {
        let name = name.strip_prefix("in: ")?;
        // FreeBSD: the driver and its unit.
        Some(
            name.strip_prefix("dev.")
                .and_then(|name| name.splitn(3, '.').nth(2))
                .unwrap_or(name),
        )
    };
    let (names, values): (Vec<&str>, Vec<u64>) = counters
        .into_iter()
        .filter_map(|(name, n)| Some((of_driver(name)?, n)))
        .unzip();
    let mut interface = Interface::default();
    Layout::of(&names).fill(&names, &values, &mut interface);
    let received = (0..)
        .zip(&interface.queues)
        .filter_map(|(n, queue)| Some((n, queue.rx?.packets)));
    received.filter(|(_, frames)| *frames > 0).collect()
}

fn by_cpu<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> BTreeMap<u32, u64> {
    counters
        .into_iter()
        .filter_map(|(name, n)| Some((entered(name)?, n)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_several_drivers() {
        let names = [
            "in: rx_queue_3_xdp_packets",
            "in: rx3_packets",
            "in: dev.ix.0.queue3.rx_packets",
            "in: rx-3.packets",
            "in: queue_3_rx_cnt",
            "in: [3]: rx_ucast_packets",
            "in: Rx Queue 3: ucast pkts rx",
        ];
        for name in names {
            assert_eq!(by_queue([(name, 7)]), [(3, 7)].into(), "{name}");
        }
        for other in [
            "in: rx_packets",
            "out: rx_queue_3_packets",
            "in: tx_queue_1_packets",
            "in: rx_queue_0_drops",
            "Ip.InReceives",
        ] {
            assert_eq!(by_queue([(other, 7)]), [].into(), "{other}");
        }
    }
    #[test]
    fn places_without_a_frame_have_a_share_of_nothing() {
        let trials = [[(0, 10), (1, 90)], [(0, 30), (1, 70)]].map(BTreeMap::from);
        let found = shares(Place::Queue, (0..3).collect(), trials.to_vec());
        let shown: Vec<_> = found
            .iter()
            .map(|place| (place.number, place.shares))
            .collect();
        assert_eq!(
            shown,
            [(0, [0.1, 0.2, 0.3]), (1, [0.7, 0.8, 0.9]), (2, [0.0; 3])]
        );
        assert!(shares(Place::Queue, (0..3).collect(), Vec::new()).is_empty());
        assert_eq!(
            [
                entered("CPU7: softnet processed"),
                entered("CPU7: softnet dropped")
            ],
            [Some(7), None]
        );
    }
}
