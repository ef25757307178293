//! Packet filters: sizes of their tables, and the shape of their rules.

use super::sources::LAB;
use crate::host::Host;
use crate::item::Role;
use crate::item::Topic::Firewall;
use crate::rule::Kind::ByHand;
use crate::rule::{FORWARDING, ROUTING, RULE, Rule};
use crate::setting::Want::LeastBy;
use crate::setting::{Place, Scope, Worked, is, least_by, set, worked};
use linerate_calc::states::{conntrack_buckets, ipfw_buckets, pf_hash, pf_hash_bytes};
use linerate_hosts::configuration::RuleSet;
use linerate_hosts::systems::Kernel::{Linux, OpenBsd};

const FIREWALL: Rule = Rule {
    topic: Firewall,
    ..RULE
};
const TABLES: Rule = Rule {
    kind: ByHand,
    when: |host| long(host, 10),
    prior: 0.5,
    ..FIREWALL
};

pub const RULES: &[Rule] = &[
    Rule {
        id: "freebsd-pf-states",
        since: Some((10, 0)),
        outside: "pf of 9 has a hash of fixed size.",
        title: "Size pf's table of states and its hash for the connections",
        sets: &[
            set("set limit states", Place::Pf, LeastBy(pf_states)),
            least_by("net.pf.states_hashsize", pf_hash_size),
        ],
        covers: &["net.pf.pf_states_hashsize"],
        when: |host| {
            let table = host.found.table("pf").unwrap_or_default();
            // A hash of the default size is enough for the default limit.
            let default = if host.since((12, 0)) == Some(false) {
                32_768
            } else {
                131_072
            };
            let hash = host.number("net.pf.states_hashsize").unwrap_or(default);
            let short = is_asked_or_full(host, "pf") || table.most > u64::try_from(hash).ok();
            (short && has_pf(host)).then(|| fill(host, "pf"))
        },
        missing: |host| has_pf(host).then(|| room(host)),
        reserve: |host| {
            let scope = Scope::of(host);
            let (states, _) = entries(&scope, "pf", 2)?;
            let (bytes, all) = (hash_bytes(&scope, states), host.found.machine.memory?);
            (bytes > all / 10).then(|| {
                format!(
                    "the hash takes {} of {} of memory: decide whether the host can spare them, or ask for fewer --connections",
                    mebibytes(bytes),
                    mebibytes(all)
                )
            })
        },
        why: "pf keeps two states for each forwarded connection. A full table refuses new connections; with a hash that is too small each lookup walks a long list.",
        prior: 0.1,
        cost: "80 bytes of kernel memory for each slot of the hash, allocated at boot. The limit counts once the rules are loaded again (pfctl -f FILE; OPNsense and pfSense do it when you apply the change).",
        plan: "lab/states",
        ..FIREWALL
    },
    Rule {
        id: "freebsd-ipfw-states",
        title: "Size ipfw's table of dynamic rules and its hash for the connections",
        sets: &[
            least_by("net.inet.ip.fw.dyn_max", dyn_max),
            least_by("net.inet.ip.fw.dyn_buckets", dyn_buckets),
        ],
        when: |host| {
            (tracks(host, "ipfw")
                || host.demands.connections.is_some() && host.filter("ipfw").is_some())
            .then(|| "ipfw keeps a dynamic rule for each connection".into())
        },
        why: "A full table refuses new connections; ipfw of 11 slows down from 100,000 connections on.",
        prior: 0.1,
        cost: "Memory for each connection.",
        notes: &[(
            (12, 0),
            "Lookups take no lock from 12.0 on, and the hash may have more than 65,536 buckets.",
        )],
        plan: "lab/states",
        ..FIREWALL
    },
    Rule {
        id: "freebsd-ipfw-inet6",
        until: Some((11, 1)),
        kind: ByHand,
        title: "Use 11-STABLE or 12: stateful ipfw has a bad hash for IPv6",
        when: |host| tracks(host, "ipfw").then(|| "ipfw tracks connections".into()),
        why: "All connections of IPv6 meet in few buckets.",
        prior: 0.3,
        cost: "A new system.",
        plan: "lab/firewalls",
        ..FIREWALL
    },
    Rule {
        id: "freebsd-tables",
        title: "Put addresses into a table instead of one rule each",
        why: "ipfw and ipf try one rule after the other; from 10 rules on it shows, at 1,000 they are of no use. A lookup in a table costs the same for 10 entries and for 10 million. pf makes tables of simple rules itself.",
        cost: "ipf has no tables.",
        plan: "lab/tables",
        ..TABLES
    },
    Rule {
        id: "linux-tables",
        on: Linux,
        title: "Put addresses into a set or map instead of one rule each",
        why: "Rules are tried one after the other; a set is looked up once.",
        plan: "tables",
        ..TABLES
    },
    Rule {
        id: "freebsd-no-firewall",
        kind: ByHand,
        roles: ROUTING,
        title: "Unload the packet filter, if it is to pass everything",
        when: |host| {
            let rules = |set: &RuleSet| set.longest().map_or(0, |chain| chain.rules);
            let is_short = |set: &&RuleSet| (1..=2).contains(&rules(set));
            let all = &host.found.rule_sets;
            all.iter().find(is_short)?;
            // All that run: to unload one of two leaves the other.
            let one = |set: &RuleSet| {
                let n = rules(set);
                format!(
                    "{} has {n} rule{}",
                    set.filter,
                    if n == 1 { "" } else { "s" }
                )
            };
            Some(all.iter().map(one).collect::<Vec<_>>().join(", "))
        },
        why: "Each packet passes the filter and the lookup of its state.",
        measured: &[(
            LAB,
            &[
                (
                    11.8,
                    "Xeon L5630, Intel 82580: none (the link was full) against stateful ipfw",
                ),
                (
                    16.5,
                    "Xeon L5630, Intel 82580: none (the link was full) against stateless pf",
                ),
                (
                    14.0,
                    "Xeon L5630, Intel 82580: none (the link was full) against stateful pf",
                ),
            ],
        )],
        cost: "No filter.",
        plan: "lab/firewalls",
        ..FIREWALL
    },
    Rule {
        id: "openbsd-pf-states",
        on: OpenBsd,
        title: "Raise pf's limit of states for the connections",
        sets: &[set("set limit states", Place::Pf, LeastBy(pf_states))],
        when: |host| {
            (is_asked_or_full(host, "pf") && host.filter("pf").is_some()).then(|| fill(host, "pf"))
        },
        missing: |host| host.filter("pf").map(|_| room(host)),
        why: "pf keeps two states for each forwarded connection. A full table refuses new ones.",
        prior: 0.1,
        cost: "Memory for each state. The rules must be loaded again: pfctl -f /etc/pf.conf.",
        plan: "lab/states",
        ..FIREWALL
    },
    Rule {
        id: "openbsd-keep-state",
        on: OpenBsd,
        kind: ByHand,
        title: "Keep state in rules that pass TCP",
        when: |host| {
            let chain = host.filter("pf")?.longest()?;
            (chain.tracking == 0).then(|| format!("none of {} rules keeps state", chain.rules))
        },
        why: "pf must see the first packet of a connection to learn its window scale; without it, a connection through the firewall carries some hundred kilobytes a second (calomel.org's guide).",
        prior: 0.3,
        ..FIREWALL
    },
    Rule {
        id: "linux-conntrack",
        on: Linux,
        title: "Size the table of tracked connections and its hash",
        sets: &[
            least_by("net.netfilter.nf_conntrack_max", conntrack_max),
            least_by("net.netfilter.nf_conntrack_buckets", conntrack_hash),
        ],
        when: |host| {
            let table = host.found.table("conntrack")?;
            (host.found.rule_sets.iter().any(|set| set.tracks())
                || table.entries > Some(0)
                || host.demands.connections.is_some())
            .then(|| fill(host, "conntrack"))
        },
        why: "A full table drops the first packet of each new connection; with a hash that is too small each lookup walks a long list.",
        prior: 0.1,
        cost: "Memory: some 300 bytes for each connection, 8 for each bucket. At boot the lines count only if nf_conntrack is loaded before them: name it in /etc/modules-load.d.",
        plan: "states",
        ..FIREWALL
    },
    Rule {
        id: "linux-flowtable",
        on: Linux,
        roles: &[Role::Firewall],
        since: Some((4, 16)),
        kind: ByHand,
        title: "Let established connections pass by the rules: a flowtable of nftables",
        when: |host| {
            let set = host
                .filter("nftables")
                .filter(|set| set.tracks() && set.flow_tables.is_empty())?;
            Some(format!(
                "{} rules, no flowtable",
                set.chains.iter().map(|chain| chain.rules).sum::<u64>()
            ))
        },
        why: "Packets of a known flow skip routing and all chains.",
        prior: 0.3,
        cost: "Rules and counters behind it do not see these packets.",
        ..FIREWALL
    },
    Rule {
        id: "linux-bridge-netfilter",
        on: Linux,
        roles: FORWARDING,
        title: "Keep bridged frames out of iptables",
        sets: &[
            is("net.bridge.bridge-nf-call-iptables", "0"),
            is("net.bridge.bridge-nf-call-ip6tables", "0"),
            is("net.bridge.bridge-nf-call-arptables", "0"),
        ],
        when: |host| {
            let names = host.found.links.iter().map(|link| link.kind.as_str());
            let bridged = names.chain(
                host.found
                    .cards
                    .iter()
                    .filter_map(|card| card.master_kind.as_deref()),
            );
            let on = host.value("net.bridge.bridge-nf-call-iptables") == Some("1");
            (on && bridged.into_iter().any(|kind| kind == "bridge"))
                .then(|| "br_netfilter is loaded, and there is a bridge".into())
        },
        why: "Each bridged frame passes the rules and connection tracking of IP.",
        prior: 0.3,
        cost: "Rules of iptables no longer see bridged frames: containers may rely on it.",
        plan: "bridge",
        ..FIREWALL
    },
];

