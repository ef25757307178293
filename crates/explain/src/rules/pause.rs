//! Ethernet flow control is on.

use super::change;
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Parts of the names of drivers' counters of pause frames.
const COUNTERS: [&str; 4] = ["pause", "xon", "xoff", "flow_control"];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let counted = case.counted(|name| COUNTERS.iter().any(|part| name.to_lowercase().contains(part))).unwrap_or_default();
    let frames: u64 = counted.values().sum();
    let on = case.hardware().and_then(|card| match card {
        Some(card) if card.pause.rx.or(card.pause.tx).is_none() => Err("the card does not tell whether pause frames are on".into()),
        _ => case.configuration(),
    });
    let on = on.map(|found| found.cards.iter().filter(|card| card.pause.is_on()).map(|card| card.name.clone()).collect::<Vec<_>>());
    let (strength, evidence) = match (frames, on) {
        (1.., _) => (Strength::Observed, counted.iter().take(4).map(|(name, n)| format!("{name}: {n}")).collect()),
        (0, Ok(on)) if on.is_empty() => return Ok(None),
        (0, Ok(on)) => (Strength::Possible, vec![format!("pause frames are on: {}", on.join(", "))]),
        (0, Err(why)) => return Err(why),
    };
    Ok(Some(Finding {
        statement: "Ethernet flow control lets one card stop another.".into(),
        strength,
        evidence,
        mechanism: "A card that is full sends pause frames, and its neighbour holds all frames back: the offered load is no longer the generator's, and one slow port stops others.".into(),
        changes: vec![
            change("Linux", "ethtool -A IF rx off tx off", "ethtool -A IF rx on tx on"),
            change("FreeBSD", "sysctl dev.IF.N.fc=0", "sysctl dev.IF.N.fc=3"),
        ],
        gain: "not known: RFC 2544 tests want it off, because it hides loss".into(),
        weight: if frames > 0 { 0.3 } else { 0.05 },
        patch: Some(json!({ "interface": { "flow-control": false } })),
        ..Finding::default()
    }))
}
