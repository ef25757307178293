//! The number of queues is not a power of two, and the card's table of queues wants one.

use super::change;
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Drivers whose cards spread frames evenly over a power of two of queues only.
const DRIVERS: [&str; 7] = ["cxgb4", "cxgbe", "cxl", "cc", "t5nex", "ixgbe", "ix"];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let Some(card) = case.hardware()? else { return Ok(None) };
    let queues = card.receive_queues().ok_or("the DUT does not say how many queues the card has")?;
    let driver = card.driver.as_deref().ok_or("the card's driver is not known")?;
    if queues < 2 || queues.is_power_of_two() || !DRIVERS.contains(&driver) {
        return Ok(None);
    }
    let better = queues.next_power_of_two();
    Ok(Some(Finding {
        statement: format!("{queues} receive queues are not a power of two, which {driver} needs to spread frames evenly."),
        strength: Strength::Inferred,
        evidence: vec![format!("{}: driver {driver}, {queues} receive queues", card.name)],
        mechanism: "The card's table of queues has a power of two of entries: with another number of queues, some queues have more entries than others. cxgbe warns about it: expect uneven traffic distribution.".into(),
        changes: vec![
            change("Linux", format!("ethtool -L {} combined {better}", card.name), format!("ethtool -L {} combined {queues}", card.name)),
            change("FreeBSD", format!("hw.cxgbe.nrxq={better} or dev.ix.N.iflib.override_nrxqs={better} in loader.conf"), "the former lines"),
        ],
        gain: "the rate grew linearly for powers of two only ('Tuning FreeBSD for routing and firewalling', 2018, illustrations 10 and 17: cxgbe and ixgbe, not mlx5en)".into(),
        weight: 0.2,
        patch: Some(json!({ "interface": { "queues": better } })),
        ..Finding::default()
    }))
}
