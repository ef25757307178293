//! The way of a packet through FreeBSD: fast path, entropy, redirects.

use super::sources::{P2015, paper};
use crate::host::Host;
use crate::item::Topic::{Queues, Release};
use crate::rule::Kind::{ByHand, Measure};
use crate::rule::{EVERY, ROUTING, RULE, Rule};
use crate::setting::{Scope, Worked, by, is, worked};
use linerate_calc::harvest::{COSTLY, Mask};
use linerate_hosts::systems::Kernel::{Linux, OpenBsd};
use linerate_plan::sysctl::FORWARDING;

pub const RULES: &[Rule] = &[
    Rule {
        id: "freebsd-fastforwarding",
        until: Some((10, 4)),
        outside: "tryforward has taken its place in 11.0, without a switch; see freebsd-redirect.",
        roles: ROUTING,
        title: "Turn the fast path for forwarded packets on",
        sets: &[is("net.inet.ip.fastforwarding", "1")],
        why: "A packet for another host passes ip_fastforward() instead of ip_input(), ip_forward() and ip_output(), which check much that does not matter for it.",
        measured: &[(
            P2015,
            &[
                (2.2, "Xeon E5-2637, Chelsio, one flow, 64-byte frames"),
                (33.8, "Xeon E5-2637, Chelsio, one flow, 256-byte frames"),
                (33.5, "Xeon E5-2637, Chelsio, one flow, 512-byte frames"),
            ],
        )],
        cost: "Packets that IPsec policies are for may pass them by.",
        plan: "lab/forwarding",
        ..RULE
    },
    Rule {
        id: "freebsd-redirect",
        since: Some((12, 0)),
        outside: "tryforward of 11 does not ask for it; up to 10.4 see freebsd-fastforwarding.",
        roles: ROUTING,
        title: "Send no ICMP redirects, so that packets take the fast path",
        sets: &[
            by("net.inet.ip.redirect", no_redirect),
            is("net.inet6.ip6.redirect", "0"),
        ],
        when: |host| match host.since((13, 0)) {
            Some(true) => Some("this release needs it for IPv6 alone".into()),
            _ => Some(String::new()),
        },
        why: "Tryforward makes no redirects: while they are on, each packet takes the slow path, which can make them.",
        prior: 0.3,
        cost: "Hosts that use this router for a destination on their own network are not told of the shorter way.",
        notes: &[(
            (13, 0),
            "IPv4 takes the fast path with redirects too from 13.0 on (ip_redir_alloc in sys/netinet/ip_fastfwd.c). IPv6 does not (sys/netinet6/ip6_input.c).",
        )],
        plan: "lab/forwarding",
        ..RULE
    },
    Rule {
        id: "freebsd-harvest",
        since: Some((11, 0)),
        outside: "Before 11.0: kern.random.sys.harvest.ethernet=0 and kern.random.sys.harvest.interrupt=0.",
        title: "Take no entropy from frames and interrupts",
        sets: &[by("kern.random.harvest.mask", harvest)],
        covers: &[
            "kern.random.harvest",
            "kern.random.harvest.mask_bin",
            "kern.random.harvest.mask_symbolic",
            "harvest_mask",
        ],
        when: |host| {
            Some(if ether_is_off(host) {
                "NET_ETHER is off already; INTERRUPT alone was not measured".into()
            } else {
                String::new()
            })
        },
        computed: |host| ether_is_off(host).then_some(0.0),
        reserve: |host| {
            ether_is_off(host)
                .then(|| "it gains no speed here: frames feed no entropy already".into())
        },
        why: "random_harvest_queue() takes the first bytes of each frame under one lock for all CPUs.",
        measured: &[(
            paper!("9"),
            &[
                (0.0, "2 x Xeon E5-2650v4, Intel 82599ES"),
                (0.0, "2 x Xeon E5-2650v4, Chelsio T520"),
                (11.66, "2 x Xeon E5-2650v4, Mellanox ConnectX-3 Pro"),
                (0.0, "Xeon E5-2650v2, Chelsio T540"),
                (0.0, "Xeon E5-2650v2, Emulex be3"),
                (12.52, "Atom C2758, Chelsio T540"),
                (6.14, "Atom C2758, Intel 82599ES"),
                (4.75, "Atom C2558 (Netgate RCC-VE 4860), Intel I354"),
                // Printed as 3.14, with 3.13927 on the project's page.
                (3.139, "AMD GX-412TC (PC Engines APU2), Intel I210"),
            ],
        )],
        cost: "Fewer sources feed the random number generator; those that are left suffice once it is seeded.",
        notes: &[((12, 0), "These sources have the bits of 11.")],
        plan: "lab/harvest",
        ..RULE
    },
    Rule {
        id: "freebsd-forwarding",
        sets: &[
            is("net.inet.ip.forwarding", "1"),
            is("net.inet6.ip6.forwarding", "1"),
        ],
        covers: &["gateway_enable", "ipv6_gateway_enable"],
        ..FORWARD
    },
    Rule {
        id: "freebsd-upgrade",
        until: Some((11, 4)),
        topic: Release,
        kind: ByHand,
        title: "Use FreeBSD 12 or later, or the AFDATA and RADIX patches for 11.1",
        when: |host| {
            let old = host.release.filter(|now| *now < (12, 0))?;
            Some(format!(
                "FreeBSD {}.{} takes locks for each packet in arpresolve() and ip_findroute()",
                old.0, old.1
            ))
        },
        why: "Readers of the ARP and the route table share a lock in 11: with it the rate does not grow with the number of CPUs. The patches of Yandex made both lockless.",
        measured: &[(
            paper!("11"),
            &[
                (73.58, "2 x Xeon E5-2650v4, Intel 82599ES"),
                (95.36, "2 x Xeon E5-2650v4, Chelsio T520"),
                (100.5, "2 x Xeon E5-2650v4, Mellanox ConnectX-3 Pro"),
                (90.56, "Xeon E5-2650v2, Chelsio T540"),
                (0.0, "Xeon E5-2650v2, Emulex be3"),
                (34.4, "Atom C2758, Chelsio T540"),
                (26.0, "Atom C2758, Intel 82599ES"),
                (20.17, "Atom C2558, Intel I354"),
                (-2.37, "AMD GX-412TC, Intel I210"),
            ],
        )],
        cost: "A new system, or a kernel of one's own.",
        plan: "lab/forwarding",
        ..RULE
    },
    Rule {
        id: "freebsd-bridge",
        kind: ByHand,
        roles: ROUTING,
        title: "Take the bridge out of the path of routed packets",
        covers: &["cloned_interfaces"],
        when: |host| {
            let bridged = host
                .found
                .cards
                .iter()
                .find(|card| card.master_kind.as_deref() == Some("bridge"))?;
            Some(format!(
                "{} is a member of {}",
                bridged.name,
                bridged.master.as_deref().unwrap_or("a bridge")
            ))
        },
        why: "if_bridge(4) takes a lock for each frame.",
        // Without the bridge against with it: 11,155,098 and 4,201,494.
        measured: &[(paper!("29"), &[(165.5, "Xeon E5-2650v2, Chelsio T540")])],
        cost: "Interfaces that shared a network need another way to it.",
        notes: &[(
            (13, 0),
            "The bridge of 13.0 no longer takes that lock: the figure is of 11.1.",
        )],
        plan: "lab/bridge",
        ..RULE
    },
    Rule {
        id: "freebsd-vnet",
        until: Some((11, 4)),
        outside: "GENERIC has VIMAGE from 12.0 on.",
        kind: Measure,
        title: "Use a kernel without VIMAGE, if no jail needs a stack of its own",
        when: |host| {
            host.value("kern.ident")
                .filter(|name| name.contains("VIMAGE"))
                .map(|name| format!("the kernel is {name}"))
        },
        measured: &[(
            paper!("25"),
            &[(6.7, "Xeon E5-2650v2, Chelsio T540, IPv4 (IPv6: -2.2 %)")],
        )],
        why: "Each variable of the stack is looked up in the stack's own memory.",
        cost: "No virtual network stacks.",
        plan: "lab/jail",
        ..RULE
    },
    Rule {
        id: "freebsd-mbufs",
        topic: Queues,
        roles: EVERY,
        kind: ByHand,
        title: "Allow as many mbuf clusters as the rings of all queues hold",
        covers: &["kern.ipc.nmbclusters"],
        when: |host| {
            let limit = host.number("kern.ipc.nmbclusters")?;
            let rings: i64 = host
                .found
                .cards
                .iter()
                .map(|card| {
                    i64::from(card.receive_queues().unwrap_or(1))
                        * i64::from(card.rx_ring.now.unwrap_or(1024))
                })
                .sum();
            (rings * 2 > limit).then(|| {
                format!("the rings hold {rings} clusters, kern.ipc.nmbclusters allows {limit}")
            })
        },
        why: "A receive ring that cannot be refilled drops frames.",
        prior: 0.3,
        cost: "2 KiB of memory for each cluster in use.",
        ..RULE
    },
    Rule {
        id: "linux-forwarding",
        on: Linux,
        sets: &[
            is("net.ipv4.ip_forward", "1"),
            is("net.ipv6.conf.all.forwarding", "1"),
        ],
        cost: "Router advertisements no longer configure its IPv6 addresses.",
        plan: "forwarding",
        ..FORWARD
    },
    Rule {
        id: "openbsd-forwarding",
        on: OpenBsd,
        sets: &[is("net.inet.ip.forwarding", "1")],
        plan: "lab/forwarding",
        ..FORWARD
    },
];

