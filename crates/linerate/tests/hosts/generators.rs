//! Two generators that feed one DUT.

use super::lab::{PLAN, RealLab};
use serde_json::Value;

/// At a rate that all of it can carry; one trial with rules, and one without.
fn paced() -> String {
    let expectation = PLAN.find("[[expect]]").unwrap();
    PLAN[..expectation]
        .replace("[trials]", "[traffic]\nrate = \"20 kpps\"\nflows = 2000\n\n[trials]")
        .replace("duration = \"200 ms\"\nblocks = 8", "duration = \"500 ms\"\nblocks = 1")
}

/// Frames of each stream of a port.
fn streams(port: &Value) -> Vec<u64> {
    port["streams"].as_array().unwrap().iter().map(|stream| stream["frames"].as_u64().unwrap()).collect()
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn two_generators_share_a_rate_and_begin_together() {
    let lab = RealLab::with_two_generators();
    let received = || -> Vec<u64> {
        let text = lab.on_switch(
            "for i in s0 s1; do sed -n \"s/^ *$i: *[0-9]* *\\([0-9]*\\) .*/\\1/p\" /proc/net/dev; done",
        );
        text.lines().map(|n| n.parse().unwrap()).collect()
    };
    let ended = lab.run(&paced(), &[]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 2, "{}", ended.stderr);
    let (mut sent, mut skews) = ([0, 0], Vec::new());
    for trial in &trials {
        for check in trial["audit"]["checks"].as_array().unwrap() {
            // How even a rate is, is this machine's: its CPUs are few.
            assert!(check["ok"] == true || check["name"] == "offered as asked", "{:#}", trial["audit"]);
        }
        let all = trial["generator"]["frames"].as_u64().unwrap();
        let of_each = streams(&trial["generator"]);
        assert!(of_each.len() == 2 && of_each.iter().sum::<u64>() == all, "{of_each:?} of {all}");
        for (n, frames) in of_each.iter().enumerate() {
            sent[n] += frames;
            assert!((all / 3..=2 * all / 3).contains(frames), "{of_each:?}: an even share each");
        }
        assert_eq!(streams(&trial["receiver"]), of_each, "every frame of both was received");
        skews.push(trial["skew_ns"].as_u64().unwrap());
    }
    // One of them may have found its CPU busy with something else.
    println!("the generators began {skews:?} ns apart");
    assert!(skews.iter().any(|skew| *skew < 50_000_000), "they began {skews:?} ns apart");
    // Frames that came by each cable: those of the trials, and before them two of each flow by each generator. A busy machine may
    // lose some of the latter: rules without states do not miss them.
    let came = received();
    assert!((0..2).all(|n| came[n] > sent[n] + 1000), "{came:?} came, {sent:?} were sent in trials");
    lab.is_as_it_was();
}
