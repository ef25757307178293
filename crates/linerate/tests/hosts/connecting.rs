//! Connections between hosts: the client is a program at one host, the server at the other, and each connection is accounted for.

use super::lab::{LAB, RealLab};
use crate::common::campaign::faults;
use crate::common::wait_for;
use serde_json::Value;
use std::fs;

/// Connections at a low rate through a router that drops every tenth SYN/ACK.
const PLAN: &str = r#"
title = "Connections between hosts"
question = "Which fail?"

[lab]
file = "LAB.toml"
systems = ["linux"]

[traffic]
rate = "1 kpps"

[variants.lossy]
commands = [{ run = "nft add table inet l; nft add chain inet l c '{ type filter hook forward priority 0; }'; nft add rule inet l c iifname {out} tcp flags == syn\\|ack numgen inc mod 10 == 0 drop", undo = "nft delete table inet l" }]

[factors.exchange]
about = "the frames of a connection"
sets = "traffic.connections"
levels = ["request", "rst"]

[trials]
duration = "100 ms"
blocks = 1
"#;

/// The plan with a plain router and other lines for the traffic.
fn forwarding(traffic: &str) -> String {
    let plan = PLAN.replace("rate = \"1 kpps\"", traffic);
    let [lossy, trials] = ["[variants.lossy]", "[trials]"].map(|part| plan.find(part).unwrap());
    let variant = "[variants.forwarding]\nabout = \"the kernel's routing, no firewall\"\n\n";
    [&plan[..lossy], variant, &plan[trials..]].concat()
}

/// The connections of a trial: attempted, and how many reached each stage. By all counts, each closed or failed at a known stage.
#[track_caller]
fn conserved(trial: &Value) -> (u64, Vec<u64>) {
    assert_eq!(faults(trial), "");
    let opened = &trial["opened"];
    let numbers = |key: &str| -> Vec<u64> {
        let all = opened[key].as_array().unwrap().iter();
        all.map(|n| n.as_u64().unwrap()).collect()
    };
    let (attempted, reached) = (opened["attempted"].as_u64().unwrap(), numbers("reached"));
    assert!(attempted > 0, "{opened}");
    assert_eq!(numbers("arrived"), reached, "{opened}");
    assert_eq!(trial["generator"]["frames"].as_u64(), Some(attempted));
    assert_eq!(
        trial["receiver"]["frames"].as_u64().as_ref(),
        reached.last(),
        "{opened}"
    );
    (attempted, reached)
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn each_connection_between_hosts_closes_or_fails_at_a_known_frame() {
    let lab = RealLab::new();
    lab.run(PLAN, &[]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        let (attempted, reached) = conserved(trial);
        let failed = attempted - reached[1];
        // The kernel counts SYN/ACKs from 0 on, and the first trial is not the first load.
        let expected = attempted / 10..=attempted.div_ceil(10);
        assert!(expected.contains(&failed), "{}", trial["opened"]);
        let mut stages = vec![attempted - failed; reached.len()];
        stages[0] = attempted;
        assert_eq!(reached, stages);
        assert_eq!(trial["opened"]["timed_by_client"], true);
    }
    lab.is_as_it_was();

    // As many as the router takes; a busy machine may spoil the rate, but no connection's way.
    fs::remove_dir_all(lab.records()).unwrap();
    let fast = forwarding("connections = \"udp\"");
    lab.run(&fast, &[]);
    let (attempted, reached) = conserved(&lab.trials()[0]);
    assert!(reached[1] <= reached[0] && reached[0] <= attempted);

    // An interrupt ends the load and takes the programs off.
    let long = fast.replace("100 ms", "60 s");
    let has_programs = |host, link: &str| {
        lab.on(host, &format!("ip link show {link}"))
            .contains("xdp")
    };
    fs::remove_dir_all(lab.records()).unwrap();
    let running = lab.program(&long, &[]).start();
    wait_for("the client's program", || {
        has_programs("generator", "g0").then_some(())
    });
    running.signal(libc::SIGINT);
    running.wait().status(130);
    assert!(!has_programs("generator", "g0") && !has_programs("receiver", "r0"));
    lab.is_as_it_was();

    let (first, receiver) = LAB.split_once("[hosts.receiver]").unwrap();
    let receiver = receiver.replace("tool = \"linerate\"", "tool = \"af-packet\"");
    lab.write("LAB.toml", &[first, "[hosts.receiver]", &receiver].concat());
    fs::remove_dir_all(lab.records()).unwrap();
    lab.run(&fast, &[]).fails(
        2,
        &["connections cannot be opened with af-packet on receiver"],
    );
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn one_host_with_both_ends_times_connections_by_its_clock() {
    let lab = RealLab::with_one_tester();
    lab.run(
        &forwarding("connections = \"request\"\nrate = \"1 kpps\""),
        &[],
    );
    let trial = &lab.trials()[0];
    let (attempted, reached) = conserved(trial);
    assert_eq!(reached, [attempted; 6]);
    assert_eq!(trial["opened"]["timed_by_client"], Value::Null);
    assert!(
        trial["receiver"]["latency"]["buckets"][0].is_array(),
        "{trial:#}"
    );
    lab.is_as_it_was();
}
