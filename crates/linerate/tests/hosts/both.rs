//! Frames in both directions at once between hosts: each end sends and counts.

use super::lab::RealLab;
use crate::common::campaign::faults;
use crate::common::wait_for;
use linerate_linux::net::netlink::Route;
use serde_json::{Value, json};
use std::fs;

/// Both directions at a low rate: without rules, with stateful rules, and with rules that drop a tenth of one direction.
const PLAN: &str = r#"
title = "Both directions"
question = "Where is what lost?"

[lab]
file = "LAB.toml"
systems = ["linux"]

[traffic]
direction = "both"
rate = "1 kpps"
flows = 100

[variants.forwarding]
about = "the kernel's routing, no firewall"

[variants.stateful]
rules = { tool = "nftables", filter = "stateful" }

[variants.lossy]
commands = [{ run = "nft add table inet l; nft add chain inet l c '{ type filter hook forward priority 0; }'; nft add rule inet l c iifname {out} numgen inc mod 10 0 drop", undo = "nft delete table inet l" }]

[trials]
duration = "200 ms"
blocks = 1
"#;

/// The plan with a variant alone.
fn only(variant: &str) -> String {
    let [first, last] = ["[variants.forwarding]", "[trials]"].map(|part| PLAN.find(part).unwrap());
    let own = PLAN.find(&format!("[variants.{variant}]")).unwrap();
    let rest = &PLAN[own + 1..last];
    let own_end = rest.find("\n[").map_or(last, |end| own + 1 + end);
    [&PLAN[..first], &PLAN[own..own_end], "\n\n", &PLAN[last..]].concat()
}

/// Frames sent, received and lost in a direction.
fn counts(trial: &Value, way: usize) -> [u64; 3] {
    ["sent", "received", "lost"].map(|count| trial["directions"][way][count].as_u64().unwrap())
}

