//! Cards of FreeBSD and Linux: rings, limits, offloads, flow control, slots.

use super::sources::{GUIDE, LAB, PAGE, paper};
use crate::host::Host;
use crate::item::Role;
use crate::item::Topic::{Cards, EndHost};
use crate::rule::Kind::{ByHand, Undo};
use crate::rule::{EVERY, RULE, Rule, Study};
use crate::setting::Want::Is;
use crate::setting::{Place, Scope, Set, gone, is, set};
use linerate_calc::bus::Slot;
use linerate_hosts::configuration::Card;
use linerate_hosts::systems::Kernel::Linux;
use linerate_plan::card::CardValue;
use linerate_plan::offload::{self, Offload};

const CARD: Rule = Rule {
    topic: Cards,
    ..RULE
};

/// A parameter of pause frames, off.
const fn pause(word: &'static str, link: &'static str, now: fn(&Scope) -> Option<String>) -> Set {
    set(
        "",
        Place::Ethtool {
            letter: "-A",
            word,
            link,
            now,
        },
        Is("off"),
    )
}

/// An offload of a card.
const fn switch(of: &'static Offload, value: &'static str) -> Set {
    set("", Place::Offload(of), Is(value))
}

const PROCESS_LIMIT: &[Study] = &[
    (
        paper!("20"),
        &[
            (3.75, "2 x Xeon E5-2650v4, Intel 82599ES"),
            (22.66, "Atom C2758, Intel 82599ES"),
            (1.65, "Atom C2558, Intel I354"),
            (0.0, "AMD GX-412TC, Intel I210"),
        ],
    ),
    (
        PAGE,
        &[
            (1.25, "PC Engines APU2 (AMD GX-412TC), igb"),
            (1.72, "Netgate RCC-VE 4860 (Atom C2558), igb"),
        ],
    ),
    (LAB, &[(6.1, "Xeon L5630, Intel 82580, one queue")]),
];

