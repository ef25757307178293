//! The DUT takes frames in and drops them.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::record::{Finding, Strength};

/// Share of the frames from which on drops matter.
const NOTICEABLE: f64 = 0.001;

/// Beginnings of counters and drop reasons, with their meaning and remedy.
const REASONS: [(&str, &str, &str); 8] = [
    ("InNoRoutes", "there is no route to their destination", "ip route add NETWORK via GATEWAY"),
    ("OutNoRoutes", "there is no route to their destination", "ip route add NETWORK via GATEWAY"),
    ("InAddrErrors", "the DUT does not forward, or their destination is not for it", "sysctl net.ipv4.ip_forward=1"),
    ("InHdrErrors", "their header is wrong, or their time to live ended", "send frames with a longer time to live"),
    ("IPReversePathFilter", "the reverse-path filter expects their source behind another interface", "sysctl net.ipv4.conf.all.rp_filter=0"),
    ("FragFails", "they are longer than the MTU, and must not be fragmented", "ip link set OUTSIDE mtu LENGTH"),
    ("InTooBigErrors", "they are longer than the MTU, and must not be fragmented", "ip link set OUTSIDE mtu LENGTH"),
    ("Conntrack.", "connection tracking has no room for them, or finds them invalid", "sysctl net.netfilter.nf_conntrack_max=N"),
];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let is_drop = |loss: &&Loss| loss.side == Side::Dut && loss.cause != Cause::QueueFull;
    let losses: Vec<&Loss> = case.row.losses.iter().filter(is_drop).collect();
    let (sent, lost) = (case.sent().max(1) as f64, losses.iter().map(|loss| loss.frames).sum::<u64>());
    let share = lost as f64 / sent;
    let Some(first) = losses.first().filter(|_| share >= NOTICEABLE) else { return Ok(None) };
    let known = REASONS.iter().find(|(counter, ..)| first.place.contains(counter));
    let why = known.map_or(String::new(), |(_, why, _)| format!(": {why}"));
    let counted = losses.iter().take(4).map(|loss| format!("{}: {} frames ({})", loss.place, loss.frames, percent(loss.frames as f64 / sent)));
    let reasons = case.counted(|name| name.starts_with("drop "));
    let reasons = reasons.iter().take(4).map(|(name, n)| format!("the kernel's reason: {name}, {n} times"));
    Ok(Some(Finding {
        statement: format!("The DUT drops {} of the frames that it takes in{why}.", percent(share)),
        strength: Strength::Observed,
        evidence: counted.chain(reasons).collect(),
        mechanism: "A frame that is dropped costs the DUT nearly as much as one that it forwards.".into(),
        changes: known.map(|(_, _, remedy)| change("Linux", *remedy, "put the former value back")).into_iter().collect(),
        gain: format!("up to {} more frames forwarded", percent(share / (1.0 - share).max(0.001))),
        weight: share,
        ..Finding::default()
    }))
}
