//! Things that frames meet on BSD systems beyond plain routing: pf, ipfw, ipf, netgraph, virtual interfaces.

use super::met::{Item, number};
use super::{Configuration, Way, enter};
use crate::systems::bsd::kind;
use crate::systems::text::{lines, pairs, sections, shown};
use linerate_measure::record::Met;

/// Modules of FreeBSD that put functions into the way of frames, in words.
const MODULES: [(&str, &str); 4] = [
    ("dummynet", "dummynet"),
    ("ipsec", "IPsec"),
    ("dtrace", "DTrace"),
    ("carp", "CARP"),
];
/// Settings, each with the default of FreeBSD.
const FREEBSD: [(&str, &str); 2] = [
    ("net.inet.ip.process_options", "1"),
    ("net.inet.ip.random_id", "0"),
];

impl Configuration {
    /// `route -n get` of each address: lines `gateway: 192.0.2.1`.
    pub(in super::super) fn bsd_ways(&mut self, answer: &str) {
        for (title, text) in sections(answer) {
            let address = title.rsplit(' ').next().unwrap_or_default();
            let of = |name: &str| {
                pairs(text, ':')
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| shown(value))
            };
            let Some(device) = of("interface") else {
                let why = lines(text).last().unwrap_or("no answer");
                self.lacks("way", &format!("{title}: {why}"));
                continue;
            };
            let via = of("gateway").map_or(String::new(), |via| format!("via {via}, "));
            let table = of("fib").or(of("rdomain")).filter(|table| table != "0");
            let table = table.map_or(String::new(), |table| format!(", table {table}"));
            let way = Way {
                address: shown(address),
                says: format!("{}: {via}device {device}{table}", shown(title)),
                devices: vec![device],
                special: Vec::new(),
            };
            if !self
                .path
                .ways
                .iter()
                .any(|known| known.address == way.address)
            {
                enter(&mut self.path.ways, way);
            }
        }
    }

    /// `Name: ipfw  Type: ipfw  ID: 00000002  Num hooks: 1`. The question has a node of its own, without hooks.
    pub(in super::super) fn netgraph(&mut self, answer: &str) {
        for line in lines(answer).filter(|line| line.trim_start().starts_with("Name:")) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let after = |key: &str| {
                let at = words.iter().position(|word| *word == key)?;
                words.get(at + 1).copied()
            };
            let hooks: u64 = after("hooks:").and_then(|n| n.parse().ok()).unwrap_or(0);
            if let (Some(name), Some(of), 1..) = (after("Name:"), after("Type:"), hooks) {
                enter(&mut self.path.nodes, (shown(name), shown(of)));
            }
        }
    }
}

impl Configuration {
    /// `netstat -B`: `1234  em0 p--s---  13 0 13 0 0 tcpdump`. Counters and lengths stand between flags and program.
    pub(in super::super) fn taps(&mut self, answer: &str) {
        for line in lines(answer) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_socket = words.first().is_some_and(|pid| pid.parse::<u32>().is_ok());
            if let ([_, interface, _, .., program], true) = (&words[..], is_socket) {
                enter(&mut self.path.taps, (shown(interface), shown(program)));
            }
        }
    }

    /// Flows of OpenBSD, `flow esp in from 10.1.0.0/24 to ...`; policies of FreeBSD, whose second lines are `in ipsec`.
    pub(in super::super) fn ipsec_policies(&mut self, answer: &str) {
        for line in lines(answer) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (["flow", _, way @ ("in" | "out"), ..] | [way @ ("in" | "out"), "ipsec", ..]) =
                &words[..]
            else {
                continue;
            };
            *self.path.ipsec.entry(way.to_string()).or_default() += 1;
        }
    }

    /// `queue root on em0 bandwidth 100M`, `queue low parent root bandwidth 10M`.
    pub(in super::super) fn queues(&mut self, answer: &str) {
        let (interfaces, all) = &mut self.path.queues_of_pf;
        for line in lines(answer) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if let ["queue", _, rest @ ..] = &words[..] {
                *all += 1;
                if let ["on", interface, ..] = rest
                    && !interfaces.iter().any(|known| known == interface)
                {
                    enter(interfaces, shown(interface));
                }
            }
        }
    }
}