fn tracks(host: &Host, filter: &str) -> bool {
    host.filter(filter).is_some_and(|set| set.tracks())
}

fn long(host: &Host, most: u64) -> Option<String> {
    let (set, chain) = host
        .found
        .rule_sets
        .iter()
        .filter(|set| set.filter != "pf")
        .filter_map(|set| Some((set, set.longest()?)))
        .max_by_key(|(_, chain)| chain.rules)?;
    (chain.rules >= most && chain.lookups * 2 < chain.rules).then(|| {
        format!(
            "a chain of {} has {} rules, {} of them look something up",
            set.filter, chain.rules, chain.lookups
        )
    })
}

/// Whether pf keeps states.
fn has_pf(host: &Host) -> bool {
    tracks(host, "pf") || host.is_yes("pf_enable")
}

/// The fact that is missing to judge the size of pf's table: somebody has to say how many connections it must hold.
fn room(host: &Host) -> String {
    match fill(host, "pf") {
        known if known.is_empty() => "The facts lack pf's states and their limit (`pfctl -s info`, `pfctl -s memory`). Save them, or name the connections that the table must hold: --connections N.".into(),
        known => format!("The table has room now: {known}. To have it sized, name the connections that it must hold: --connections N."),
    }
}

fn fill(host: &Host, owner: &str) -> String {
    let Some(table) = host.found.table(owner) else {
        return String::new();
    };
    match (table.entries, table.most) {
        (Some(now), Some(most)) => format!("{now} of at most {most} entries"),
        _ => String::new(),
    }
}

