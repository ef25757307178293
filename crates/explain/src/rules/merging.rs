//! Frames are merged on reception and cut up again (LRO, GRO).

use super::{and_elsewhere, change, cost_or_setting, offload};
use crate::{Case, Examined};
use linerate_measure::experiment::System;
use linerate_measure::record::Finding;
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = offload(case, ["large-receive-offload", "rx-udp-gro-forwarding"], true);
    let Some(found) = cost_or_setting(case.spent(&["skb_gso_segment", "__skb_gso_segment", "skb_mac_gso_segment", "udp4_ufo_fragment", "tcp_lro_*", "skb_gro_receive*"]), 0.02, setting)? else { return Ok(None) };
    Ok(Some(Finding {
        statement: "Received frames are merged and then cut up again.".into(),
        mechanism: "LRO and GRO join frames of a flow. A router must send them as they came: it restores the frames before it sends them. This pays for long TCP flows, not for short frames, and LRO breaks the end-to-end principle.".into(),
        changes: vec![
            change("Linux", "ethtool -K IF lro off rx-udp-gro-forwarding off", "ethtool -K IF lro on rx-udp-gro-forwarding on"),
            change("FreeBSD", "ifconfig IF -lro -tso4 -tso6", "ifconfig IF lro tso4 tso6"),
        ],
        gain: and_elsewhere(&found.gain, "no difference without TSO and LRO ('Tuning FreeBSD for routing and firewalling', 2018, illustration 19)"),
        patch: Some(match case.system() {
            System::Linux | System::Vyos => json!({ "interface": { "udp-gro-forwarding": false } }),
            System::OpenBsd => json!({ "interface": { "lro": false } }),
            System::FreeBsd | System::PfSense | System::OpnSense => json!({ "interface": { "lro": false, "tso": false } }),
        }),
        ..found
    }))
}
