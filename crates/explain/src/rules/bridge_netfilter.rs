//! Bridged frames go through the firewall of IP (br_netfilter).

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["br_nf_*", "br_validate_ipv4", "br_validate_ipv6"])?;
    if !spent.is_clear(0.02) {
        return Ok(None);
    }
    let off = "sysctl net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0";
    Ok(Some(Finding {
        statement: "Bridged frames pass the IP firewall (br_netfilter).".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "With br_netfilter, a bridge presents each frame to the hooks of IPv4 and IPv6, as if it were routed.".into(),
        changes: vec![change("Linux", off, off.replace("=0", "=1"))],
        gain: format!("up to {} of a frame's time (with the forwarding that the hooks call)", percent(spent.share)),
        weight: spent.share,
        patch: Some(json!({ "sysctls": { "net.bridge.bridge-nf-call-iptables": "0", "net.bridge.bridge-nf-call-ip6tables": "0" } })),
    ..Finding::default()
    }))
}
