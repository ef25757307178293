//! A list of routing rules is walked through for each frame.

use super::{change, cost_or_setting, in_lab};
use crate::{Case, Examined};
use linerate_measure::record::Finding;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let unknown = Err("the routing rules of the DUT are not asked for".into());
    let Some(found) = cost_or_setting(case.spent(&["fib_rules_lookup"]), 0.02, unknown)? else { return Ok(None) };
    let (patch, untried) = in_lab(case, "ip rule flush; ip rule add lookup main; ip -6 rule flush; ip -6 rule add lookup main");
    Ok(Some(Finding {
        statement: "Routing rules (ip rule) are compared with each frame, one after the other.".into(),
        mechanism: "With rules of your own, each lookup of a route first walks through the list of rules, and each frame needs the route of its source as well.".into(),
        changes: vec![change("Linux", "ip rule del for rules that can be routes, a VRF or a mark of the firewall; most frequent rules first", "ip rule add with the former rules (ip rule save)")],
        patch,
        untried,
        ..found
    }))
}
