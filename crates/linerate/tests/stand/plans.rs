//! Shipped plans of labs, on each kind of card and each kernel. The state of the guest is the same before and after, also where linerate was
//! killed, and the settings of each variant are in force while it is measured.

use super::guest::{Card, E1000, E1000E, IGB, Stand, VIRTIO, VMXNET3};
use super::lab::GuestLab;
use super::state::State;
use crate::hosts_beside::site::trials;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/lab");

/// Plans of Linux routers.
fn plans() -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(PLANS)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.retain(|plan| {
        let text = fs::read_to_string(plan).unwrap();
        text.lines()
            .any(|line| line.starts_with("systems = [") && line.contains("\"linux\""))
    });
    all.sort();
    all
}

/// The smallest form of a plan that still takes all its paths. After each trial, the DUT says how its state differs from the one before.
fn shortened(plan: &str) -> String {
    let mut short = String::new();
    for line in plan.lines() {
        let line = match line.split_once(" = ") {
            Some(("until" | "pause", _)) => continue,
            Some(("duration", _)) => "duration = \"200 ms\"\npause = \"1 ms\"",
            Some(("blocks", _)) => "blocks = 1",
            _ => line,
        };
        short += &format!("{line}\n");
    }
    let asked = r#"commands = ["state settings | diff /dev/before -; true"]"#;
    for (table, key) in [("[traffic]", "rate = \"2 kpps\""), ("[collect]", asked)] {
        short = match short.contains(&format!("\n{table}\n")) {
            true => short.replace(table, &format!("{table}\n{key}")),
            false => short.replace("[trials]", &format!("{table}\n{key}\n\n[trials]")),
        };
    }
    short
}

/// Lines of the state that show a variant's settings in force: each of its own has one.
fn shown(settings: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let all = |of: &Value| {
        of.as_object()
            .into_iter()
            .flatten()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect::<Vec<_>>()
    };
    for (key, value) in all(&settings["sysctls"]) {
        lines.push(format!("sysctl -a: {key} = {}", value.as_str().unwrap()));
    }
    for (end, card) in [("inside", "in0"), ("outside", "out0")] {
        for (key, value) in all(&settings[end])
            .into_iter()
            .filter(|(_, value)| !value.is_null())
        {
            let state = if value == true { "on" } else { "off" };
            lines.push(match key.as_str() {
                "mtu" => format!("link: {card}/mtu:{value}"),
                "queues" => format!("ethtool -l {card}: now Combined:\t{value}"),
                "rx-ring" => format!("ethtool -g {card}: now RX:\t\t{value}"),
                "tx-ring" => format!("ethtool -g {card}: now TX:\t\t{value}"),
                "rx-wait-ns" => format!(
                    "ethtool -c {card}: rx-usecs: {}",
                    value.as_u64().unwrap() / 1000
                ),
                "tx-wait-ns" => format!(
                    "ethtool -c {card}: tx-usecs: {}",
                    value.as_u64().unwrap() / 1000
                ),
                "tx-wait-frames" => format!("ethtool -c {card}: tx-frames: {value}"),
                "rx-wait-frames" => format!("ethtool -c {card}: rx-frames: {value}"),
                "adaptive-interrupts" => format!("ethtool -c {card}: Adaptive RX: {state}"),
                "flow-control" => format!("ethtool -a {card}: RX:\t\t{state}"),
                "lro" => format!("ethtool -k {card}: large-receive-offload: {state}"),
                "gro" => format!("ethtool -k {card}: generic-receive-offload: {state}"),
                "gso" => format!("ethtool -k {card}: generic-segmentation-offload: {state}"),
                "tso" => format!("ethtool -k {card}: tcp-segmentation-offload: {state}"),
                "irq" => format!("bound: {card}"),
                "private-flags" => continue,
                other => panic!("the state does not show {other}: add its line"),
            });
        }
    }
    match settings["rules"]["tool"].as_str() {
        Some("iptables") => lines.push("iptables-save: -A".into()),
        Some("nftables") => lines.push("nft list ruleset: \tchain".into()),
        other => assert!(other.is_none(), "{other:?}"),
    }
    match settings["dut"].as_str() {
        Some("vlan") => lines.push("vlan protocol 802.1Q".into()),
        Some("bridge" | "routed-bridge") => lines.push("bridge forward_delay".into()),
        other => assert!(matches!(other, None | Some("forwarding")), "{other:?}"),
    }
    lines
}

/// The faults of a short form of a plan, and the state after it.
fn faults(lab: &GuestLab, plan: &Path, before: &State) -> (Vec<String>, State) {
    let file = plan.file_name().unwrap().to_str().unwrap();
    lab.write(file, &shortened(&fs::read_to_string(plan).unwrap()));
    // The comparison of states leaves out /dev.
    lab.guest.on("state settings >/dev/before");
    let records = format!("records-{file}");
    let ended = lab
        .linerate(&[
            "run", file, "--system", "linux", "--lab", "LAB.toml", "--out", &records,
        ])
        .within(600)
        .run()
        .no_panic();
    println!("{file}: {} after {:.0?}", ended.status, ended.took);
    let after = State::of(&lab.guest);
    let mut faults = before.differences_but_waiting(&after, &ended.stderr);
    let path = lab.scratch.file(&records);
    let campaign = fs::read_to_string(Path::new(&path).join("campaign.json")).unwrap_or_default();
    // Where everything is skipped, there are no records.
    let Ok(campaign) = serde_json::from_str::<Value>(&campaign) else {
        faults.push(format!("no records: {}", ended.stderr));
        return (faults, after);
    };
    let plan = &campaign["planned"]["plan"];
    for trial in trials(&path) {
        let cell = &plan["cells"][trial["slot"].as_u64().unwrap() as usize];
        let lane = &plan["lanes"][cell["lane"].as_u64().unwrap() as usize];
        let collected = trial["collected"].as_array().unwrap();
        // A setting that cannot be had: no frame was sent.
        let Some(collected) = collected.first() else {
            continue;
        };
        let Some(said) = collected["output"]["Ok"].as_str() else {
            faults.push(format!(
                "{}: the state was not read: {collected}",
                campaign["slots"][trial["slot"].as_u64().unwrap() as usize]["name"]
            ));
            continue;
        };
        let now = before.changed(said);
        let missing = shown(&lane["settings"])
            .into_iter()
            .filter(|line| !now.has(line));
        faults.extend(missing.map(|line| format!("{}: measured without '{line}'", cell["name"])));
    }
    if trials(&path).is_empty() {
        faults.push(format!(
            "nothing was measured: {}{}",
            ended.stdout, ended.stderr
        ));
    }
    (faults, after)
}