pub(super) fn met(found: &Configuration, ways: &[&Way]) -> Vec<Item> {
    let mut all = Vec::new();
    for set in &found.rule_sets {
        let rules: u64 = set.chains.iter().map(|chain| chain.rules).sum();
        let name = format!("{}: {}", set.filter, number(rules, "rule"));
        all.push(Item::new(Met::PacketFilter, &set.filter, name));
        let logging: u64 = set.chains.iter().map(|chain| chain.logging).sum();
        if logging > 0 {
            all.push(Item::new(
                Met::Logging,
                &set.filter,
                format!("{} of {} that log", number(logging, "rule"), set.filter),
            ));
        }
        if set.tracks() {
            let entries = found.table(&set.filter).and_then(|table| table.entries);
            let entries = entries.map_or(String::new(), |n| format!(", {n} when linerate looked"));
            all.push(Item::new(
                Met::ConnectionTracking,
                &set.filter,
                format!("states of {}{entries}", set.filter),
            ));
        }
    }
    all.extend(found.path.nodes.iter().map(|(name, of)| {
        Item::new(
            Met::Hook,
            "netgraph",
            format!("netgraph node {name} ({of})"),
        )
    }));
    all.extend(super::met::ipsec(found, "ipsec"));
    let (interfaces, queues) = &found.path.queues_of_pf;
    all.extend(interfaces.iter().map(|interface| {
        let name = format!("{} of pf", number(*queues, "queue"));
        Item::new(Met::QueueingDiscipline, "pf", name).at(interface)
    }));
    let is_on_way = |name: &String| {
        ways.iter().any(|way| way.devices.contains(name))
            || found
                .cards
                .iter()
                .any(|card| card.found && card.name == *name)
    };
    let taps = found.path.taps.iter().filter(|(on, _)| is_on_way(on));
    all.extend(taps.map(|(on, program)| {
        let name = format!("packet socket of {program}");
        Item::new(Met::PacketSocket, "bpf", name).at(on)
    }));
    for (module, words) in MODULES {
        let is_loaded = |name: &String| {
            name.trim_end_matches(".ko") == module
                || module == "dtrace" && name.starts_with("dtrace")
        };
        if found.modules.iter().any(is_loaded) {
            all.push(Item::new(Met::Hook, module, format!("module {words}")));
        }
    }
    all.extend(devices(found, ways));
    let defaults = if found.system.kernel == "freebsd" {
        &FREEBSD[..]
    } else {
        &[]
    };
    for (name, default) in defaults {
        if let Some(value) = found
            .sysctls
            .get(*name)
            .map(|value| value.trim())
            .filter(|value| value != default)
        {
            all.push(Item::new(
                Met::Setting,
                name,
                format!("{name} = {value} (default {default})"),
            ));
        }
    }
    all
}

/// Virtual interfaces on the way: those of its routes, those that carry its cards, and those below them.
fn devices(found: &Configuration, ways: &[&Way]) -> Vec<Item> {
    let cards = found.cards.iter().filter(|card| card.found);
    let mut open: Vec<String> = cards
        .flat_map(|card| [Some(card.name.clone()), card.master.clone()])
        .flatten()
        .chain(ways.iter().flat_map(|way| way.devices.clone()))
        .collect();
    let mut known: Vec<String> = Vec::new();
    while let Some(name) = open.pop() {
        if known.contains(&name) || known.len() >= 256 {
            continue;
        }
        if let Some(link) = found.link(&name) {
            open.extend(link.below.clone().into_iter().chain(link.master.clone()));
        }
        known.push(name);
    }
    known.sort();
    let on_way = known.iter().filter_map(|name| {
        let link = found.link(name);
        let of = link.map_or(kind(name), |link| link.kind.as_str());
        let is_virtual =
            link.is_some() || found.card(name).is_none() && crate::systems::bsd::is_stacked(name);
        let below = link.and_then(|link| link.below.as_ref());
        let below = below.map_or(String::new(), |below| format!(" on {below}"));
        is_virtual.then(|| Item::new(Met::Device, of, format!("{of}{below}")).at(name))
    });
    on_way.collect()
}
