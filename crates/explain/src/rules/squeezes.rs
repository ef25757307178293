//! Polls end because their budget is used up.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let softnet = case.counted(|name| name.contains("softnet") || name.ends_with("time_squeeze"))?;
    if softnet.is_empty() {
        return Err("the DUT counts no squeezes".into());
    }
    let squeezes: u64 = softnet.iter().filter(|(name, _)| name.ends_with("time_squeeze")).map(|(_, n)| n).sum();
    let lost = case.row.losses.iter().any(|loss| loss.place.contains("full"));
    let share = squeezes as f64 / case.sent().max(1) as f64;
    // A budget is 300 frames: one squeeze for each is a CPU that always has more to do, and no cause by itself.
    if share < 0.01 && !(lost && share > 0.001) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "Softirqs stop before their work is done: the budget of frames or of time is used up.".into(),
        strength: Strength::Inferred,
        evidence: vec![format!("softnet_stat: {squeezes} squeezes, {} of the frames sent", percent(share))],
        mechanism: "After netdev_budget frames or netdev_budget_usecs the CPU leaves the poll to others. A small budget makes it leave too often.".into(),
        changes: vec![change("Linux", "sysctl net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000", "sysctl net.core.netdev_budget=300 net.core.netdev_budget_usecs=2000")],
        gain: "small where nothing else wants the CPU: measure it".into(),
        weight: (50.0 * share).min(0.5),
        patch: Some(json!({ "sysctls": { "net.core.netdev_budget": 600, "net.core.netdev_budget_usecs": 8000 } })),
        ..Finding::default()
    }))
}