/// By all counts, every frame of each direction is received or lost at a known place.
#[track_caller]
fn conserved(trial: &Value) {
    assert_eq!(faults(trial), "");
    let ways = [0, 1].map(|way| counts(trial, way));
    for (way, [sent, received, lost]) in ways.iter().enumerate() {
        assert!(*sent > 0, "{trial:#}");
        let losses = trial["directions"][way]["losses"].as_array().unwrap();
        let located: u64 = losses
            .iter()
            .map(|loss| loss["frames"].as_u64().unwrap())
            .sum();
        assert_eq!((received + lost, located), (*sent, *lost), "{trial:#}");
    }
    let sum = |at: usize| ways[0][at] + ways[1][at];
    let frames = |end: &str| trial[end]["frames"].as_u64().unwrap();
    assert_eq!(
        (frames("generator"), frames("receiver")),
        (sum(0), sum(1)),
        "{trial:#}"
    );
    // The DUT's own counts, which have a few frames of others as well.
    for (counter, frames) in [
        ("in0: rx_packets", ways[0][0]),
        ("out0: tx_packets", ways[0][1]),
        ("out0: rx_packets", ways[1][0]),
        ("in0: tx_packets", ways[1][1]),
    ] {
        let counted = trial["dut"][counter].as_u64().unwrap();
        assert!(
            (frames..frames + 100).contains(&counted),
            "{counter}: {counted}, {frames}"
        );
    }
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn frames_of_both_directions_are_accounted_for_and_one_ways_loss_is_its_own() {
    let lab = RealLab::new();
    let ended = lab.run(PLAN, &[]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 3, "{}{}", ended.stdout, ended.stderr);
    for trial in &trials {
        conserved(trial);
        let [[_, _, forward], [sent, _, reverse]] = [0, 1].map(|way| counts(trial, way));
        assert_eq!(forward, 0, "{trial:#}");
        let lossy = trial["slot"] == 2;
        assert!(
            if lossy {
                reverse.abs_diff(sent / 10) <= 1
            } else {
                reverse == 0
            },
            "{reverse} of {sent}"
        );
        let losses = &trial["directions"][1]["losses"];
        assert!(
            !lossy || losses[0]["place"] == "inside the DUT" && losses[1].is_null(),
            "{losses}"
        );
        let states = &trial["connections"]["states"];
        assert_eq!(
            *states,
            if trial["slot"] == 1 {
                json!("established")
            } else {
                Value::Null
            }
        );
    }
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root and openssh-server"]
fn one_host_or_several_send_and_count_at_each_side() {
    for (lab, streams) in [
        (RealLab::with_one_tester(), 2),
        (RealLab::with_two_generators(), 4),
    ] {
        let ended = lab.run(&only("forwarding"), &[]);
        let trials = lab.trials();
        assert_eq!(trials.len(), 1, "{}{}", ended.stdout, ended.stderr);
        conserved(&trials[0]);
        assert_eq!([0, 1].map(|way| counts(&trials[0], way)[2]), [0, 0]);
        assert_eq!(
            trials[0]["generator"]["streams"].as_array().unwrap().len(),
            streams
        );
        lab.is_as_it_was();
    }
}

/// IPv6 mixed with IPv4, with random addresses, ports and Ethernet sources, in both directions.
#[test]
#[ignore = "needs root and openssh-server"]
fn versions_are_mixed_between_hosts() {
    let lab = RealLab::with_ipv6();
    let mix = "ipv6-share = \"30 %\"\naddresses = \"random\"\nports = \"random\"\nsource-macs = \"random\"\nsize = \"128 B\"";
    for port in ["linerate", "af-packet"] {
        let file = fs::read_to_string(lab.scratch.file("LAB.toml")).unwrap();
        lab.write(
            "LAB.toml",
            &file.replace("tool = \"linerate\"", &format!("tool = \"{port}\"")),
        );
        let ended = lab.run(
            &only("forwarding").replace("[traffic]", &format!("[traffic]\n{mix}")),
            &[],
        );
        lab.write("LAB.toml", &file);
        let trials = lab.trials();
        assert_eq!(trials.len(), 1, "{}{}", ended.stdout, ended.stderr);
        conserved(&trials[0]);
        let sent = &trials[0]["generator"];
        let streams = sent["streams"].as_array().unwrap();
        let ipv6 = streams.iter().filter(|stream| stream["ipv6"] == true);
        let ipv6: u64 = ipv6.map(|stream| stream["frames"].as_u64().unwrap()).sum();
        let asked = sent["frames"].as_u64().unwrap() * 3 / 10;
        assert!(
            streams.len() == 4 && ipv6.abs_diff(asked) <= 2,
            "{ipv6} of {asked}: {sent:#}"
        );
        std::fs::remove_dir_all(lab.records()).unwrap();
    }
    lab.is_as_it_was();
}

/// Before anything is sent, with the reason.
#[test]
#[ignore = "needs root and openssh-server"]
fn hosts_that_cannot_send_and_count_at_once_are_refused() {
    let lab = RealLab::new();
    let file = fs::read_to_string(lab.scratch.file("LAB.toml")).unwrap();
    for host in &lab.ssh.hosts {
        host.stand_in("pkt-gen", "#!/bin/sh\nexit 1\n");
    }
    for (tool, why) in [
        ("pkt-gen", "cannot send and count at once"),
        ("af-xdp", "a queue has only one such socket"),
    ] {
        lab.write(
            "LAB.toml",
            &file.replacen("tool = \"linerate\"", &format!("tool = \"{tool}\""), 1),
        );
        let says = [
            &*format!("cannot be measured with {tool} on generator"),
            why,
        ];
        lab.run(&only("forwarding"), &[]).fails(2, &says);
        for verb in ["check", "show"] {
            let read = lab.linerate(&["plan", verb, "plan.toml", "--lab", "LAB.toml"]);
            read.run().fails(2, &says);
        }
        assert!(!std::path::Path::new(&lab.records()).exists());
    }
    lab.is_as_it_was();
}

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn an_interrupt_and_a_lost_end_stop_both_directions() {
    let mut lab = RealLab::new();
    let plan = only("lossy").replace("200 ms", "20 s");
    let is_under_load = |lab: &RealLab| {
        let sent = || {
            [(0, "g0"), (2, "r0")].map(|(host, card)| {
                let route = Route::open(&lab.ssh.hosts[host].netns).unwrap();
                route.link(card).unwrap().stats.tx_packets
            })
        };
        let before = sent();
        wait_for("both to send", || {
            let now = sent();
            // More than the flows that the DUT is shown.
            now.iter()
                .zip(&before)
                .all(|(now, before)| *now > before + 500)
                .then_some(())
        });
    };
    let running = lab.program(&plan, &[]).start();
    is_under_load(&lab);
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().no_panic().status.code(), Some(130));
    lab.is_as_it_was();

    fs::remove_dir_all(lab.records()).unwrap_or_default();
    let running = lab.program(&plan, &[]).start();
    is_under_load(&lab);
    lab.site.ssh.host("receiver").kill_sshd();
    let ended = running.wait().no_panic();
    assert!(
        ended.status.code() == Some(1) && ended.stderr.contains("receiver: "),
        "{}",
        ended.stderr
    );
    let agents = |lab: &RealLab| {
        lab.ssh
            .hosts
            .iter()
            .map(|host| host.running("linerate agent"))
            .sum::<usize>()
    };
    wait_for("loads to end", || (agents(&lab) == 0).then_some(()));
    lab.is_as_it_was();
}
