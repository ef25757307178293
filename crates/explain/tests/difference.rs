//! The time of a frame in two slots, from records made by hand: parts, their spread, waits for locks, and events.

mod common;

use common::Made;
use linerate_explain::{Difference, difference};
use linerate_measure::record::{Events, SlotProfile, Waits};
use linerate_profile::{Function, Profile};
use linerate_stats::Estimate;

/// 1,000 and 1,250 ns of a frame. `after`: the rates of the second slot's sampled trials.
fn of_rates(after: [f64; 4], ratio: f64) -> Difference {
    let folded = [
        "a;veth_poll 500\na;ip_rcv 500\n",
        "a;veth_poll 400\na;ip_rcv 400\na;nft_do_chain 200\n",
    ];
    let stacks = folded.map(Profile::of_folded);
    let waited = |ns: u64| {
        let own = |name: &str, own| Function {
            name: name.into(),
            own,
            with_called: own,
            callers: Vec::new(),
        };
        let waits = Waits {
            ns,
            functions: vec![own("nft_do_chain", ns / 2), own("veth_xmit", 1000)],
            ..Waits::default()
        };
        Some(Events {
            sent: 1000,
            waits: Some(waits),
            ..Events::default()
        })
    };
    let profile = |slot: usize, rates: [f64; 4], ns: u64, misses: u64| SlotProfile {
        slot,
        samples: 1000,
        received: Some(rates.iter().sum::<f64>() / 4.0),
        rates: rates.to_vec(),
        frames: 1000,
        counted: [("cache-misses".to_string(), misses)].into(),
        functions: stacks[slot].functions(),
        events: waited(ns),
        ..SlotProfile::default()
    };
    let mut made = Made::new(&[1e6, 0.8e6], |campaign, _| campaign.roles.dut = vec![0]);
    made.summary.profiles = vec![
        profile(0, [1e6, 0.99e6, 1.01e6, 1e6], 3000, 4000),
        profile(1, after, 9000, 6500),
    ];
    made.stacks = stacks.iter().cloned().enumerate().collect();
    let [a, b] = [0, 1].map(|slot| made.records().case(&made.campaign.slots[slot]).unwrap());
    let ratio = Estimate {
        median: ratio,
        low: Some(ratio - 0.005),
        high: Some(ratio + 0.005),
        n: 6,
    };
    difference([&a, &b], ratio).unwrap()
}

#[test]
fn the_parts_are_the_difference_of_the_sampled_trials() {
    let found = of_rates([0.8e6, 0.8e6, 0.81e6, 0.79e6], 0.8);
    let ns = |name: &str| {
        found
            .stages
            .iter()
            .find(|part| part.name == name)
            .unwrap()
            .longer()
    };
    assert!(
        (ns("firewall rules") - 250.0).abs() < 1.0 && ns("IP").abs() < 1.0,
        "{:?}",
        found.stages
    );
    assert_eq!(found.functions[0].name, "nft_do_chain");
    assert!(
        (found.sampled_ns.median - 250.0).abs() < 1.0 && found.sampled_ns.n == 8,
        "{:?}",
        found.sampled_ns
    );
    assert_eq!(found.adds_up, Some(true));
    assert_eq!(found.counted["cache-misses"], [4.0, 6.5]);
}

#[test]
fn waits_for_locks_are_apart_from_the_parts() {
    let locks = of_rates([0.8e6; 4], 0.8).locks.unwrap();
    assert_eq!(locks.all.ns, [3.0, 9.0]);
    let shown: Vec<_> = locks
        .functions
        .iter()
        .map(|part| (part.name.as_str(), part.ns))
        .collect();
    assert_eq!(
        shown,
        [("nft_do_chain", [1.5, 4.5]), ("veth_xmit", [1.0, 1.0])]
    );
}

/// Sampled trials with another mean explain the difference only where their own spread is as wide.
#[test]
fn the_spread_of_the_sampled_trials_widens_the_interval() {
    let narrow = of_rates([0.76e6, 0.76e6, 0.761e6, 0.759e6], 0.8);
    assert_eq!(narrow.adds_up, Some(false), "{narrow:?}");
    let wide = of_rates([0.8e6, 0.8e6, 0.8e6, 0.64e6], 0.8);
    assert_eq!(wide.adds_up, Some(true), "{wide:?}");
    let [low, high] = [wide.unexplained_ns.low, wide.unexplained_ns.high].map(Option::unwrap);
    assert!(
        low < wide.unexplained_ns.median - 50.0 && high > 50.0,
        "{:?}",
        wide.unexplained_ns
    );
}
