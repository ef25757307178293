//! Cards of FreeBSD and Linux: queues, rings, limits, offloads, flow control, slots.

use super::{GUIDE, LAB, PAGE, effect, paper};
use crate::host::Host;
use crate::item::{Role, Topic};
use crate::rule::{EVERY, Effect, Kind, Place, RULE, Rule, Scope, Set, Want, Worked, queue_interrupts};
use crate::setting::cpus;
use linerate_calc::bus::Slot;
use linerate_calc::queues::best;
use linerate_hosts::configuration::{Card, ethtool};
use linerate_hosts::systems::Kernel;

const CARD: Rule = Rule { topic: Topic::Cards, ..RULE };
const QUEUE: Rule = Rule { topic: Topic::Queues, ..RULE };

const fn loader(name: &'static str, value: &'static str) -> Set {
    Set { name, place: Place::Loader, want: Want::Is(value) }
}

/// A parameter of pause frames, off.
const fn pause(word: &'static str, link: &'static str, now: fn(&Scope) -> Option<String>) -> Set {
    Set { name: "", place: Place::Ethtool { letter: "-A", word, link, now }, want: Want::Is("off") }
}

const fn offload(
    feature: &'static str,
    [ethtool, link, ifconfig]: [&'static str; 3],
    value: &'static str,
) -> Set {
    Set { name: "", place: Place::Offload { feature, ethtool, link, ifconfig }, want: Want::Is(value) }
}

const LRO: [&str; 3] = ["lro", "LargeReceiveOffload", "lro"];
const TSO: [&str; 3] = ["tso", "TCPSegmentationOffload", "tso4"];
const TSO6: [&str; 3] = ["tso", "TCP6SegmentationOffload", "tso6"];
const VLAN_TSO: [&str; 3] = ["", "", "vlanhwtso"];

const PROCESS_LIMIT: &[Effect] = &[
    effect(3.75, "2 x Xeon E5-2650v4, Intel 82599ES", "E5-2650v4", "ix", paper!("20")),
    effect(22.66, "Atom C2758, Intel 82599ES", "C2758", "ix", paper!("20")),
    effect(1.65, "Atom C2558, Intel I354", "C2558", "igb", paper!("20")),
    effect(0.0, "AMD GX-412TC, Intel I210", "GX-412TC", "igb", paper!("20")),
    effect(1.25, "PC Engines APU2 (AMD GX-412TC), igb", "GX-412TC", "igb", PAGE),
    effect(1.72, "Netgate RCC-VE 4860 (Atom C2558), igb", "C2558", "igb", PAGE),
    effect(6.1, "Xeon L5630, Intel 82580, one queue", "L5630", "igb", LAB),
];

pub const RULES: &[Rule] = &[
    Rule {
        id: "freebsd-rx-process-limit",
        until: Some((11, 4)),
        outside: "From 12.0 on the drivers use iflib: dev.igb.0.iflib.rx_budget is its limit, and 65535 its most.",
        drivers: &["igb", "em", "ix"],
        title: "Let Intel's drivers process all received frames at once",
        sets: &[
            loader("hw.igb.rx_process_limit", "-1"),
            loader("hw.em.rx_process_limit", "-1"),
            loader("hw.ix.rx_process_limit", "-1"),
        ],
        why: "The driver leaves after 100 (igb, em) or 256 (ix) frames and has to be scheduled again.",
        measured: PROCESS_LIMIT,
        cost: "Under overload the CPUs of the queues do nothing else.",
        plan: "lab/receive-limit",
        ..CARD
    },
    Rule {
        id: "freebsd-cxgbe-queues",
        drivers: &["cxl", "cc"],
        title: "Give Chelsio's card more than 8 queues, a power of two",
        sets: &[
            Set {
                name: "hw.cxgbe.nrxq10g",
                place: Place::Loader,
                want: Want::By(|scope| queues_of(scope, false)),
            },
            Set {
                name: "hw.cxgbe.ntxq10g",
                place: Place::Loader,
                want: Want::By(|scope| queues_of(scope, false)),
            },
            Set {
                name: "hw.cxgbe.nrxq",
                place: Place::Loader,
                want: Want::By(|scope| queues_of(scope, true)),
            },
            Set {
                name: "hw.cxgbe.ntxq",
                place: Place::Loader,
                want: Want::By(|scope| queues_of(scope, true)),
            },
        ],
        when: many_cores,
        notes: &[((12, 0), "The names end in 10g up to 11.4.")],
        measured: &[effect(
            29.45,
            "2 x Xeon E5-2650v4, Chelsio T520, 8 to 24 queues",
            "E5-2650v4",
            "cxl",
            paper!("12"),
        )],
        ..MORE_QUEUES
    },
    Rule {
        id: "freebsd-ix-queues",
        until: Some((11, 4)),
        outside: "From 12.0 on: dev.ix.N.iflib.override_nrxqs, see freebsd-iflib-queues.",
        drivers: &["ix"],
        title: "Give Intel's 10 Gbit/s card more than 8 queues",
        sets: &[Set { name: "hw.ix.num_queues", place: Place::Loader, want: Want::By(queues) }],
        when: many_cores,
        measured: IX,
        ..MORE_QUEUES
    },
    Rule {
        id: "freebsd-iflib-queues",
        since: Some((12, 0)),
        drivers: &["ix", "ixl", "ice"],
        title: "Give Intel's card more than 8 queues",
        sets: &[
            Set { name: "dev.{dev}.iflib.override_nrxqs", place: Place::Loader, want: Want::By(queues) },
            Set { name: "dev.{dev}.iflib.override_ntxqs", place: Place::Loader, want: Want::By(queues) },
        ],
        when: |host| host.release.and_then(|_| many_cores(host)),
        measured: IX,
        ..MORE_QUEUES
    },
    Rule {
        id: "freebsd-one-queue",
        kind: Kind::Undo,
        drivers: &["igb", "em", "ix"],
        title: "Leave the number of queues to the driver",
        sets: &[Set { name: "hw.igb.num_queues", place: Place::Loader, want: Want::Gone }],
        when: |host| {
            host.number("hw.igb.num_queues").filter(|n| *n == 1).map(|_| "hw.igb.num_queues is 1".into())
        },
        why: "One queue means one CPU. 0 is the driver's choice: a queue for each CPU.",
        measured: &[effect(
            112.6,
            "Xeon L5630, Intel 82580: 4 queues against 1 (1.488 Mpps against 700 kpps)",
            "L5630",
            "igb",
            LAB,
        )],
        plan: "lab/queues",
        ..QUEUE
    },
    Rule {
        id: "freebsd-descriptors",
        kind: Kind::Undo,
        drivers: &["igb", "em"],
        title: "Do not lengthen the rings of igb",
        sets: &[
            Set { name: "hw.igb.rxd", place: Place::Loader, want: Want::Gone },
            Set { name: "hw.igb.txd", place: Place::Loader, want: Want::Gone },
        ],
        when: |host| {
            let long =
                ["hw.igb.rxd", "hw.igb.txd"].into_iter().find(|name| host.number(name) > Some(1024))?;
            Some(format!("{long} is {}, the default 1024", host.number(long)?))
        },
        why: "A longer ring no longer fits into the cache.",
        measured: &[
            // The default against 2048 and 4096 descriptors.
            effect(
                13.9,
                "PC Engines APU2 (AMD GX-412TC), 1024 instead of 2048 descriptors",
                "GX-412TC",
                "igb",
                PAGE,
            ),
            effect(
                24.6,
                "PC Engines APU2 (AMD GX-412TC), 1024 instead of 4096 descriptors",
                "GX-412TC",
                "igb",
                PAGE,
            ),
            effect(
                4.2,
                "Netgate RCC-VE 4860 (Atom C2558), 1024 instead of 2048 descriptors",
                "C2558",
                "igb",
                PAGE,
            ),
            effect(
                6.3,
                "Netgate RCC-VE 4860 (Atom C2558), 1024 instead of 4096 descriptors",
                "C2558",
                "igb",
                PAGE,
            ),
            effect(
                -1.4,
                "Xeon L5630, Intel 82580, one queue, 1024 instead of 2048 descriptors",
                "L5630",
                "igb",
                LAB,
            ),
        ],
        cost: "Bursts longer than the ring are lost.",
        plan: "lab/rings",
        ..CARD
    },
    Rule {
        id: "freebsd-interrupt-rate",
        kind: Kind::Undo,
        drivers: &["igb", "em", "ix"],
        title: "Leave the interrupt rate to the driver",
        sets: &[
            Set { name: "hw.igb.max_interrupt_rate", place: Place::Loader, want: Want::Gone },
            Set { name: "hw.ix.max_interrupt_rate", place: Place::Loader, want: Want::Gone },
            Set { name: "hw.ix.enable_aim", place: Place::Loader, want: Want::Gone },
        ],
        why: "More interrupts, and moderation that does not adapt, brought nothing: under load the driver polls anyway.",
        measured: &[
            effect(
                0.0,
                "PC Engines APU2 (AMD GX-412TC), 16000 and 32000 interrupts/s",
                "GX-412TC",
                "igb",
                PAGE,
            ),
            effect(
                -1.03,
                "Netgate RCC-VE 4860 (Atom C2558), 8000 instead of 16000 interrupts/s; 32000: no difference",
                "C2558",
                "igb",
                PAGE,
            ),
            effect(
                0.0,
                "Atom C2758, Intel 82599ES",
                "C2758",
                "ix",
                "'Tuning FreeBSD for routing and firewalling' (2018), section II.L",
            ),
        ],
        plan: "lab/interrupt-rate",
        ..CARD
    },
    Rule {
        id: "freebsd-cxgbe-caps",
        drivers: &["cxl", "cc"],
        title: "Let Chelsio's card reserve nothing for offloads that a router does not use",
        sets: &[
            loader("hw.cxgbe.toecaps_allowed", "0"),
            loader("hw.cxgbe.rdmacaps_allowed", "0"),
            loader("hw.cxgbe.iscsicaps_allowed", "0"),
            loader("hw.cxgbe.fcoecaps_allowed", "0"),
        ],
        why: "The firmware divides the card's memory between the features that it may have.",
        measured: &[effect(19.23, "2 x Xeon E5-2650v4, Chelsio T520", "E5-2650v4", "cxl", paper!("21"))],
        cost: "No TCP offload engine, RDMA, iSCSI or FCoE on the card.",
        plan: "lab/card-features",
        ..CARD
    },
    Rule {
        id: "freebsd-offloads",
        drivers: &["*"],
        title: "Turn LRO and TSO off: a router must not join and cut packets",
        sets: &[
            offload("large-receive-offload", LRO, "off"),
            offload("tcp-segmentation-offload", TSO, "off"),
            offload("tcp-segmentation-offload", TSO6, "off"),
            offload("VLAN_HWTSO", VLAN_TSO, "off"),
        ],
        covers: &["disablelrotso_enable", "ifconfig_*"],
        when: |host| {
            let on = |name: &str| host.found.cards.iter().any(|card| card.features.get(name) == Some(&true));
            let all = ["large-receive-offload", "tcp-segmentation-offload", "VLAN_HWTSO"];
            let known = host.found.cards.iter().any(|card| !card.features.is_empty());
            let found: Vec<&str> = all.into_iter().filter(|name| on(name)).collect();
            match known {
                true if found.is_empty() => None,
                true => Some(format!("on: {}", found.join(", "))),
                false => Some("whether they are on is not known".into()),
            }
        },
        why: "LRO breaks the end-to-end principle, adds latency, and with forwarding or bridging may panic (Intel's drivers say so). Keep checksum and VLAN offloads on.",
        measured: &[
            effect(0.0, "2 x Xeon E5-2650v4, Intel 82599ES", "E5-2650v4", "ix", paper!("19")),
            effect(0.0, "2 x Xeon E5-2650v4, Chelsio T520", "E5-2650v4", "cxl", paper!("19")),
            effect(0.0, "2 x Xeon E5-2650v4, Mellanox ConnectX-3 Pro", "E5-2650v4", "mlxen", paper!("19")),
            effect(1.3, "2 x Xeon E5-2650v4, Mellanox ConnectX-4 Lx", "E5-2650v4", "mce", paper!("19")),
            effect(0.74, "Xeon E5-2650v2, Chelsio T540", "E5-2650v2", "cxl", paper!("19")),
            effect(0.0, "Atom C2758, Chelsio T540", "C2758", "cxl", paper!("19")),
            effect(0.0, "Atom C2758, Intel 82599ES", "C2758", "ix", paper!("19")),
            effect(0.0, "Atom C2558, Intel I354", "C2558", "igb", paper!("19")),
            effect(0.0, "AMD GX-412TC, Intel I210", "GX-412TC", "igb", paper!("19")),
        ],
        cost: "Connections of the router itself use more CPU time.",
        plan: "lab/offloads",
        ..CARD
    },
    Rule {
        id: "freebsd-endhost-offloads",
        topic: Topic::EndHost,
        roles: &[Role::EndHost],
        drivers: &["*"],
        title: "Let the card compute checksums, join and cut packets",
        sets: &[
            offload("rx-checksumming", ["rx", "", "rxcsum"], "on"),
            offload("tx-checksumming", ["tx", "", "txcsum"], "on"),
            offload("tcp-segmentation-offload", TSO, "on"),
            offload("large-receive-offload", LRO, "on"),
        ],
        when: |host| host.found.cards.iter().any(|card| !card.features.is_empty()).then(String::new),
        why: "An end host has one owner of each connection: fewer, larger packets pass its stack.",
        prior: 0.1,
        cost: "Wrong as soon as the host forwards. Cards without the offload refuse it.",
        ..CARD
    },
    Rule {
        id: "freebsd-flow-control",
        drivers: &["igb", "em", "ix", "ixl"],
        title: "Turn Ethernet flow control off",
        sets: &[Set { name: "dev.{dev}.fc", place: Place::Sysctl, want: Want::Is("0") }],
        covers: &["dev.igb.2.fc", "dev.igb.3.fc"],
        why: PAUSE,
        prior: 0.02,
        cost: "A burst is dropped here instead of waiting at the neighbour.",
        ..CARD
    },
    Rule {
        id: "freebsd-emulex",
        kind: Kind::ByHand,
        drivers: &["oce"],
        title: "Replace the Emulex card",
        when: |_| Some("oce(4) has 4 queues, and no setting for more".into()),
        why: "The card forwards less than 1 Gbit/s of small frames, whatever the settings.",
        measured: &[effect(
            738.0,
            "Xeon E5-2650v2: Chelsio T540 against Emulex be3, 11.15 against 1.33 Mpps",
            "E5-2650v2",
            "oce",
            paper!("22"),
        )],
        cost: "A card: Mellanox or Chelsio are the paper's advice.",
        ..CARD
    },
    Rule {
        id: "freebsd-chelsio-pinning",
        kind: Kind::ByHand,
        drivers: &["cxl", "cc"],
        title: "Bind each queue's interrupt of Chelsio's card to a CPU: cpuset -l CPU -x IRQ",
        sets: &[Set { name: "cpuset -x {irq}", place: Place::CpuSet, want: Want::By(own_cpu) }],
        when: |host| {
            let threads = host.threads()? as usize;
            let cards = host.cards_of(&["cxl", "cc"]);
            let loose = cards
                .iter()
                .flat_map(|card| &card.interrupts)
                .filter(|irq| irq.allowed.is_empty() || irq.allowed.len() == threads);
            let n = loose.count();
            (threads > 1).then(|| format!("{n} interrupts known that may move between {threads} CPUs"))
        },
        why: "cxgbe binds no interrupt: the scheduler moves them. Bind them on the NUMA node of the card.",
        measured: &[
            effect(
                1.78,
                "Xeon E5-2650v2, Chelsio T540, each queue on a CPU",
                "E5-2650v2",
                "cxl",
                paper!("13"),
            ),
            effect(
                11.76,
                "2 x Xeon E5-2650v4, Chelsio T520, 12 queues on the card's own NUMA node",
                "E5-2650v4",
                "cxl",
                paper!("18"),
            ),
        ],
        cost: "A CPU that is busy otherwise holds its queue back. A boot undoes it: put the lines into /etc/rc.local.",
        plan: "lab/interrupts",
        ..CARD
    },
    Rule {
        id: "linux-interrupts",
        on: Kernel::Linux,
        kind: Kind::Measure,
        drivers: &["*"],
        title: "Give each queue's interrupt a CPU of its own",
        sets: &[Set {
            name: "/proc/irq/{irq}/smp_affinity_list",
            place: Place::Sys(|scope| {
                let irq = queue_interrupts(scope.card).find(|irq| irq.number == scope.nth)?;
                Some(cpus(&irq.allowed)).filter(|cpus| !cpus.is_empty())
            }),
            want: Want::By(own_cpu),
        }],
        when: |host| {
            let threads = host.threads()? as usize;
            host.found.cards.iter().find_map(|card| {
                // Without the CPU that takes it, an interrupt may be anywhere.
                let all: Vec<Option<&u32>> =
                    queue_interrupts(Some(card)).map(|irq| irq.cpus.first()).collect();
                let taken: std::collections::BTreeSet<_> = all.iter().flatten().collect();
                let wanted = card.receive_queues().map_or(all.len(), |queues| queues as usize).min(threads);
                (all.len() > 1 && taken.len() < wanted).then(|| {
                    format!(
                        "the {} interrupts of {}'s queues are on {} of {threads} CPUs",
                        all.len(),
                        card.name,
                        taken.len()
                    )
                })
            })
        },
        why: "Queues whose interrupts share a CPU share its time, while other CPUs idle.",
        measured: &[effect(
            1.78,
            "Xeon E5-2650v2, Chelsio T540 with FreeBSD 11.1, each queue on a CPU",
            "E5-2650v2",
            "cxl",
            paper!("13"),
        )],
        cost: "irqbalance moves them again: stop it. A boot undoes it. The kernel refuses interrupts that it manages itself.",
        plan: "queues",
        ..QUEUE
    },
    Rule { id: "freebsd-slot", ..SLOT },
    Rule { id: "linux-slot", on: Kernel::Linux, ..SLOT },
    Rule {
        id: "linux-flow-control",
        on: Kernel::Linux,
        roles: EVERY,
        drivers: &["*"],
        title: "Turn Ethernet flow control off",
        sets: &[
            // While it is negotiated, some drivers pass over the other two (igb, e1000e).
            pause("autoneg", "AutoNegotiationFlowControl", |scope| on_off(scope.card?.pause.autoneg)),
            pause("rx", "RxFlowControl", |scope| on_off(scope.card?.pause.rx)),
            pause("tx", "TxFlowControl", |scope| on_off(scope.card?.pause.tx)),
        ],
        covers: &["ethtool -A autoneg", "ethtool -A rx"],
        when: |host| {
            host.found
                .cards
                .iter()
                .find(|card| card.pause.is_on())
                .map(|card| format!("{} uses pause frames", card.name))
        },
        why: PAUSE,
        prior: 0.02,
        cost: "A burst is dropped here instead of waiting at the neighbour.",
        plan: "",
        ..CARD
    },
    Rule {
        id: "linux-lro",
        on: Kernel::Linux,
        drivers: &["*"],
        title: "Turn LRO off: a router must not join packets",
        sets: &[offload("large-receive-offload", LRO, "off")],
        when: |host| {
            host.found
                .cards
                .iter()
                .find(|card| card.features.get("large-receive-offload") == Some(&true))
                .map(|card| format!("it is on on {}", card.name))
        },
        why: "LRO joins packets so that they cannot be sent on as they came. The kernel turns it off where it forwards, drivers and bridges may not.",
        prior: 0.05,
        plan: "offloads",
        ..CARD
    },
    Rule {
        id: "linux-offloads",
        on: Kernel::Linux,
        topic: Topic::EndHost,
        roles: &[Role::EndHost],
        drivers: &["*"],
        title: "Let the card compute checksums, join and cut packets",
        sets: &[
            offload("rx-checksumming", ["rx", "ReceiveChecksumOffload", ""], "on"),
            offload("tx-checksumming", ["tx", "TransmitChecksumOffload", ""], "on"),
            offload("scatter-gather", ["sg", "", ""], "on"),
            offload("tcp-segmentation-offload", TSO, "on"),
            offload("generic-segmentation-offload", ["gso", "GenericSegmentationOffload", ""], "on"),
            offload("generic-receive-offload", ["gro", "GenericReceiveOffload", ""], "on"),
            offload("large-receive-offload", LRO, "on"),
            offload("receive-hashing", ["rxhash", "", ""], "on"),
        ],
        covers: &[
            "ethtool -K rx",
            "ethtool -K tx",
            "ethtool -K sg",
            "ethtool -K tso",
            "ethtool -K ufo",
            "ethtool -K gso",
            "ethtool -K gro",
            "ethtool -K lro",
            "ethtool -K rxhash",
        ],
        why: "An end host has one owner of each connection: fewer, larger packets pass its stack. calomel.org's guide turns them on; today they are on by default where the card has them. UFO is gone from Linux 4.14 on.",
        prior: 0.3,
        cost: "LRO and GRO add latency to small answers; LRO is wrong as soon as the host forwards.",
        plan: "offloads",
        ..CARD
    },
    Rule {
        id: "linux-hash-fields",
        on: Kernel::Linux,
        topic: Topic::Queues,
        drivers: &["*"],
        title: "Let ports choose the queue of UDP",
        sets: &[
            Set { name: "", place: UDP4, want: Want::By(|scope| with_ports(scope, "udp4")) },
            Set { name: "", place: UDP6, want: Want::By(|scope| with_ports(scope, "udp6")) },
        ],
        when: |host| {
            let is_without =
                |card: &&Card| fields(card, "udp4").or(fields(card, "udp6")) == Some("sd".into());
            let without = host.found.cards.iter().find(is_without)?;
            Some(format!("{} hashes UDP by addresses alone", without.name))
        },
        why: "Flows between two hosts, such as those of a tunnel, meet in one queue.",
        prior: 0.1,
        cost: "Fragments of a packet may overtake each other. A boot undoes it.",
        plan: "queues",
        ..QUEUE
    },
    Rule {
        id: "linux-indirection",
        on: Kernel::Linux,
        drivers: &["*"],
        title: "Spread the hash over all receive queues",
        sets: &[Set {
            name: "",
            place: Place::Ethtool {
                letter: "-X",
                word: "equal",
                link: "",
                now: |scope| {
                    let used = ethtool::spread(&scope.card?.indirection)?;
                    Some(used.strip_prefix("equal ").map_or(used.clone(), String::from))
                },
            },
            want: Want::By(|scope| {
                let card = scope.card.filter(|card| is_narrow(card))?;
                let queues = card.receive_queues()?;
                Some(Worked {
                    value: queues.to_string(),
                    how: format!("{} has {queues} receive queues", card.name),
                })
            }),
        }],
        when: |host| {
            let card = host.found.cards.iter().find(|card| is_narrow(card))?;
            Some(format!(
                "{} of {} receive queues of {} get frames",
                used(card),
                card.receive_queues()?,
                card.name
            ))
        },
        why: "A queue that the table of the hash does not name gets no frames. A table that somebody has set stays as it is when queues are added.",
        prior: 0.3,
        cost: "Queues that were kept free for chosen flows (ethtool -N) get others too. A boot undoes it.",
        plan: "queues",
        ..QUEUE
    },
    Rule {
        id: "linux-mtu",
        on: Kernel::Linux,
        topic: Topic::EndHost,
        roles: &[Role::EndHost],
        kind: Kind::ByHand,
        drivers: &["*"],
        title: "Use an MTU of 9000 where every host and switch of the network does",
        covers: &["mtu"],
        when: |host| {
            host.found.cards.iter().find(|card| card.mtu == Some(1500) && card.speed >= Some(1e10)).map(
                |card| {
                    format!(
                        "{} has 1500 bytes at {:.0} Gbit/s",
                        card.name,
                        card.speed.unwrap_or_default() / 1e9
                    )
                },
            )
        },
        why: "A sixth of the packets carry the same data.",
        measured: &[effect(
            413.0,
            "Xeon L5630, Myricom 10G, UDP: 9922 instead of 1933 Mbit/s",
            "L5630",
            "",
            GUIDE,
        )],
        cost: "A host with 1500 bytes in the same network gets packets that it cannot receive.",
        plan: "mtu",
        ..CARD
    },
];

const UDP4: Place = Place::Ethtool {
    letter: "-N",
    word: "rx-flow-hash udp4",
    link: "",
    now: |scope| fields(scope.card?, "udp4"),
};
const UDP6: Place = Place::Ethtool {
    letter: "-N",
    word: "rx-flow-hash udp6",
    link: "",
    now: |scope| fields(scope.card?, "udp6"),
};

/// The fields of the hash of a kind of flow, as ethtool(8) is given them.
fn fields(card: &Card, flow: &str) -> Option<String> {
    ethtool::letters(card.hash_fields.get(flow)?)
}

/// Both ports beside both addresses, where these alone are hashed.
fn with_ports(scope: &Scope, flow: &str) -> Option<Worked> {
    let now = fields(scope.card?, flow)?;
    ["sd", "sdfn"].contains(&now.as_str()).then(|| Worked { value: "sdfn".into(), how: String::new() })
}

/// Receive queues that the table of the hash names.
fn used(card: &Card) -> usize {
    card.indirection.iter().collect::<std::collections::BTreeSet<_>>().len()
}

/// Whether the table leaves receive queues out.
fn is_narrow(card: &Card) -> bool {
    let fits = |queues: u32| (used(card) as u32) < queues && queues as usize <= card.indirection.len();
    !card.indirection.is_empty() && card.receive_queues().is_some_and(fits)
}

/// The CPU of a queue's interrupt: those of the card's NUMA node in turn, first one thread of each core.
fn own_cpu(scope: &Scope) -> Option<Worked> {
    let card = scope.card?;
    let machine = &scope.host.found.machine;
    let near = card.pci.node.and_then(|node| machine.nodes.get(&node));
    let mut all: Vec<_> =
        machine.cpus.iter().filter(|cpu| near.is_none_or(|near| near.contains(&cpu.cpu))).collect();
    all.sort_by_key(|cpu| (cpu.siblings.iter().position(|of| *of == cpu.cpu), cpu.cpu));
    let irq = queue_interrupts(Some(card)).find(|irq| irq.number == scope.nth)?;
    let name = irq.name.split('@').next()?;
    let queue: usize = name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()?;
    let cpu = all.get(queue % all.len().max(1))?.cpu;
    let node = near.map_or(String::new(), |_| " of the card's NUMA node".into());
    Some(Worked {
        value: cpu.to_string(),
        how: format!("queue N on the Nth CPU{node}, one thread of each core first"),
    })
}

const SLOT: Rule = Rule {
    kind: Kind::ByHand,
    roles: EVERY,
    drivers: &["*"],
    title: "Move the card to a slot that is fast enough",
    when: slot,
    why: "The slot carries fewer bits than the ports of the card.",
    prior: 0.5,
    ..CARD
};

const PAUSE: &str = "A card that is paused holds all its queues, also those of other destinations; its drops move to where nobody counts them. Networks of mixed speeds stall at the slowest.";

const MORE_QUEUES: Rule = Rule {
    why: "Drivers make 8 queues at most by default. Chelsio's and Intel's tables spread evenly over powers of two only.",
    cost: "Memory for the rings; more interrupts at low load.",
    plan: "lab/queues",
    ..QUEUE
};
const IX: &[Effect] =
    &[effect(21.34, "2 x Xeon E5-2650v4, Intel 82599ES, 8 to 24 queues", "E5-2650v4", "ix", paper!("12"))];

fn many_cores(host: &Host) -> Option<String> {
    let cores = host.cores().filter(|cores| *cores > 8)?;
    Some(format!("{cores} cores, drivers make 8 queues"))
}

/// The largest power of two that the cores and the driver allow.
fn queues(scope: &Scope) -> Option<Worked> {
    let cores = scope.host.cores()?;
    let n = best(cores, 64);
    Some(Worked {
        value: n.to_string(),
        how: format!("the largest power of two that is not above {cores} cores is {n}"),
    })
}

/// The names of a release: others from 12.0 on, where the old ones still work.
fn queues_of(scope: &Scope, new: bool) -> Option<Worked> {
    (scope.host.since((12, 0)).unwrap_or(false) == new).then(|| queues(scope))?
}

fn on_off(on: Option<bool>) -> Option<String> {
    on.map(|on| if on { "on".into() } else { "off".into() })
}

/// A slot that carries less than the ports of its card, in writes of 256 bytes.
fn slot(host: &Host) -> Option<String> {
    const PAYLOAD: f64 = 256.0;
    host.found.cards.iter().find_map(|card| {
        let (lanes, speed, link) = (card.pci.width?, card.pci.speed?, card.speed?);
        let generation = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0].iter().position(|of| *of == speed)? + 1;
        let slot = Slot::express(generation as u8, u8::try_from(lanes).ok()?).ok()?;
        let carries = 8.0 * slot.usable(PAYLOAD);
        // Ports of a card are functions of its slot.
        let place = |card: &Card| Some(card.pci.slot.as_deref()?.rsplit_once(['.', ':'])?.0.to_string());
        let others = host.found.cards.iter().filter(|other| other.name != card.name && place(other).is_some() && place(other) == place(card));
        let needs = link + others.filter_map(|other| other.speed).sum::<f64>();
        (carries < needs).then(|| {
            let (carries, needs) = (carries / 1e9, needs / 1e9);
            format!("{}: PCIe {generation} x{lanes} carries {carries:.1} Gbit/s in each direction, the ports have {needs:.0} Gbit/s (linerate calc pcie)", card.name)
        })
    })
}
