//! Queues of cards: how many, who serves them, and which flows they get.

use super::sources::{LAB, paper};
use crate::host::Host;
use crate::item::Topic::Queues;
use crate::rule::Kind::{ByHand, Measure, Undo};
use crate::rule::{RULE, Rule, Study};
use crate::setting::Want::By;
use crate::setting::cpus;
use crate::setting::{Place, Scope, Worked, by, gone, set, worked};
use linerate_calc::queues::best;
use linerate_hosts::configuration::{Card, ethtool};
use linerate_hosts::systems::Kernel::Linux;
use std::collections::BTreeSet;

const QUEUE: Rule = Rule {
    topic: Queues,
    ..RULE
};

pub const RULES: &[Rule] = &[
    Rule {
        id: "freebsd-cxgbe-queues",
        drivers: &["cxl", "cc"],
        title: "Give Chelsio's card more than 8 queues, a power of two",
        sets: &[
            by("hw.cxgbe.nrxq10g", |scope| queues_of(scope, false)),
            by("hw.cxgbe.ntxq10g", |scope| queues_of(scope, false)),
            by("hw.cxgbe.nrxq", |scope| queues_of(scope, true)),
            by("hw.cxgbe.ntxq", |scope| queues_of(scope, true)),
        ],
        when: many_cores,
        notes: &[((12, 0), "The names end in 10g up to 11.4.")],
        measured: &[(
            paper!("12"),
            &[(29.45, "2 x Xeon E5-2650v4, Chelsio T520, 8 to 24 queues")],
        )],
        ..MORE_QUEUES
    },
    Rule {
        id: "freebsd-ix-queues",
        until: Some((11, 4)),
        outside: "From 12.0 on: dev.ix.N.iflib.override_nrxqs, see freebsd-iflib-queues.",
        drivers: &["ix"],
        title: "Give Intel's 10 Gbit/s card more than 8 queues",
        sets: &[by("hw.ix.num_queues", queues)],
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
            by("dev.{dev}.iflib.override_nrxqs", queues),
            by("dev.{dev}.iflib.override_ntxqs", queues),
        ],
        when: |host| host.release.and_then(|_| many_cores(host)),
        measured: IX,
        ..MORE_QUEUES
    },
    Rule {
        id: "freebsd-one-queue",
        kind: Undo,
        drivers: &["igb", "em", "ix"],
        title: "Leave the number of queues to the driver",
        sets: &[gone("hw.igb.num_queues")],
        when: |host| {
            host.number("hw.igb.num_queues")
                .filter(|n| *n == 1)
                .map(|_| "hw.igb.num_queues is 1".into())
        },
        why: "One queue means one CPU. 0 is the driver's choice: a queue for each CPU.",
        measured: &[(
            LAB,
            &[(
                112.6,
                "Xeon L5630, Intel 82580: 4 queues against 1 (1.488 Mpps against 700 kpps)",
            )],
        )],
        plan: "lab/queues",
        ..QUEUE
    },
    Rule {
        id: "freebsd-chelsio-pinning",
        kind: ByHand,
        drivers: &["cxl", "cc"],
        title: "Bind each queue's interrupt of Chelsio's card to a CPU: cpuset -l CPU -x IRQ",
        sets: &[set("cpuset -x {irq}", Place::CpuSet, By(own_cpu))],
        when: |host| {
            let threads = host.threads()? as usize;
            let cards = host.cards_of(&["cxl", "cc"]);
            let loose = cards
                .iter()
                .flat_map(|card| &card.interrupts)
                .filter(|irq| irq.allowed.is_empty() || irq.allowed.len() == threads);
            let n = loose.count();
            (threads > 1)
                .then(|| format!("{n} interrupts known that may move between {threads} CPUs"))
        },
        why: "cxgbe binds no interrupt: the scheduler moves them. Bind them on the NUMA node of the card.",
        measured: &[
            (
                paper!("13"),
                &[(1.78, "Xeon E5-2650v2, Chelsio T540, each queue on a CPU")],
            ),
            (
                paper!("18"),
                &[(
                    11.76,
                    "2 x Xeon E5-2650v4, Chelsio T520, 12 queues on the card's own NUMA node",
                )],
            ),
        ],
        cost: "A CPU that is busy otherwise holds its queue back. A boot undoes it: put the lines into /etc/rc.local.",
        plan: "lab/interrupts",
        ..QUEUE
    },
    Rule {
        id: "linux-interrupts",
        on: Linux,
        kind: Measure,
        drivers: &["*"],
        title: "Give each queue's interrupt a CPU of its own",
        sets: &[set(
            "/proc/irq/{irq}/smp_affinity_list",
            Place::Sys(|scope| {
                Some(cpus(&scope.interrupt()?.1.allowed)).filter(|cpus| !cpus.is_empty())
            }),
            By(own_cpu),
        )],
        needs: |host, card| {
            let threads = host.threads()? as usize;
            // Without the CPU that takes it, an interrupt may be anywhere.
            let all: Vec<Option<&u32>> = card
                .queue_interrupts()
                .into_iter()
                .map(|(_, irq)| irq.cpus.first())
                .collect();
            let taken: BTreeSet<_> = all.iter().flatten().collect();
            let wanted = card
                .receive_queues()
                .map_or(all.len(), |queues| queues as usize)
                .min(threads);
            (all.len() > 1 && !taken.is_empty() && taken.len() < wanted).then(|| {
                format!(
                    "the {} interrupts of {}'s queues are on {} of {threads} CPUs",
                    all.len(),
                    card.name,
                    taken.len()
                )
            })
        },
        why: "Queues whose interrupts share a CPU share its time, while other CPUs idle.",
        measured: &[(
            paper!("13"),
            &[(
                1.78,
                "Xeon E5-2650v2, Chelsio T540 with FreeBSD 11.1, each queue on a CPU",
            )],
        )],
        cost: "irqbalance moves them again: stop it. A boot undoes it. The kernel refuses interrupts that it manages itself.",
        plan: "queues",
        ..QUEUE
    },
    Rule {
        id: "linux-hash-fields",
        on: Linux,
        topic: Queues,
        drivers: &["*"],
        title: "Let ports choose the queue of UDP",
        sets: &[
            set("", UDP4, By(|scope| with_ports(scope, "udp4"))),
            set("", UDP6, By(|scope| with_ports(scope, "udp6"))),
        ],
        needs: |_, card| {
            let without = fields(card, "udp4").or(fields(card, "udp6")) == Some("sd".into());
            (without && has_several(card))
                .then(|| format!("{} hashes UDP by addresses alone", card.name))
        },
        why: "Flows between two hosts, such as those of a tunnel, meet in one queue.",
        prior: 0.1,
        cost: "Fragments of a packet may overtake each other. A boot undoes it.",
        plan: "queues",
        ..QUEUE
    },
    Rule {
        id: "linux-indirection",
        on: Linux,
        drivers: &["*"],
        title: "Spread the hash over all receive queues",
        sets: &[set(
            "",
            Place::Ethtool {
                letter: "-X",
                word: "equal",
                link: "",
                now: |scope| {
                    let used = ethtool::spread(&scope.card?.indirection)?;
                    Some(
                        used.strip_prefix("equal ")
                            .map_or(used.clone(), String::from),
                    )
                },
            },
            By(|scope| {
                let card = scope.card.filter(|card| is_narrow(card))?;
                let queues = card.receive_queues()?;
                worked(queues, format!("{} has {queues} receive queues", card.name))
            }),
        )],
        needs: |_, card| {
            let queues = card.receive_queues().filter(|_| is_narrow(card))?;
            Some(format!(
                "{} of {queues} receive queues of {} get frames",
                used(card),
                card.name
            ))
        },
        why: "A queue that the table of the hash does not name gets no frames. A table that somebody has set stays as it is when queues are added.",
        prior: 0.3,
        cost: "Queues that were kept free for chosen flows (ethtool -N) get others too. A boot undoes it.",
        plan: "queues",
        ..QUEUE
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
    let now = fields(scope.card.filter(|card| has_several(card))?, flow)?;
    if ["sd", "sdfn"].contains(&now.as_str()) {
        worked("sdfn", "")
    } else {
        None
    }
}

