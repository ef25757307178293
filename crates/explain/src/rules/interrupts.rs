//! Interrupts of several queues are served by one CPU.

use super::{by_interrupts, change};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use std::collections::BTreeMap;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let (Some(card), configuration) = (case.hardware()?, case.configuration()?) else { return Ok(None) };
    let mut by_cpu: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    let of_queues = card.queue_interrupts().into_iter().map(|(_, interrupt)| interrupt);
    of_queues.filter(|interrupt| interrupt.cpus.len() == 1).for_each(|interrupt| by_cpu.entry(interrupt.cpus[0]).or_default().push(&interrupt.name));
    let number: usize = by_cpu.values().map(Vec::len).sum();
    if number == 0 {
        return Err("the card shows no interrupts of its queues".into());
    }
    let (cpu, names) = by_cpu.iter().max_by_key(|(_, names)| names.len()).expect("there is an interrupt");
    let fair = number.div_ceil(configuration.machine.cpus.len().max(1));
    // Two queues may share a CPU by chance.
    if names.len() <= fair + 1 && by_cpu.len() > 1 || names.len() < 2 {
        return Ok(None);
    }
    let (patch, untried) = by_interrupts(case, &configuration.machine.cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>());
    Ok(Some(Finding {
        statement: format!("CPU {cpu} serves {} of the {number} interrupts of {}.", names.len(), card.name),
        strength: Strength::Inferred,
        evidence: by_cpu.iter().take(16).map(|(cpu, names)| format!("CPU {cpu}: {}", names.join(", "))).collect(),
        mechanism: "The frames of a queue are forwarded on the CPU that takes its interrupt: queues that share a CPU share its time.".into(),
        changes: vec![
            change("Linux", "echo CPU > /proc/irq/N/smp_affinity_list for each, and no irqbalance", "the former lists; systemctl start irqbalance"),
            change("FreeBSD", "cpuset -l CPU -x IRQ for each", "cpuset -l all -x IRQ"),
        ],
        gain: "+2 % where the interrupts were spread before ('Tuning FreeBSD for routing and firewalling', 2018, illustration 13); up to the number of CPUs where one had all".into(),
        weight: 1.0 - fair as f64 / names.len() as f64,
        patch,
        untried,
        ..Finding::default()
    }))
}
