//! RFC 2544's modifiers are in the frames and in the DUT, and every frame is accounted for.

use super::experiment::Experiment;
use crate::common::campaign::{faults, valid};
use crate::common::{Scratch, linerate_line};
use serde_json::Value;

const PLAN: &str = r#"
title = "Modifiers"
question = "Are they there?"
[traffic]
format = "rfc2544"
flows = 256
networks = 256
order = "random"
ports = "random:7"
broadcast-every = 100
[variants.forwarding]
[collect]
commands = [
  "ip route",
]
[lab]
batch = 32
[trials]
duration = "50 ms"
blocks = 2
"#;

#[test]
#[ignore = "needs root"]
fn broadcast_frames_count_apart_and_256_networks_have_routes() {
    let experiment = Experiment::new(PLAN, "");
    experiment.run("").first().run().counted();
    let slots = experiment.document("campaign.json")["slots"].clone();
    let traffic = &slots[1]["traffic"];
    assert_eq!(
        traffic["flows"]["destination"], "198.19.0.66:7-198.19.255.66",
        "{traffic}"
    );
    assert_eq!(
        (
            &traffic["flows"]["ports"],
            &traffic["frame"]["may_fragment"]
        ),
        (&"random:7".into(), &true.into())
    );
    for trial in experiment.trials() {
        assert_eq!(faults(&trial), "");
        let count = |of: &str| trial["generator"][of].as_u64().unwrap();
        let (frames, broadcasts) = (count("frames"), count("broadcasts"));
        assert!(
            (frames / 99).abs_diff(broadcasts) <= 1,
            "{broadcasts} beside {frames}"
        );
        assert_eq!(trial["loss_ratio"], 0.0, "{trial:#}");
        if slots[trial["slot"].as_u64().unwrap() as usize]["ceiling"].is_null() {
            assert_eq!(
                trial["receiver"]["foreign"]["IPv4"], broadcasts,
                "the tester alone lets them pass"
            );
            continue;
        }
        let losses = trial["losses"].as_array().unwrap();
        let at: Vec<(&Value, &Value)> =
            losses.iter().map(|l| (&l["cause"], &l["frames"])).collect();
        assert_eq!(at, [(&"not-forwarded".into(), &broadcasts.into())]);
        let routes = trial["collected"][0]["output"]["Ok"].as_str().unwrap();
        let own = routes
            .lines()
            .filter(|line| line.contains("/24 via 198.19.1.2"))
            .count();
        assert_eq!(own, 256, "{routes}");
    }
}

/// One pair of addresses lies in the networks of the DUT's links, for which RFC 2544 requires no routing updates.
#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_destinations_of_one_network_are_directly_connected() {
    for family in ["4", "both"] {
        destinations_of_one_network(family);
    }
}

