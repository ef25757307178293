//! Frames are merged on reception and cut up again (LRO, GRO).

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["skb_gso_segment", "__skb_gso_segment", "skb_mac_gso_segment", "udp4_ufo_fragment", "tcp_lro_*", "skb_gro_receive*"])?;
    if !spent.is_clear(0.02) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "Received frames are merged and then cut up again.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "LRO and GRO join frames of a flow. A router must send them as they came: it restores the frames before it sends them. This pays for long TCP flows, not for short frames, and LRO breaks the end-to-end principle.".into(),
        changes: vec![
            change("Linux", "ethtool -K IF lro off rx-udp-gro-forwarding off", "ethtool -K IF lro on rx-udp-gro-forwarding on"),
            change("FreeBSD", "ifconfig IF -lro -tso4 -tso6", "ifconfig IF lro tso4 tso6"),
        ],
        gain: format!("up to {} of a frame's time; 'Tuning FreeBSD for routing and firewalling' (2018, illustration 19) found no difference without TSO and LRO", percent(spent.share)),
        weight: spent.share,
        patch: Some(json!({ "inside": { "udp-gro-forwarding": false } })),
        ..Finding::default()
    }))
}
