//! Two generators with pkt-gen that feed one router.

use super::bsd::{Bsd, PLAN};

#[test]
#[ignore = "needs root and openssh-server"]
fn two_pkt_gens_share_a_rate_and_all_that_they_sent_is_counted() {
    let bsd = Bsd::with_two_generators();
    let ended = bsd.run(&PLAN.replace("flows = 2000", "flows = 2000\nrate = \"400 kpps\""), &[]);
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    let trials = bsd.trials();
    assert_eq!(trials.len(), 4);
    let (mut sent, mut skews) = (0, Vec::new());
    for trial in &trials {
        assert_eq!(trial["audit"]["valid"], true, "{:#}", trial["audit"]);
        let rates = ["offered", "received"].map(|rate| trial["rates"][rate].as_f64().unwrap());
        assert!(rates.iter().all(|rate| (390e3..410e3).contains(rate)), "{rates:?}");
        sent += trial["generator"]["frames"].as_u64().unwrap();
        skews.push(trial["skew_ns"].as_u64().unwrap());
    }
    // One of them may have found its CPU busy with something else.
    assert!(skews.iter().any(|skew| *skew < 50_000_000), "they began {skews:?} ns apart");
    let counted: Vec<u64> = bsd.wire("counted.tx").lines().map(|frames| frames.parse().unwrap()).collect();
    assert_eq!(
        (counted.len(), counted.iter().sum::<u64>()),
        (8, sent),
        "each of both, in each trial: {counted:?}"
    );
    for host in ["tester", "second"] {
        let offered = bsd.wire(&format!("offered.{host}.igb1"));
        assert!(offered.starts_with("200000 "), "half of the rate: {offered}");
    }
    assert_eq!(bsd.loads(), 0);
}
