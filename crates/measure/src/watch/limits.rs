//! Where the limit is, by the rates alone: a CPU, a queue, a ring, a table, the wire.
//!
//! The most likely limit comes first. That a limit is not listed says only that its counters do not show it.

use super::limit::{Limit, QueueState, Way};
use super::rates::{CpuRates, InterfaceRates, Rates, SideRates};

/// A CPU that is idle for less than this has no time left: ticks are counted too coarsely for 0.
const SATURATED: f64 = 0.95;
/// A CPU that gives programs more than this is busy with those, and not with frames.
const USER: f64 = 0.25;
/// A table or wire that is filled to this share is full: reality is above it for parts of an interval.
const FULL: f64 = 0.97;
/// A connection table needs a reserve.
const NEARLY_FULL: f64 = 0.9;
/// Time taken by the hypervisor that matters.
const STOLEN: f64 = 0.05;
/// A queue starves that has less than this part of its fair share; one that has more than this many is overfull.
const STARVES: f64 = 0.25;
const OVERFULL: f64 = 2.0;
/// Below this rate for each queue, chance decides who gets frames.
const ENOUGH: f64 = 100.0;
/// Drops below this share of the frames are no limit, unless they are all that can be seen.
const LOST: f64 = 0.0001;

/// How the frames of one direction are spread over its queues; `sides`: of each queue, `None` if it has none in this direction.
pub fn queue_states(sides: &[Option<SideRates>]) -> Vec<QueueState> {
    let rates: Vec<f64> = sides.iter().flatten().map(|side| side.pps).collect();
    let all: f64 = rates.iter().sum();
    let fair = all / rates.len().max(1) as f64;
    let state = |pps: f64| match () {
        () if rates.len() < 2 || fair < ENOUGH => QueueState::Even,
        () if pps < STARVES * fair => QueueState::Starves,
        () if pps > OVERFULL * fair => QueueState::Overfull,
        () => QueueState::Even,
    };
    sides
        .iter()
        .map(|side| side.map_or(QueueState::Even, |side| state(side.pps)))
        .collect()
}

/// The limits that the rates show, the most likely first.
pub(super) fn limits(rates: &Rates) -> Vec<Limit> {
    let mut limits = Vec::new();
    let interfaces = || {
        rates
            .interfaces
            .iter()
            .filter(|interface| !interface.stacked)
    };
    limits.extend(interfaces().flat_map(wires));
    limits.extend(saturated(rates));
    let steal: f64 =
        rates.cpus.iter().map(|cpu| cpu.steal).sum::<f64>() / rates.cpus.len().max(1) as f64;
    limits.extend((steal >= STOLEN).then_some(Limit::Steal { share: steal }));
    let nearly_full = rates
        .states
        .filter(|table| table.fill().is_some_and(|fill| fill >= NEARLY_FULL));
    limits.extend(nearly_full.map(|table| Limit::States {
        entries: table.entries,
        limit: table.limit,
    }));
    limits.extend(interfaces().flat_map(drops));
    let backlog = rates.softnet.iter().filter(|softnet| softnet.dropped > 0.0);
    limits.extend(backlog.map(|softnet| Limit::Backlog {
        cpu: softnet.cpu,
        pps: softnet.dropped,
    }));
    // One flow has one queue, and a burst uses up a budget: while CPUs have time and no frame is lost, that limits nothing.
    if rates.cpus.is_empty() || !limits.is_empty() {
        limits.extend(interfaces().flat_map(uneven));
        let squeezed = rates
            .softnet
            .iter()
            .filter(|softnet| softnet.squeezed >= 1.0);
        let squeezed = squeezed.map(|softnet| Limit::Squeezed {
            cpu: softnet.cpu,
            per_second: softnet.squeezed,
        });
        limits.extend(squeezed);
    }
    limits
}

fn ways(interface: &InterfaceRates) -> [(Way, &SideRates); 2] {
    [(Way::In, &interface.rx), (Way::Out, &interface.tx)]
}

fn wires(interface: &InterfaceRates) -> impl Iterator<Item = Limit> + '_ {
    ways(interface).into_iter().filter_map(|(way, side)| {
        let share = side.bits_layer_1 / interface.speed.filter(|speed| *speed > 0.0)?;
        // A virtual link has no wire: what it carries can be many times its nominal speed.
        let is_full = (FULL..1.1).contains(&share);
        is_full.then(|| Limit::Wire {
            interface: interface.name.clone(),
            way,
            share,
        })
    })
}

