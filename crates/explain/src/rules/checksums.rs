//! Checksums are computed by the CPU.

use super::{change, cost_or_setting};
use crate::{Case, Examined};
use linerate_hosts::configuration::Card;
use linerate_measure::record::Finding;
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configuration().map(|found| {
        let offloads = ["rx-checksumming", "tx-checksumming"];
        let off = |card: &Card| offloads.into_iter().find(|feature| card.features.get(*feature) == Some(&false)).map(|feature| format!("{}: {feature} is off", card.name));
        found.cards.iter().find_map(off)
    });
    let Some(found) = cost_or_setting(case.spent(&["skb_checksum_help", "__skb_checksum_complete", "in_cksum_skip", "in_delayed_cksum"]), 0.02, setting)? else { return Ok(None) };
    Ok(Some(Finding {
        statement: "The CPU computes checksums that the card could compute.".into(),
        mechanism: "Without checksum offload, the CPU reads the whole frame, which it otherwise touches only in its header.".into(),
        changes: vec![
            change("Linux", "ethtool -K IF rx on tx on", "ethtool -K IF rx off tx off"),
            change("FreeBSD", "ifconfig IF rxcsum txcsum", "ifconfig IF -rxcsum -txcsum"),
        ],
        patch: Some(json!({ "interface": { "rx-checksum": true, "tx-checksum": true } })),
        ..found
    }))
}
