//! The table of neighbours is too small, or neighbours do not answer.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Endings of the counters of /proc/net/stat/arp_cache and ndisc_cache.
const TROUBLE: [&str; 4] = ["table_fulls", "res_failed", "unresolved_discards", "forced_gc_runs"];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let counted = case.counted(|name| TROUBLE.iter().any(|end| name.ends_with(end)))?;
    let events: u64 = counted.values().sum();
    let reasons: Vec<(&str, f64)> = case.kernel_drops().into_iter().filter(|(name, _)| name.contains("NEIGH_")).collect();
    let dropped: f64 = reasons.iter().map(|(_, part)| part).sum();
    let share = (events as f64 / case.sent().max(1) as f64).max(dropped).min(1.0);
    if share < 0.001 {
        return Ok(None);
    }
    let small = counted.iter().any(|(name, n)| *n > 0 && (name.ends_with("table_fulls") || name.ends_with("forced_gc_runs")));
    let (patch, untried) = match small {
        true => {
            let sizes = [(1, 65_536), (2, 131_072), (3, 262_144)];
            let larger = ["ipv4", "ipv6"].into_iter().flat_map(|of| sizes.map(|(n, size)| (format!("net.{of}.neigh.default.gc_thresh{n}"), json!(size))));
            (Some(json!({ "sysctls": larger.collect::<serde_json::Map<_, _>>() })), None)
        }
        false => (None, Some("the next hop must answer, and no setting of the DUT makes it answer".into())),
    };
    Ok(Some(Finding {
        statement: "The DUT does not find the next hop of all frames in its table of neighbours.".into(),
        strength: Strength::Observed,
        evidence: counted.iter().filter(|(_, n)| **n > 0).map(|(name, n)| format!("{name}: {n}"))
            .chain(reasons.iter().map(|(name, part)| format!("the kernel's reason: {name}, {} of the frames", percent(*part)))).collect(),
        mechanism: "A frame to an unknown neighbour waits for ARP or neighbour discovery, and is dropped without an answer. A full table throws entries out that are needed again.".into(),
        changes: vec![change(
            "Linux",
            "ip neigh show dev IF names those that do not answer (FAILED, INCOMPLETE); for a table that is too small: sysctl net.ipv4.neigh.default.gc_thresh1=N net.ipv4.neigh.default.gc_thresh2=2N net.ipv4.neigh.default.gc_thresh3=4N",
            "sysctl net.ipv4.neigh.default.gc_thresh1=128 net.ipv4.neigh.default.gc_thresh2=512 net.ipv4.neigh.default.gc_thresh3=1024",
        )],
        gain: format!("{} of the frames were affected", percent(share)),
        weight: share,
        patch,
        untried,
        ..Finding::default()
    }))
}
