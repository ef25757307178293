//! The way of a frame through the kernel: what each part of it costs.

use super::Look::{By, Cost};
use super::On::{Embedded, System, With};
use super::Setting::{Asked, Offload, Unasked};
use super::Try::{InLab, Keys, Not};
use super::{Found, Looked, MORE_QUEUES, PROGRAM, RULE, Rule, Setting, Try};
use super::{cost, in_lab, joined, percent, rp_filter};
use crate::case::Case;
use crate::extra::functions::is_called;
use crate::spent::Spent;
use linerate_hosts::configuration::{Card, Configuration};
use linerate_measure::experiment::System::{FreeBsd, Linux, OpenBsd};
use linerate_measure::record::{Met, Strength};
use serde_json::{Value, json};

pub const RULES: &[Rule] = &[
    Rule {
        cause: "policy-routing",
        look: By(policies),
        says: "Routing rules (ip rule) are compared with each frame, one after the other.",
        mechanism: "With rules of your own, each lookup of a route first walks through the list of rules, and each frame needs the route of its source as well.",
        changes: &[[
            "Linux",
            "ip rule del for rules that can be routes, a VRF or a mark of the firewall; most frequent rules first",
            "ip rule add with the former rules (ip rule save)",
        ]],
        tries: &[(With("own"), Keys(r#"{"commands": null}"#))],
        otherwise: InLab(
            "ip rule flush; ip rule add lookup main; ip -6 rule flush; ip -6 rule add lookup main",
        ),
        ..RULE
    },
    Rule {
        cause: "ipsec-policies",
        look: Cost(
            &[
                "__xfrm_policy_check*",
                "__xfrm_route_forward",
                "xfrm_lookup*",
                "xfrm_policy_lookup*",
                "ipsec_check_policy*",
                "key_allocsp*",
                "key_getsp*",
            ],
            0.02,
            Unasked("linerate does not read the DUT's IPsec policies"),
        ),
        says: "Each frame is compared with IPsec policies.",
        mechanism: "One policy in a namespace is enough: from then on, the kernel looks up policies for every frame that comes in and for every frame that leaves, also those of no tunnel.",
        changes: &[[
            "Linux",
            "interfaces of the kind xfrm instead of policies, or IPsec in a namespace of its own; ip xfrm policy deleteall where nothing uses them",
            "ip xfrm policy add with the former policies",
        ]],
        otherwise: InLab("ip xfrm policy flush"),
        ..RULE
    },
    Rule {
        cause: "queueing-discipline",
        look: By(queueing),
        says: "A queueing discipline handles each frame.",
        mechanism: "A queueing discipline puts each frame into a queue under a lock and takes it out again.",
        changes: &[[
            "Linux",
            "tc qdisc replace dev IF root noqueue (virtual interfaces), mq (cards)",
            "tc qdisc replace dev IF root OLD",
        ]],
        tries: &[(
            With("devices"),
            InLab("for dev in {devices}; do tc qdisc del dev $dev root; done"),
        )],
        otherwise: NO_QUEUE,
        ..RULE
    },
    Rule {
        cause: "frame-merging",
        look: Cost(
            &[
                "skb_gso_segment",
                "__skb_gso_segment",
                "skb_mac_gso_segment",
                "udp4_ufo_fragment",
                "tcp_lro_*",
                "skb_gro_receive*",
            ],
            0.02,
            Offload(["large-receive-offload", "rx-udp-gro-forwarding"], true),
        ),
        says: "Received frames are merged and then cut up again.",
        mechanism: "LRO and GRO join frames of a flow. A router must send them as they came: it restores the frames before it sends them. This pays for long TCP flows, not for short frames, and LRO breaks the end-to-end principle.",
        changes: &[
            [
                "Linux",
                "ethtool -K IF lro off rx-udp-gro-forwarding off",
                "ethtool -K IF lro on rx-udp-gro-forwarding on",
            ],
            [
                "FreeBSD",
                "ifconfig IF -lro -tso4 -tso6",
                "ifconfig IF lro tso4 tso6",
            ],
        ],
        gain: "{cost}; elsewhere: no difference without TSO and LRO ({paper} 19)",
        tries: &[
            (
                System(Linux),
                Keys(r#"{"interface": {"udp-gro-forwarding": false}}"#),
            ),
            (System(OpenBsd), Keys(r#"{"interface": {"lro": false}}"#)),
        ],
        otherwise: Keys(r#"{"interface": {"lro": false, "tso": false}}"#),
    },
    Rule {
        cause: "checksum-in-software",
        look: By(checksums),
        says: "The CPU computes checksums that the card could compute.",
        mechanism: "Without checksum offload, the CPU reads the whole frame, which it otherwise touches only in its header.",
        changes: &[
            [
                "Linux",
                "ethtool -K IF rx on tx on",
                "ethtool -K IF rx off tx off",
            ],
            [
                "Linux (virtual interfaces, which have no card)",
                "ethtool -K IF gro off; sysctl net.netfilter.nf_conntrack_checksum=0",
                "ethtool -K IF gro on; sysctl net.netfilter.nf_conntrack_checksum=1",
            ],
            [
                "FreeBSD",
                "ifconfig IF rxcsum txcsum",
                "ifconfig IF -rxcsum -txcsum",
            ],
        ],
        tries: &[
            // A virtual interface has no card: GRO and connection tracking verify its frames.
            (
                With("tracked"),
                Keys(
                    r#"{"interface": {"gro": false}, "sysctls": {"net.netfilter.nf_conntrack_checksum": 0}}"#,
                ),
            ),
            (With("virtual"), Keys(r#"{"interface": {"gro": false}}"#)),
        ],
        otherwise: Keys(r#"{"interface": {"rx-checksum": true, "tx-checksum": true}}"#),
        ..RULE
    },
    Rule {
        cause: "generic-xdp",
        look: Cost(
            &[
                "do_xdp_generic",
                "bpf_prog_run_generic_xdp",
                "netif_receive_generic_xdp",
            ],
            0.01,
            Asked(&["ip "], |found| {
                let generic =
                    |card: &&Card| card.xdp.as_ref().is_some_and(|xdp| xdp.mode == "generic");
                found
                    .cards
                    .iter()
                    .find(generic)
                    .map(|card| format!("{} has a program in generic mode", card.name))
            }),
        ),
        says: "An XDP program runs in generic mode.",
        mechanism: "Generic XDP runs after the kernel has allocated the frame's memory, and often copies the frame: the program costs time and saves none.",
        changes: &[[
            "Linux",
            "ip link set IF xdpgeneric off; ip link set IF xdp obj FILE (a driver with XDP), or no program",
            "ip link set IF xdpgeneric obj FILE",
        ]],
        otherwise: InLab(
            "for dev in /sys/class/net/*; do ip link set ${dev##*/} xdpgeneric off; done",
        ),
        ..RULE
    },
    Rule {
        cause: "packet-tap",
        look: By(tap),
        says: "A program captures the DUT's frames.",
        mechanism: "The kernel offers each frame to every packet socket: its filter runs, and the frames that it wants are cloned and copied.",
        changes: &[[
            "Linux",
            "ss -0p names the programs; end the capture, or give it a filter or an interface",
            "start the program again",
        ]],
        otherwise: PROGRAM,
        ..RULE
    },
    Rule {
        cause: "fragmentation",
        look: By(fragments),
        says: "{what}",
        mechanism: "A packet that does not fit is cut into several, or refused if it must not be fragmented. Each fragment is a frame with a cost of its own.",
        changes: &[[
            "Linux, FreeBSD",
            "the same MTU on all links: ip link set IF mtu N, ifconfig IF mtu N; no mtu in the route (ip route get ADDRESS); or clamp the MSS of TCP",
            "the former MTU",
        ]],
        gain: "up to {share} of a frame's time",
        tries: &[(
            With("mtu"),
            Keys(r#"{"interface": {"mtu": null, "in": {"mtu": null}, "out": {"mtu": null}}}"#),
        )],
        otherwise: Not(
            "the plan sets no MTU of the DUT: the frames are too long for a link behind it",
        ),
    },
    Rule {
        cause: "lock-contention",
        look: By(locks),
        says: "CPUs spend {share} of a frame's time on waiting for locks.",
        mechanism: "CPUs that need the same lock take turns: more CPUs then add waiting, not frames.",
        changes: &[
            [
                "Linux",
                "as many transmit queues as CPUs (ethtool -L), XPS so that each CPU has its own, no shared queueing discipline",
                "ethtool -L IF combined OLD",
            ],
            [
                "FreeBSD",
                "12.0 or later: its route and ARP lookups take no such lock",
                "nothing to undo",
            ],
        ],
        gain: "up to {share} of the time; 'Tuning FreeBSD for routing and firewalling' (2018) went from 3.78 to 6.46 Mpps and more without the locks of ARP and routes on FreeBSD 11.1",
        tries: &[(With("cpus"), MORE_QUEUES)],
        otherwise: Not("its callers say which lock it is, and that decides the change"),
    },
    Rule {
        cause: "entropy-harvest",
        look: Cost(
            &["random_harvest_queue*", "random_harvest_fast*"],
            0.005,
            Setting::None,
        ),
        says: "The kernel gathers entropy from each frame.",
        mechanism: "The first bytes of each frame, or the time of each interrupt, are collected under one lock.",
        changes: &[[
            "FreeBSD",
            "sysrc harvest_mask=351; service random restart",
            "sysrc harvest_mask=511; service random restart",
        ]],
        gain: "+3.1 % on a PC Engines APU2, +4.8 % on a Netgate RCC-VE 4860 ({paper} 9)",
        otherwise: Keys(r#"{"sysctls": {"kern.random.harvest.mask": 351}}"#),
        ..RULE
    },
    Rule {
        cause: "mitigations",
        look: By(mitigations),
        says: "Mitigations of CPU vulnerabilities take a part of each frame's time.",
        mechanism: "Indirect calls and returns go through code that keeps the CPU from predicting them. A router makes some hundred calls for each frame.",
        changes: &[
            [
                "Linux",
                "mitigations=off on the kernel's command line, only on a router that runs no foreign code",
                "the former command line",
            ],
            [
                "FreeBSD",
                "vm.pmap.pti=0 and hw.ibrs_disable=1 in loader.conf, only on a router that runs no foreign code",
                "the former lines",
            ],
        ],
        gain: "up to {share} of a frame's time, and the predictions beside it: measure it",
        tries: &[
            (
                Embedded,
                Not("this machine would have to boot with another command line"),
            ),
            (
                System(FreeBsd),
                Keys(r#"{"boot": {"vm.pmap.pti": 0, "hw.ibrs_disable": 1}}"#),
            ),
        ],
        otherwise: Keys(r#"{"boot": {"mitigations": "off"}}"#),
    },
];

/// For a discipline that is not at the DUT's interfaces: at devices that filters hand frames to, at tunnels. Each gets its usual one, which
/// has no handle, in the place of one that was set.
pub const NO_QUEUE: Try = InLab(
    "for dev in $(tc qdisc show | awk '/ root / && $3 != \"0:\" { print $5 }'); do tc qdisc del dev $dev root; done",
);

/// Functions that wait for a lock which another CPU holds.
pub const SLOW_PATHS: &[&str] = &[
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "__mtx_lock_sleep",
    "_mtx_lock_spin_cookie",
    "__rw_rlock*",
    "__rw_wlock_hard",
    "_rw_runlock*",
    "__rm_rlock*",
    "lock_delay",
];

/// Functions of packet sockets.
const TAP: [&str; 6] = [
    "packet_rcv*",
    "tpacket_rcv",
    "dev_queue_xmit_nit",
    "bpf_mtap*",
    "bpf_tap*",
    "run_filter",
];
const TAPS: Setting = Asked(&["interfaces"], |found| {
    let tapped = found.cards.iter().find(|card| card.taps > Some(0));
    tapped.map(|card| {
        format!(
            "{} packet sockets see the frames of {}",
            card.taps.unwrap_or(0),
            card.name
        )
    })
});

fn tap(case: &Case<'_>) -> Looked {
    // On this machine, the profile has the receiver's own socket.
    let of_tester = case.is_embedded() && case.records.campaign.asked.receiver == "af-packet";
    let spent = match of_tester {
        true => Err("the receiver is a packet socket as well".into()),
        false => case.spent(&TAP),
    };
    cost(case, spent, 0.01, TAPS)
}

fn queueing(case: &Case<'_>) -> Looked {
    /// Disciplines that cost next to nothing, or that cards have from the start.
    const USUAL: [&str; 6] = [
        "noqueue",
        "mq",
        "pfifo_fast",
        "fq_codel",
        "clsact",
        "ingress",
    ];
    let setting = Asked(&["tc"], |found: &Configuration| {
        found.cards.iter().find_map(|card| {
            let discipline = card
                .qdiscs
                .iter()
                .find(|qdisc| !USUAL.contains(&qdisc.kind.as_str()))?;
            Some(format!(
                "{} has the queueing discipline {}",
                card.name, discipline.kind
            ))
        })
    });
    let named = case.configuration().map_or(Vec::new(), |found| {
        let cards = found.cards.iter();
        let slow = cards.filter(|card| {
            let mut own = card.qdiscs.iter();
            own.any(|qdisc| !USUAL.contains(&qdisc.kind.as_str()))
        });
        slow.map(|card| in_lab(&card.name)).collect()
    });
    // The time in the driver is none of it, and waiting for locks is a cause of its own.
    let apart = [&["dev_hard_start_xmit"], SLOW_PATHS].concat();
    // An ifb has a queue of its own: a part of the copy, unless a discipline was set there.
    let is_set = case.configuration().is_ok_and(|found| {
        let (met, _) = found.on_path(&[]);
        met.iter()
            .any(|item| item.kind == Met::QueueingDiscipline && !USUAL.contains(&&*item.word))
    });
    let copies: &[&str] = if is_set { &[] } else { &["tcf_mirred_*"] };
    let functions = ["__dev_xmit_skb", "sch_direct_xmit", "__qdisc_run", "altq_*"];
    let spent = case.spent_outside(&functions, &apart, copies);
    let found = cost(case, spent, 0.02, setting)?;
    Ok(found.map(|found| match named[..] {
        [] => found,
        _ => found.with("devices", joined(&named, " ")),
    }))
}

fn checksums(case: &Case<'_>) -> Looked {
    /// For the shortest frames, GRO takes some 2 % of their time for checksums on interfaces whose cards verify none.
    const LEAST: f64 = 0.04;
    let spent = case.spent(&[
        "skb_checksum_help",
        "__skb_checksum_complete*",
        "__skb_gro_checksum_complete",
        "nf_checksum*",
        "nf_ip_checksum",
        "nf_ip6_checksum",
        "in_cksum_skip",
        "in_delayed_cksum",
    ]);
    let Some(found) = cost(
        case,
        spent,
        LEAST,
        Offload(["rx-checksumming", "tx-checksumming"], false),
    )?
    else {
        return Ok(None);
    };
    let turned_off = [
        "/inside/rx-checksum",
        "/inside/tx-checksum",
        "/outside/tx-checksum",
    ]
    .into_iter()
    .any(|place| case.setting(place) == Some(&json!(false)));
    let tracks = case
        .setting("/rules/kind")
        .is_some_and(|kind| kind == "stateful" || kind == "nat");
    let is_virtual = case.inside().is_ok_and(|card| card.kind.is_some()) && !turned_off;
    Ok(Some(
        found
            .when(is_virtual && tracks, "tracked")
            .when(is_virtual, "virtual"),
    ))
}

fn fragments(case: &Case<'_>) -> Looked {
    let refusals = ["FragFails", "InTooBigErrors"];
    let made = case.counted(&[
        "FragCreates",
        "FragOKs",
        "ReasmReqds",
        refusals[0],
        refusals[1],
    ]);
    let spent = case.spent(&[
        "ip_do_fragment",
        "ip6_fragment",
        "ip_defrag",
        "inet_frag_*",
        "ip_fragment",
    ]);
    let (made, spent) = match (made, spent) {
        (Err(why), Err(why_not)) => return Err(format!("{why}, and {why_not}")),
        (made, spent) => (
            made.unwrap_or_default(),
            spent.ok().filter(|spent| spent.is_clear(0.01)),
        ),
    };
    let frames = case.of_sent(made.values().copied().max().unwrap_or(0));
    if frames < 0.001 && spent.is_none() {
        return Ok(None);
    }
    let refused = made
        .iter()
        .any(|(name, n)| *n > 0 && refusals.iter().any(|end| name.ends_with(end)));
    let share = spent.as_ref().map_or(frames.min(1.0), |spent| spent.share);
    let counted = made.iter().map(|(name, n)| format!("{name}: {n}"));
    let found = Found::new(
        Strength::Observed,
        share.max(frames.min(1.0)),
        counted.chain(spent.iter().map(Spent::evidence)),
    );
    let set = ["/inside/mtu", "/outside/mtu"]
        .iter()
        .any(|place| case.setting(place).is_some());
    let what = match refused {
        true => {
            "Frames are longer than the MTU of the link or route that they are to leave by, and must not be fragmented: the DUT drops them."
        }
        false => {
            "Frames are fragmented: they are longer than the MTU of the link or route that they leave by."
        }
    };
    Ok(Some(
        found
            .with("share", percent(share))
            .with("what", what)
            .when(set, "mtu"),
    ))
}

fn locks(case: &Case<'_>) -> Looked {
    let Some(mut found) = cost(case, case.spent(SLOW_PATHS), 0.03, Setting::None)? else {
        return Ok(None);
    };
    let holder = case
        .profile()?
        .functions()
        .into_iter()
        .find(|f| SLOW_PATHS.iter().any(|wanted| is_called(&f.name, wanted)));
    let callers = holder.map(|f| joined(f.callers.into_iter().take(3).map(|(name, _)| name), ", "));
    found
        .finding
        .evidence
        .extend(callers.map(|callers| format!("callers of the lock: {callers}")));
    let (cpus, queues) = (
        case.usable_cpus().len(),
        case.inside().ok().and_then(Card::receive_queues),
    );
    Ok(Some(
        if queues.is_some_and(|queues| (queues as usize) < cpus) {
            found.with("cpus", cpus)
        } else {
            found
        },
    ))
}

fn mitigations(case: &Case<'_>) -> Looked {
    /// With retpolines alone, usual firewalls spend up to 4 % of a frame's time in these functions.
    const LEAST: f64 = 0.05;
    let functions = [
        "srso_*",
        "__x86_indirect_thunk_*",
        "retbleed_*",
        "entry_ibpb",
        "__x86_return_thunk",
        "its_return_thunk",
        "zen_untrain_ret",
    ];
    let found = cost(case, case.spent(&functions), LEAST, Setting::None)?;
    let active = case
        .records
        .host
        .mitigations
        .iter()
        .filter(|(_, state)| state.starts_with("Mitigation"))
        .take(6);
    Ok(found.map(|mut found| {
        found
            .finding
            .evidence
            .extend(active.map(|(name, state)| format!("{name}: {state}")));
        found
    }))
}

/// A kernel that has had one routing rule goes on looking rules up, in a namespace for good: only a DUT that never has one is without them.
fn policies(case: &Case<'_>) -> Looked {
    let functions = ["fib_rules_lookup", "__fib_validate_source"];
    // With rules, the kernel also needs the route of each source: `reverse-path-filter`, where that is on.
    let spent = match case.spent(&functions[..1]) {
        Ok(own) if own.is_clear(0.02) && rp_filter(case) == Ok(None) => case.spent(&functions),
        own => own,
    };
    let setting = Unasked("linerate does not read the DUT's routing rules");
    let found = cost(case, spent, 0.02, setting)?;
    let commands = case.setting("/commands").and_then(Value::as_array);
    let adds = |command: &Value| only_adds_rules(command["run"].as_str().unwrap_or_default());
    let own = commands.is_some_and(|all| !all.is_empty() && all.iter().all(adds));
    Ok(found.map(|found| found.when(own, "own")))
}

/// Whether a line of the shell adds routing rules, and sets nothing else.
fn only_adds_rules(line: &str) -> bool {
    /// Programs that set something else.
    const OTHERS: [&str; 8] = [
        "tc",
        "nft",
        "iptables",
        "ip6tables",
        "sysctl",
        "ethtool",
        "bridge",
        "echo",
    ];
    let mut words = line.split([' ', ';', '\n']).filter(|word| !word.is_empty());
    let mut rules = 0;
    while let Some(word) = words.next() {
        let is_other = match word {
            "ip" => words.find(|word| !word.starts_with('-')) != Some("rule"),
            word => OTHERS.contains(&word),
        };
        if is_other {
            return false;
        }
        rules += usize::from(word == "ip");
    }
    rules > 0
}

#[cfg(test)]
mod tests {
    use super::only_adds_rules;

    #[test]
    fn commands_that_only_add_routing_rules_are_told_from_others() {
        for line in [
            "ip rule add from 203.0.113.1 lookup 100",
            "for i in $(seq 30); do ip -6 rule add from fd00:$i::/32 lookup 100; done",
        ] {
            assert!(only_adds_rules(line), "{line}");
        }
        for line in [
            "",
            "true",
            "ip route add 203.0.113.0/24 via 198.19.1.2",
            "ip rule add from 203.0.113.1 lookup 100; ip route add default via 198.19.1.2 table 100",
            "ip rule add from 203.0.113.1 lookup 100; tc qdisc del dev in0 root",
        ] {
            assert!(!only_adds_rules(line), "{line}");
        }
    }
}
