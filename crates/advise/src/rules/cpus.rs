//! CPUs: threads of a core, NUMA, frequency.

use super::sources::{PAGE, paper};
use crate::host::Host;
use crate::item::Topic::{Cpus, Release};
use crate::rule::Kind::{ByHand, Measure};
use crate::rule::{EVERY, FORWARDING, ROUTING, RULE, Rule, Study};
use crate::setting::Want::Is;
use crate::setting::{Place, is, set};
use linerate_hosts::systems::Kernel::Linux;

const CPU: Rule = Rule {
    topic: Cpus,
    ..RULE
};

const THREADS: &[Study] = &[
    (
        paper!("5"),
        &[(24.45, "Xeon E5-2650 (8 cores), Chelsio, 8 queues")],
    ),
    (
        PAGE,
        &[
            (23.24, "Xeon E5-2650L (10 cores), Chelsio, 8 queues"),
            // 8,734,750 with 16 queues on the threads, 5,372,493 without threads.
            (
                -38.5,
                "Xeon E5-2650L (10 cores), Chelsio: off with 8 queues against on with 16 queues",
            ),
        ],
    ),
];

const THREADING: Rule = Rule {
    kind: Measure,
    title: "Turn hyper-threading off",
    measured: THREADS,
    cost: "Programs with many threads lose up to a third.",
    plan: "lab/hyper-threading",
    ..CPU
};
const NUMA: Rule = Rule {
    roles: FORWARDING,
    kind: ByHand,
    drivers: &["*"],
    when: numa,
    why: "Where a queue's interrupt is on another node, its frames cross the link between the sockets.",
    measured: &[(
        paper!("18"),
        &[(
            11.76,
            "2 x Xeon E5-2650v4, Chelsio T520, 12 queues on the card's own NUMA node, FreeBSD 11.1",
        )],
    )],
    ..CPU
};

pub const RULES: &[Rule] = &[
    Rule {
        id: "freebsd-hyper-threading",
        sets: &[is("machdep.hyperthreading_allowed", "0")],
        when: |host| match host.threads_per_core() {
            0 => host
                .found
                .machine
                .model
                .as_deref()
                .filter(|model| !single_threaded(model))
                .map(|model| format!("{model}: whether it has threads is not known")),
            1 => host
                .value("machdep.hyperthreading_allowed")
                .filter(|value| *value == "0")
                .map(|_| String::new()),
            n => Some(format!(
                "{} CPUs on {} cores, {n} threads each",
                host.threads().unwrap_or(0),
                host.cores().unwrap_or(0)
            )),
        },
        why: "The scheduler treats the two threads of a core as CPUs: two queues share one core's units while others idle.",
        notes: &[(
            (12, 0),
            "Interrupts keep off the second threads here while machdep.hyperthreading_intr_allowed is 0, the default: less is gained than on 11.",
        )],
        ..THREADING
    },
    Rule {
        id: "linux-hyper-threading",
        on: Linux,
        sets: &[set(
            "/sys/devices/system/cpu/smt/control",
            Place::Sys(|scope| (scope.host.threads_per_core() > 1).then(|| "on".into())),
            Is("off"),
        )],
        when: |host| {
            let threads = host.threads_per_core();
            (threads > 1 && host.found.machine.virtual_machine.is_none()).then(|| {
                format!(
                    "{} CPUs on {} cores",
                    host.threads().unwrap_or(0),
                    host.cores().unwrap_or(0)
                )
            })
        },
        why: "Queues on the two threads of a core share its units.",
        ..THREADING
    },
    Rule {
        id: "freebsd-numa",
        title: "Keep the queues on the NUMA node of the card: cpuset -l CPUS -x IRQ",
        plan: "lab/interrupts",
        ..NUMA
    },
    Rule {
        id: "linux-numa",
        on: Linux,
        title: "Keep the interrupts on the NUMA node of the card: /proc/irq/N/smp_affinity_list",
        ..NUMA
    },
    Rule {
        id: "linux-governor",
        on: Linux,
        roles: EVERY,
        kind: Measure,
        title: "Keep the CPUs at their highest frequency",
        sets: &[set(
            "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor",
            Place::Sys(|scope| {
                scope
                    .host
                    .found
                    .machine
                    .cpus
                    .iter()
                    .find(|cpu| cpu.cpu == scope.nth)?
                    .governor
                    .clone()
            }),
            Is("performance"),
        )],
        when: |host| {
            host.found
                .machine
                .cpus
                .iter()
                .find_map(|cpu| cpu.governor.clone().filter(|g| g != "performance"))
                .map(|governor| format!("the governor is {governor}"))
        },
        why: "Softirqs end before a governor sees the load: the first packets of a burst meet a slow CPU.",
        prior: 0.1,
        cost: "Power and heat while the host is idle.",
        ..CPU
    },
    Rule {
        id: "freebsd-virtual",
        roles: ROUTING,
        topic: Release,
        kind: ByHand,
        title: "Measure on hardware too: this is a virtual machine",
        when: |host| {
            host.found
                .machine
                .virtual_machine
                .as_deref()
                .map(|name| format!("kern.vm_guest is {name}"))
        },
        why: "Its cards are programs of the hypervisor, whose cost no setting of the guest changes.",
        prior: 0.0,
        ..CPU
    },
];

/// CPUs of the literature that have no threads.
fn single_threaded(model: &str) -> bool {
    ["GX-412TC", "G-T40E", "C2558", "C2758"]
        .iter()
        .any(|name| model.contains(name))
}

fn numa(host: &Host) -> Option<String> {
    let sockets: std::collections::BTreeSet<_> = host
        .found
        .machine
        .cpus
        .iter()
        .filter_map(|cpu| cpu.socket)
        .collect();
    if host.found.machine.nodes.len() < 2 && sockets.len() < 2 {
        return None;
    }
    let card = host
        .found
        .cards
        .iter()
        .find(|card| card.pci.node.is_some())?;
    Some(format!(
        "{} is on node {} of {}",
        card.name,
        card.pci.node?,
        host.found.machine.nodes.len().max(sockets.len())
    ))
}
