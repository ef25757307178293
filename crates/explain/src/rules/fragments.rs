//! Frames are longer than the MTU of the next link.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let made = case.counted(|name| ["FragCreates", "FragOKs", "ReasmReqds", "FragFails", "InTooBigErrors"].iter().any(|end| name.ends_with(end)));
    let spent = case.spent(&["ip_do_fragment", "ip6_fragment", "ip_defrag", "inet_frag_*", "ip_fragment"]);
    let (made, spent) = match (made, spent) {
        (Err(why), Err(why_not)) => return Err(format!("{why}, and {why_not}")),
        (made, spent) => (made.unwrap_or_default(), spent.ok().filter(|spent| spent.is_clear(0.01))),
    };
    let frames = made.values().copied().max().unwrap_or(0) as f64 / case.sent().max(1) as f64;
    if frames < 0.001 && spent.is_none() {
        return Ok(None);
    }
    let refused = made.iter().any(|(name, n)| *n > 0 && (name.ends_with("FragFails") || name.ends_with("InTooBigErrors")));
    let share = spent.as_ref().map_or(frames.min(1.0), |spent| spent.share);
    let counted = made.iter().map(|(name, n)| format!("{name}: {n}"));
    let set = ["/inside/mtu", "/outside/mtu"].iter().any(|place| case.setting(place).is_some());
    let (patch, untried) = match set {
        true => (Some(json!({ "interface": { "mtu": null, "in": { "mtu": null }, "out": { "mtu": null } } })), None),
        false => (None, Some("the plan sets no MTU of the DUT: the frames are too long for a link behind it".into())),
    };
    Ok(Some(Finding {
        statement: match refused {
            true => "Frames are longer than the MTU of the link that they are to leave by, and must not be fragmented: the DUT drops them.".into(),
            false => "Frames are fragmented: they are longer than the MTU of the link that they leave by.".into(),
        },
        strength: Strength::Observed,
        evidence: counted.chain(spent.iter().map(crate::case::Spent::evidence)).collect(),
        mechanism: "A packet that does not fit is cut into several, or refused if it must not be fragmented. Each fragment is a frame with a cost of its own.".into(),
        changes: vec![change("Linux, FreeBSD", "the same MTU on all links: ip link set IF mtu N, ifconfig IF mtu N; or clamp the MSS of TCP", "the former MTU")],
        gain: format!("up to {} of a frame's time", percent(share)),
        weight: share.max(frames.min(1.0)),
        patch,
        untried,
        ..Finding::default()
    }))
}
