//! Kinds of DUT on a Linux host, with real frames: its interfaces move, and come back with all that they had.

use super::lab::{LAB, RealLab, gentle};
use crate::common::{own_machine, wait_for};
use serde_json::Value;

/// Everything that the kernel knows by interface.
fn state(lab: &RealLab) -> String {
    lab.on(
        "dut",
        "for i in in0 out0; do ip -br link show $i; ip -o addr show $i scope global; ip neigh show dev $i nud permanent
        grep . /proc/sys/net/ipv4/conf/$i/*; done 2>/dev/null | sed 's/@if[0-9]*//; s/^[0-9]*://'
        ip route; sysctl -n net.ipv4.ip_forward; ip netns list | grep -c '^linerate' || true; ip -o link | wc -l",
    )
}

fn plan(kind: &str) -> String {
    let rules = gentle().find("[variants.rules]").unwrap()..gentle().find("[compare]").unwrap();
    let blocks = "blocks = 1\norder = \"sequential\"";
    let mut plan = gentle()
        .replace("blocks = 8", blocks)
        .replace("200 ms", "100 ms");
    plan.replace_range(
        rules,
        &format!("[variants.{kind}]\ndut = \"{kind}\"\n\n[collect]\ncommands = [\"ip -br link; ip netns list\"]\n\n"),
    );
    plan
}

fn said(trial: &Value) -> &str {
    trial["collected"][0]["output"]["Ok"].as_str().unwrap()
}

/// Each kind, and the interface or namespace that shows it.
const KINDS: [(&str, &str); 3] = [
    ("nested", "linerate"),
    ("routed-bridge", "linerate0"),
    ("bridge", "linerate0"),
];

#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_frames_pass_kinds_and_all_comes_back() {
    pass(&KINDS[..2]);
}

#[test]
#[ignore = "needs root and openssh-server: run by make test-long as root"]
fn takes_minutes_frames_pass_each_kind_and_all_comes_back() {
    pass(&KINDS);
}

fn pass(kinds: &[(&str, &str)]) {
    own_machine();
    let lab = RealLab::new();
    // A busy machine may keep a host from answering for long.
    lab.write(
        "LAB.toml",
        &LAB.replace("timeout = \"5 s\"", "timeout = \"60 s\""),
    );
    // The label of an address comes back as well.
    lab.on("dut", "ip addr add 198.18.0.77/32 dev in0 label in0:1");
    let before = state(&lab);
    for (kind, shown) in kinds {
        let _ = std::fs::remove_dir_all(lab.records());
        let ended = lab.run(&plan(kind), &[]);
        // A busy machine may spoil a trial's rate, but no frame's way.
        let trials = lab.trials();
        assert_eq!(trials.len(), 2, "{kind}: {}", ended.stderr);
        for (trial, stands) in trials.iter().zip([false, true]) {
            let received = trial["receiver"]["frames"].as_u64();
            assert!(
                received > Some(0),
                "{kind}: {received:?}: {}",
                trial["audit"]
            );
            assert_eq!(
                said(trial).contains(shown),
                stands,
                "{kind}: {}",
                said(trial)
            );
            // The cards have counted them, wherever they are.
            let sent = trial["generator"]["frames"].as_u64().unwrap();
            assert!(
                trial["dut"]["in0: rx_packets"].as_u64() >= Some(sent),
                "{kind}: {}",
                trial["dut"]
            );
        }
        assert_eq!(state(&lab), before, "{kind}");
        lab.is_as_it_was();
    }
}

#[test]
#[ignore = "needs root and openssh-server"]
fn takes_minutes_a_nested_router_whose_linerate_was_killed_is_put_back() {
    own_machine();
    let lab = RealLab::new();
    let before = state(&lab);
    let mut running = lab
        .program(&plan("nested").replace("100 ms", "20 s"), &[])
        .start();
    while lab.on("dut", "ip -br link").contains("in0") {
        assert!(running.runs(), "it ended before it moved an interface");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    running.signal(libc::SIGKILL);
    drop(running);
    let gone = || {
        lab.ssh
            .hosts
            .iter()
            .all(|h| h.running("linerate agent") == 0)
    };
    wait_for("agents to go", || gone().then_some(()));
    let ended = lab.linerate(&["lab", "restore", "LAB.toml"]).run().ok();
    assert!(
        ended.stdout.contains("network namespace linerate"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    assert_eq!(state(&lab), before);
}
