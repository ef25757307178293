//! Bridged frames go through the firewall of IP (br_netfilter).

use super::{change, cost_or_setting};
use crate::{Case, Examined};
use linerate_measure::record::Finding;
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configured(&["ip ", "sysctl"], |found| {
        let bridged = found.cards.iter().any(|card| card.master_kind.as_deref() == Some("bridge"));
        let on = ["iptables", "ip6tables", "arptables"].map(|of| format!("net.bridge.bridge-nf-call-{of}"));
        let on = on.into_iter().find(|name| found.number(name) == Some(1)).filter(|_| bridged);
        on.map(|name| format!("{name} = 1"))
    });
    // The first hook is there where the setting is off as well: it then returns at once.
    let called = case.spent(&["br_nf_pre_routing_finish*", "br_nf_forward_finish*", "br_nf_hook_thresh", "br_validate_ipv4", "br_validate_ipv6"]);
    if called.is_ok_and(|called| called.share < 0.01) {
        return Ok(None);
    }
    let spent = case.spent(&["br_nf_*", "br_validate_ipv4", "br_validate_ipv6"]);
    let Some(found) = cost_or_setting(spent, 0.02, setting)? else { return Ok(None) };
    let off = "sysctl net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0";
    Ok(Some(Finding {
        statement: "Bridged frames pass the IP firewall (br_netfilter).".into(),
        mechanism: "With br_netfilter, a bridge presents each frame to the hooks of IPv4 and IPv6, as if it were routed.".into(),
        changes: vec![change("Linux", off, off.replace("=0", "=1"))],
        patch: Some(json!({ "sysctls": { "net.bridge.bridge-nf-call-iptables": 0, "net.bridge.bridge-nf-call-ip6tables": 0 } })),
    ..found
    }))
}
