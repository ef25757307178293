//! The DUT takes frames in and drops them.

use super::{change, in_lab, percent};
use crate::{Case, Examined};
use linerate_measure::audit::{Cause, Loss, Side};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// Share of the frames from which on drops matter.
const NOTICEABLE: f64 = 0.001;

/// Counters of drops that other rules explain: `fragmentation`, `connection-table`, `neighbour-table`.
const OF_OTHER_RULES: [&str; 6] = ["FragFails", "InTooBigErrors", "Conntrack.", "arp_cache", "ndisc_cache", "nf_conntrack"];

/// How to try whether the frames pass without the reason.
#[derive(Clone, Copy)]
enum Try {
    /// Sysctls that a plan sets.
    Sysctls(&'static [(&'static str, u8)]),
    /// A command, in the embedded lab.
    InLab(&'static str),
    /// Why not.
    Not(&'static str),
}

const MISSING_ROUTE: Try = Try::Not("linerate does not know which route is missing");
const FORWARD: Try = Try::Sysctls(&[("net.ipv4.ip_forward", 1), ("net.ipv6.conf.all.forwarding", 1)]);
const HEADERS: Try = Try::Not("the frames must change, and not the DUT");
const NO_FILTER: Try = Try::Sysctls(&[("net.ipv4.conf.all.rp_filter", 0), ("net.ipv4.conf.{in}.rp_filter", 0)]);

/// Parts of the names of counters and of the kernel's drop reasons, with their meaning, their remedy and its experiment.
const REASONS: [(&str, &str, &str, Try); 13] = [
    ("InNoRoutes", "there is no route to their destination", "ip route add NETWORK via GATEWAY", MISSING_ROUTE),
    ("OutNoRoutes", "there is no route to their destination", "ip route add NETWORK via GATEWAY", MISSING_ROUTE),
    ("IP_OUTNOROUTES", "there is no route to their destination", "ip route add NETWORK via GATEWAY", MISSING_ROUTE),
    ("IP_INNOROUTES", "there is no route to their destination", "ip route add NETWORK via GATEWAY", MISSING_ROUTE),
    ("InAddrErrors", "the DUT does not forward, or their destination is not for it", "sysctl net.ipv4.ip_forward=1", FORWARD),
    ("IP_INADDRERRORS", "the DUT does not forward, or their destination is not for it", "sysctl net.ipv4.ip_forward=1", FORWARD),
    ("InHdrErrors", "their header is wrong, or their time to live ended", "send frames with a longer time to live", HEADERS),
    ("IP_INHDR", "their header is wrong, or their time to live ended", "send frames with a longer time to live", HEADERS),
    ("IPReversePathFilter", "the reverse-path filter expects their source behind another interface", "sysctl net.ipv4.conf.all.rp_filter=0", NO_FILTER),
    ("IP_RPFILTER", "the reverse-path filter expects their source behind another interface", "sysctl net.ipv4.conf.all.rp_filter=0", NO_FILTER),
    ("NETFILTER_DROP", "a rule of the firewall drops them", "nft list ruleset, with a counter in each rule that drops", Try::Not("a rule drops on purpose: only its author knows whether it should")),
    ("QDISC_", "the queue of a queueing discipline is full", "tc qdisc replace dev IF root noqueue, or a longer queue", Try::InLab("for dev in {in} {out}; do tc qdisc replace dev $dev root noqueue; done")),
    ("XDP", "an XDP program drops them", "ip link set IF xdp off", Try::InLab("for dev in {in} {out}; do ip link set $dev xdp off; done")),
];

/// The reasons of FreeBSD. Without a route, both are counted.
const OF_FREEBSD: [(&str, &str, &str, Try); 2] = [
    ("s_noroute", "there is no route to their destination", "route add -net NETWORK GATEWAY", MISSING_ROUTE),
    ("s_cantforward", "the DUT does not forward, or their destination is not for it", "sysctl net.inet.ip.forwarding=1", Try::Sysctls(&[("net.inet.ip.forwarding", 1), ("net.inet6.ip6.forwarding", 1)])),
];

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let is_drop = |loss: &&Loss| {
        let own = !OF_OTHER_RULES.iter().any(|counter| loss.place.contains(counter));
        loss.side == Side::Dut && matches!(loss.cause, Cause::Dropped | Cause::Unexplained) && own
    };
    let losses: Vec<&Loss> = case.losses()?.iter().filter(is_drop).collect();
    let (sent, lost) = (case.sent().max(1) as f64, losses.iter().map(|loss| loss.frames).sum::<u64>());
    let share = lost as f64 / sent;
    let Some(first) = losses.first().filter(|_| share >= NOTICEABLE) else { return Ok(None) };
    let mut reasons: Vec<(&str, f64)> = case.kernel_drops().into_iter().filter(|(_, part)| *part >= NOTICEABLE / 10.0).collect();
    reasons.sort_by(|a, b| b.1.total_cmp(&a.1));
    if reasons.first().is_some_and(|(name, part)| name.contains("NEIGH_") && *part > 0.5 * share) {
        return Ok(None);
    }
    let table = || REASONS.iter().map(|row| ("Linux", row)).chain(OF_FREEBSD.iter().map(|row| ("FreeBSD", row)));
    let most = reasons.first().map_or(0.0, |(_, part)| 0.9 * part);
    let frequent = || reasons.iter().filter(|(_, part)| *part >= most);
    let known = table().find(|(_, (part, ..))| first.place.contains(part));
    let known = known.or_else(|| table().find(|(_, (part, ..))| frequent().any(|(name, _)| name.contains(part))));
    let why = known.map_or(String::new(), |(_, (_, why, ..))| format!(": {why}"));
    let counted = losses.iter().take(4).map(|loss| format!("{}: {} frames ({})", loss.place, loss.frames, percent(loss.frames as f64 / sent)));
    let reasons = reasons.iter().take(4).map(|(name, part)| format!("the kernel's reason: {name}, {} of the frames", percent(*part)));
    let (patch, untried) = match known.map_or(Try::Not("the reason of the drops is not known"), |(_, (.., tried))| *tried) {
        Try::Sysctls(values) => (Some(json!({ "sysctls": values.iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<serde_json::Map<_, _>>() })), None),
        Try::InLab(command) => in_lab(case, command),
        Try::Not(why) => (None, Some(why.into())),
    };
    Ok(Some(Finding {
        statement: format!("The DUT drops {} of the frames that it takes in{why}.", percent(share)),
        strength: Strength::Observed,
        evidence: counted.chain(reasons).collect(),
        mechanism: "A frame that is dropped costs the DUT nearly as much as one that it forwards.".into(),
        changes: known.map(|(system, (_, _, remedy, _))| change(system, *remedy, "put the former value back")).into_iter().collect(),
        gain: match share {
            0.999.. => "all frames".into(),
            share => format!("up to {} more frames forwarded", percent(share / (1.0 - share))),
        },
        weight: share,
        patch,
        untried,
        ..Finding::default()
    }))
}