/// Whether a hash has queues to choose from.
fn has_several(card: &Card) -> bool {
    card.receive_queues().is_some_and(|queues| queues > 1)
}

/// Receive queues that the table of the hash names.
fn used(card: &Card) -> usize {
    card.indirection.iter().collect::<BTreeSet<_>>().len()
}

/// Whether the table leaves receive queues out.
fn is_narrow(card: &Card) -> bool {
    let fits =
        |queues: u32| (used(card) as u32) < queues && queues as usize <= card.indirection.len();
    !card.indirection.is_empty() && card.receive_queues().is_some_and(fits)
}

/// The CPU of a queue's interrupt: those of the card's NUMA node in turn, first one thread of each core.
fn own_cpu(scope: &Scope) -> Option<Worked> {
    let card = scope.card?;
    let machine = &scope.host.found.machine;
    let near = card.pci.node.and_then(|node| machine.nodes.get(&node));
    let mut all: Vec<_> = machine
        .cpus
        .iter()
        .filter(|cpu| near.is_none_or(|near| near.contains(&cpu.cpu)))
        .collect();
    all.sort_by_key(|cpu| (cpu.siblings.iter().position(|of| *of == cpu.cpu), cpu.cpu));
    let queue = scope.interrupt()?.0 as usize;
    let cpu = all.get(queue % all.len().max(1))?.cpu;
    let node = near.map_or(String::new(), |_| " of the card's NUMA node".into());
    worked(
        cpu,
        format!("queue N on the Nth CPU{node}, one thread of each core first"),
    )
}

const MORE_QUEUES: Rule = Rule {
    why: "Drivers make 8 queues at most by default. Chelsio's and Intel's tables spread evenly over powers of two only.",
    cost: "Memory for the rings; more interrupts at low load.",
    plan: "lab/queues",
    ..QUEUE
};
const IX: &[Study] = &[(
    paper!("12"),
    &[(21.34, "2 x Xeon E5-2650v4, Intel 82599ES, 8 to 24 queues")],
)];

fn many_cores(host: &Host) -> Option<String> {
    let cores = host.cores().filter(|cores| *cores > 8)?;
    Some(format!("{cores} cores, drivers make 8 queues"))
}

/// The largest power of two that the cores and the driver allow.
fn queues(scope: &Scope) -> Option<Worked> {
    let cores = scope.host.cores()?;
    let n = best(cores, 64);
    worked(
        n,
        format!("the largest power of two that is not above {cores} cores is {n}"),
    )
}

/// The names of a release: others from 12.0 on, where the old ones still work.
fn queues_of(scope: &Scope, new: bool) -> Option<Worked> {
    (scope.host.since((12, 0)).unwrap_or(false) == new).then(|| queues(scope))?
}
