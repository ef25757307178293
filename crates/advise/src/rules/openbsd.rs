//! OpenBSD: the settings of calomel.org's guide. Later releases need few of them.

use super::endhost::TWEAKS;
use crate::item::Role;
use crate::item::Topic::{EndHost, Queues, Release};
use crate::rule::Kind::Undo;
use crate::rule::{EVERY, FORWARDING, RULE, Rule};
use crate::setting::{Scope, Worked, gone, is, least, least_by, worked};
use linerate_hosts::systems::Kernel::OpenBsd;

const OPENBSD: Rule = Rule {
    on: OpenBsd,
    ..RULE
};
const END: Rule = Rule {
    topic: EndHost,
    roles: &[Role::EndHost],
    ..OPENBSD
};

pub const RULES: &[Rule] = &[
    Rule {
        id: "openbsd-ifq",
        until: Some((6, 1)),
        outside: "From 6.2 on only packets for the host itself wait in this queue (ip_ours() in sys/netinet/ip_input.c): it is nothing to a router. 7.8 has room for 2,048.",
        topic: Queues,
        roles: FORWARDING,
        title: "Lengthen the queue of received packets: 256 for each interface",
        sets: &[least_by("net.inet.ip.ifq.maxlen", queue)],
        why: "Packets of all interfaces wait in it for the one CPU that routes them.",
        prior: 0.05,
        cost: "Latency while it is full.",
        plan: "lab/tuning",
        ..OPENBSD
    },
    Rule {
        id: "openbsd-tcp-space",
        until: Some((4, 8)),
        outside: "From 4.9 on the kernel adjusts the windows of TCP itself.",
        title: "Raise the windows of TCP and UDP to 256 KiB",
        sets: &[
            least("net.inet.tcp.recvspace", "262144"),
            least("net.inet.tcp.sendspace", "262144"),
            least("net.inet.udp.recvspace", "262144"),
            least("net.inet.udp.sendspace", "262144"),
            least("kern.maxclusters", "128000"),
        ],
        why: "The window is fixed in these releases: 16 KiB are 1.3 Mbit/s over 100 ms, 256 KiB 21 Mbit/s.",
        measured: TWEAKS,
        cost: "Memory of each connection.",
        plan: "lab/tuning",
        ..END
    },
    Rule {
        id: "openbsd-udp-space",
        since: Some((4, 9)),
        title: "Raise the buffers of UDP to 128 KiB",
        sets: &[
            least("net.inet.udp.recvspace", "131072"),
            least("net.inet.udp.sendspace", "131072"),
        ],
        when: |_| {
            Some(format!(
                "131072 bytes hold {:.1} ms of 200 Mbit/s, which calomel.org's guide received without loss",
                131_072.0 * 8.0 / 200e6 * 1e3
            ))
        },
        why: "A program that is not scheduled for a while finds no packets lost.",
        prior: 0.05,
        cost: "Memory of each socket.",
        plan: "lab/tuning",
        ..END
    },
    Rule {
        id: "openbsd-tcp-options",
        title: "Keep window scaling, SACK and larger first windows on",
        sets: &[
            is("net.inet.tcp.rfc1323", "1"),
            is("net.inet.tcp.sack", "1"),
            least("net.inet.tcp.rfc3390", "1"),
        ],
        why: "All are on by default. 2 of rfc3390 is a first window of 10 segments (RFC 6928).",
        prior: 0.2,
        ..END
    },
    Rule {
        id: "openbsd-path-mtu",
        roles: EVERY,
        kind: Undo,
        title: "Leave path MTU discovery and the segment size to the kernel",
        sets: &[
            gone("net.inet.ip.mtudisc"),
            gone("net.inet.tcp.mssdflt"),
            gone("net.inet.ip.ttl"),
        ],
        why: "mtudisc=0 sends packets that are cut up on the way; mssdflt counts only for peers that name no segment size; 64 is the default of ttl. On a firewall neither touches what is forwarded: `match … scrub (max-mss 1440)` of pf.conf does.",
        prior: 0.0,
        ..OPENBSD
    },
    Rule {
        id: "openbsd-outdated",
        topic: Release,
        roles: EVERY,
        kind: Undo,
        title: "Take settings of old guides out",
        sets: &[
            gone("net.inet.tcp.ackonpush"),
            gone("net.inet.tcp.ecn"),
            gone("net.inet.ipcomp.enable"),
            gone("net.inet.icmp.errppslimit"),
            gone("net.inet.icmp.rediraccept"),
            gone("net.bpf.bufsize"),
            gone("kern.bufcachepercent"),
        ],
        covers: &["kern.maxclusters"],
        when: |_| Some("written down as in calomel.org's guide for 4.8 and earlier".into()),
        why: "They are the defaults (ecn, rediraccept), are about error messages and packet capture, cost CPU time (ipcomp), or give memory to the cache of files, which a firewall does not read (bufcachepercent).",
        prior: 0.0,
        ..OPENBSD
    },
];

/// 256 for each interface, as calomel.org's guide computes.
fn queue(scope: &Scope) -> Option<Worked> {
    let n = scope.host.found.cards.len().max(2);
    worked(256 * n, format!("256 x {n} interfaces = {}", 256 * n))
}
