//! Checksums are computed by the CPU.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["skb_checksum_help", "__skb_checksum_complete", "in_cksum_skip", "in_delayed_cksum"])?;
    if !spent.is_clear(0.02) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "The CPU computes checksums that the card could compute.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "Without checksum offload, the CPU reads the whole frame, which it otherwise touches only in its header.".into(),
        changes: vec![
            change("Linux", "ethtool -K IF rx on tx on", "ethtool -K IF rx off tx off"),
            change("FreeBSD", "ifconfig IF rxcsum txcsum", "ifconfig IF -rxcsum -txcsum"),
        ],
        gain: format!("up to {} of a frame's time; more for longer frames", percent(spent.share)),
        weight: spent.share,
        patch: Some(json!({ "inside": { "rx-checksum": true }, "outside": { "tx-checksum": true } })),
        ..Finding::default()
    }))
}
