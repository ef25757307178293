//! Checksums are computed by the CPU.

use super::{change, cost_or_setting, offload};
use crate::{Case, Examined};
use linerate_measure::record::Finding;
use serde_json::json;

const FUNCTIONS: [&str; 8] = [
    "skb_checksum_help", "__skb_checksum_complete*", "__skb_gro_checksum_complete", "nf_checksum*", "nf_ip_checksum", "nf_ip6_checksum", "in_cksum_skip", "in_delayed_cksum",
];

/// For the shortest frames, GRO takes some 2 % of their time for checksums on interfaces whose cards verify none.
const LEAST: f64 = 0.04;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = offload(case, ["rx-checksumming", "tx-checksumming"], false);
    let Some(found) = cost_or_setting(case.spent(&FUNCTIONS), LEAST, setting)? else { return Ok(None) };
    let turned_off = ["/inside/rx-checksum", "/inside/tx-checksum", "/outside/tx-checksum"].into_iter().any(|place| case.setting(place) == Some(&json!(false)));
    let tracks = ["stateful", "nat"].iter().any(|kind| case.setting("/rules/kind").is_some_and(|set| set == kind));
    let patch = match case.inside().is_ok_and(|card| card.kind.is_some()) && !turned_off {
        // A virtual interface has no card: GRO and connection tracking verify its frames.
        true if tracks => json!({ "interface": { "gro": false }, "sysctls": { "net.netfilter.nf_conntrack_checksum": 0 } }),
        true => json!({ "interface": { "gro": false } }),
        false => json!({ "interface": { "rx-checksum": true, "tx-checksum": true } }),
    };
    Ok(Some(Finding {
        statement: "The CPU computes checksums that the card could compute.".into(),
        mechanism: "Without checksum offload, the CPU reads the whole frame, which it otherwise touches only in its header.".into(),
        changes: vec![
            change("Linux", "ethtool -K IF rx on tx on", "ethtool -K IF rx off tx off"),
            change("Linux (virtual interfaces, which have no card)", "ethtool -K IF gro off; sysctl net.netfilter.nf_conntrack_checksum=0", "ethtool -K IF gro on; sysctl net.netfilter.nf_conntrack_checksum=1"),
            change("FreeBSD", "ifconfig IF rxcsum txcsum", "ifconfig IF -rxcsum -txcsum"),
        ],
        patch: Some(patch),
        ..found
    }))
}