/// Entries that the table must hold: those that were asked for; else the present limit, or more where four fifths are in use.
fn entries(scope: &Scope, owner: &str, per_connection: u64) -> Option<(u64, String)> {
    let table = scope.host.found.table(owner).unwrap_or_default();
    sized(scope, per_connection, table.entries, table.most)
}

/// Whether connections are asked for, or the table has little room.
fn is_asked_or_full(host: &Host, owner: &str) -> bool {
    let table = host.found.table(owner).unwrap_or_default();
    host.demands.connections.is_some() || is_full(table.entries, table.most)
}

/// Whether more than four fifths are in use.
fn is_full(entries: Option<u64>, most: Option<u64>) -> bool {
    entries
        .zip(most)
        .is_some_and(|(now, most)| now.saturating_mul(5) > most.saturating_mul(4))
}

fn sized(
    scope: &Scope,
    per_connection: u64,
    entries: Option<u64>,
    most: Option<u64>,
) -> Option<(u64, String)> {
    if let Some(connections) = scope.host.demands.connections {
        let entries = connections.saturating_mul(per_connection);
        let each = if per_connection > 1 {
            format!(" x {per_connection} states")
        } else {
            String::new()
        };
        return Some((
            entries,
            format!("{connections} connections{each} = {entries}"),
        ));
    }
    let most = most?;
    Some(match entries.filter(|_| is_full(entries, Some(most))) {
        Some(now) => (
            now.saturating_mul(2),
            format!("{now} entries fill more than four fifths of {most}: twice as many"),
        ),
        None => (most, format!("the limit is {most}")),
    })
}

