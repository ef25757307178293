//! Parts of a host's configuration that matter for forwarding.

use crate::prelude::*;
use linerate_hosts::configuration::{Bounded, Card};
use linerate_plan::sysctl::FORWARDING;

/// Settings of the next boot that are shown. The JSON has all.
const SETTINGS: usize = 24;

/// The page of `linerate facts`. `name`: where they come from.
pub fn facts(name: &str, found: &Configuration) -> Document {
    let mut page = Document::default();
    let system = &found.system;
    page.heading(format!("Facts of {name}"));
    let release = system.release.as_deref().unwrap_or("of unknown release");
    let product = system
        .product
        .as_ref()
        .map_or(String::new(), |of| format!(" ({of})"));
    page.fact(
        "System",
        format!("{} {release}{product}", named(&system.kernel)),
    );
    machine(&mut page, found);
    forwarding(&mut page, found);
    page.section("Interfaces", cards(&found.cards, system.kernel == "linux"));
    for card in &found.cards {
        details(&mut page, card);
    }
    let written = found.boot.iter().flat_map(|(file, settings)| {
        settings
            .iter()
            .map(move |(name, value)| (file, name, value))
    });
    let lines = written.map(|(file, name, value)| format!("{file}: {name}={value}"));
    page.each("Next boot", lines.take(SETTINGS), |page, line| {
        page.code(&line, Tone::Plain)
    });
    let more = found
        .boot
        .values()
        .map(|settings| settings.len())
        .sum::<usize>()
        .saturating_sub(SETTINGS);
    if more > 0 {
        page.note(format!("and {more} more: --json has all."));
    }
    page.list(
        "Not known",
        "- ",
        found
            .unanswered
            .iter()
            .map(|one| format!("{}: {}", one.question, one.why)),
        Tone::Note,
    );
    page
}

/// A kernel's name as people write it.
pub(super) fn named(kernel: &str) -> &str {
    match kernel {
        "linux" => "Linux",
        "freebsd" => "FreeBSD",
        "openbsd" => "OpenBSD",
        "netbsd" => "NetBSD",
        other => other,
    }
}

fn machine(page: &mut Document, found: &Configuration) {
    let machine = &found.machine;
    let mut words: Vec<String> = machine.model.iter().cloned().collect();
    if !machine.cpus.is_empty() {
        words.push(counted(machine.cpus.len(), "CPU"));
        let cores = machine.cores().filter(|cores| *cores != machine.cpus.len());
        words.extend(cores.map(|n| counted(n, "core")));
    }
    if machine.nodes.len() > 1 {
        words.push(counted(machine.nodes.len(), "NUMA node"));
    }
    words.extend(machine.memory.map(|n| format!("{} of memory", bytes(n))));
    let governor = machine.cpus.first().and_then(|cpu| cpu.governor.as_ref());
    words.extend(governor.map(|governor| format!("governor {governor}")));
    let under = machine.virtual_machine.iter();
    words.extend(under.map(|name| format!("virtual machine: {name}")));
    page.fact("Machine", words.join(", "));
    let open = machine
        .mitigations
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation"))
        .map(|(name, _)| name.as_str())
        .joined(", ");
    page.fact("CPU bugs", open);
}

fn forwarding(page: &mut Document, found: &Configuration) {
    let known = FORWARDING
        .iter()
        .filter_map(|name| Some(format!("{name} {}", found.sysctls.get(*name)?)))
        .joined(", ");
    page.fact("Forwards", known);
    for set in &found.rule_sets {
        let rules: u64 = set.chains.iter().map(|chain| chain.rules).sum();
        let tracks = when(set.tracks(), ", connections tracked");
        page.fact(
            "Filter",
            format!(
                "{}: {}{tracks}",
                set.filter,
                counted(rules as usize, "rule")
            ),
        );
    }
    for (owner, table) in &found.connections {
        let parts = [
            ("entries", table.entries),
            ("at most", table.most),
            ("buckets", table.buckets),
        ];
        let known = parts
            .into_iter()
            .filter_map(|(name, n)| Some(format!("{name} {}", n?)));
        let words = known.joined(", ");
        page.fact("Table", format!("of connections of {owner}: {words}"));
    }
    let routes = found
        .routes
        .iter()
        .map(|(family, n)| format!("{family} {n}"))
        .joined(", ");
    page.fact("Routes", routes);
    page.fact(
        "Settings",
        format!(
            "{} (--json has all)",
            counted(found.sysctls.len(), "sysctl")
        ),
    );
}

