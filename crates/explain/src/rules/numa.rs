//! The card is on another NUMA node than the CPUs that serve it.

use super::{by_interrupts, change};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let (Some(card), machine) = (case.hardware()?, &case.configuration()?.machine) else { return Ok(None) };
    if machine.nodes.len() == 1 {
        return Ok(None);
    }
    let node = card.pci.node.ok_or("the card's NUMA node is not known")?;
    let near = machine.nodes.get(&node).ok_or("the CPUs of the NUMA nodes are not known")?;
    let far: Vec<&str> = card.interrupts.iter().filter(|i| !i.cpus.is_empty() && !i.cpus.iter().any(|cpu| near.contains(cpu))).map(|i| i.name.as_str()).collect();
    if far.is_empty() {
        return Ok(None);
    }
    let (patch, untried) = by_interrupts(case, near);
    Ok(Some(Finding {
        statement: format!("{} of {} interrupts of {} are served on another NUMA node than the card's.", far.len(), card.interrupts.len(), card.name),
        strength: Strength::Inferred,
        evidence: vec![format!("{} is on node {node}; far interrupts: {}", card.name, far.join(", "))],
        mechanism: "Frames and descriptors cross the link between the sockets, and the far CPU misses its cache for each of them.".into(),
        changes: vec![
            change("Linux", "echo CPU > /proc/irq/N/smp_affinity_list with CPUs of the card's node", "the former lists"),
            change("FreeBSD", "cpuset -l CPU -x IRQ with CPUs of the card's domain", "cpuset -l all -x IRQ"),
        ],
        gain: "+11.8 % on 2 x Xeon E5-2650v4 with 12 queues ('Tuning FreeBSD for routing and firewalling', 2018, illustration 18)".into(),
        weight: 0.12 * far.len() as f64 / card.interrupts.len().max(1) as f64,
        patch,
        untried,
        ..Finding::default()
    }))
}
