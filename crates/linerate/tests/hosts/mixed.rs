//! One host with linerate, and others with other tools.

use super::lab::{RealLab, reset};
use super::site::trials;
use std::fs;

const PLAN: &str = r#"
title = "A router at a known rate"
question = "Does it lose any?"

[lab]
file = "LAB.toml"
systems = ["linux"]

[variants.forwarding]
about = "the kernel's routing, no firewall"

[traffic]
rate = "2 kpps"
flows = 1

[trials]
duration = "2 s"
blocks = 1
"#;

/// pkt-gen's lines about frames that really arrive, by the interface's own counter: stands in for a receiver on a host without
/// linerate.
const COUNTER: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -i ] && link=$2; shift; done
count() { n=$(awk -v link="$link:" '$1 == link { print $3 }' /proc/net/dev); }
line() { echo "$(date +%s.%6N | tail -c 11) main_thread [2277] $1 pps ($1 pkts $(($1 * 480)) bps in 1000000 usec) 1.00 avg_batch 0 min_space"; }
count; first=$n last=$n begun=$(date +%s)
trap 'count; all=$((n - first)); echo "Received $all packets $((all * 60)) bytes 9 events 60 bytes each in $(($(date +%s) - begun)).00 seconds."; exit 0' INT
echo "000.000001 start_threads [2237] Ready..."
while sleep 1; do count; line $((n - last)); last=$n; done
"#;

/// The lab with other tools named in its file.
fn lab_with(tools: [&str; 2]) -> RealLab {
    let lab = RealLab::new();
    let file = lab.scratch.file("LAB.toml");
    let mut tools = tools.into_iter();
    let text = fs::read_to_string(&file).unwrap();
    let line = |line: &str| match line.starts_with("tool = ") {
        true => format!("tool = \"{}\"\n", tools.next().unwrap()),
        false => format!("{line}\n"),
    };
    fs::write(&file, text.lines().map(line).collect::<String>()).unwrap();
    lab
}

/// At the rate that was asked, on a machine that has nothing else to do.
#[track_caller]
fn measures_the_rate(lab: &RealLab, sends: &str, counts: &str) {
    let plan = PLAN
        .replace("2 kpps", "20 kpps")
        .replace("blocks = 1", "blocks = 2");
    for trial in measures(lab, &plan, sends, counts) {
        assert_eq!(trial["audit"]["valid"], true, "{:#}", trial["audit"]);
        // trafgen's are taken to be even.
        for rate in ["offered", "received"] {
            let rate = trial["rates"][rate].as_f64().unwrap();
            assert!(
                (rate / 20_000.0 - 1.0).abs() < 0.2,
                "{rate}: {:#}",
                trial["rates"]
            );
        }
    }
}

