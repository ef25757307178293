//! The list of what frames meet beyond plain routing on a Linux host.

use super::{Attached, Configuration, Filter, Program, Traced, Way};
use crate::configuration::RuleSet;
use linerate_measure::record::Met;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// One thing on the way of frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Item {
    pub kind: Met,
    /// The thing in words.
    pub name: String,
    /// The device or hook where it is; empty where it is the whole host's.
    pub place: String,
    /// The word of its kind that tells its functions: `htb`, `multipath`, the name of a setting.
    pub word: String,
    /// The program that runs there.
    pub program: Option<Program>,
}

impl Item {
    pub(super) fn new(kind: Met, word: &str, name: impl Into<String>) -> Item {
        Item {
            kind,
            word: word.into(),
            name: name.into(),
            ..Item::default()
        }
    }

    pub(super) fn at(mut self, place: impl Into<String>) -> Item {
        self.place = place.into();
        self
    }

    fn runs(mut self, program: &Program) -> Item {
        self.program = Some(program.clone());
        self
    }
}

/// Queueing disciplines that every device may have, or that only hold filters.
const USUAL_QDISCS: [&str; 3] = ["noqueue", "mq", "pfifo_fast"];
/// Protocols of packet sockets that see IP: all of them, IPv4, IPv6.
const IP_PROTOCOLS: [(u16, &str); 3] = [
    (0x0003, "all protocols"),
    (0x0800, "IPv4"),
    (0x86dd, "IPv6"),
];
/// Settings of forwarding, each with the kernel's default.
const DEFAULTS: [(&str, &str); 17] = [
    ("net.ipv4.fib_multipath_hash_policy", "0"),
    ("net.ipv6.fib_multipath_hash_policy", "0"),
    ("net.ipv4.fib_multipath_use_neigh", "0"),
    ("net.ipv4.ip_forward_use_pmtu", "0"),
    ("net.ipv4.ip_forward_update_priority", "1"),
    ("net.ipv4.ip_early_demux", "1"),
    ("net.ipv4.tcp_early_demux", "1"),
    ("net.ipv4.udp_early_demux", "1"),
    ("net.core.netdev_budget", "300"),
    ("net.core.netdev_max_backlog", "1000"),
    ("net.core.dev_weight", "64"),
    ("net.core.gro_normal_batch", "8"),
    ("net.core.netdev_tstamp_prequeue", "1"),
    ("net.core.rps_sock_flow_entries", "0"),
    ("net.core.bpf_jit_enable", "1"),
    ("net.core.bpf_jit_harden", "0"),
    ("kernel.bpf_stats_enabled", "0"),
];
/// Settings of the tracking of connections.
const OF_TRACKING: [(&str, &str); 6] = [
    ("net.netfilter.nf_conntrack_acct", "0"),
    ("net.netfilter.nf_conntrack_timestamp", "0"),
    ("net.netfilter.nf_conntrack_checksum", "1"),
    ("net.netfilter.nf_conntrack_tcp_loose", "1"),
    ("net.netfilter.nf_conntrack_tcp_be_liberal", "0"),
    ("net.netfilter.nf_conntrack_log_invalid", "0"),
];
/// Settings of interfaces, all of which have the default 0.
const OF_INTERFACES: [&str; 3] = ["rp_filter", "log_martians", "src_valid_mark"];
/// Groups of trace events that frames meet. Others are told by their number alone.
const OF_FRAMES: [&str; 12] = [
    "net",
    "napi",
    "skb",
    "xdp",
    "fib",
    "fib6",
    "neigh",
    "qdisc",
    "bridge",
    "kmem",
    "page_pool",
    "irq",
];
/// Events, probes and functions that are named one by one.
const NAMED: usize = 8;