fn pf_states(scope: &Scope) -> Option<Worked> {
    entries(scope, "pf", 2).and_then(|(n, how)| worked(n, how))
}

fn pf_hash_size(scope: &Scope) -> Option<Worked> {
    let (states, _) = entries(scope, "pf", 2)?;
    let memory = scope.host.found.machine.memory;
    let size = hash_slots(scope, states);
    let of = memory.map_or(String::new(), |all| format!(" of {}", mebibytes(all)));
    let less = if size < pf_hash(states) {
        ", halved until it takes no more than half of the memory"
    } else {
        ""
    };
    let how = format!(
        "3 x {states} states, rounded up to a power of two{less}: {size} slots x 80 bytes = {}{of}",
        mebibytes(hash_bytes(scope, states))
    );
    worked(size, how)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1u64 << 20) as f64)
}

/// The slots of pf's hash for these states.
fn hash_slots(scope: &Scope, states: u64) -> u64 {
    let memory = scope.host.found.machine.memory;
    let mut size = pf_hash(states);
    // The kernel that cannot find so much takes its default.
    while memory.is_some_and(|all| slot_bytes(states, size) > all / 2) && size > 1 {
        size /= 2;
    }
    size
}

fn slot_bytes(states: u64, slots: u64) -> u64 {
    slots.saturating_mul(pf_hash_bytes(states) / pf_hash(states))
}

fn hash_bytes(scope: &Scope, states: u64) -> u64 {
    slot_bytes(states, hash_slots(scope, states))
}

fn dyn_max(scope: &Scope) -> Option<Worked> {
    dynamic(scope).and_then(|(n, how)| worked(n, how))
}

/// Dynamic rules that ipfw must hold: it has a table of its own beside pf's.
fn dynamic(scope: &Scope) -> Option<(u64, String)> {
    let number = |name: &str| scope.host.number(name).and_then(|n| u64::try_from(n).ok());
    let (count, most) = (
        number("net.inet.ip.fw.dyn_count"),
        number("net.inet.ip.fw.dyn_max"),
    );
    sized(scope, 1, count, most)
}

fn dyn_buckets(scope: &Scope) -> Option<Worked> {
    let (states, _) = dynamic(scope)?;
    // From 12.0 on the hash may have as many buckets as connections, as in the paper's last bench (illustration 36).
    let (buckets, how) = match (scope.host.since((12, 0)), scope.host.demands.connections) {
        (Some(true), Some(_)) => (states, format!("a bucket for each of {states} connections")),
        _ => (
            ipfw_buckets(states),
            format!("{states} / 64, rounded up to a power of two, at most 65536"),
        ),
    };
    worked(buckets, format!("{how}: {buckets}"))
}

fn conntrack_max(scope: &Scope) -> Option<Worked> {
    entries(scope, "conntrack", 1).and_then(|(n, how)| worked(n, how))
}

/// One bucket for each entry is the kernel's own choice since 5.15; two where connections are asked for.
fn conntrack_hash(scope: &Scope) -> Option<Worked> {
    let (states, _) = entries(scope, "conntrack", 1)?;
    let (buckets, how) = match scope.host.demands.connections {
        Some(_) => (
            conntrack_buckets(states),
            "2 buckets for each connection, which is in the hash once for each direction",
        ),
        None => (
            states,
            "a bucket for each connection, as Linux 5.15 and later chooses",
        ),
    };
    worked(buckets, format!("{how}: {buckets}"))
}
