//! Against DUTs whose answer is known: rate, loss, duplication, delay, pacing. And: no frame is unaccounted for, whatever the
//! variant, the mode, the transport and the length.

use crate::common::campaign::{duplicates, failures, located, rates, sent_and_received, valid};
use crate::common::{Bench, median};
use serde_json::Value;

const TRIALS: usize = 5;

/// Frames that never reach the DUT's program: on a busy machine the kernel may leave receiving to a thread of its own.
const RING: &str = "DUT in: receive ring full";

/// Most of the trials must be valid: invalid ones on a busy machine are rare, and must stay so.
#[track_caller]
fn mostly_valid(trials: &[&Value]) {
    let invalid: Vec<_> = trials.iter().filter(|t| !valid(t)).flat_map(|t| failures(t)).collect();
    let bad = trials.iter().filter(|t| !valid(t)).count();
    assert!(bad * 4 <= trials.len(), "{bad} of {} trials are invalid: {invalid:?}", trials.len());
}

#[track_caller]
fn within(found: f64, wanted: f64, share: f64) {
    close(found, wanted, share).unwrap();
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_known_rate_is_measured_within_half_a_per_cent() {
    const RATES: [u32; 2] = [50_000, 200_000];
    let variants = RATES.map(|rate| format!("--variant known-rate={rate}")).join(" ");
    let line = format!("{variants} --family 4 --trials {TRIALS} --duration 250ms");
    // The DUT catches up on frames that it missed while the machine was busy, within a window or after it.
    tries(|| {
        let campaign = Bench::new(&line).run();
        for rate in RATES {
            let variant = format!("known-rate={rate}");
            let trials = campaign.of(&variant);
            mostly_valid(&trials);
            assert!(median(&rates(&trials, "offered")) > 1.05 * f64::from(rate), "it was not overloaded");
            for trial in &trials {
                let (sent, received) = sent_and_received(trial);
                let dropped = located(trial, &format!("DUT: dropped by {variant}"));
                assert_eq!(dropped + located(trial, RING), sent - received, "{}", trial["losses"]);
            }
            close(median(&rates(&trials, "received")), f64::from(rate), 0.005)?;
            close(campaign.row(&variant)["received"]["median"].as_f64().unwrap(), f64::from(rate), 0.005)?;
        }
        Ok(())
    });
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn known_loss_is_found_to_the_frame() {
    for (n, more) in [(1000, "--family 4"), (7, "--family 6"), (1000, "--family 4 --flows 3")] {
        let variant = format!("known-loss={n}");
        let line = format!("--variant {variant} --trials {TRIALS} --duration 100ms {more}");
        let campaign = Bench::new(&line).run();
        let trials = campaign.of(&variant);
        mostly_valid(&trials);
        for trial in trials {
            let (sent, received) = sent_and_received(trial);
            let lost = sent - received;
            assert_eq!(trial["audit"]["unlocated"], 0, "{:?}", failures(trial));
            let dropped = located(trial, &format!("DUT: dropped by {variant}"));
            let overrun = located(trial, RING);
            assert_eq!(dropped + overrun, lost, "lost elsewhere: {}", trial["losses"]);
            // Every n-th on each CPU, counted on from the trials before: one more or one less, and no other number.
            assert!(dropped.abs_diff((sent - overrun) / n) <= cpus(), "{dropped} of {sent}");
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
    for family in [4, 6] {
        let line = format!("--variant {variant} --family {family} --trials {TRIALS} --duration 100ms");
        let campaign = Bench::new(&line).run();
        let trials = campaign.of(variant);
        mostly_valid(&trials);
        for trial in trials.into_iter().filter(|t| valid(t)) {
            let (sent, received) = sent_and_received(trial);
            assert_eq!(received + located(trial, RING), sent, "duplicates hide a loss");
            assert!(duplicates(trial).abs_diff(received / 1000) <= cpus(), "{} of {sent}", duplicates(trial));
        }
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_known_delay_is_measured() {
    let line = "--variant known-delay=50us --variant forwarding --family 4 --rate 5kpps --trials 6";
    tries(|| {
        let campaign = Bench::new(&format!("{line} --stamp-every 1 --duration 200ms")).run_first();
        let p50 = |variant: &str| campaign.row(variant)["latency_ns"]["p50"].as_f64().map(|ns| ns / 1e3);
        let (Some(with), Some(without)) = (p50("known-delay=50us"), p50("forwarding")) else {
            return Err("no valid trial".into());
        };
        assert!(with >= 50.0, "a delay of 50 us took {with}");
        if with <= 80.0 && without < 20.0 { Ok(()) } else { Err(format!("{with} us, without {without} us")) }
    });
}

/// Four attempts, to find the machine idle: other work delays figures that should be exact.
#[track_caller]
fn tries(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut found = Vec::new();
    for _ in 0..4 {
        match attempt() {
            Ok(()) => return,
            Err(wrong) => found.push(wrong),
        }
    }
    panic!("{found:?}");
}

/// Whether a figure has the expected value, within a share of it.
fn close(found: f64, wanted: f64, share: f64) -> Result<(), String> {
    let off = (found / wanted - 1.0).abs();
    if off <= share { Ok(()) } else { Err(format!("{found} instead of {wanted}")) }
}

/// The offered rates of the half of the trials in which the generator's program was least kept from running.
fn calmest(trials: &[&Value]) -> Vec<f64> {
    let stall = |t: &&Value| t["generator"]["stall_ns"].as_u64().unwrap_or(0);
    let mut sorted = trials.to_vec();
    sorted.sort_by_key(stall);
    sorted[..trials.len() / 2].iter().map(|t| t["rates"]["offered"].as_f64().unwrap()).collect()
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn pacing_is_exact_where_the_machine_can_reach_the_rate() {
    let asked = 127_251.0;
    tries(|| {
        let campaign = Bench::new("--rate 127251pps --family 4 --trials 14 --duration 200ms").run_first();
        let trials = campaign.of("forwarding");
        rates(&trials, "offered").iter().for_each(|rate| within(*rate, asked, 0.005 + 2.0 / (0.2 * asked)));
        close(median(&calmest(&trials)), asked, 0.000_5)
    });
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
        close(median(&rates(&campaign.of("forwarding"), "offered")), fps, 0.001 + 2.0 / (0.2 * fps)).unwrap();
    }
}

/// Failures that a busy machine causes, and that rightly keep a trial out of the verdict; all others would be faults of linerate.
fn excusable(failure: &str) -> bool {
    failure.contains("offered as asked") || failure.contains("the tester lost nothing")
}

/// Of all trials of a campaign, 9 in 10 are conserved to the frame and counted alike everywhere, and none has seen a frame
/// that is not a test frame.
#[track_caller]
fn every_frame_is_accounted_for(line: &str) {
    let bench = Bench::new(&format!("{line} --trials 5 --duration 50ms"));
    let ended = bench.program().run().no_panic();
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    let campaign = bench.read(ended);
    let trials = &campaign.trials;
    let faults: Vec<_> = trials.iter().flat_map(failures).filter(|f| !excusable(f)).collect();
    let unlocated = trials.iter().filter(|t| t["audit"]["unlocated"] != 0).count();
    assert!(
        faults.len().max(unlocated) * 10 <= trials.len(),
        "{line}: of {} trials: {faults:?}",
        trials.len()
    );
    for trial in trials {
        let foreign = &trial["receiver"]["foreign"];
        assert!(foreign.is_null() || *foreign == serde_json::json!({}), "{line}: {foreign}");
    }
    let summary = campaign.document("summary.json");
    assert_eq!(summary["stopped"], "trials");
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(trials.len(), rows.len() * 5);
    assert!(rows.iter().any(|r| r["valid_trials"] != 0), "{line}");
    for row in rows.iter().filter(|r| r["valid_trials"] != 0) {
        assert!(row["received"]["median"].as_f64() > Some(1000.0), "{line}: {row}");
    }
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
    every_frame_is_accounted_for("--sizes 64,512,1518,imix");
    every_frame_is_accounted_for("--sizes 3000 --variant bridge --variant xdp");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn flows_and_orders_account_for_every_frame() {
    for flows in ["--flows 100000 --order random", "--flows 100000 --order zipf:1.1", "--flows 1"] {
        every_frame_is_accounted_for(&format!("{flows} --no-udp-checksum"));
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn threaded_mode_accounts_for_every_frame() {
    every_frame_is_accounted_for("--mode threaded");
    every_frame_is_accounted_for("--mode threaded --variant xdp --variant bridge --rate 100kpps");
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn several_generator_cpus_account_for_every_frame() {
    if cpus() < 2 {
        return every_frame_is_accounted_for("--cpus 0");
    }
    every_frame_is_accounted_for("--cpus 0-1 --family 4");
    every_frame_is_accounted_for("--cpus 0-1 --rate 100kpps --variant xdp");
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
    trial["directions"][direction][count].as_u64().unwrap_or_else(|| panic!("no {count}: {trial}"))
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_known_loss_in_one_direction_is_found_there_to_the_frame() {
    let n = 100;
    let variant = format!("known-loss={n}");
    let line = format!("--direction both --variant {variant} --trials {TRIALS} --duration 100ms --family 4");
    let campaign = Bench::new(&line).run();
    let trials = campaign.of(&variant);
    mostly_valid(&trials);
    for trial in trials {
        let [forward, reverse] = [0, 1].map(|way| of_direction(trial, way, "lost"));
        let sent = [0, 1].map(|way| of_direction(trial, way, "sent"));
        assert!(sent[0].abs_diff(sent[1]) <= cpus(), "frames take turns: {sent:?}");
        let (all, received) = sent_and_received(trial);
        assert_eq!((sent[0] + sent[1], forward + reverse), (all, all - received));
        let dropped = located(trial, &format!("DUT: dropped by {variant}"));
        assert_eq!(forward, dropped + located(trial, RING), "{}", trial["losses"]);
        assert!(dropped.abs_diff((sent[0] - located(trial, RING)) / n) <= cpus(), "{dropped} of {sent:?}");
        assert_eq!(reverse, located(trial, "DUT out: receive ring full"), "{}", trial["losses"]);
    }
    let ways = campaign.row(&variant)["directions"].clone();
    assert_eq!((&ways[0]["direction"], &ways[1]["direction"]), (&"forward".into(), &"reverse".into()));
    close(ways[0]["loss_ratio"].as_f64().unwrap(), 1.0 / n as f64, 0.02).unwrap();
}

/// A simulated DUT loses one in so many frames of each direction, and the load is that of each.
#[test]
fn a_simulation_has_both_directions() {
    let line = "--direction both --rate 100kpps --family 4 --trials 3 --duration 100ms --simulate loss=100";
    let campaign = Bench::new(line).run();
    for trial in campaign.of("forwarding") {
        assert!(valid(trial), "{:?}", failures(trial));
        for way in 0..2 {
            assert_eq!(of_direction(trial, way, "lost"), of_direction(trial, way, "sent") / 100);
            let offered = trial["directions"][way]["rates"]["offered"].as_f64().unwrap();
            close(offered, 1e5, 0.001).unwrap();
        }
        let checks = trial["audit"]["checks"].as_array().unwrap();
        let named = |name: &str| checks.iter().any(|check| check["name"] == name && check["ok"] == true);
        assert!(named("conservation, forward") && named("conservation, reverse"), "{checks:?}");
    }
    let row = campaign.row("forwarding");
    close(row["offered"].as_f64().unwrap(), 2e5, 0.001).unwrap();
}

/// The counters of the trials are those of the kernel: bytes are frames times their length, sequence numbers have no gap.
#[test]
#[ignore = "needs root: run by make test as root"]
fn counters_agree_with_each_other() {
    let campaign = Bench::new("--sizes 64,1518 --family 4 --trials 3 --duration 200ms").run();
    let slots = campaign.document("campaign.json")["slots"].clone();
    for trial in &campaign.trials {
        let length = slots[trial["slot"].as_u64().unwrap() as usize]["lengths_fcs"][0].as_u64().unwrap() - 4;
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
        assert!(samples.len() >= 4, "{}", samples.len());
        let warm_up = trial["warm_up"].as_array().expect("samples of the warm-up");
        let all: Vec<_> = warm_up.iter().chain(samples).collect();
        assert!(
            warm_up.iter().all(|sample| sample["t_ns"].as_u64() < samples[0]["t_ns"].as_u64()),
            "{all:?}"
        );
        for pair in all.windows(2) {
            let grows = |key: &str| pair[0][key].as_u64() <= pair[1][key].as_u64();
            assert!(grows("t_ns") && grows("sent") && grows("received"), "{pair:?}");
        }
    }
}
