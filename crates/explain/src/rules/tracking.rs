//! Connection tracking and address translation as a whole: what they take of a frame's time where the plan has no firewall of its own.

use super::Look::By;
use super::On::With;
use super::Try::{Keys, Not};
use super::{Looked, RULE, Rule, Setting, cost, percent};
use crate::case::Case;

pub const RULES: &[Rule] = &[
    Rule {
        cause: "connection-tracking",
        look: By(tracking),
        says: "Connections are tracked: this takes {part} of a frame's time.",
        mechanism: "For each frame, the kernel computes a hash of its addresses and ports, looks up the entry of its connection, and checks and renews the entry.",
        changes: &[
            [
                "Linux (nftables), a flow table",
                "nft add flowtable inet filter fast '{ hook ingress priority 0; devices = { IF, IF }; }'; nft insert rule inet filter forward ct state established flow add @fast",
                "nft delete rule inet filter forward handle N; nft delete flowtable inet filter fast",
            ],
            [
                "Linux (nftables), no states for traffic whose rules need none",
                "nft add chain inet filter raw '{ type filter hook prerouting priority raw; }'; nft add rule inet filter raw ip daddr NETWORK notrack, and the same for ip saddr",
                "nft delete chain inet filter raw",
            ],
            [
                "Linux (iptables), no states for traffic whose rules need none",
                "iptables -t raw -A PREROUTING -d NETWORK -j CT --notrack, and the same with -s",
                "iptables -t raw -D PREROUTING -d NETWORK -j CT --notrack",
            ],
        ],
        otherwise: Not(
            "whether frames pass without states depends on the rules: only their author knows which need states",
        ),
        ..RULE
    },
    Rule {
        cause: "address-translation",
        look: By(translation),
        says: "Addresses are translated (NAT): with the connection tracking that it needs, this takes {part} of a frame's time.",
        mechanism: "Each frame's connection is looked up, its addresses and ports are rewritten, and its checksums are corrected. Where IPsec is in the kernel, the new addresses are also compared with its policies.",
        changes: &[
            [
                "Linux (nftables)",
                "a narrower rule (ip saddr NETWORK oifname IF masquerade), and notrack for traffic that needs no translation; a flow table for established connections",
                "(echo flush ruleset; cat OLD-RULES) | nft -f -",
            ],
            [
                "Linux (iptables)",
                "iptables -t raw -A PREROUTING -s NETWORK -d NETWORK -j CT --notrack, for traffic that needs no translation",
                "iptables -t raw -D PREROUTING -s NETWORK -d NETWORK -j CT --notrack",
            ],
        ],
        otherwise: Not("without translation, answers would not find their way back"),
        ..RULE
    },
    Rule {
        cause: "new-connections",
        look: By(new),
        says: "Connections are opened and deleted under load: with their tracking, this takes {part} of a frame's time.",
        mechanism: "The first frame of a connection allocates an entry, and passes all rules; the entry is put into the table under locks, and deleted later. Short connections and short timeouts do this for many frames.",
        changes: &[
            [
                "Linux (a longer timeout)",
                "sysctl net.netfilter.nf_conntrack_udp_timeout=30",
                "sysctl net.netfilter.nf_conntrack_udp_timeout=OLD",
            ],
            [
                "Linux (nftables), no states for questions to a server, such as DNS",
                "nft add rule inet filter raw udp dport 53 notrack, and the same for udp sport, in a chain of hook prerouting, priority raw",
                "nft delete rule inet filter raw handle N",
            ],
        ],
        tries: &[(
            With("short"),
            Keys(r#"{"sysctls": {"net.netfilter.nf_conntrack_udp_timeout": 30}}"#),
        )],
        otherwise: Not(
            "the connections are short because of the traffic, and not because of the DUT",
        ),
        ..RULE
    },
];

/// Functions of connection tracking.
const TRACKING: &[&str] = &[
    "nf_conntrack_*",
    "__nf_conntrack_*",
    "nf_ct_*",
    "__nf_ct_*",
    "nf_confirm",
    "ipv4_conntrack_*",
    "ipv6_conntrack_*",
    "ipv4_confirm*",
    "ipv6_confirm*",
];
/// Functions of address translation.
const TRANSLATION: &[&str] = &[
    "nf_nat_*",
    "__nf_nat_*",
    "nf_xfrm_me_harder",
    "nft_masq_*",
    "nft_nat_*",
    "nft_redir_*",
    "masquerade_tg*",
];
/// Functions that make entries and delete them.
const OPENING: &[&str] = &[
    "init_conntrack",
    "__nf_conntrack_confirm",
    "__nf_conntrack_alloc",
    "nf_conntrack_free",
    "nf_ct_delete",
    "nf_ct_gc_expired",
    "nf_ct_destroy",
    "early_drop*",
];
/// Rules that count connections look them up as well.
const BY_RULES: &[&str] = &["nft_connlimit*", "connlimit_mt*", "nf_conncount*"];

/// Least part of a frame's time, of each.
const LEAST: f64 = 0.05;

/// Parts of it in the order in which they explain the rest.
#[derive(PartialEq)]
enum Part {
    Opening,
    Translation,
    Tracking,
}

fn tracking(case: &Case<'_>) -> Looked {
    found(case, Part::Tracking)
}

fn translation(case: &Case<'_>) -> Looked {
    found(case, Part::Translation)
}

fn new(case: &Case<'_>) -> Looked {
    found(case, Part::Opening)
}

/// Connection tracking as a whole, if this part explains it.
fn found(case: &Case<'_>, part: Part) -> Looked {
    /// A firewall needs connection tracking: for the order of findings, its time counts a quarter.
    const USUAL: f64 = 0.25;
    let is_clear = |functions| {
        let spent = case.spent_usually(functions, &[]);
        spent.map(|spent| spent.is_clear(LEAST))
    };
    let explains = match (is_clear(OPENING)?, is_clear(TRANSLATION)?) {
        (true, _) => Part::Opening,
        (_, true) => Part::Translation,
        _ => Part::Tracking,
    };
    // The plan asks for the cost of its own firewall.
    if part != explains || case.setting("/rules").is_some() {
        return Ok(None);
    }
    let all = [TRACKING, TRANSLATION].concat();
    let spent = case.spent_usually(&all, BY_RULES)?;
    let share = percent(spent.share);
    let found = cost(case, Ok(spent), LEAST, Setting::None)?;
    let timeout = case
        .configuration()
        .ok()
        .and_then(|of| of.number("net.netfilter.nf_conntrack_udp_timeout"));
    Ok(found.map(|mut found| {
        found.finding.weight *= USUAL;
        found.spent = None;
        found
            .with("part", share)
            .when(timeout < Some(30) && timeout.is_some(), "short")
    }))
}
