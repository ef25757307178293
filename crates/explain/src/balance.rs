//! How evenly frames are spread over receive queues, or over the CPUs of receive packet steering (RPS).

use crate::case::Case;
use linerate_measure::record::{Balance, Place};
use linerate_stats::median;
use std::collections::{BTreeMap, BTreeSet};

/// The shares of each place in the frames of a trial; empty where all frames come to one place.
pub fn balance(case: &Case<'_>) -> Vec<Balance> {
    let Ok(card) = case.inside() else { return Vec::new() };
    let trials = |kind| {
        let counted = case.trials.iter().map(|trial| frames_by_place(&trial.dut, kind));
        counted.filter(|counted| !counted.is_empty()).collect()
    };
    let steered: BTreeSet<u32> = card.receive.values().flat_map(|queue| queue.rps.iter().copied()).collect();
    match card.receive_queues() {
        _ if !steered.is_empty() => shares(Place::Cpu, steered, trials(Place::Cpu)),
        Some(queues @ 2..) => shares(Place::Queue, (0..queues).collect(), trials(Place::Queue)),
        _ => Vec::new(),
    }
}

/// The CPU that frames entered the network stack on: with RPS, the one that they were steered to.
fn entered(name: &str) -> Option<u32> {
    name.strip_prefix("CPU")?.strip_suffix(": softnet processed")?.parse().ok()
}

/// `places`: those without a frame have no counter that grew.
fn shares(place: Place, mut places: BTreeSet<u32>, trials: Vec<BTreeMap<u32, u64>>) -> Vec<Balance> {
    if trials.is_empty() {
        return Vec::new();
    }
    places.extend(trials.iter().flat_map(BTreeMap::keys));
    let of_place = |number: u32| {
        let share = |trial: &BTreeMap<u32, u64>| {
            trial.get(&number).copied().unwrap_or(0) as f64 / trial.values().sum::<u64>().max(1) as f64
        };
        let shares: Vec<f64> = trials.iter().map(share).collect();
        let (least, greatest) =
            shares.iter().fold((1.0, 0.0), |(l, g): (f64, f64), s| (l.min(*s), g.max(*s)));
        Balance { place, number, shares: [least, median(&shares).unwrap_or(0.0), greatest] }
    };
    places.into_iter().map(of_place).collect()
}

/// The frames of a trial by its DUT's counters: by place of a kind.
pub fn frames_by_place(counters: &BTreeMap<String, u64>, kind: Place) -> BTreeMap<u32, u64> {
    let of = match kind {
        Place::Queue => received_queue,
        Place::Cpu => entered,
    };
    by_place(counters.iter().map(|(name, n)| (name.as_str(), *n)), of)
}

/// Frames by receive queue.
pub(crate) fn by_queue<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> BTreeMap<u32, u64> {
    by_place(counters, received_queue)
}

fn by_place<'a>(
    counters: impl IntoIterator<Item = (&'a str, u64)>,
    of: impl Fn(&str) -> Option<u32>,
) -> BTreeMap<u32, u64> {
    let mut all = BTreeMap::new();
    for (number, frames) in counters.into_iter().filter_map(|(name, n)| Some((of(name)?, n))) {
        *all.entry(number).or_default() += frames;
    }
    all
}

/// The number of a receive queue in the name of a counter of its frames: `in: rx_queue_3_xdp_packets`, `in: rx3_packets`,
/// `dev.ix.0.queue3.rx_packets`.
fn received_queue(name: &str) -> Option<u32> {
    let name = name.strip_prefix("in: ")?;
    let ours = name.contains("rx")
        && (name.ends_with("packets") || name.ends_with("pkts") || name.ends_with("_cnt"));
    let of_queue = name.rsplit_once("queue").or_else(|| name.rsplit_once("rx")).filter(|_| ours)?.1;
    let digits: String =
        of_queue.trim_start_matches(['_', '-', '.', '[']).chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
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
        ];
        assert_eq!(names.map(received_queue), [Some(3); 5]);
        for other in [
            "in: rx_packets",
            "out: rx_queue_3_packets",
            "in: tx_queue_1_packets",
            "in: rx_queue_0_drops",
            "Ip.InReceives",
        ] {
            assert_eq!(received_queue(other), None, "{other}");
        }
    }
    #[test]
    fn places_without_a_frame_have_a_share_of_nothing() {
        let trials = [[(0, 10), (1, 90)], [(0, 30), (1, 70)]].map(BTreeMap::from);
        let found = shares(Place::Queue, (0..3).collect(), trials.to_vec());
        let shown: Vec<_> = found.iter().map(|place| (place.number, place.shares)).collect();
        assert_eq!(shown, [(0, [0.1, 0.2, 0.3]), (1, [0.7, 0.8, 0.9]), (2, [0.0; 3])]);
        assert!(shares(Place::Queue, (0..3).collect(), Vec::new()).is_empty());
        assert_eq!([entered("CPU7: softnet processed"), entered("CPU7: softnet dropped")], [Some(7), None]);
    }
}
