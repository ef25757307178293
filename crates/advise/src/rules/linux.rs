//! Linux as a router: polling, steering, checks of addresses, logging.

use super::sources::GUIDE;
use crate::host::{ALL, Host};
use crate::item::Role;
use crate::item::Topic::{EndHost, Queues, Release};
use crate::rule::Kind::{ByHand, Measure};
use crate::rule::{EVERY, FORWARDING, ROUTING, RULE, Rule};
use crate::setting::Want::By;
use crate::setting::{Place, is, least, set, worked};
use linerate_hosts::configuration::Card;
use linerate_hosts::systems::Kernel::Linux;
use linerate_plan::settings::cpu_mask;

const LINUX: Rule = Rule { on: Linux, ..RULE };

pub const RULES: &[Rule] = &[
    Rule {
        id: "linux-rps",
        topic: Queues,
        kind: Measure,
        drivers: &["*"],
        title: "Spread received frames over CPUs: receive packet steering",
        sets: &[set(
            "/sys/class/net/{if}/queues/rx-{queue}/rps_cpus",
            Place::Sys(|scope| {
                let queue = scope.card?.receive.get(&scope.nth)?;
                Some(mask(&queue.rps))
            }),
            By(|scope| {
                let all: Vec<u32> = scope
                    .host
                    .found
                    .machine
                    .cpus
                    .iter()
                    .map(|cpu| cpu.cpu)
                    .collect();
                let value = mask(&all);
                worked(
                    &value,
                    format!("a bit for each of {} CPUs: {value}", all.len()),
                )
            }),
        )],
        needs: |host, card| {
            let threads = host.threads().filter(|n| *n > 1)?;
            let queues = card
                .receive_queues()
                .filter(|queues| queues * 2 <= threads)?;
            let steered = card.receive.values().any(|queue| !queue.rps.is_empty());
            (!steered).then(|| {
                format!(
                    "{} has {queues} receive queue(s) for {threads} CPUs, and RPS is off",
                    card.name
                )
            })
        },
        why: "One queue is one CPU. RPS hands packets to others by their hash.",
        prior: 0.4,
        cost: "Handing over costs time for each packet: more hardware queues are better.",
        plan: "rps",
        ..LINUX
    },
    Rule {
        id: "linux-backlog",
        topic: Queues,
        kind: Measure,
        roles: EVERY,
        title: "Lengthen the queue between RPS or virtual cards and the stack",
        sets: &[least("net.core.netdev_max_backlog", "250000")],
        when: |host| {
            let handed = host.found.cards.iter().any(|card| {
                card.receive.values().any(|queue| !queue.rps.is_empty())
                    || card.kind.as_deref() == Some("veth")
            });
            (handed || host.fastest() >= Some(1e10)).then(|| {
                "packets from RPS, veth and tunnels wait in this queue; those of a card with NAPI do not"
                    .into()
            })
        },
        why: "A CPU that is given more packets than it can queue drops them. calomel.org's guide sets it for 10 Gbit/s.",
        prior: 0.02,
        cost: "Latency: on an overloaded CPU up to 250,000 packets wait.",
        plan: "rps",
        ..LINUX
    },
    Rule {
        id: "linux-budget",
        topic: Queues,
        kind: Measure,
        title: "Let a softirq process more packets at once",
        sets: &[least("net.core.netdev_budget", "600")],
        when: |host| {
            let time = host.value("net.core.netdev_budget_usecs");
            Some(time.map_or(String::new(), |time| {
                format!("net.core.netdev_budget_usecs ends it after {time} us, if that comes first")
            }))
        },
        why: "After so many packets, or two ticks of the clock, a CPU turns to other work, and has to be called again.",
        prior: 0.02,
        cost: "Programs on that CPU wait longer.",
        plan: "napi-budget",
        ..LINUX
    },
    Rule {
        id: "linux-rp-filter",
        roles: ROUTING,
        kind: Measure,
        title: "Leave the check of source addresses to the firewall",
        sets: &[is("net.ipv4.conf.{each}.rp_filter", "0")],
        when: |host| on(host, "net.ipv4.conf.{each}.rp_filter"),
        why: "The reverse-path filter looks the source up for each packet, and drops packets that come by another way than they would leave. An interface uses the larger of its own value and that of all.",
        prior: 0.03,
        cost: "Packets with forged sources pass: filter them where customers connect (BCP 38).",
        plan: "forwarding",
        ..LINUX
    },
    Rule {
        id: "linux-source-check",
        topic: EndHost,
        roles: &[Role::EndHost],
        title: "Check the source address of packets",
        sets: &[least("net.ipv4.conf.all.rp_filter", "1")],
        covers: &["net.ipv4.conf.default.rp_filter"],
        when: |host| {
            let value = |name: &str| {
                host.number(&format!("net.ipv4.conf.{name}.rp_filter"))
                    .unwrap_or(0)
            };
            let open = |name: &&str| !ALL.contains(name) && value(name).max(value("all")) == 0;
            let mut known = host
                .each("net.ipv4.conf.", ".rp_filter")
                .filter(|name| !ALL.contains(name))
                .peekable();
            let unknown = known.peek().is_none() && value("all") == 0;
            let open: Vec<&str> = known.filter(open).collect();
            (unknown || !open.is_empty()).then(|| {
                if unknown {
                    String::new()
                } else {
                    format!("it is off for {}", open.join(", "))
                }
            })
        },
        why: "On a host with one uplink, a packet whose source is routed through another interface is forged. Linux uses the larger of conf.all.rp_filter and conf.IFACE.rp_filter. This is about safety, not speed.",
        prior: 0.0,
        cost: "the value 1 drops valid packets of a host with several uplinks: set 2 (loose mode) there.",
        ..LINUX
    },
    Rule {
        id: "linux-martians",
        roles: FORWARDING,
        title: "Do not log packets with impossible addresses",
        sets: &[is("net.ipv4.conf.{each}.log_martians", "0")],
        when: |host| on(host, "net.ipv4.conf.{each}.log_martians"),
        why: "Each such packet writes a line: a sender can fill the log and hold a CPU.",
        prior: 0.02,
        cost: "Forged packets are seen in counters only. calomel.org's guide logs them on an end host.",
        ..LINUX
    },
    Rule {
        id: "linux-redirects",
        topic: EndHost,
        roles: EVERY,
        title: "Turn ICMP redirects and source routes off",
        sets: &[
            is("net.ipv4.conf.{each}.accept_redirects", "0"),
            is("net.ipv6.conf.{each}.accept_redirects", "0"),
            is("net.ipv4.conf.{each}.send_redirects", "0"),
            is("net.ipv4.conf.all.accept_source_route", "0"),
            is("net.ipv6.conf.all.accept_source_route", "0"),
        ],
        covers: &[
            "net.ipv4.conf.all.secure_redirects",
            "net.ipv6.conf.all.accept_redirects",
        ],
        why: "A neighbour can divert traffic with them. An IPv4 interface sends redirects if conf.IFACE or conf.all is 1. A host accepts redirects if either is 1, a router only if both are. For IPv6, only conf.IFACE counts (ip-sysctl.rst of Linux). This is about safety, not speed.",
        prior: 0.0,
        cost: "Hosts on the same network are not told of shorter ways.",
        ..LINUX
    },
    Rule {
        id: "linux-taps",
        kind: ByHand,
        roles: EVERY,
        drivers: &["*"],
        title: "End the programs that see every packet",
        needs: |_, card| {
            let taps = card.taps.filter(|n| *n > 0)?;
            Some(format!(
                "{taps} packet socket(s) see all packets of {}",
                card.name
            ))
        },
        why: "Each packet is cloned for them: tcpdump, DHCP and LLDP daemons.",
        prior: 0.1,
        ..LINUX
    },
    Rule {
        id: "linux-rngd",
        topic: Release,
        roles: EVERY,
        kind: ByHand,
        title: "Do not feed /dev/random from /dev/urandom with rngd",
        covers: &["rngd"],
        when: |_| None,
        why: "It adds no entropy. /dev/random does not block from Linux 5.6 on.",
        ..LINUX
    },
    Rule {
        id: "linux-transmit-queue",
        topic: Release,
        roles: &[Role::EndHost],
        kind: ByHand,
        title: "Do not lengthen the transmit queue to 10,000 packets",
        covers: &["txqueuelen", "initcwnd", "initrwnd"],
        when: |host| {
            let length = |card: &Card| card.settings.get("txqueuelen")?.parse::<u32>().ok();
            let long = host
                .found
                .cards
                .iter()
                .find(|card| length(card) > Some(1000))?;
            Some(format!(
                "{} has a transmit queue of {} packets, as in {GUIDE}",
                long.name,
                length(long)?
            ))
        },
        why: "fq and fq_codel, the default of most distributions, do not look at it; with a plain queue it adds up to 12 ms at 10 Gbit/s. initcwnd 128 sends a burst of 128 packets into an unknown path: the default has been 10 since 2.6.39 (RFC 6928).",
        prior: 0.0,
        ..LINUX
    },
];

/// The interfaces on which a setting is not 0.
fn on(host: &Host, name: &str) -> Option<String> {
    let (before, after) = name.split_once("{each}")?;
    let is_on = |each: &&str| {
        host.number(&format!("{before}{each}{after}"))
            .is_some_and(|value| value != 0)
    };
    let found: Vec<&str> = host.each(before, after).filter(is_on).collect();
    (!found.is_empty()).then(|| {
        format!(
            "{} is on for {}",
            after.trim_start_matches('.'),
            found.join(", ")
        )
    })
}

/// CPUs as a mask; without its leading zeros, where it has one word.
fn mask(cpus: &[u32]) -> String {
    let mask = cpu_mask(cpus);
    match mask.trim_start_matches('0') {
        "" => "0".into(),
        short if !mask.contains(',') => short.into(),
        _ => mask,
    }
}