const FORWARD: Rule = Rule {
    roles: ROUTING,
    title: "Forward packets",
    when: idle,
    why: "A router forwards only when it is told to.",
    prior: 1.0,
    ..RULE
};

/// Nothing is said where one family is forwarded: the other is then off on purpose.
fn idle(host: &Host) -> Option<String> {
    let is_on = |name: &&str| host.value(name).is_some_and(|value| value != "0");
    let on = host.is_gateway() || FORWARDING.iter().any(is_on);
    (!on).then(|| "it forwards neither IPv4 nor IPv6".into())
}

/// From 13.0 on, tryforward of IPv4 makes redirects itself.
fn no_redirect(scope: &Scope) -> Option<Worked> {
    if scope.host.since((13, 0)) == Some(true) {
        None
    } else {
        worked(0, "")
    }
}

fn mask(host: &Host) -> Option<Mask> {
    host.value("kern.random.harvest.mask")?.parse().ok()
}

/// Whether frames feed no entropy.
fn ether_is_off(host: &Host) -> bool {
    mask(host).is_some_and(|mask| mask.without(&["NET_ETHER"]) == mask)
}

/// Without the sources that cost something with each frame. The symbolic mask is surer than the number: 13.2 shows 991.
fn harvest(scope: &Scope) -> Option<Worked> {
    // The default of 11 and 12; later ones have other sources.
    let default = || (scope.host.since((13, 0)) != Some(true)).then_some(Mask(511));
    let now = mask(scope.host).or_else(default)?;
    let then = now.without(&COSTLY);
    let how = format!(
        "{} without {} is {} ({then})",
        now.0,
        COSTLY.join(" and "),
        then.0
    );
    worked(then.0, how)
}
