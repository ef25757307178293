//! The table of connections is full, or its hash is small.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Counters of frames without a place in the table.
const FULL: [&str; 3] = ["Conntrack.drop", "Conntrack.early_drop", "Conntrack.insert_failed"];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let ends = |name: &str| FULL.iter().any(|counter| name.ends_with(counter));
    let counted = case.counted(ends)?;
    let (frames, sent) = (counted.values().sum::<u64>(), case.sent().max(1) as f64);
    let share = (frames as f64 / sent).min(1.0);
    if share < 0.001 {
        return Ok(None);
    }
    // A connection that cannot be inserted is dropped as well: another has its addresses and ports.
    let refused: u64 = counted.iter().filter(|(name, _)| name.ends_with("insert_failed")).map(|(_, n)| *n).sum();
    let clash = 3 * refused > frames;
    let patch = case.setting("/rules/firewall").filter(|_| !clash).map(|_| json!({ "rules": { "states": 2 * case.flows(), "hash": "sized" } }));
    let untried = match clash {
        true => "the addresses of the translation are the network's: a plan cannot choose more",
        false => "the plan has no rules whose table it could enlarge",
    };
    Ok(Some(Finding {
        statement: match clash {
            true => "Connections are not entered into the table: others have their addresses and ports already. Address translation finds no free port.".into(),
            false => "The table of connections has no room for all flows.".into(),
        },
        strength: Strength::Observed,
        evidence: counted.iter().map(|(name, n)| format!("{name}: {n} ({} of the frames sent)", percent(*n as f64 / sent))).collect(),
        mechanism: "A flow without an entry is looked up, refused and dropped, or takes the place of another flow, for each of its frames.".into(),
        changes: if clash { vec![change("Linux (nftables)", "snat to more addresses, or to all ports: snat to ADDRESS-ADDRESS", "the former rule")] } else { vec![
            change("Linux", "sysctl net.netfilter.nf_conntrack_max=N net.netfilter.nf_conntrack_buckets=N", "sysctl with the former values"),
            change("FreeBSD, OpenBSD (pf)", "set limit states N in pf.conf; net.pf.states_hashsize=N in loader.conf", "the former lines"),
            change("FreeBSD (ipfw)", "sysctl net.inet.ip.fw.dyn_max=N net.inet.ip.fw.dyn_buckets=N", "sysctl with the former values"),
        ] },
        gain: format!("{} of the frames were affected", percent(share)),
        weight: share,
        untried: patch.is_none().then(|| untried.into()),
        patch,
        ..Finding::default()
    }))
}
