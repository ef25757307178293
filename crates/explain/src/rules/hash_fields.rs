//! The receive hash leaves out the ports.

use super::change;
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let Some(card) = case.hardware()? else { return Ok(None) };
    let version = if case.slot.family == "IPv6" { "6" } else { "4" };
    let flow = format!("{}{version}", case.slot.transport.to_lowercase());
    let fields = card.hash_fields.get(&flow).filter(|fields| !fields.is_empty());
    let fields = fields.ok_or_else(|| format!("the card does not say which fields choose the queue of {flow} frames"))?;
    if fields.iter().any(|field| field.contains("L4")) || card.receive_queues() < Some(2) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: format!("The receive hash of {} leaves out the ports of {flow} frames.", card.name),
        strength: Strength::Inferred,
        evidence: vec![format!("rx-flow-hash {flow}: {}", fields.join(", "))],
        mechanism: "All flows between two addresses have the same hash, and so the same queue and CPU. Drivers leave the ports of UDP out because fragments have none.".into(),
        changes: vec![change("Linux", format!("ethtool -N {} rx-flow-hash {flow} sdfn", card.name), format!("ethtool -N {} rx-flow-hash {flow} sd", card.name))],
        gain: "up to the number of queues, where few addresses carry most of the traffic".into(),
        weight: 0.3,
        patch: Some(json!({ "commands": [{
            "run": format!("ethtool -N {{in}} rx-flow-hash {flow} sdfn"), "undo": format!("ethtool -N {{in}} rx-flow-hash {flow} sd"),
        }] })),
        ..Finding::default()
    }))
}
