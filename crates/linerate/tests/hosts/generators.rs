//! Two generators that feed one DUT.

use super::lab::{PLAN, RealLab};
use crate::common::campaign::faults;
use serde_json::Value;

/// At a rate that all of it can carry; one trial with rules, and one without.
fn paced(rate: &str, flows: u64) -> String {
    let expectation = PLAN.find("[[expect]]").unwrap();
    PLAN[..expectation]
        .replace(
            "[trials]",
            &format!("[traffic]\nrate = \"{rate}\"\nflows = {flows}\n\n[trials]"),
        )
        .replace(
            "duration = \"200 ms\"\nblocks = 8",
            "duration = \"500 ms\"\nblocks = 1",
        )
}

/// Frames of each stream of a port.
fn streams(port: &Value) -> Vec<u64> {
    port["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stream| stream["frames"].as_u64().unwrap())
        .collect()
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn two_generators_feed_one_dut_and_each_counts_its_own() {
    of_two_generators(&paced("2 kpps", 200), 100);
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn figures_two_generators_share_a_rate_and_begin_together() {
    let trials = of_two_generators(&paced("20 kpps", 2000), 1000);
    for trial in &trials {
        let (all, of_each) = (
            trial["generator"]["frames"].as_u64().unwrap(),
            streams(&trial["generator"]),
        );
        for frames in &of_each {
            assert!(
                (all / 3..=2 * all / 3).contains(frames),
                "{of_each:?}: an even share each"
            );
        }
    }
    let skews: Vec<u64> = trials
        .iter()
        .map(|trial| trial["skew_ns"].as_u64().unwrap())
        .collect();
    println!("the generators began {skews:?} ns apart");
    assert!(
        skews.iter().all(|skew| *skew < 50_000_000),
        "they began {skews:?} ns apart"
    );
}

/// The trials of a plan, before which each generator sends more frames than this of its flows.
fn of_two_generators(plan: &str, learned: u64) -> Vec<Value> {
    let lab = RealLab::with_two_generators();
    let received = || -> Vec<u64> {
        let text = lab.on_switch(
            "for i in s0 s1; do sed -n \"s/^ *$i: *[0-9]* *\\([0-9]*\\) .*/\\1/p\" /proc/net/dev; done",
        );
        text.lines().map(|n| n.parse().unwrap()).collect()
    };
    let ended = lab.run(plan, &[]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 2, "{}", ended.stderr);
    let mut sent = [0, 0];
    for trial in &trials {
        assert_eq!(faults(trial), "");
        let all = trial["generator"]["frames"].as_u64().unwrap();
        let of_each = streams(&trial["generator"]);
        assert!(
            of_each.len() == 2 && of_each.iter().sum::<u64>() == all,
            "{of_each:?} of {all}"
        );
        for (n, frames) in of_each.iter().enumerate() {
            sent[n] += frames;
            assert!(*frames > 0, "{of_each:?} of {all}");
        }
        assert_eq!(
            streams(&trial["receiver"]),
            of_each,
            "every frame of both was received"
        );
        assert!(trial["skew_ns"].is_u64(), "{trial:#}");
    }
    // Frames that came by each cable: those of the trials, and before them two of each flow by each generator. A busy machine may
    // lose some of the latter: rules without states do not miss them.
    let came = received();
    assert!(
        (0..2).all(|n| came[n] > sent[n] + learned),
        "{came:?} came, {sent:?} were sent in trials"
    );
    lab.is_as_it_was();
    trials
}
