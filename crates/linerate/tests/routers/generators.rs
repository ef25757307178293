//! Two generators with pkt-gen that feed one router.

use super::bsd::{Bsd, PLAN};
use serde_json::Value;

#[test]
#[ignore = "needs root and openssh-server"]
fn two_pkt_gens_share_a_rate_and_all_that_they_sent_is_counted() {
    share_a_rate();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn figures_two_pkt_gens_begin_together() {
    let skews = share_a_rate();
    assert!(
        skews.iter().all(|skew| *skew < 50_000_000),
        "they began {skews:?} ns apart"
    );
}

/// Measures, and returns how far apart the generators began in each trial, in nanoseconds.
fn share_a_rate() -> Vec<u64> {
    let bsd = Bsd::with_two_generators();
    let plan = PLAN.replace("flows = 2000", "flows = 2000\nrate = \"400 kpps\"");
    let ended = bsd.run(
        &plan
            .replace("\"200 ms\"", "\"5 s\"")
            .replace("blocks = 2", "blocks = 1"),
        &[],
    );
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
    let trials = bsd.trials();
    assert_eq!(trials.len(), 2);
    let (mut sent, mut skews) = (0, Vec::new());
    for trial in &trials {
        assert_eq!(trial["audit"]["valid"], true, "{:#}", trial["audit"]);
        let rates = ["offered", "received"].map(|rate| trial["rates"][rate].as_f64().unwrap());
        assert!(
            rates.iter().all(|rate| (390e3..410e3).contains(rate)),
            "{rates:?}"
        );
        sent += trial["generator"]["frames"].as_u64().unwrap();
        skews.push(trial["skew_ns"].as_u64().unwrap());
        // kern.cp_times of the router: its first CPU does everything, in the kernel.
        let cpus = trial["cpus"].as_array().unwrap();
        let shares: Vec<_> = cpus
            .iter()
            .map(|of| (&of["cpu"], &of["busy"], &of["softirq"]))
            .collect();
        let of = |cpu: u64, share: f64| (cpu.into(), share.into(), share.into());
        let expected: [(Value, Value, Value); 4] = [of(0, 1.0), of(1, 0.0), of(2, 0.0), of(3, 0.0)];
        assert_eq!(
            shares,
            expected
                .each_ref()
                .map(|(cpu, busy, kernel)| (cpu, busy, kernel)),
            "{:#}",
            trial["collected"]
        );
    }
    let counted: Vec<u64> = bsd
        .wire("counted.tx")
        .lines()
        .map(|frames| frames.parse().unwrap())
        .collect();
    assert_eq!(
        (counted.len(), counted.iter().sum::<u64>()),
        (4, sent),
        "each of both, in each trial: {counted:?}"
    );
    for host in ["tester", "second"] {
        let offered = bsd.wire(&format!("offered.{host}.igb1"));
        assert!(
            offered.starts_with("200000 "),
            "half of the rate: {offered}"
        );
    }
    assert_eq!(bsd.loads(), 0);
    skews
}
