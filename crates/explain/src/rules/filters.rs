//! Filters of frames: firewalls, bridges, the reverse-path filter.

use super::Look::By;
use super::On::With;
use super::Setting::{self, Asked};
use super::Try::{InLab, Keys, Not};
use super::hooks::{TRACES, many};
use super::path::SLOW_PATHS;
use super::{
    Found, Looked, RULE, Rule, Try, Ways, cost, in_lab, joined, judged, percent, rp_filter,
};
use crate::case::Case;
use linerate_hosts::configuration::Card;
use linerate_measure::record::Strength;
use serde_json::Value;

pub const RULES: &[Rule] = &[
    Rule {
        cause: "linear-rules",
        look: By(linear_rules),
        says: "{what}",
        mechanism: "Rules are compared with a frame one after the other, until one decides. A set or a map compares all addresses or ports by one lookup.",
        changes: &[
            [
                "Linux (nftables)",
                "nft add set inet filter NAME '{ type ipv4_addr; flags interval; }', and one rule that looks up @NAME; accept established flows first",
                NFT_BACK,
            ],
            [
                "Linux (iptables)",
                "ipset create NAME hash:net, and one rule with -m set --match-set NAME src; accept established flows first",
                "iptables-restore OLD-RULES",
            ],
            [
                "FreeBSD (ipfw)",
                "ipfw table 1 create; ipfw add allow ip from 'table(1)' to any",
                "service ipfw restart",
            ],
            [
                "OpenBSD, FreeBSD (pf)",
                "table <NAME> { ... }; quick rules for most frames first",
                "pfctl -f OLD-RULES",
            ],
        ],
        gain: "{cost}; elsewhere, with 1,000 rules, ipfw and ipf were nearly useless; pf was not, because it makes a table of such rules ({paper} 31)",
        tries: &[
            // As many entries of a table do the same work, in one lookup.
            (
                With("entries"),
                Keys(r#"{"rules": {"before": 0, "table": {entries}}}"#),
            ),
        ],
        otherwise: Not("only the author of the rules knows which of them one set can replace"),
    },
    Rule {
        cause: "rule-expressions",
        look: By(expressions),
        says: "{what} by rules of the firewall take {part} of a frame's time.",
        mechanism: "Such an expression costs as much as many comparisons, for each frame that comes to its rule.",
        changes: &[[
            "Linux (nftables, iptables)",
            "ct state established,related accept before the rule, so that only first frames come to it; comparisons before the expression, in the same rule",
            "(echo flush ruleset; cat OLD-RULES) | nft -f -, or iptables-restore OLD-RULES",
        ]],
        otherwise: Not(
            "only the author of the rules knows which frames must come to the expression",
        ),
        ..RULE
    },
    Rule {
        cause: "bridge-netfilter",
        look: By(bridge_netfilter),
        says: "Bridged frames pass the IP firewall (br_netfilter).",
        mechanism: "With br_netfilter, a bridge presents each frame to the hooks of IPv4 and IPv6, as if it were routed.",
        changes: &[[
            "Linux",
            "sysctl net.bridge.bridge-nf-call-iptables=0 net.bridge.bridge-nf-call-ip6tables=0",
            "sysctl net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1",
        ]],
        otherwise: Keys(
            r#"{"sysctls": {"net.bridge.bridge-nf-call-iptables": 0, "net.bridge.bridge-nf-call-ip6tables": 0}}"#,
        ),
        ..RULE
    },
    Rule {
        cause: "bridge",
        look: By(bridge),
        says: "Frames pass through a software bridge.",
        mechanism: "A bridge looks up and learns the Ethernet addresses of each frame before, or instead of, the routing.",
        changes: &[
            [
                "Linux",
                "ip link set IF nomaster, with the bridge's address on IF",
                "ip link set IF master BRIDGE",
            ],
            [
                "FreeBSD",
                "ifconfig bridge0 deletem IF, with the bridge's address on IF",
                "ifconfig bridge0 addm IF",
            ],
        ],
        gain: "{cost}; elsewhere: -62.5 % with if_bridge on a Xeon E5-2650v2 ({paper} 29)",
        tries: &[(With("routed"), Keys(r#"{"dut": "forwarding"}"#))],
        otherwise: Not("the DUT is a bridge, and would be another device without it"),
    },
    Rule {
        cause: "connection-table",
        look: By(connection_table),
        says: "{what}",
        mechanism: "A flow without an entry is looked up, refused and dropped, or takes the place of another flow, for each of its frames.",
        changes: &[
            [
                "Linux",
                "sysctl net.netfilter.nf_conntrack_max=N net.netfilter.nf_conntrack_buckets=N",
                "sysctl with the former values",
            ],
            [
                "FreeBSD, OpenBSD (pf)",
                "set limit states N in pf.conf; net.pf.states_hashsize=N in loader.conf",
                "the former lines",
            ],
            [
                "FreeBSD (ipfw)",
                "sysctl net.inet.ip.fw.dyn_max=N net.inet.ip.fw.dyn_buckets=N",
                "sysctl with the former values",
            ],
        ],
        gain: "{share} of the frames were affected",
        tries: &[(
            With("states"),
            Keys(r#"{"rules": {"states": {states}, "hash": "sized"}}"#),
        )],
        otherwise: Not("the plan has no rules whose table it could enlarge"),
    },
    Rule {
        cause: "reverse-path-filter",
        look: By(reverse_path),
        says: "The reverse-path filter looks up a second route for each frame.",
        mechanism: "The filter looks up the route to a frame's source beside that to its destination. It protects against forged sources: turn it off only where another filter does that.",
        changes: &[[
            "Linux",
            "sysctl net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.IF.rp_filter=0",
            "sysctl net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.IF.rp_filter=1",
        ]],
        otherwise: NO_FILTER,
        ..RULE
    },
    Rule {
        cause: "traffic-filters",
        look: By(traffic_filters),
        says: "Filters of traffic control (tc filter) classify each frame.",
        mechanism: "Filters of an interface are tried one after the other, in the order of their preference, until one of them decides.",
        changes: &[[
            "Linux",
            "tc filter del dev IF ingress (or egress); a hash of u32, a map of eBPF or a set of nftables instead of many filters",
            "tc filter add with the former filters",
        ]],
        tries: &[
            (
                With("classes"),
                Not(
                    "the filters choose classes of a queueing discipline: only their author knows which can go",
                ),
            ),
            (
                With("elsewhere"),
                Not("the filters are not at the DUT's interfaces: only their author knows them"),
            ),
        ],
        otherwise: InLab(WITHOUT_FILTERS),
        ..RULE
    },
    Rule {
        cause: "logging",
        look: By(logging),
        says: "The firewall logs frames under load.",
        mechanism: "A log entry is written and, for nflog, pflog or a socket, the frame is copied, for each frame that matches the rule.",
        changes: &[
            [
                "Linux (nftables)",
                "limit rate 10/second log, or log only ct state new",
                NFT_BACK,
            ],
            [
                "Linux (iptables)",
                "-m limit --limit 10/second before -j LOG, or -m conntrack --ctstate NEW",
                "iptables-restore OLD-RULES",
            ],
            [
                "FreeBSD, OpenBSD (pf)",
                "no `log` in rules for most frames",
                "pfctl -f OLD-RULES",
            ],
        ],
        otherwise: InLab(WITHOUT_LOGGING),
        ..RULE
    },
];

/// Without a flush, nft adds the rules of a file to those in force.
const NFT_BACK: &str = "(echo flush ruleset; cat OLD-RULES) | nft -f -";

pub const NO_FILTER: Try =
    Keys(r#"{"sysctls": {"net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.{in}.rp_filter": 0}}"#);

fn logging(case: &Case<'_>) -> Looked {
    let setting = Asked(&["nft", "iptables"], |found| {
        let chains = found.rule_sets.iter().flat_map(|set| set.forwarding());
        let logging: u64 = chains.map(|chain| chain.logging).sum();
        match logging {
            0 => None,
            1 => Some("1 rule that forwarded frames pass writes log entries".into()),
            n => Some(format!(
                "{n} rules that forwarded frames pass write log entries"
            )),
        }
    });
    let setting = match case.passed() {
        // A rule that no frame reaches costs nothing.
        Some(passed) if passed.logging == 0 => Ok(None),
        _ => setting.of(case),
    };
    judged(case.spent_outside(LOGGING, &[], TRACES), 0.01, setting)
}

/// Functions that write log entries.
const LOGGING: &[&str] = &[
    "nf_log_packet",
    "nft_log_eval",
    "nfulnl_log_packet",
    "nf_log_*",
    "log_tg*",
    "LOG_TG",
    "ipfw_log*",
    "pflog_packet",
];

/// Takes the rules out that log and do nothing else. Words in quotation marks are an author's: comments and prefixes.
const WITHOUT_LOGGING: &str = "nft -a list ruleset | awk '{ gsub(/\"[^\"]*\"/, \"\") } $1 == \"table\" { table = $2 \" \" $3 } $1 == \"chain\" { chain = $2 } \
    /[[:space:]]log .*# handle/ && !/(accept|drop|reject|queue|jump .*|goto .*) # handle/ { print \"delete rule\", table, chain, \"handle\", $NF }' | nft -f -; \
    for ip in iptables ip6tables; do if $ip-save 2> /dev/null | grep -qE -e '-j (NF)?LOG( |$)'; \
    then $ip-save | sed -E '/-j (NF)?LOG( |$)/d' | $ip-restore; fi; done";

fn linear_rules(case: &Case<'_>) -> Looked {
    /// A short rule set takes a few percent of a frame's time.
    const LEAST: f64 = 0.2;
    /// A list of so many rules is long.
    const MANY: u64 = 50;
    // The number of the chains is the cause, and not that of the rules.
    if matches!(many(case), Ok(Some(_))) {
        return Ok(None);
    }
    let setting = Asked(&["nft", "iptables"], |found| {
        let longest = found
            .rule_sets
            .iter()
            .filter_map(|set| Some((set, set.longest()?)));
        let (set, chain) = longest
            .max_by_key(|(_, chain)| chain.rules)
            .filter(|(_, chain)| chain.rules >= MANY)?;
        Some(format!(
            "{}: the chain {} has {} rules, {} of them with a set or a map",
            set.filter, chain.name, chain.rules, chain.lookups
        ))
    });
    // With a flood or illegal attempts, rules are checked for these SYNs as well.
    let spec = case.slot.connections();
    let passed = case
        .passed()
        .filter(|_| spec.is_none_or(|spec| !spec.has_strays()))
        .and_then(|passed| Some((passed, passed.by_frame()?)));
    let setting = match passed {
        Some((_, each)) if each < MANY as f64 => Ok(None),
        Some((passed, each)) => {
            let rules = passed.rules;
            let noun = case.records.campaign.noun();
            Ok(Some(format!("a {noun} passes {each:.0} of {rules} rules")))
        }
        None if accepts_first(case) => Ok(None),
        None => setting.of(case),
    };
    // Logging by a rule is a cause of its own, and so are waiting for a lock and what is no comparison.
    let expressions = EXPRESSIONS
        .iter()
        .flat_map(|(_, functions)| *functions)
        .chain(ROUTES)
        .chain(STATES)
        .chain(TRACES)
        .copied();
    let apart: Vec<&str> = [LOGGING, SLOW_PATHS]
        .concat()
        .into_iter()
        .chain(expressions)
        .collect();
    let spent = case.spent_usually(RULE_SETS, &apart);
    let Some(found) = judged(spent, LEAST, setting)? else {
        return Ok(None);
    };
    let what = match found.finding.strength {
        Strength::Observed => {
            format!(
                "The rule set takes {} of a frame's time.",
                percent(found.finding.weight)
            )
        }
        _ => "Each frame is checked against many rules.".into(),
    };
    let found = found.with("what", what);
    let number = |place: &str| case.setting(place).and_then(Value::as_u64).unwrap_or(0);
    Ok(Some(match number("/rules/rules-before") {
        0 => found,
        rules => found.with("entries", number("/rules/table") + rules),
    }))
}

/// Whether the frames belong to known connections, which the first rule of linerate's own rule sets accepts.
fn accepts_first(case: &Case<'_>) -> bool {
    let is = |place: &str, wanted: &str| case.setting(place).is_some_and(|value| value == wanted);
    is("/rules/kind", "stateful") && is("/states", "established")
}

/// Functions of connection tracking and address translation, which rules call as well: no comparison.
const STATES: &[&str] = &[
    "nf_nat_*",
    "__nf_nat_*",
    "nft_masq_eval",
    "nft_nat_eval",
    "nft_redir_eval",
    "masquerade_tg*",
    "nf_conntrack_*",
    "__nf_conntrack_*",
    "nf_ct_*",
];

/// Functions that take a frame through the rules of a firewall.
const RULE_SETS: &[&str] = &[
    "nft_do_chain",
    "ipt_do_table",
    "ip6t_do_table",
    "ipfw_chk",
    "pf_test_rule",
    "ipf_check",
    "fr_check",
];

/// Expressions of rules that look up a route.
const ROUTES: &[&str] = &[
    "rpfilter_mt",
    "nft_fib4_eval",
    "nft_fib6_eval",
    "ip6t_rpfilter*",
];

/// Expressions of rules that are more than a comparison, in words, and their functions.
const EXPRESSIONS: &[(&str, &[&str])] = &[
    (
        "Look-ups in sets and maps",
        &[
            "nft_lookup_eval",
            "nft_rbtree_*",
            "nft_hash_*",
            "nft_rhash_*",
            "nft_pipapo_*",
            "nft_bitmap_*",
            "set_match*",
            "ip_set_test",
        ],
    ),
    (
        "Counts of connections",
        &["nft_connlimit*", "nf_conncount*", "connlimit_mt*"],
    ),
    (
        "Updates of sets (meters)",
        &["nft_dynset_*", "hashlimit_mt*", "recent_mt*"],
    ),
    ("Limits and quotas", &["nft_limit_*", "nft_quota_*"]),
    (
        "Copies and redirections of frames",
        &[
            "nft_dup_*",
            "nf_dup_*",
            "nft_fwd_*",
            "nf_do_netdev_egress",
            "tee_tg*",
        ],
    ),
    (
        "Changes of headers",
        &["nft_payload_set_*", "dscp_tg*", "tos_tg*", "ttl_tg*"],
    ),
];

fn expressions(case: &Case<'_>) -> Looked {
    /// One look-up in a table is what a good rule set has.
    const LEAST: f64 = 0.1;
    let spent = |functions: &[&'static str]| case.spent_apart(functions, SLOW_PATHS);
    let each = EXPRESSIONS
        .iter()
        .map(|(what, functions)| Ok((*what, spent(functions)?)));
    let each = each.collect::<Result<Vec<_>, String>>()?;
    let most = each
        .into_iter()
        .max_by(|a, b| a.1.share.total_cmp(&b.1.share));
    let Some((what, spent)) = most else {
        return Ok(None);
    };
    let share = percent(spent.share);
    let found = cost(case, Ok(spent), LEAST, Setting::None)?;
    Ok(found.map(|found| found.with("what", what).with("part", share)))
}

fn is_bridged(card: &&Card) -> bool {
    card.master_kind.as_deref() == Some("bridge")
}

fn bridge_netfilter(case: &Case<'_>) -> Looked {
    let setting = Asked(&["ip ", "sysctl"], |found| {
        let on = ["iptables", "ip6tables", "arptables"]
            .map(|of| format!("net.bridge.bridge-nf-call-{of}"));
        let on = on.into_iter().find(|name| found.number(name) == Some(1))?;
        found
            .cards
            .iter()
            .find(is_bridged)
            .map(|_| format!("{on} = 1"))
    });
    // The first hook is there where the setting is off as well: it then returns at once.
    let called = case.spent(&[
        "br_nf_pre_routing_finish*",
        "br_nf_forward_finish*",
        "br_nf_hook_thresh",
        "br_validate_ipv4",
        "br_validate_ipv6",
    ]);
    if called.is_ok_and(|called| called.share < 0.01) {
        return Ok(None);
    }
    cost(
        case,
        case.spent(&["br_nf_*", "br_validate_ipv4", "br_validate_ipv6"]),
        0.02,
        setting,
    )
}

fn bridge(case: &Case<'_>) -> Looked {
    let setting = Asked(&["ip "], |found| {
        let bridged = found.cards.iter().find(is_bridged)?;
        Some(format!(
            "{} belongs to the bridge {}",
            bridged.name,
            bridged.master.as_deref().unwrap_or_default()
        ))
    });
    let spent = case.spent(&[
        "br_handle_frame",
        "br_dev_xmit",
        "bridge_input",
        "bridge_forward",
        "bridge_transmit",
    ]);
    let found = cost(case, spent, 0.01, setting)?.map(|mut found| {
        // The time contains that of everything that a bridge calls: hooks and drivers.
        found.finding.weight *= 0.5;
        found.when(
            case.setting("/dut")
                .is_some_and(|dut| dut == "routed-bridge"),
            "routed",
        )
    });
    Ok(found)
}

fn connection_table(case: &Case<'_>) -> Looked {
    // Frames without a place in the table.
    let counted = case.counted(&[
        "Conntrack.drop",
        "Conntrack.early_drop",
        "Conntrack.insert_failed",
    ])?;
    let frames = counted.values().sum::<u64>();
    let share = case.of_sent(frames).min(1.0);
    if share < 0.001 {
        return Ok(None);
    }
    let noun = case.records.campaign.noun();
    let evidence = counted.iter().map(|(name, n)| {
        format!(
            "{name}: {n} ({} of the {noun}s sent)",
            percent(case.of_sent(*n))
        )
    });
    let found = Found::observed(share, evidence);
    // A connection that cannot be inserted is dropped as well: another has its addresses and ports.
    let refused: u64 = counted
        .iter()
        .filter(|(name, _)| name.ends_with("insert_failed"))
        .map(|(_, n)| *n)
        .sum();
    if 3 * refused > frames {
        let what = "Connections are not entered into the table: others have their addresses and ports already. Address translation finds no free port.";
        return Ok(Some(Found {
            instead: Some(MORE_ADDRESSES),
            ..found.with("what", what)
        }));
    }
    let found = found.with(
        "what",
        "The table of connections has no room for all flows.",
    );
    Ok(Some(match case.setting("/rules/firewall") {
        Some(_) => found.with("states", 2 * case.flows()),
        None => found,
    }))
}

/// Where address translation finds no free port.
const MORE_ADDRESSES: Ways = (
    &[
        [
            "Linux (nftables)",
            "snat to more addresses, or to all ports: snat to ADDRESS-ADDRESS",
            "the former rule",
        ],
        [
            "Linux (iptables)",
            "-j SNAT --to-source ADDRESS-ADDRESS, with more addresses",
            "the former rule",
        ],
    ],
    Not("the addresses of the translation are the network's: a plan cannot choose more"),
);

fn reverse_path(case: &Case<'_>) -> Looked {
    let setting = rp_filter(case);
    // With routing rules, the kernel looks the source up without the filter as well: `policy-routing`.
    let is_off = matches!(setting, Ok(None));
    // Not the look-ups of a type of address.
    let functions = [
        "rpfilter_mt",
        "nft_fib4_eval",
        "nft_fib6_eval",
        "ip6t_rpfilter*",
        "__fib_validate_source",
    ];
    judged(
        case.spent(&functions[..if is_off { 4 } else { 5 }]),
        0.005,
        setting,
    )
}

/// Takes the filters out that decide nothing: each says by an action, or by an eBPF program, what becomes of a frame. `{places}`: interface
/// and direction of the filters.
const WITHOUT_FILTERS: &str = "for place in {places}; do dev=${place%:*} way=${place#*:}; \
    tc filter show dev $dev $way | awk '/^filter/ { pref = 0; for (i = 1; i < NF; i++) if ($i == \"pref\") pref = $(i + 1); all[pref] } \
    /^filter .* bpf / || /[[:space:]]action order / && !/ gact action pass/ { decides[pref] } \
    END { for (pref in all) if (!(pref in decides)) print pref }' | while read pref; do tc filter del dev $dev $way pref $pref; done; done";

/// Filters without the actions and eBPF programs that they call, which are other causes.
fn traffic_filters(case: &Case<'_>) -> Looked {
    let setting = Asked(&["tc"], |found| {
        found.cards.iter().find_map(|card| {
            let number: u64 = card.filters.values().sum();
            (number > 0).then(|| format!("{} has {number} filters of traffic control", card.name))
        })
    });
    let functions = ["tcf_classify*", "tc_run", "tcx_run*", "sch_handle_*"];
    let Some(found) = cost(case, case.spent_usually(&functions, &[]), 0.02, setting)? else {
        return Ok(None);
    };
    let cards = case.configuration().map_or(&[][..], |found| &found.cards);
    let places = |of: &dyn Fn(&str) -> bool| -> Vec<String> {
        let ways = cards.iter().flat_map(|card| {
            let own = card.filters.iter().filter(|(way, n)| **n > 0 && of(way));
            own.map(|(way, _)| format!("{}:{way}", in_lab(&card.name)))
        });
        ways.collect()
    };
    let own = places(&|way| way != "root");
    Ok(Some(
        found
            .when(own.is_empty() && !places(&|_| true).is_empty(), "classes")
            .when(own.is_empty(), "elsewhere")
            .with("places", joined(own, " ")),
    ))
}