fn details(page: &mut Document, card: &Card) {
    let lines = [
        ("offloads", on(card)),
        (
            "moderation",
            card.coalescing
                .iter()
                .map(|(name, value)| format!("{name} {value}"))
                .collect(),
        ),
        (
            "hash",
            card.hash_fields
                .iter()
                .filter(|(_, fields)| fields.as_slice() != ["None"])
                .map(|(flow, fields)| format!("{flow}: {}", fields.join(", ")))
                .collect(),
        ),
        (
            "RPS",
            card.receive
                .iter()
                .filter(|(_, queue)| !queue.rps.is_empty())
                .map(|(nth, queue)| format!("queue {nth} on {} CPUs", queue.rps.len()))
                .collect(),
        ),
        (
            "qdisc",
            card.qdiscs
                .iter()
                .map(|qdisc| format!("{} at {}", qdisc.kind, qdisc.parent))
                .collect(),
        ),
    ];
    for (what, words) in lines {
        let words: Vec<String> = words;
        if !words.is_empty() {
            let mark = format!("{} {what}: ", card.name);
            page.item(&mark, some(words, 12, ", "), Tone::Note);
        }
    }
}

fn on(card: &Card) -> Vec<String> {
    const SHOWN: [&str; 7] = [
        "rx-checksumming",
        "tx-checksumming",
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "generic-receive-offload",
        "large-receive-offload",
        "rx-vlan-offload",
    ];
    let on = SHOWN
        .iter()
        .filter(|name| card.features.get(**name) == Some(&true));
    on.map(ToString::to_string).collect()
}

fn cards(cards: &[Card], is_linux: bool) -> Table {
    let bounded = |value: Bounded| {
        let of = value
            .most
            .map_or(String::new(), |most| format!(" of {most}"));
        Some(format!("{}{of}", value.now?))
    };
    Table::of(cards.iter())
        .column("interface", "", |card| card.name.as_str())
        .if_any("driver", "", move |card| {
            let known = card.driver.clone().or(card.kind.clone());
            known.or((!is_linux).then(|| stem(&card.name)))
        })
        .if_any("link", "Gbit/s", |card| {
            card.speed.map(|bits| format!("{}", bits / 1e9))
        })
        .if_any("MTU", "bytes", |card| card.mtu.map(|mtu| mtu.to_string()))
        .if_any("receive", "queues", |card| {
            card.receive_queues().map(|n| n.to_string())
        })
        .if_any("rx ring", "", move |card| bounded(card.rx_ring))
        .if_any("tx ring", "", move |card| bounded(card.tx_ring))
        .if_any("pause", "rx/tx", |card| {
            let [rx, tx] = [card.pause.rx, card.pause.tx];
            let word = |on: Option<bool>| if on == Some(true) { "on" } else { "off" };
            rx.or(tx).map(|_| format!("{}/{}", word(rx), word(tx)))
        })
        .if_any("slot", "", |card| {
            let lanes = card.pci.width.zip(card.pci.speed);
            let lanes = lanes.map(|(lanes, speed)| format!(" x{lanes} {speed} GT/s"));
            Some(card.pci.slot.clone()? + &lanes.unwrap_or_default())
        })
        .if_any("NUMA", "node", |card| Some(card.pci.node?.to_string()))
        .if_any("interrupts", "", |card| {
            let n = card.interrupts.len();
            (n > 0).then(|| n.to_string())
        })
        .into()
}

/// On BSD systems the name of an interface begins with its driver.
fn stem(name: &str) -> String {
    name.trim_end_matches(|c: char| c.is_ascii_digit()).into()
}
