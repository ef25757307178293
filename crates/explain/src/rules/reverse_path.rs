//! The reverse-path filter looks up the source of each frame.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["__fib_validate_source", "rpfilter_mt", "nft_fib*", "ip6t_rpfilter*"])?;
    if !spent.is_clear(0.005) {
        return Ok(None);
    }
    let off = "sysctl net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.IF.rp_filter=0";
    Ok(Some(Finding {
        statement: "The reverse-path filter looks up a second route for each frame.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "The filter looks up the route to a frame's source beside that to its destination. It protects against forged sources: turn it off only where another filter does that.".into(),
        changes: vec![change("Linux", off, off.replace("=0", "=1"))],
        gain: format!("up to {} of a frame's time; more with many routes", percent(spent.share)),
        weight: spent.share,
        patch: Some(json!({ "sysctls": { "net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.default.rp_filter": "0" } })),
        ..Finding::default()
    }))
}