fn saturated(rates: &Rates) -> impl Iterator<Item = Limit> + '_ {
    let is_at_limit = |cpu: &&CpuRates| cpu.busy() - cpu.steal >= SATURATED && cpu.user < USER;
    let mut full: Vec<&CpuRates> = rates.cpus.iter().filter(is_at_limit).collect();
    full.sort_by(|a, b| (b.softirq + b.irq).total_cmp(&(a.softirq + a.irq)));
    full.into_iter().map(|cpu| {
        let others = || rates.cpus.iter().filter(|other| other.cpu != cpu.cpu);
        let count = others().count();
        let on_it = |rate: &super::InterruptRates| {
            let there = rate.by_cpu.iter().find(|(on, _)| *on == cpu.cpu)?.1;
            is_of_card(rates, &rate.name).then(|| (there, rate.name.clone()))
        };
        let most = rates
            .interrupts
            .iter()
            .filter_map(on_it)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        Limit::Cpu {
            cpu: cpu.cpu,
            busy: cpu.busy(),
            softirq: cpu.softirq,
            irq: cpu.irq,
            others: (count > 0).then(|| others().map(CpuRates::busy).sum::<f64>() / count as f64),
            interrupt: most
                .filter(|(rate, _)| *rate >= ENOUGH)
                .map(|(_, name)| name),
        }
    })
}

/// Whether an interrupt is that of a card's queue: it has the name of an interface, or one that drivers give to queues.
fn is_of_card(rates: &Rates, name: &str) -> bool {
    let has = |word: &str| name.contains(word);
    // Interrupts of devices have a number.
    name.starts_with(|c: char| c.is_ascii_digit())
        && (rates
            .interfaces
            .iter()
            .any(|interface| has(&interface.name))
            || ["rx", "Rx", "tx", "input", "output", "comp"]
                .into_iter()
                .any(has))
}

fn sides(interface: &InterfaceRates, way: Way) -> Vec<Option<SideRates>> {
    interface
        .queues
        .iter()
        .map(|queue| if way == Way::In { queue.rx } else { queue.tx })
        .collect()
}

/// Queues that drop, or the interface where no queue shows it. A drop that is a rare one among many frames comes after those.
fn drops(interface: &InterfaceRates) -> Vec<Limit> {
    let mut found = Vec::new();
    for (way, side) in ways(interface) {
        let queues = sides(interface, way);
        let all: f64 = queues
            .iter()
            .flatten()
            .map(|queue| queue.pps + queue.drops)
            .sum();
        let mut worst: Vec<(usize, SideRates)> = queues
            .iter()
            .enumerate()
            .filter_map(|(nth, queue)| Some((nth, (*queue)?)))
            .collect();
        worst.retain(|(_, queue)| queue.drops > 0.0 && queue.drops >= LOST * queue.pps);
        worst.sort_by(|(_, a), (_, b)| b.drops.total_cmp(&a.drops));
        let name = || interface.name.clone();
        found.extend(worst.iter().map(|(nth, queue)| Limit::QueueDrops {
            interface: name(),
            way,
            queue: *nth,
            pps: queue.drops,
            share: (queue.pps + queue.drops) / all,
        }));
        let is_twice = interface.peer_here && way == Way::In;
        if worst.is_empty() && !is_twice && side.drops > 0.0 && side.drops >= LOST * side.pps {
            let overruns = side.overruns >= side.drops / 2.0;
            found.push(Limit::Drops {
                interface: name(),
                way,
                pps: side.drops,
                overruns,
            });
        }
    }
    found
}

/// Queues that take too much or too little.
fn uneven(interface: &InterfaceRates) -> impl Iterator<Item = Limit> + '_ {
    // Frames that leave are spread by the CPUs that forward: that some queues are idle is no fault.
    let sides = sides(interface, Way::In);
    let states = queue_states(&sides);
    let queues = sides.iter().flatten().count();
    let starving: Vec<usize> = states
        .iter()
        .enumerate()
        .filter(|(_, s)| **s == QueueState::Starves)
        .map(|(nth, _)| nth)
        .collect();
    let all: f64 = sides.iter().flatten().map(|side| side.pps).sum();
    let name = || interface.name.clone();
    let limit = if starving.is_empty() {
        None
    } else if starving.len() + 1 == queues {
        let rates = sides
            .iter()
            .enumerate()
            .filter_map(|(nth, side)| Some((nth, side.as_ref()?.pps)));
        rates
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(queue, pps)| Limit::OneQueue {
                interface: name(),
                way: Way::In,
                queue,
                share: pps / all,
                queues,
            })
    } else {
        Some(Limit::Starving {
            interface: name(),
            way: Way::In,
            starving,
            queues,
        })
    };
    limit.into_iter()
}
