//! Against DUTs whose answer is known: rate, loss, duplication, delay, pacing. And: no frame is unaccounted for, whatever the
//! variant, the mode, the transport and the length.

use crate::common::campaign::{
    duplicates, failures, faults, located, rates, sent_and_received, valid,
};
use crate::common::{Bench, Campaign, median};
use linerate_stats::histogram::Histogram;
use serde_json::Value;

/// Frames that never reach the DUT's program: on a busy machine the kernel may leave receiving to a thread of its own.
const RING: &str = "DUT in: receive ring full";

/// Frames that found a ring full, before the DUT or behind it.
fn overrun(trial: &Value) -> u64 {
    located(trial, "ring full")
}

/// Runs a campaign that counts frames.
#[track_caller]
fn run(line: &str) -> Campaign {
    Bench::new(line).run_beside()
}

const RATES: [u32; 2] = [50_000, 200_000];

fn at_known_rates(more: &str) -> String {
    let variants = RATES
        .map(|rate| format!("--variant known-rate={rate}"))
        .join(" ");
    format!("{variants} --family 4 {more}")
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn frames_above_a_known_rate_are_dropped_and_counted() {
    let campaign = run(&at_known_rates("--trials 2 --duration 150ms"));
    for rate in RATES {
        let mut of_all = 0;
        let variant = format!("known-rate={rate}");
        for trial in campaign.of(&variant) {
            let (sent, received) = sent_and_received(trial);
            let dropped = located(trial, &format!("DUT: dropped by {variant}"));
            assert_eq!(
                dropped + overrun(trial),
                sent - received,
                "{}",
                trial["losses"]
            );
            // The DUT has a tenth of a second of credit after a stall; and frames may wait in a ring before it.
            let seconds = trial["generator"]["active_ns"].as_u64().unwrap() as f64 / 1e9;
            let most = f64::from(rate) * (1.1 * seconds + 0.105);
            assert!(
                received as f64 <= most,
                "{received} of {sent} in {seconds} s"
            );
            of_all += dropped;
        }
        assert!(of_all > 0 || rate > RATES[0]);
    }
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_a_known_rate_is_measured_within_half_a_per_cent() {
    let campaign = Bench::new(&at_known_rates("--trials 5 --duration 250ms")).run();
    for rate in RATES {
        let variant = format!("known-rate={rate}");
        let trials = campaign.of(&variant);
        assert!(
            median(&rates(&trials, "offered")) > 1.05 * f64::from(rate),
            "it was not overloaded"
        );
        close(median(&rates(&trials, "received")), f64::from(rate), 0.005);
        close(
            campaign.row(&variant)["received"]["median"]
                .as_f64()
                .unwrap(),
            f64::from(rate),
            0.005,
        );
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn known_loss_is_found_to_the_frame() {
    for (n, more) in [(1000, "--family 4"), (7, "--family 6 --flows 3")] {
        let variant = format!("known-loss={n}");
        let campaign = run(&format!(
            "--variant {variant} --trials 2 --duration 20ms {more}"
        ));
        for trial in campaign.of(&variant) {
            let (sent, received) = sent_and_received(trial);
            assert_eq!(trial["audit"]["unlocated"], 0, "{:?}", failures(trial));
            let dropped = located(trial, &format!("DUT: dropped by {variant}"));
            assert_eq!(
                dropped + overrun(trial),
                sent - received,
                "lost elsewhere: {}",
                trial["losses"]
            );
            // Every n-th on each CPU, counted on from the trials before: one more or one less, and no other number.
            let entered = sent - located(trial, RING);
            assert!(
                dropped.abs_diff(entered / n) <= cpus(),
                "{dropped} of {entered}"
            );
        }
    }
}

fn cpus() -> u64 {
    std::thread::available_parallelism().unwrap().get() as u64
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn known_duplicates_are_found_to_the_frame() {
    let variant = "known-duplication=1000";
    let campaign = run(&format!("--variant {variant} --trials 2 --duration 20ms"));
    let of_variant: Vec<_> = campaign.document("campaign.json")["slots"]
        .as_array()
        .unwrap()
        .clone();
    let mut found = 0;
    for trial in &campaign.trials {
        if of_variant[trial["slot"].as_u64().unwrap() as usize]["variant"] != variant {
            continue;
        }
        found += 1;
        let (sent, received) = sent_and_received(trial);
        let entered = sent - located(trial, RING);
        // Copies and originals that found the receiver's ring full are in one count.
        let behind = overrun(trial) - located(trial, RING);
        assert!(
            received + behind >= entered && received <= entered,
            "duplicates hide a loss: {trial}"
        );
        let copies = duplicates(trial);
        assert!(
            copies.abs_diff(entered / 1000) <= cpus() + behind,
            "{copies} of {entered}"
        );
    }
    assert_eq!(found, 4, "two trials of each IP version");
}

/// Latencies of frames that were delayed, and of others.
const DELAYED: &str =
    "--variant known-delay=50us --variant forwarding --family 4 --rate 5kpps --stamp-every 1";

#[test]
#[ignore = "needs root: run by make test as root"]
fn no_frame_is_faster_than_a_known_delay() {
    let campaign = run(&format!("{DELAYED} --trials 1 --duration 50ms"));
    for trial in campaign.of("known-delay=50us") {
        let latency: Histogram =
            serde_json::from_value(trial["receiver"]["latency"].clone()).unwrap();
        let (_, received) = sent_and_received(trial);
        assert_eq!(latency.count(), received);
        // A bucket has 3 %.
        assert!(
            received == 0 || latency.quantile(0.0).unwrap() as f64 >= 0.97 * 50e3,
            "{}",
            trial["receiver"]["latency"]
        );
    }
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_a_known_delay_is_measured() {
    let campaign = Bench::new(&format!("{DELAYED} --trials 6 --duration 200ms")).run_first();
    let p50 = |variant: &str| campaign.row(variant)["latency_ns"]["p50"].as_f64().unwrap() / 1e3;
    let (with, without) = (p50("known-delay=50us"), p50("forwarding"));
    assert!(
        (50.0..=80.0).contains(&with) && without < 20.0,
        "{with} us, without {without} us"
    );
}

/// A figure has the expected value, within a share of it.
#[track_caller]
fn close(found: f64, wanted: f64, share: f64) {
    assert!(
        (found / wanted - 1.0).abs() <= share,
        "{found} instead of {wanted}"
    );
}

/// The offered rates of the half of the trials in which the generator's program was least kept from running.
fn calmest(trials: &[&Value]) -> Vec<f64> {
    let stall = |t: &&Value| t["generator"]["stall_ns"].as_u64().unwrap_or(0);
    let mut sorted = trials.to_vec();
    sorted.sort_by_key(stall);
    sorted[..trials.len() / 2]
        .iter()
        .map(|t| t["rates"]["offered"].as_f64().unwrap())
        .collect()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn paced_frames_never_come_before_they_are_due() {
    let rate = 127_251.0;
    let campaign = run("--rate 127251pps --family 4 --trials 2 --duration 50ms");
    for trial in campaign.of("forwarding") {
        let sent = trial["generator"]["frames"].as_u64().unwrap() as f64;
        // The batch that is due when the load ends is sent whole.
        let due = rate * trial["generator"]["active_ns"].as_u64().unwrap() as f64 / 1e9 + 64.0;
        assert!(sent > 0.0 && sent <= due, "{sent} of {due}");
    }
}

#[test]
#[ignore = "needs root and a quiet machine"]
fn figures_pacing_is_exact_where_the_machine_can_reach_the_rate() {
    let asked = 127_251.0;
    let campaign =
        Bench::new("--rate 127251pps --family 4 --trials 14 --duration 200ms").run_first();
    let trials = campaign.of("forwarding");
    rates(&trials, "offered")
        .iter()
        .for_each(|rate| close(*rate, asked, 0.005 + 2.0 / (0.2 * asked)));
    close(median(&calmest(&trials)), asked, 0.000_5);
}

/// Rates in every spelling are the frames/s that they stand for. How exactly frames are paced has been seen above; whether a spelling is
/// understood needs no packets.
#[test]
fn rates_mean_what_they_say() {
    let bits = |len: f64, overhead: f64| 1e8 / (8.0 * (len + overhead));
    for (rate, fps) in [
        ("100Mbit/s:l1", bits(64.0, 20.0)),
        ("100Mbit/s:l2", bits(64.0, 0.0)),
        ("10% --link-speed 1G", bits(64.0, 20.0)),
        ("1000pps", 1000.0),
    ] {
        let line = format!("--rate {rate} --family 4 --trials 2 --duration 200ms --simulate ok");
        let campaign = Bench::new(&line).run();
        close(
            median(&rates(&campaign.of("forwarding"), "offered")),
            fps,
            0.001 + 2.0 / (0.2 * fps),
        );
    }
}

/// All trials of a campaign are conserved to the frame and counted alike everywhere, and none has seen a frame that is not a test
/// frame.
#[track_caller]
fn every_frame_is_accounted_for(line: &str) {
    let campaign = run(&format!("{line} --trials 1 --duration 20ms"));
    for trial in &campaign.trials {
        let faults = faults(trial);
        assert!(
            faults.is_empty() && trial["audit"]["unlocated"] == 0,
            "{line}: {faults}"
        );
        let (sent, received) = sent_and_received(trial);
        assert!(
            received > 0 && received <= sent,
            "{line}: {received} of {sent}: {}",
            trial["losses"]
        );
        let foreign = &trial["receiver"]["foreign"];
        assert!(
            foreign.is_null() || *foreign == serde_json::json!({}),
            "{line}: {foreign}"
        );
    }
    let summary = campaign.document("summary.json");
    assert_eq!(summary["stopped"], "trials");
    assert_eq!(
        campaign.trials.len(),
        summary["rows"].as_array().unwrap().len()
    );
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn every_variant_accounts_for_every_frame() {
    every_frame_is_accounted_for(
        "--variant xdp --variant bridge --variant nat --variant nft-stateless --variant nft-stateful",
    );
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn transports_account_for_every_frame() {
    for transport in ["tcp", "icmp"] {
        every_frame_is_accounted_for(&format!("--transport {transport} --variant nft-stateful"));
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn lengths_account_for_every_frame() {
    every_frame_is_accounted_for("--sizes 64,1518,imix");
    every_frame_is_accounted_for("--sizes 3000 --variant bridge --variant xdp");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn flows_and_orders_account_for_every_frame() {
    for flows in [
        "--flows 100000 --order random",
        "--flows 100000 --order zipf:1.1",
        "--flows 1",
    ] {
        every_frame_is_accounted_for(&format!("{flows} --no-udp-checksum"));
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn threaded_mode_accounts_for_every_frame() {
    every_frame_is_accounted_for("--mode threaded --family 6");
    every_frame_is_accounted_for(
        "--mode threaded --variant xdp --variant bridge --rate 100kpps --family 4",
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn several_generator_cpus_account_for_every_frame() {
    if cpus() < 2 {
        return every_frame_is_accounted_for("--cpus 0");
    }
    every_frame_is_accounted_for("--cpus 0-1 --family 4");
    every_frame_is_accounted_for("--cpus 0-1 --rate 100kpps --variant xdp --family 6");
}

#[test]
#[ignore = "needs root and nft: run by make test as root"]
fn both_directions_account_for_every_frame() {
    let several = if cpus() > 1 { "--cpus 0-1" } else { "" };
    // Connection tracking looks at the checksums of the answers.
    for more in [
        &format!("--family 6 --variant nft-stateful --variant xdp {several}"),
        "--family 4 --mode threaded --rate 20kpps --sizes imix",
        "--family 4 --port af-packet",
    ] {
        every_frame_is_accounted_for(&format!("--direction both {more}"));
    }
}

/// The direction's count of a trial.
fn of_direction(trial: &Value, direction: usize, count: &str) -> u64 {
    trial["directions"][direction][count]
        .as_u64()
        .unwrap_or_else(|| panic!("no {count}: {trial}"))
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_known_loss_in_one_direction_is_found_there_to_the_frame() {
    let n = 100;
    let variant = format!("known-loss={n}");
    let line =
        format!("--direction both --variant {variant} --trials 2 --duration 20ms --family 4");
    let campaign = run(&line);
    for trial in campaign.of(&variant) {
        let [forward, reverse] = [0, 1].map(|way| of_direction(trial, way, "lost"));
        let sent = [0, 1].map(|way| of_direction(trial, way, "sent"));
        assert!(
            sent[0].abs_diff(sent[1]) <= cpus(),
            "frames take turns: {sent:?}"
        );
        let (all, received) = sent_and_received(trial);
        assert_eq!(
            (sent[0] + sent[1], forward + reverse),
            (all, all - received)
        );
        let dropped = located(trial, &format!("DUT: dropped by {variant}"));
        // Rings of the tester, behind the DUT, may run over as well.
        let behind = |at: &str| located(trial, &format!("{at}receiver: receive ring full"));
        let inside = behind("inside ");
        let outside = behind("") - inside;
        assert_eq!(
            forward,
            dropped + located(trial, RING) + outside,
            "{}",
            trial["losses"]
        );
        assert!(
            dropped.abs_diff((sent[0] - located(trial, RING)) / n) <= cpus(),
            "{dropped} of {sent:?}"
        );
        assert_eq!(
            reverse,
            located(trial, "DUT out: receive ring full") + inside,
            "{}",
            trial["losses"]
        );
    }
    let ways = &campaign.row(&variant)["directions"];
    assert_eq!(
        (&ways[0]["direction"], &ways[1]["direction"]),
        (&"forward".into(), &"reverse".into())
    );
}

/// A simulated DUT loses one in so many frames of each direction, and the load is that of each.
#[test]
fn a_simulation_has_both_directions() {
    let line = "--direction both --rate 100kpps --family 4 --trials 3 --duration 100ms --simulate loss=100";
    let campaign = Bench::new(line).run();
    for trial in campaign.of("forwarding") {
        assert!(valid(trial), "{:?}", failures(trial));
        for way in 0..2 {
            assert_eq!(
                of_direction(trial, way, "lost"),
                of_direction(trial, way, "sent") / 100
            );
            let offered = trial["directions"][way]["rates"]["offered"]
                .as_f64()
                .unwrap();
            close(offered, 1e5, 0.001);
        }
        let checks = trial["audit"]["checks"].as_array().unwrap();
        let named = |name: &str| {
            checks
                .iter()
                .any(|check| check["name"] == name && check["ok"] == true)
        };
        assert!(
            named("conservation, forward") && named("conservation, reverse"),
            "{checks:?}"
        );
    }
    let row = campaign.row("forwarding");
    close(row["offered"].as_f64().unwrap(), 2e5, 0.001);
}

/// The counters of the trials are those of the kernel: bytes are frames times their length, sequence numbers have no gap.
#[test]
#[ignore = "needs root: run by make test as root"]
fn counters_agree_with_each_other() {
    // On a busy machine, the program may not run for longer than a short window, and such a trial has no rate.
    let campaign = run("--sizes 64,1518 --family 4 --trials 2 --duration 400ms");
    let slots = campaign.document("campaign.json")["slots"].clone();
    for trial in &campaign.trials {
        let length =
            slots[trial["slot"].as_u64().unwrap() as usize]["traffic"]["mix"]["lengths_fcs"][0]
                .as_u64()
                .unwrap()
                - 4;
        for end in ["generator", "receiver"] {
            let counters = &trial[end];
            let frames = counters["frames"].as_u64().unwrap();
            assert_eq!(counters["bytes"], frames * length, "{end}");
            let sum = |list: &str| -> u64 {
                let list = counters[list].as_array().unwrap().iter();
                list.map(|q| q["frames"].as_u64().unwrap()).sum()
            };
            assert_eq!((sum("queues"), sum("streams")), (frames, frames), "{end}");
        }
        let samples = trial["samples"].as_array().unwrap();
        // The program may not have run in the window.
        assert!(samples.len() >= 2 || !valid(trial), "{}", samples.len());
        let warm_up = trial["warm_up"].as_array().expect("samples of the warm-up");
        let all: Vec<_> = warm_up.iter().chain(samples).collect();
        assert!(
            warm_up.iter().all(|sample| sample["t_ns"].as_u64()
                < samples
                    .first()
                    .map_or(Some(u64::MAX), |first| first["t_ns"].as_u64())),
            "{all:?}"
        );
        for pair in all.windows(2) {
            let grows = |key: &str| pair[0][key].as_u64() <= pair[1][key].as_u64();
            assert!(
                grows("t_ns") && grows("sent") && grows("received"),
                "{pair:?}"
            );
        }
    }
}
