//! The table of connections is full, or its hash is small.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Counters of frames without a place in the table.
const FULL: [&str; 3] = ["Conntrack.drop", "Conntrack.early_drop", "Conntrack.insert_failed"];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let ends = |name: &str| FULL.iter().any(|counter| name.ends_with(counter));
    let counted = case.counted(ends);
    let (frames, sent) = (counted.values().sum::<u64>(), case.sent().max(1) as f64);
    let share = (frames as f64 / sent).min(1.0);
    if share < 0.001 {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "The table of connections has no room for all flows.".into(),
        strength: Strength::Observed,
        evidence: counted.iter().map(|(name, n)| format!("{name}: {n} ({} of the frames sent)", percent(*n as f64 / sent))).collect(),
        mechanism: "A flow without an entry is looked up, refused and dropped, or takes the place of another flow, for each of its frames.".into(),
        changes: vec![
            change("Linux", "sysctl net.netfilter.nf_conntrack_max=N net.netfilter.nf_conntrack_buckets=N", "sysctl with the former values"),
            change("FreeBSD, OpenBSD (pf)", "set limit states N in pf.conf; net.pf.states_hashsize=N in loader.conf", "the former lines"),
            change("FreeBSD (ipfw)", "sysctl net.inet.ip.fw.dyn_max=N net.inet.ip.fw.dyn_buckets=N", "sysctl with the former values"),
        ],
        gain: format!("{} of the frames were affected", percent(share)),
        weight: share,
        patch: case.setting("/rules/firewall").map(|_| json!({ "rules": { "states": 2 * case.flows(), "hash": "sized" } })),
        ..Finding::default()
    }))
}