/// The trials of a plan: every frame is counted at each place.
#[track_caller]
fn measures(lab: &RealLab, plan: &str, sends: &str, counts: &str) -> Vec<serde_json::Value> {
    let ended = lab.run(plan, &[]);
    // 1: a generator that other work delays by a hundredth of a second has not offered the requested load.
    assert!(
        matches!(ended.status.code(), Some(0 | 1)),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    let recorded = trials(&lab.records());
    assert!(!recorded.is_empty(), "{}{}", ended.stdout, ended.stderr);
    for trial in &recorded {
        let frames = |side: &str| trial[side]["frames"].as_u64().unwrap();
        assert!(
            frames("generator") > 100 && frames("receiver") >= frames("generator"),
            "{trial:#}"
        );
        assert!(
            trial["dut"]["in0: rx_packets"].as_u64() >= Some(frames("generator")),
            "{trial:#}"
        );
    }
    let campaign = fs::read_to_string(lab.scratch.file("records/campaign.json")).unwrap();
    let campaign: serde_json::Value = serde_json::from_str(&campaign).unwrap();
    let asked = &campaign["asked"];
    assert_eq!(
        [&asked["generator"], &asked["receiver"]],
        [sends, counts],
        "{asked:#}"
    );
    for host in &lab.ssh.hosts {
        let loads = ["linerate send", "linerate receive", "trafgen", "pkt-gen"];
        assert_eq!(
            loads.map(|load| host.running(load)),
            [0; 4],
            "{:?}",
            host.processes()
        );
    }
    recorded
}

#[test]
#[ignore = "needs root, openssh-server and trafgen"]
fn figures_linerate_counts_what_trafgen_sends() {
    measures_the_rate(&lab_with(["trafgen", "linerate"]), "trafgen", "xdp");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_counter_of_another_kind_counts_what_linerate_sends() {
    let lab = lab_with(["linerate", "pkt-gen"]);
    lab.ssh.hosts[2].stand_in("pkt-gen", COUNTER);
    measures(&lab, PLAN, "linerate", "pkt-gen");
}

#[test]
#[ignore = "needs root and openssh-server"]
fn figures_a_counter_of_another_kind_finds_the_rate_that_linerate_sends() {
    let lab = lab_with(["linerate", "pkt-gen"]);
    lab.ssh.hosts[2].stand_in("pkt-gen", COUNTER);
    measures_the_rate(&lab, "linerate", "pkt-gen");
}

/// Under load, the router stops forwarding for a while, or its link is down; afterwards its settings are restored.
#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_an_event_happens_to_a_host_under_load_and_is_undone() {
    for event in [
        r#"what = "forwarding-off", for = "100 ms""#,
        r#"what = "link-down", for = "100 ms", end = "out""#,
    ] {
        let lab = RealLab::new();
        let ended = lab.run(&reset(event), &[]);
        let all = trials(&lab.records());
        let reset: Vec<_> = all
            .iter()
            .filter(|trial| trial["benchmark"] == "reset")
            .collect();
        let last = reset
            .last()
            .unwrap_or_else(|| panic!("{}{}", ended.stdout, ended.stderr));
        let ns = |value: &serde_json::Value| value.as_u64().unwrap();
        let (event, outage) = (&last["event"], &last["receiver"]["outages"][0]);
        assert_eq!(event["class"], "interruption", "{last:#}");
        let lasted = ns(&event["ended_ns"]) - ns(&event["began_ns"]);
        let out = ns(&outage["to_ns"]) - ns(&outage["from_ns"]);
        assert!(
            (100_000_000..=lasted).contains(&out),
            "{out} ns within {lasted} ns: {last:#}"
        );
        lab.is_as_it_was();
    }
}

/// No daemon forwards here: no frame is lost, and a new daemon runs. The killed one may wait for a busy init.
#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_a_process_of_a_host_is_killed_under_load_and_started_again() {
    let lab = RealLab::new();
    let daemon = lab.scratch.file("lr-bgpd");
    let start = format!("setsid {daemon} 120 >/dev/null 2>&1 & sleep 0.1");
    lab.on("dut", &format!("cp /bin/sleep {daemon}; {start}"));
    let before = lab.on("dut", "pgrep -x lr-bgpd");
    let ended = lab.run(
        &reset(&format!(
            "what = \"process-killed\", process = \"lr-bgpd\", run = \"{start}\""
        )),
        &[],
    );
    let after = lab.on("dut", "pgrep -r R,S -x lr-bgpd; pkill -KILL -x lr-bgpd");
    let all = trials(&lab.records());
    let last = all
        .last()
        .unwrap_or_else(|| panic!("{}{}", ended.stdout, ended.stderr));
    let one = before.lines().count() == 1 && after.lines().count() == 1 && before != after;
    assert!(one, "{before}{after}{all:#?}");
    assert_eq!(
        (&last["benchmark"], &last["event"]["class"]),
        (&"reset".into(), &"process-reset".into()),
        "{last:#}"
    );
    assert_eq!(last["loss_ratio"], 0.0, "{last:#}");
}

/// linerate refuses before the first trial, not after hours of throughput.
#[test]
#[ignore = "needs root, openssh-server and trafgen"]
fn tests_that_a_lab_cannot_make_are_refused_at_once() {
    let lab = lab_with(["trafgen", "linerate"]);
    let plan = reset("what = \"link-down\"").replace("\"reset\"", "\"latency\"");
    let ended = lab.run(&plan, &[]);
    let says = "the test latency is not possible: delays of single frames need linerate on generator and receiver";
    assert!(
        ended.status.code() == Some(2) && ended.stderr.contains(says),
        "{}",
        ended.stderr
    );
    let ended = lab.run(&reset("what = \"power-off\""), &[]);
    let says = "the test reset is not possible";
    assert!(
        ended.status.code() == Some(2) && ended.stderr.contains(says),
        "{}",
        ended.stderr
    );
}