pub const RULES: &[Rule] = &[
    Rule {
        id: "freebsd-rx-process-limit",
        until: Some((11, 4)),
        outside: "From 12.0 on the drivers use iflib: dev.{dev}.iflib.rx_budget is its limit, and 65535 its most.",
        drivers: &["igb", "em", "ix"],
        title: "Let Intel's drivers process all received frames at once",
        sets: &[
            is("hw.igb.rx_process_limit", "-1"),
            is("hw.em.rx_process_limit", "-1"),
            is("hw.ix.rx_process_limit", "-1"),
        ],
        why: "The driver leaves after 100 (igb, em) or 256 (ix) frames and has to be scheduled again.",
        measured: PROCESS_LIMIT,
        cost: "Under overload the CPUs of the queues do nothing else.",
        plan: "lab/receive-limit",
        ..CARD
    },
    Rule {
        id: "freebsd-descriptors",
        kind: Undo,
        drivers: &["igb", "em"],
        title: "Do not lengthen the rings of igb",
        sets: &[gone("hw.igb.rxd"), gone("hw.igb.txd")],
        when: |host| {
            let long = ["hw.igb.rxd", "hw.igb.txd"]
                .into_iter()
                .find(|name| host.number(name) > Some(1024))?;
            Some(format!(
                "{long} is {}, the default 1024",
                host.number(long)?
            ))
        },
        why: "A longer ring no longer fits into the cache.",
        measured: &[
            (
                PAGE,
                &[
                    // The default against 2048 and 4096 descriptors.
                    (
                        13.9,
                        "PC Engines APU2 (AMD GX-412TC), 1024 instead of 2048 descriptors",
                    ),
                    (
                        24.6,
                        "PC Engines APU2 (AMD GX-412TC), 1024 instead of 4096 descriptors",
                    ),
                    (
                        4.2,
                        "Netgate RCC-VE 4860 (Atom C2558), 1024 instead of 2048 descriptors",
                    ),
                    (
                        6.3,
                        "Netgate RCC-VE 4860 (Atom C2558), 1024 instead of 4096 descriptors",
                    ),
                ],
            ),
            (
                LAB,
                &[(
                    -1.4,
                    "Xeon L5630, Intel 82580, one queue, 1024 instead of 2048 descriptors",
                )],
            ),
        ],
        cost: "Bursts longer than the ring are lost.",
        plan: "lab/rings",
        ..CARD
    },
    Rule {
        id: "freebsd-interrupt-rate",
        kind: Undo,
        drivers: &["igb", "em", "ix"],
        title: "Leave the interrupt rate to the driver",
        sets: &[
            gone("hw.igb.max_interrupt_rate"),
            gone("hw.ix.max_interrupt_rate"),
            gone("hw.ix.enable_aim"),
        ],
        why: "More interrupts, and moderation that does not adapt, brought nothing: under load the driver polls anyway.",
        measured: &[
            (
                PAGE,
                &[
                    (
                        0.0,
                        "PC Engines APU2 (AMD GX-412TC), 16000 and 32000 interrupts/s",
                    ),
                    (
                        -1.03,
                        "Netgate RCC-VE 4860 (Atom C2558), 8000 instead of 16000 interrupts/s; 32000: no difference",
                    ),
                ],
            ),
            (
                "'Tuning FreeBSD for routing and firewalling' (2018), section II.L",
                &[(0.0, "Atom C2758, Intel 82599ES")],
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
            is("hw.cxgbe.toecaps_allowed", "0"),
            is("hw.cxgbe.rdmacaps_allowed", "0"),
            is("hw.cxgbe.iscsicaps_allowed", "0"),
            is("hw.cxgbe.fcoecaps_allowed", "0"),
        ],
        why: "The firmware divides the card's memory between the features that it may have.",
        measured: &[(paper!("21"), &[(19.23, "2 x Xeon E5-2650v4, Chelsio T520")])],
        cost: "No TCP offload engine, RDMA, iSCSI or FCoE on the card.",
        plan: "lab/card-features",
        ..CARD
    },
    Rule {
        id: "freebsd-offloads",
        drivers: &["*"],
        title: "Turn LRO and TSO off: a router must not join and cut packets",
        sets: &[
            switch(offload::LRO, "off"),
            switch(offload::TSO, "off"),
            switch(offload::TSO6, "off"),
            switch(offload::VLAN_TSO, "off"),
        ],
        covers: &["disablelrotso_enable", "ifconfig_*"],
        needs: |host, card| {
            let all = [offload::LRO, offload::TSO, offload::VLAN_TSO].map(|offload| offload.name);
            let found: Vec<&str> = all
                .into_iter()
                .filter(|name| card.features.get(*name) == Some(&true))
                .collect();
            let none_is_known = host.found.cards.iter().all(|card| card.features.is_empty());
            match found.is_empty() {
                true => none_is_known
                    .then(|| format!("whether they are on on {} is not known", card.name)),
                false => Some(format!("on on {}: {}", card.name, found.join(", "))),
            }
        },
        why: "LRO breaks the end-to-end principle, adds latency, and with forwarding or bridging may panic (Intel's drivers say so). Keep checksum and VLAN offloads on.",
        measured: &[(
            paper!("19"),
            &[
                (0.0, "2 x Xeon E5-2650v4, Intel 82599ES"),
                (0.0, "2 x Xeon E5-2650v4, Chelsio T520"),
                (0.0, "2 x Xeon E5-2650v4, Mellanox ConnectX-3 Pro"),
                (1.3, "2 x Xeon E5-2650v4, Mellanox ConnectX-4 Lx"),
                (0.74, "Xeon E5-2650v2, Chelsio T540"),
                (0.0, "Atom C2758, Chelsio T540"),
                (0.0, "Atom C2758, Intel 82599ES"),
                (0.0, "Atom C2558, Intel I354"),
                (0.0, "AMD GX-412TC, Intel I210"),
            ],
        )],
        cost: "Connections of the router itself use more CPU time.",
        plan: "lab/offloads",
        ..CARD
    },
    Rule {
        id: "freebsd-endhost-offloads",
        topic: EndHost,
        roles: &[Role::EndHost],
        drivers: &["*"],
        title: "Let the card compute checksums, join and cut packets",
        sets: &[
            switch(offload::RX_CHECKSUMS, "on"),
            switch(offload::TX_CHECKSUMS, "on"),
            switch(offload::TSO, "on"),
            switch(offload::LRO, "on"),
        ],
        when: |host| {
            host.found
                .cards
                .iter()
                .any(|card| !card.features.is_empty())
                .then(String::new)
        },
        why: "An end host has one owner of each connection: fewer, larger packets pass its stack.",
        prior: 0.1,
        cost: "Wrong as soon as the host forwards. Cards without the offload refuse it.",
        ..CARD
    },
    Rule {
        id: "freebsd-flow-control",
        drivers: &["igb", "em", "ix", "ixl"],
        title: "Turn Ethernet flow control off",
        sets: &[is("dev.{dev}.fc", "0")],
        covers: &["dev.igb.2.fc", "dev.igb.3.fc"],
        why: PAUSE,
        prior: 0.02,
        cost: "A burst is dropped here instead of waiting at the neighbour.",
        ..CARD
    },
    Rule {
        id: "freebsd-emulex",
        kind: ByHand,
        drivers: &["oce"],
        title: "Replace the Emulex card",
        when: |_| Some("oce(4) has 4 queues, and no setting for more".into()),
        why: "The card forwards less than 1 Gbit/s of small frames, whatever the settings.",
        measured: &[(
            paper!("22"),
            &[(
                738.0,
                "Xeon E5-2650v2: Chelsio T540 against Emulex be3, 11.15 against 1.33 Mpps",
            )],
        )],
        cost: "A card: Mellanox or Chelsio are the paper's advice.",
        ..CARD
    },
    Rule {
        id: "freebsd-slot",
        ..SLOT
    },
    Rule {
        id: "linux-slot",
        on: Linux,
        ..SLOT
    },
    Rule {
        id: "linux-flow-control",
        on: Linux,
        roles: EVERY,
        drivers: &["*"],
        title: "Turn Ethernet flow control off",
        sets: &[
            // While it is negotiated, some drivers pass over the other two (igb, e1000e).
            pause("autoneg", "AutoNegotiationFlowControl", |scope| {
                on_off(scope.card?.pause.autoneg)
            }),
            pause("rx", "RxFlowControl", |scope| on_off(scope.card?.pause.rx)),
            pause("tx", "TxFlowControl", |scope| on_off(scope.card?.pause.tx)),
        ],
        covers: &["ethtool -A autoneg", "ethtool -A rx"],
        needs: |_, card| {
            card.pause
                .is_on()
                .then(|| format!("{} uses pause frames", card.name))
        },
        why: PAUSE,
        prior: 0.02,
        cost: "A burst is dropped here instead of waiting at the neighbour.",
        ..CARD
    },
    Rule {
        id: "linux-lro",
        on: Linux,
        drivers: &["*"],
        title: "Turn LRO off: a router must not join packets",
        sets: &[switch(offload::LRO, "off")],
        needs: |_, card| {
            let on = card.features.get(offload::LRO.name) == Some(&true);
            on.then(|| format!("it is on on {}", card.name))
        },
        why: "LRO joins packets so that they cannot be sent on as they came. The kernel turns it off where it forwards, drivers and bridges may not.",
        prior: 0.05,
        plan: "offloads",
        ..CARD
    },
    Rule {
        id: "linux-offloads",
        on: Linux,
        topic: EndHost,
        roles: &[Role::EndHost],
        drivers: &["*"],
        title: "Let the card compute checksums, join and cut packets",
        sets: &[
            switch(offload::RX_CHECKSUMS, "on"),
            switch(offload::TX_CHECKSUMS, "on"),
            switch(offload::SCATTER_GATHER, "on"),
            switch(offload::TSO, "on"),
            switch(offload::GSO, "on"),
            switch(offload::GRO, "on"),
            switch(offload::LRO, "on"),
            switch(offload::RECEIVE_HASH, "on"),
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
        id: "linux-mtu",
        on: Linux,
        topic: EndHost,
        roles: &[Role::EndHost],
        kind: ByHand,
        drivers: &["*"],
        title: "Use an MTU of 9000 where every host and switch of the network does",
        covers: &["mtu"],
        when: |host| {
            host.found
                .cards
                .iter()
                .find(|card| card.mtu == Some(1500) && card.speed >= Some(1e10))
                .map(|card| {
                    format!(
                        "{} has 1500 bytes at {:.0} Gbit/s",
                        card.name,
                        card.speed.unwrap_or_default() / 1e9
                    )
                })
        },
        why: "A sixth of the packets carry the same data.",
        measured: &[(
            GUIDE,
            &[(
                413.0,
                "Xeon L5630, Myricom 10G, UDP: 9922 instead of 1933 Mbit/s",
            )],
        )],
        cost: "A host with 1500 bytes in the same network gets packets that it cannot receive.",
        plan: "mtu",
        ..CARD
    },
];

const SLOT: Rule = Rule {
    kind: ByHand,
    roles: EVERY,
    drivers: &["*"],
    title: "Move the card to a slot that is fast enough",
    when: slot,
    why: "The slot carries fewer bits than the ports of the card.",
    prior: 0.5,
    ..CARD
};

const PAUSE: &str = "A card that is paused holds all its queues, also those of other destinations; its drops move to where nobody counts them. Networks of mixed speeds stall at the slowest.";

fn on_off(on: Option<bool>) -> Option<String> {
    on.map(|on| CardValue::Switch(on).per(1))
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
