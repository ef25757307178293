//! A bridge is on the way of the frames.

use super::{and_elsewhere, change, cost_or_setting};
use crate::{Case, Examined};
use linerate_measure::record::Finding;
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configured(&["ip "], |found| {
        let bridged = found.cards.iter().find(|card| card.master_kind.as_deref() == Some("bridge"));
        bridged.map(|card| format!("{} belongs to the bridge {}", card.name, card.master.as_deref().unwrap_or_default()))
    });
    let Some(found) = cost_or_setting(case.spent(&["br_handle_frame", "br_dev_xmit", "bridge_input", "bridge_forward", "bridge_transmit"]), 0.01, setting)? else { return Ok(None) };
    let patch = case.setting("/dut").filter(|dut| *dut == "routed-bridge").map(|_| json!({ "dut": "forwarding" }));
    Ok(Some(Finding {
        // The time contains that of everything that a bridge calls: hooks and drivers.
        weight: 0.5 * found.weight,
        statement: "Frames pass through a software bridge.".into(),
        mechanism: "A bridge looks up and learns the Ethernet addresses of each frame before, or instead of, the routing.".into(),
        changes: vec![
            change("Linux", "ip link set IF nomaster, with the bridge's address on IF", "ip link set IF master BRIDGE"),
            change("FreeBSD", "ifconfig bridge0 deletem IF, with the bridge's address on IF", "ifconfig bridge0 addm IF"),
        ],
        gain: and_elsewhere(&found.gain, "-62.5 % with if_bridge on a Xeon E5-2650v2 ('Tuning FreeBSD for routing and firewalling', 2018, illustration 29)"),
        untried: patch.is_none().then(|| "the DUT is a bridge, and would be another device without it".into()),
        patch,
        ..found
    }))
}