fn destinations_of_one_network(family: &str) {
    let records = Scratch::new();
    let out = records.file("tests");
    let line = format!(
        "rfc2544 --quick --size 64 --family {family} --test frame-loss --duration 50ms --link-speed 2M"
    );
    linerate_line(&format!("{line} --out {out}"))
        .args(["--statement", "by its manual"])
        .run()
        .ok();
    let found = linerate_line(&format!("conformance {out} --json"))
        .run()
        .fails(3, &[])
        .json();
    let status = |id| {
        &found["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["id"] == id)
            .unwrap()["status"]
    };
    assert_eq!(
        [
            status("2544-7a"),
            status("2544-13a"),
            status("2544-13b"),
            status("2544-15")
        ],
        ["met", "not-applicable", "not-applicable", "met"],
        "{found:#}"
    );
}

/// A queue of 128 frames on each CPU, drained at 20,000 frames/s. Bursts of 64 frames pass, and of those of 512 most frames are lost, at
/// the same mean rate.
const BURSTS: &str = r#"
title = "Bursts"
question = "Does a queue hold them?"
[traffic]
rate = "10 kpps"
flows = 1
[variants.queue]
from = "known-queue=128@20000"
[factors.burst]
sets = "traffic.burst"
levels = [64, 512]
[lab]
mode = "threaded"
[trials]
duration = "120 ms"
blocks = 2
"#;

#[test]
#[ignore = "needs root"]
fn bursts_are_whole_and_overrun_a_queue_that_is_too_short() {
    for [_, long] in losses_of_bursts(BURSTS) {
        // A generator that is kept from running within each burst gives the queue time.
        assert!(long.iter().any(|loss| *loss > 0.0), "{long:?}");
    }
}

#[test]
#[ignore = "needs root"]
fn figures_bursts_come_with_pauses_and_overrun_a_queue_by_as_much_as_they_must() {
    for [short, long] in losses_of_bursts(&BURSTS.replace("blocks = 2", "blocks = 4")) {
        // After a stall of this machine bursts follow each other closely: then the queue is full for short ones, too.
        assert!(short.contains(&0.0), "{short:?}");
        assert!(
            !long.is_empty() && long.iter().all(|loss| (0.5..0.9).contains(loss)),
            "{long:?}"
        );
    }
}

/// The shares lost of short and of long bursts, by each port.
fn losses_of_bursts(plan: &str) -> [[Vec<f64>; 2]; 2] {
    ["", "--port af-packet"].map(|more| {
        let port = if more.is_empty() {
            String::new()
        } else {
            "port = \"af-packet\"\n".into()
        };
        let experiment = Experiment::new(&plan.replace("[trials]", &format!("{port}[trials]")), "");
        experiment.run("").first().run().no_panic();
        let slots = experiment.document("campaign.json")["slots"].clone();
        let mut losses: [Vec<f64>; 2] = Default::default();
        for trial in experiment.trials() {
            let slot = &slots[trial["slot"].as_u64().unwrap() as usize];
            if slot["ceiling"].is_null() {
                continue;
            }
            let burst = slot["traffic"]["burst"].as_u64().unwrap();
            let of = |key: &str| trial["generator"][key].as_u64().unwrap_or(0);
            assert_eq!(of("bursts"), of("frames") / burst, "{trial:#}");
            losses[usize::from(burst == 512)].push(trial["loss_ratio"].as_f64().unwrap());
        }
        losses
    })
}

/// Each thread sends its share of every burst.
#[test]
#[ignore = "needs root and two CPUs"]
fn threads_share_bursts() {
    let plan = BURSTS.replace("mode = \"threaded\"", "generator-cpus = \"0,1\"\nPORT");
    let plan = plan
        .replace("known-queue=128@20000", "forwarding")
        .replace("64, 512", "63, 512");
    let plan = plan.replace("blocks = 2", "blocks = 1");
    for port in ["xdp", "af-packet"] {
        let experiment = Experiment::new(&plan.replace("PORT", &format!("port = \"{port}\"")), "");
        experiment.run("").first().run();
        let slots = experiment.document("campaign.json")["slots"].clone();
        let trials = experiment.trials();
        let paced: Vec<&Value> = trials
            .iter()
            .filter(|trial| !trial["asked_fps"].is_null())
            .collect();
        assert!(!paced.is_empty(), "{trials:#?}");
        for trial in paced {
            let burst = slots[trial["slot"].as_u64().unwrap() as usize]["traffic"]["burst"]
                .as_u64()
                .unwrap();
            let of = |key: &str| trial["generator"][key].as_u64().unwrap_or(0);
            let streams = trial["generator"]["streams"].as_array().unwrap();
            let frames: Vec<u64> = streams
                .iter()
                .map(|stream| stream["frames"].as_u64().unwrap())
                .collect();
            assert!(
                frames.len() == 2 && frames.iter().sum::<u64>() == of("frames"),
                "{frames:?}"
            );
            // A thread that is kept from running sends its shares late: the audit says so.
            if valid(trial) {
                assert!(
                    of("bursts").abs_diff(of("frames") / burst) <= 1,
                    "{trial:#}"
                );
                let apart = frames[0].abs_diff(frames[1]);
                assert!(apart <= burst + of("bursts"), "{frames:?}: {trial:#}");
            }
        }
    }
}

/// IPv4 and IPv6 in one load, with a source of each flow, and IPv6 with extension headers, through the kernel's routing and through a
/// bridge.
const VERSIONS: &str = r#"
title = "Versions"
question = "Do they all come through?"
[traffic]
rate = "20 kpps"
size = "128 B"
flows = 50
source-macs = "random"
PORT
[variants.forwarding]
[variants.bridge]
OTHERS
[factors.FACTOR]
sets = "traffic.FACTOR"
levels = LEVELS
[trials]
duration = "50 ms"
blocks = 1
"#;

/// The slots with their valid trials; all frames of each must have arrived.
fn all_arrive(factor: &str, levels: &str, more: &str) -> (Experiment, Vec<(Value, Value)>) {
    // The links to a VLAN router have two tags: frames go one way.
    let others = if more.contains("both") {
        ""
    } else {
        "[variants.vlan]"
    };
    let plan = VERSIONS
        .replace("FACTOR", factor)
        .replace("LEVELS", levels)
        .replace("PORT", more);
    let plan = plan.replace("OTHERS", others);
    let experiment = Experiment::new(&plan, "");
    experiment.run("").first().run();
    let slots = experiment.document("campaign.json")["slots"].clone();
    let slot = |trial: &Value| slots[trial["slot"].as_u64().unwrap() as usize].clone();
    let trials: Vec<(Value, Value)> = experiment
        .trials()
        .into_iter()
        .map(|trial| (slot(&trial), trial))
        .collect();
    for (slot, trial) in &trials {
        assert_eq!(faults(trial), "", "{slot:#}");
        assert_eq!(trial["loss_ratio"], 0.0, "{slot:#} {trial:#}");
        // A stall of this machine lets fewer frames leave.
        let is_valid = valid(trial);
        assert!(
            !is_valid || trial["generator"]["frames"].as_u64() > Some(500),
            "{trial:#}"
        );
    }
    assert!(
        trials.iter().any(|(_, trial)| valid(trial)),
        "every trial stalled"
    );
    (experiment, trials)
}

#[test]
#[ignore = "needs root"]
fn ipv4_and_ipv6_share_a_load_and_count_apart() {
    let levels = r#"["0 %", "10 %", "50 %"]"#;
    let (_, mut trials) = all_arrive("ipv6-share", levels, "[lab]\nbatch = 32");
    for port in ["xdp", "af-packet"] {
        // Both directions at once, with random addresses and ports.
        let more = format!(
            "direction = \"both\"\naddresses = \"random\"\nports = \"random\"\n[lab]\nbatch = 32\nport = \"{port}\""
        );
        let (_, both) = all_arrive("ipv6-share", r#"["0 %", "50 %"]"#, &more);
        let streams = |(slot, trial): &(Value, Value)| {
            let mixed = !slot["traffic"]["ipv6"].is_null();
            assert_eq!(
                trial["generator"]["streams"].as_array().unwrap().len(),
                if mixed { 4 } else { 2 }
            );
        };
        both.iter().for_each(streams);
        trials.extend(both);
    }
    let mut shares = std::collections::BTreeSet::new();
    for (slot, trial) in trials {
        let millionths = slot["traffic"]["ipv6"]["millionths"].as_u64().unwrap_or(0);
        shares.insert(millionths);
        let streams = trial["generator"]["streams"].as_array().unwrap();
        let ipv6 = |stream: &&Value| stream["ipv6"] == true;
        let sent: u64 = streams
            .iter()
            .filter(ipv6)
            .map(|stream| stream["frames"].as_u64().unwrap())
            .sum();
        let asked = trial["generator"]["frames"].as_u64().unwrap() * millionths / 1_000_000;
        let ways = trial["directions"]
            .as_array()
            .map_or(1, |ways| ways.len().max(1)) as u64;
        assert!(sent.abs_diff(asked) <= ways, "{sent} of {asked}: {trial:#}");
        let received = trial["receiver"]["streams"].as_array().unwrap();
        for stream in streams {
            let same = received.iter().find(|of| of["stream"] == stream["stream"]);
            assert_eq!(
                same.map_or(&Value::from(0), |of| &of["frames"]),
                &stream["frames"],
                "{trial:#}"
            );
        }
    }
    assert_eq!(
        shares.into_iter().collect::<Vec<_>>(),
        [0, 100_000, 500_000]
    );
}

#[test]
#[ignore = "needs root"]
fn frames_with_ipv6_extension_headers_come_through_and_are_counted() {
    let all = r#"["none", "hop-by-hop", "destination-options", "routing", "fragment", "chain"]"#;
    for (port, levels, count) in [("xdp", all, 6), ("af-packet", r#"["none", "chain"]"#, 2)] {
        let more = format!("family = \"IPv6\"\n[lab]\nport = \"{port}\"");
        let (_, trials) = all_arrive("extension-headers", levels, &more);
        let seen: std::collections::BTreeSet<String> = trials
            .iter()
            .map(|(slot, _)| slot["traffic"]["frame"]["extensions"].to_string())
            .collect();
        assert_eq!(seen.len(), count, "{seen:?}");
    }
}