/// A plan with all kinds of changes; what a card cannot have fails, and changes nothing either.
const CHANGES: &str = r#"
title = "Changes that a killed linerate leaves"
question = "Are all of them undone?"

[lab]
file = "LAB.toml"
systems = ["linux"]

[traffic]
rate = "2 kpps"

[variants.rules]
rules = { tool = "nftables", filter = "stateful" }
sysctls = { "net.core.netdev_budget" = 600 }

[variants.nat]
rules = { tool = "iptables", filter = "nat" }
interface = { gro = false, tso = false, mtu = "1400 B" }

[variants.interrupts]
interface = { irq = "0-3" }

[trials]
duration = "200 ms"
blocks = 1
"#;

/// Differences of the state after linerate was killed at so many random moments, and `lab restore`.
fn remains(lab: &GuestLab, kills: u32, seed: u64) -> Vec<String> {
    let before = State::of(&lab.guest);
    let began = Instant::now();
    let ended = lab.run(CHANGES, &[]);
    let (whole, mut random) = (began.elapsed().as_nanos() as u64, seed);
    let mut all = before.differences_but_waiting(&State::of(&lab.guest), &ended.stderr);
    for kill in 0..kills {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let moment = Duration::from_nanos((random >> 11) % whole);
        // Who was killed early has made none.
        let _ = fs::remove_dir_all(lab.records());
        let campaign = lab.program(CHANGES, &[]).start();
        std::thread::sleep(moment);
        campaign.signal(libc::SIGKILL);
        drop(campaign);
        let restored = lab
            .linerate(&["lab", "restore", "LAB.toml"])
            .run()
            .no_panic();
        // The input of a command that had not begun: the guest removes it within a minute.
        lab.guest
            .on("n=0; while ls /tmp/linerate.* && [ $((n += 1)) -lt 100 ]; do sleep 1; done >/dev/null 2>&1");
        let remains = before.differences_but_waiting(
            &State::of(&lab.guest),
            &(restored.stdout.clone() + &restored.stderr),
        );
        println!(
            "killed after {moment:.1?}: {}{}",
            restored.stdout, restored.stderr
        );
        all.extend(
            remains
                .iter()
                .map(|line| format!("kill {kill}, after {moment:.1?}: {line}")),
        );
    }
    all
}

/// All plans and five kills.
fn on(kernel: &'static str, card: Card) {
    let mut wrong = Vec::new();
    let stand = Stand { kernel, card };
    let lab = GuestLab::router(stand);
    let mut add = |of: &str, faults: Vec<String>| {
        faults
            .iter()
            .for_each(|fault| println!("{stand}: {of}: {fault}"));
        wrong.extend(faults.into_iter().map(|fault| format!("{of}: {fault}")));
    };
    let mut state = State::of(&lab.guest);
    for plan in plans() {
        let (faults, after) = faults(&lab, &plan, &state);
        add(plan.file_stem().unwrap().to_str().unwrap(), faults);
        state = after;
    }
    let seed = format!("{stand}")
        .bytes()
        .fold(0, |seed, byte| 256 * (seed % (1 << 40)) + u64::from(byte));
    add("killed", remains(&lab, 5, seed));
    assert!(
        wrong.is_empty(),
        "{stand}: {} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A test for each kernel and card, where these are there.
macro_rules! stands {
    ($there:meta: $reason:literal; $($name:ident: $kernel:literal, $card:expr;)*) => {$(
        #[test]
        #[cfg_attr($there, ignore = "needs root")]
        #[cfg_attr(not($there), ignore = $reason)]
        fn $name() {
            on($kernel, $card);
        }
    )*};
}

stands! {
    stands: "needs qemu-system-x86 and Debian's kernels: scripts/stand 6.1 6.12";
    takes_minutes_plans_and_kills_on_virtio_of_6_1: "6.1", VIRTIO;
    takes_minutes_plans_and_kills_on_virtio_of_6_12: "6.12", VIRTIO;
    takes_minutes_plans_and_kills_on_vmxnet3_of_6_1: "6.1", VMXNET3;
    takes_minutes_plans_and_kills_on_vmxnet3_of_6_12: "6.12", VMXNET3;
    takes_minutes_plans_and_kills_on_e1000e_of_6_1: "6.1", E1000E;
    takes_minutes_plans_and_kills_on_e1000e_of_6_12: "6.12", E1000E;
    takes_minutes_plans_and_kills_on_e1000_of_6_1: "6.1", E1000;
    takes_minutes_plans_and_kills_on_e1000_of_6_12: "6.12", E1000;
}

stands! {
    all(stands, igb): "needs QEMU 8 and Debian's kernels: scripts/stand 6.1 6.12 igb";
    takes_minutes_plans_and_kills_on_igb_of_6_1: "6.1", IGB;
    takes_minutes_plans_and_kills_on_igb_of_6_12: "6.12", IGB;
}
