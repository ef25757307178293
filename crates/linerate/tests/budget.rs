//! Costs of a campaign beside its trials: time, memory, and the wait for the first sample.

use crate::common::{Bench, Campaign, median, wait_for};
use std::time::{Duration, Instant};

/// The share of its time that a campaign says it was under load, and its seconds. The share is not made up: the windows alone, without
/// warm-up, are within it.
fn under_load(line: &str) -> (Campaign, f64, f64) {
    let campaign = Bench::new(line).run_beside();
    let summary = campaign.document("summary.json");
    let load: u64 = campaign
        .trials
        .iter()
        .map(|t| t["timing"]["run_ns"].as_u64().unwrap())
        .sum();
    let [share, seconds] = ["load_share", "seconds"].map(|key| summary[key].as_f64().unwrap());
    assert!(
        load as f64 / 1e9 / seconds <= share + 0.001,
        "{load} ns of {seconds} s, {share}"
    );
    (campaign, share, seconds)
}

/// No trial begins when the budget has been used up, and the share of time under load is that of the trials.
#[test]
#[ignore = "needs root: run by make test as root"]
fn a_budget_ends_a_campaign() {
    let (campaign, share, _) = under_load("--budget 1s --duration 50ms --family 4");
    assert!(share > 0.0 && share <= 1.0, "{share}");
    let summary = campaign.document("summary.json");
    assert_eq!(summary["stopped"], "budget", "{summary}");
    let [.., before, last] = &campaign.trials[..] else {
        panic!("{summary}")
    };
    // The first block is run whole. Waiting for a turn and questions about the DUT's configuration come on top.
    let costs = campaign
        .trials
        .iter()
        .flat_map(|t| t["collectors"].as_array().unwrap());
    let asked: u64 = costs
        .filter(|cost| cost["name"] == "configuration")
        .map(|cost| cost["took_ns"].as_u64().unwrap())
        .sum();
    let waited = campaign
        .trials
        .iter()
        .filter_map(|t| t["waited_ns"].as_u64());
    let most = 1_000_000_000 + asked + waited.sum::<u64>();
    let ns = |key: &str| before[key].as_u64().unwrap();
    assert!(
        last["block"] == 0 || ns("began_ns") + ns("took_ns") <= most,
        "{before}"
    );
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_a_campaign_spends_four_fifths_of_its_time_under_load() {
    let (_, share, seconds) = under_load("--budget 6s");
    assert!(seconds <= 8.0, "a budget of 6 s took {seconds} s");
    assert!(share >= 0.8, "under load for {share} of the time");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn five_million_flows_fit_in_200_megabytes() {
    fit("random");
}

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_five_million_flows_in_sequence_fit_as_well() {
    fit("sequential");
}

fn fit(order: &str) {
    let line = format!("--flows 5000000 --family 4 --trials 1 --duration 20ms --order {order}");
    let campaign = Bench::new(&line).run_beside();
    let summary = campaign.document("summary.json");
    let peak = summary["peak_memory"].as_u64().unwrap();
    assert!(
        peak > 1 << 20 && peak < 200_000_000,
        "{order}: {peak} bytes"
    );
    assert_eq!(
        campaign.document("campaign.json")["asked"]["flows"],
        5_000_000
    );
}

/// From the start of the program to the first sample of its first trial. The first trial is on the disk when it has ended:
/// its time after that sample is subtracted. The median of five starts; the batch is given, for choosing it is part of
/// measuring and takes a second by itself.
#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_the_first_sample_comes_within_a_second() {
    let waits: Vec<f64> = (0..5).map(|_| first_sample().as_secs_f64()).collect();
    assert!(median(&waits) < 1.0, "{waits:?} s");
}

fn first_sample() -> Duration {
    let bench = Bench::new("--family 4 --trials 1 --duration 250ms");
    let began = Instant::now();
    let running = bench.program().start();
    let first = wait_for("the first trial", || {
        crate::common::campaign::trials(&bench.directory())
            .into_iter()
            .next()
    });
    let recorded = began.elapsed();
    running.wait().ok();
    let samples = first["samples"].as_array().unwrap();
    let t = |i: usize| samples[i]["t_ns"].as_u64().unwrap();
    recorded.saturating_sub(Duration::from_nanos(t(samples.len() - 1) - t(0)))
}

/// The budget is kept, whatever the number of slots.
#[test]
#[ignore = "needs root, nft and a quiet machine"]
fn figures_a_budget_is_kept() {
    let began = Instant::now();
    let line = "--budget 5s --duration 50ms --variant nft-stateless --variant nft-stateful --sizes 64,1518";
    let campaign = Bench::new(line).run();
    let seconds = campaign.document("summary.json")["seconds"]
        .as_f64()
        .unwrap();
    assert!(seconds <= 6.5, "{seconds}");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "building and choosing took {:?}",
        began.elapsed()
    );
}