/// `addresses`: those of the frames, whose IP version decides which tables of packet filters they pass. None: of both.
pub(super) fn of_linux(found: &Configuration, ways: &[&Way], addresses: &[IpAddr]) -> Vec<Item> {
    let cards = found.cards.iter().filter(|card| card.found);
    let from = cards.map(|card| card.name.clone());
    let on_way = found.closure(from.chain(ways.iter().flat_map(|way| way.devices.clone())));
    let mut all = routing(found, ways);
    let passes = |family: &str| match family {
        "ip" => addresses.is_empty() || addresses.iter().any(IpAddr::is_ipv4),
        "ip6" => addresses.is_empty() || addresses.iter().any(IpAddr::is_ipv6),
        _ => true,
    };
    all.extend(packet_filters(found, passes));
    all.extend(connections(found));
    all.extend(devices(found, &on_way));
    all.extend(traffic_control(found, &on_way));
    all.extend(programs(found, &on_way));
    all.extend(settings(found, &on_way));
    all.extend(tracing(&found.path.tracing));
    all
}

pub(super) fn number(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn routing(found: &Configuration, ways: &[&Way]) -> Vec<Item> {
    let mut all: Vec<Item> = Vec::new();
    for (word, says) in ways.iter().flat_map(|way| &way.special) {
        all.push(Item::new(Met::Route, word, says));
    }
    let rules = &found.path.rules;
    let own = rules
        .iter()
        .take(NAMED)
        .map(|rule| Item::new(Met::PolicyRule, "rule", rule));
    all.extend(own);
    if let Some(more) = rules.len().checked_sub(NAMED).filter(|more| *more > 0) {
        all.push(Item::new(
            Met::PolicyRule,
            "rule",
            format!("{} more", number(more as u64, "rule")),
        ));
    }
    all.extend(ipsec(found, "xfrm"));
    all
}

/// Policies and states of IPsec. `word`: that of the system's functions.
pub(super) fn ipsec(found: &Configuration, word: &str) -> Option<Item> {
    let words: Vec<String> = found
        .path
        .ipsec
        .iter()
        .map(|(way, n)| match way.as_str() {
            "states" => number(*n, "state"),
            way => format!("{n} {} {way}", if *n == 1 { "policy" } else { "policies" }),
        })
        .collect();
    (!words.is_empty()).then(|| Item::new(Met::Ipsec, word, words.join(", ")))
}

/// Hooks by their packet filter and table, with the number of rules.
fn packet_filters(found: &Configuration, passes: impl Fn(&str) -> bool) -> Vec<Item> {
    let mut all = Vec::new();
    for set in &found.path.packet_filters {
        all.extend(tables(set, &passes));
        let logging: u64 = set.forwarding().iter().map(|chain| chain.logging).sum();
        if logging > 0 {
            all.push(Item::new(
                Met::Logging,
                "log",
                format!("{} of {} that log", number(logging, "rule"), set.filter),
            ));
        }
    }
    for set in found.path.sets.iter().take(64) {
        let flags = if set.flags.is_empty() {
            String::new()
        } else {
            format!(", {}", set.flags)
        };
        let name = format!("nftables set {} ({}{flags})", set.name, set.of);
        all.push(Item::new(Met::Set, "nftables", name));
    }
    let queues = &found.path.queues;
    if !queues.is_empty() || found.path.parts.contains("queue") {
        let numbers: Vec<String> = queues.iter().map(u32::to_string).collect();
        let name = match queues.is_empty() {
            true => "NFQUEUE, which no program reads".into(),
            false => format!("NFQUEUE {}", numbers.join(", ")),
        };
        all.push(Item::new(Met::UserQueue, "nfqueue", name));
    }
    if found.path.parts.contains("flow tables") {
        all.push(Item::new(
            Met::PacketFilter,
            "flow tables",
            "flow tables of nftables",
        ));
    }
    // Hooks of connection tracking and of nftables are told elsewhere.
    let known = [
        "conntrack",
        "nf_confirm",
        "nft_do_chain",
        "ipt_do_table",
        "ip6t_do_table",
        "iptable_",
        "ip6table_",
        "nf_nat_",
        "br_nf_",
    ];
    let other = found
        .path
        .hooks
        .iter()
        .filter(|(_, function)| !known.iter().any(|part| function.contains(part)));
    all.extend(other.map(|(hook, function)| Item::new(Met::Hook, function, function).at(hook)));
    all
}

/// `nftables inet t: 1 base chain, 2 rules`; of iptables, the tables whose modules have hooks. Only tables of families that frames pass.
fn tables(set: &RuleSet, passes: impl Fn(&str) -> bool) -> Vec<Item> {
    let mut tables: BTreeMap<(&str, &str), (BTreeSet<&str>, u64, u64)> = BTreeMap::new();
    for chain in set.chains.iter().filter(|chain| passes(&chain.family)) {
        let (hooks, bases, rules) = tables.entry((&chain.family, &chain.table)).or_default();
        *rules += chain.rules;
        if let Some(hook) = chain
            .hook
            .as_deref()
            .filter(|hook| !["input", "output"].contains(hook))
        {
            *bases += 1;
            hooks.insert(hook);
        }
    }
    let of_way = tables
        .into_iter()
        .filter(|(_, (hooks, ..))| !hooks.is_empty());
    let item =
        |((family, table), (hooks, bases, rules)): ((&str, &str), (BTreeSet<&str>, u64, u64))| {
            let name = format!(
                "{} {family} {table}: {}, {}",
                set.filter,
                number(bases, "base chain"),
                if rules == 0 {
                    "no rules".into()
                } else {
                    number(rules, "rule")
                }
            );
            let hooks: Vec<&str> = hooks.into_iter().collect();
            let word = if family == "bridge" {
                "bridge"
            } else {
                set.filter.as_str()
            };
            Item::new(Met::PacketFilter, word, name).at(hooks.join(", "))
        };
    of_way.map(item).collect()
}

/// The tracking of connections, where something asked for it, with its extensions.
fn connections(found: &Configuration) -> Vec<Item> {
    let path = &found.path;
    let tracks = path
        .packet_filters
        .iter()
        .any(|set| set.chains.iter().any(|chain| chain.tracking > 0))
        || path
            .hooks
            .iter()
            .any(|(_, function)| function.contains("conntrack_in"))
        || path.parts.iter().any(|part| {
            [
                "helpers",
                "zones",
                "labels",
                "timeouts",
                "nat",
                "flow tables",
            ]
            .contains(part)
        })
        || found.table("conntrack").and_then(|table| table.entries) > Some(0);
    if !tracks {
        return Vec::new();
    }
    let entries = found.table("conntrack").and_then(|table| table.entries);
    let name = match entries {
        Some(n) if n > 0 => format!("conntrack, {n} entries when linerate looked"),
        _ => "conntrack".into(),
    };
    let mut all = vec![Item::new(Met::ConnectionTracking, "conntrack", name)];
    for part in ["helpers", "zones", "labels", "timeouts", "nat"] {
        if path.parts.contains(part) {
            let words = if part == "nat" {
                "address translation"
            } else {
                part
            };
            all.push(Item::new(
                Met::ConnectionTracking,
                part,
                format!("conntrack: {words}"),
            ));
        }
    }
    all.extend(
        OF_TRACKING
            .iter()
            .filter_map(|(name, default)| differs(found, Met::ConnectionTracking, name, default)),
    );
    all
}

/// `net.netfilter.nf_conntrack_acct = 1 (default 0)`.
fn differs(found: &Configuration, kind: Met, name: &str, default: &str) -> Option<Item> {
    let value = found.sysctls.get(name)?.trim();
    let words = format!("{name} = {value} (default {default})");
    (value != default).then(|| Item::new(kind, name, words))
}

fn devices(found: &Configuration, on_way: &BTreeSet<String>) -> Vec<Item> {
    let mut all = Vec::new();
    let on_way: Vec<_> = found
        .path
        .devices
        .iter()
        .filter(|device| on_way.contains(&device.name))
        .collect();
    for device in &on_way {
        let is_card = device.kind == "veth" && found.card(&device.name).is_some();
        if !device.kind.is_empty() && !is_card {
            let id = device.id.map_or(String::new(), |id| format!(" {id}"));
            let below = device.below.as_ref().filter(|_| device.kind != "veth");
            let below = below.map_or(String::new(), |below| format!(" on {below}"));
            let name = format!("{}{id}{below}", device.kind);
            all.push(Item::new(Met::Device, &device.kind, name).at(&device.name));
        }
        for (protocol, what) in IP_PROTOCOLS {
            let sees = |socket: &&(u16, u32)| **socket == (protocol, device.index);
            let n = found.path.sockets.iter().filter(sees).count() as u64;
            if n > 0 && device.index > 0 {
                let name = format!("{} ({what})", number(n, "packet socket"));
                all.push(Item::new(Met::PacketSocket, "tap", name).at(&device.name));
            }
        }
    }
    for (protocol, what) in IP_PROTOCOLS {
        let n = found
            .path
            .sockets
            .iter()
            .filter(|socket| **socket == (protocol, 0))
            .count() as u64;
        if n > 0 {
            let name = format!("{} ({what})", number(n, "packet socket"));
            all.push(Item::new(Met::PacketSocket, "tap", name).at("every device"));
        }
    }
    let bridged = on_way.iter().any(|device| device.kind == "bridge");
    let calls =
        ["iptables", "ip6tables", "arptables"].map(|of| format!("net.bridge.bridge-nf-call-{of}"));
    let on: Vec<String> = calls
        .into_iter()
        .filter(|name| found.number(name) == Some(1))
        .collect();
    if bridged && !on.is_empty() {
        all.push(Item::new(
            Met::Hook,
            "br_netfilter",
            format!("br_netfilter ({} = 1)", on.join(", ")),
        ));
    }
    all
}

fn traffic_control(found: &Configuration, on_way: &BTreeSet<String>) -> Vec<Item> {
    let path = &found.path;
    let default = found
        .sysctls
        .get("net.core.default_qdisc")
        .map(|kind| kind.trim());
    let is_usual = |kind: &str| USUAL_QDISCS.contains(&kind) || default == Some(kind);
    let mut all = Vec::new();
    for (device, qdisc) in path
        .qdiscs
        .iter()
        .filter(|(device, _)| on_way.contains(device))
    {
        if is_usual(&qdisc.kind) {
            continue;
        }
        let classes = path
            .classes
            .get(device)
            .filter(|n| **n > 0 && qdisc.parent == "root");
        let classes = classes.map_or(String::new(), |n| match n {
            1 => ", 1 class".into(),
            n => format!(", {n} classes"),
        });
        let place = match qdisc.parent.as_str() {
            "root" | "" => device.clone(),
            parent
                if ["clsact", "ingress"].contains(&qdisc.kind.as_str())
                    || parent.starts_with("ffff:") =>
            {
                device.clone()
            }
            parent => format!("{device}, below {parent}"),
        };
        all.push(
            Item::new(
                Met::QueueingDiscipline,
                &qdisc.kind,
                format!("{}{classes}", qdisc.kind),
            )
            .at(place),
        );
    }
    all.extend(filters(found, on_way));
    all
}

/// Filters by their kind and actions; each program of tc by itself.
fn filters(found: &Configuration, on_way: &BTreeSet<String>) -> Vec<Item> {
    let path = &found.path;
    let mut all = Vec::new();
    let mut groups: BTreeMap<(String, &str, Vec<&str>), u64> = BTreeMap::new();
    for filter in path
        .filters
        .iter()
        .filter(|filter| on_way.contains(&filter.device))
    {
        let Filter {
            device,
            direction,
            kind,
            program,
            actions,
        } = filter;
        let place = format!("{device} {direction}");
        match program {
            Some(program) => {
                let name = format!("tc program {}", program.words());
                all.push(Item::new(Met::Program, "tc", name).at(place).runs(program));
            }
            None => {
                let actions = actions.iter().map(|(kind, _)| kind.as_str()).collect();
                *groups.entry((place, kind, actions)).or_default() += 1;
            }
        }
    }
    for ((place, kind, actions), n) in groups {
        let does = if actions.is_empty() {
            String::new()
        } else {
            format!(" ({})", actions.join(", "))
        };
        let name = format!("{}{does}", number(n, &format!("{kind} filter")));
        let word = std::iter::once(kind)
            .chain(actions)
            .collect::<Vec<_>>()
            .join(" ");
        all.push(Item::new(Met::TrafficFilter, &word, name).at(place));
    }
    all
}

fn programs(found: &Configuration, on_way: &BTreeSet<String>) -> Vec<Item> {
    let mut all = Vec::new();
    for device in found
        .path
        .devices
        .iter()
        .filter(|device| on_way.contains(&device.name))
    {
        for (mode, program) in &device.xdp {
            let name = format!("XDP program {}, {mode} mode", program.words());
            let word = if *mode == "generic" { "generic" } else { "xdp" };
            all.push(
                Item::new(Met::Program, word, name)
                    .at(&device.name)
                    .runs(program),
            );
        }
    }
    for Attached {
        device,
        place,
        program,
    } in &found.path.programs
    {
        if device
            .as_ref()
            .is_some_and(|device| !on_way.contains(device))
        {
            continue;
        }
        let name = format!("{place} program {}", program.words());
        let kind = if device.is_none() && !place.starts_with("netfilter") {
            Met::Tracing
        } else {
            Met::Program
        };
        all.push(
            Item::new(kind, "program", name)
                .at(device.clone().unwrap_or_default())
                .runs(program),
        );
    }
    all
}

fn settings(found: &Configuration, on_way: &BTreeSet<String>) -> Vec<Item> {
    let mut all: Vec<Item> = DEFAULTS
        .iter()
        .filter_map(|(name, default)| differs(found, Met::Setting, name, default))
        .collect();
    for setting in OF_INTERFACES {
        // The greater of both values counts.
        let names = std::iter::once("all").chain(on_way.iter().map(String::as_str));
        let on = names
            .map(|name| format!("net.ipv4.conf.{name}.{setting}"))
            .filter(|name| found.number(name) > Some(0));
        let first = on.take(1).map(|name| {
            let words = format!("{name} = {} (default 0)", found.sysctls[&name].trim());
            Item::new(Met::Setting, setting, words)
        });
        all.extend(first);
    }
    all
}

/// Events that frames meet by name, all others by their number.
fn tracing(traced: &[Traced]) -> Vec<Item> {
    let mut all = Vec::new();
    for kind in ["tracer", "event", "probe", "function"] {
        let of_kind: Vec<&str> = traced
            .iter()
            .filter(|one| one.kind == kind)
            .map(|one| one.name.as_str())
            .collect();
        let is_named = |name: &&&str| {
            kind != "event" || OF_FRAMES.contains(&name.split(':').next().unwrap_or_default())
        };
        let named: Vec<&&str> = of_kind.iter().filter(is_named).take(NAMED).collect();
        all.extend(
            named
                .iter()
                .map(|name| Item::new(Met::Tracing, kind, format!("{kind} {name}"))),
        );
        let more = of_kind.len() - named.len();
        if more > 0 {
            let other = if named.is_empty() {
                kind.to_string()
            } else {
                format!("other {kind}")
            };
            all.push(Item::new(Met::Tracing, kind, number(more as u64, &other)));
        }
    }
    all
}
