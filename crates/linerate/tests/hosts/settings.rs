//! Settings of a Linux DUT: each is read while its variant is measured, and all are afterwards as they were.

use super::lab::{RealLab, gentle};
use crate::common::Ended;
use crate::common::campaign::faults;
use serde_json::Value;

/// A plan of one short trial of each variant, which records what these lines print while it is set up.
fn plan(variants: &str, looks: &str) -> String {
    let (before, after) = (gentle(), "[compare]");
    let (head, _) = before.split_once("[variants.forwarding]").unwrap();
    let (_, trials) = before.split_once(after).unwrap();
    let trials = trials.replace("2 kpps", "200 pps").replace(
        "duration = \"200 ms\"\nblocks = 8",
        "duration = \"50 ms\"\nblocks = 1",
    );
    let order = "order = \"sequential\"";
    format!("{head}{variants}\n[collect]\ncommands = ['''{looks}''']\n\n{after}{trials}\n{order}\n")
}

/// Outputs that were recorded in the trials that were made, in their order.
fn seen(lab: &RealLab) -> Vec<String> {
    let said = |trial: &Value| Some(trial["collected"][0]["output"]["Ok"].as_str()?.to_string());
    lab.trials().iter().filter_map(said).collect()
}

/// Both variants were measured, with nothing wrong but how even the rate was: that is this machine's, on which other tests run.
#[track_caller]
fn are_measured(lab: &RealLab, ended: &Ended) {
    let trials = lab.trials();
    let faults: String = trials.iter().map(faults).collect();
    assert!(
        trials.len() == 2 && faults.is_empty(),
        "{faults}: {}{}",
        ended.stdout,
        ended.stderr
    );
}

/// The second variant runs through no chain of the first, and offloads that go with others come back.
#[test]
#[ignore = "needs root, openssh-server, nft, iptables and ethtool"]
fn no_table_and_no_offload_is_left_behind() {
    let mut lab = RealLab::new();
    // One that is off by default on cards, and one that another keeps off.
    lab.on(
        "dut",
        "ethtool -K in0 tx-tcp-mangleid-segmentation off; ethtool -K out0 tx off",
    );
    lab.look();
    assert!(
        lab.before().contains("off [requested on]"),
        "{}",
        lab.before()
    );
    let variants = "[variants.iptables]\nrules = { tool = \"iptables\", filter = \"nat\", before = 3 }\n\
        interface = { tso = false, tx-checksum = false }\n\n[variants.forwarding]\n";
    let ended = lab.run(&plan(variants, "nft list ruleset; ethtool -k {in}"), &[]);
    are_measured(&lab, &ended);
    let found = seen(&lab);
    assert!(
        found[0].contains("chain FORWARD") && found[0].contains("tx-tcp-segmentation: off"),
        "{found:?}"
    );
    assert!(
        !found[1].contains("chain") && found[1].contains("tx-tcp-segmentation: on"),
        "{found:?}"
    );
    lab.is_as_it_was();
}

/// The ethtool of a card that behaves as e1000e does: while pause frames are negotiated, it passes over the rest. It has no ring but of
/// 256 descriptors, and says that all is well.
const E1000E: &str = r#"#!/bin/sh
state=STATE
[ -e "$state" ] || echo on on on >"$state"
read -r autoneg rx tx <"$state"
case $1 in
-a) printf 'Pause parameters for %s:\nAutonegotiate:\t%s\nRX:\t\t%s\nTX:\t\t%s\nRX negotiated: on\n\n' "$2" $autoneg $rx $tx ;;
-A)
	shift 2
	while [ $# -gt 0 ]; do eval "$1=$2"; shift 2; done
	[ $autoneg = off ] || rx=on tx=on
	echo $autoneg $rx $tx >"$state" ;;
-g) printf 'Ring parameters for %s:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t256\nTX:\t\t256\n' "$2" ;;
-G) ;;
*) exec /usr/sbin/ethtool "$@" ;;
esac
"#;

#[test]
#[ignore = "needs root, openssh-server, nft and ethtool"]
fn settings_that_a_card_passes_over_are_made_or_refused() {
    let lab = RealLab::new();
    let state = lab.scratch.file("pause");
    lab.ssh.hosts[1].stand_in("ethtool", &E1000E.replace("STATE", &state));
    let variants = "[variants.unpaused]\ninterface.in.flow-control = false\n\n[variants.forwarding]\n\n\
        [variants.ring]\ninterface.in.rx-ring = 512\n";
    let ended = lab.run(&plan(variants, "ethtool -a {in}"), &[]);
    assert!(
        ended
            .stderr
            .contains("receive ring of in0 should be 512, and is 256"),
        "{}",
        ended.stderr
    );
    let found = seen(&lab);
    assert_eq!(
        found.len(),
        2,
        "the variant whose ring did not take is not measured: {found:?}"
    );
    for (seen, is) in found.iter().zip(["off", "on"]) {
        let shown = format!("Autonegotiate:\t{is}\nRX:\t\t{is}\nTX:\t\t{is}\n");
        assert!(seen.contains(&shown), "{found:?}");
    }
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "on on on\n");
    lab.is_as_it_was();
}
