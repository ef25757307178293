//! Receive queues: how many there are, who serves them, and which frames they get.

use super::Look::By;
use super::On::{Embedded, System, With};
use super::Try::{Keys, Not};
use super::{
    Found, INTERRUPTS, INTERRUPTS_OF_LINUX, Looked, MORE_QUEUES, RULE, Rule, STEER, STEERS_LINUX,
    WHOLE_MACHINE, joined, percent,
};
use crate::balance::by_queue;
use crate::case::Case;
use linerate_hosts::configuration::Card;
use linerate_measure::experiment::System::{FreeBsd, Linux};
use linerate_measure::record::{Mode, Strength};
use std::collections::BTreeMap;

pub const RULES: &[Rule] = &[
    Rule {
        cause: "one-queue",
        look: By(one_queue),
        says: "Receive queue {busiest} of {number} takes {share} of the frames.{flows}",
        mechanism: "Each queue is served by one CPU at a time. A queue that takes most frames leaves the other CPUs idle.",
        changes: &[
            [
                "Linux",
                "ethtool -N IF rx-flow-hash udp4 sdfn; ethtool -X IF equal N",
                "ethtool -N IF rx-flow-hash udp4 sd; ethtool -X IF default",
            ],
            [
                "linerate",
                "send more flows: flows = 2000 in [traffic]",
                "nothing to undo",
            ],
        ],
        gain: "up to {times} times the rate, if each queue has a CPU",
        tries: &[
            (
                With("one-flow"),
                Not("the one flow of the traffic stays in its queue: send more flows"),
            ),
            (With("other-system"), STEERS_LINUX),
            (With("cpus"), STEER),
            (With("one-cpu"), Not("the DUT has one CPU")),
        ],
        otherwise: Not("the CPUs that could take the frames are not known"),
    },
    Rule {
        cause: "queues-fewer-than-cpus",
        look: By(few),
        says: "{cpus} CPUs share the receive queues of {card}: {queues}.",
        mechanism: "Each queue is served by one CPU at a time: CPUs without a queue forward nothing.",
        changes: &[
            [
                "Linux",
                "ethtool -L {card} combined {cpus}",
                "ethtool -L {card} combined {queues}",
            ],
            [
                "FreeBSD",
                "dev.IF.iflib.override_nrxqs=N (iflib), hw.cxgbe.nrxq=N (cxgbe) in loader.conf",
                "the former lines",
            ],
        ],
        gain: "with the number of queues in proportion, as long as it is a power of two ({paper} 10)",
        otherwise: MORE_QUEUES,
        ..RULE
    },
    Rule {
        cause: "queues-no-power-of-two",
        look: By(power_of_two),
        says: "{queues} receive queues are not a power of two, which {driver} needs to spread frames evenly.",
        mechanism: "The card's table of queues has a power of two of entries: with another number of queues, some queues have more entries than others. cxgbe warns about it: expect uneven traffic distribution.",
        changes: &[
            [
                "Linux",
                "ethtool -L {card} combined {cpus}",
                "ethtool -L {card} combined {queues}",
            ],
            [
                "FreeBSD",
                "hw.cxgbe.nrxq={cpus} or dev.ix.N.iflib.override_nrxqs={cpus} in loader.conf",
                "the former lines",
            ],
        ],
        gain: "the rate grew linearly for powers of two only ('Tuning FreeBSD for routing and firewalling', 2018, illustrations 10 and 17: cxgbe and ixgbe, not mlx5en)",
        otherwise: MORE_QUEUES,
        ..RULE
    },
    Rule {
        cause: "hash-without-ports",
        look: By(hash_fields),
        says: "The receive hash of {card} leaves out the ports of {flow} frames.",
        mechanism: "All flows between two addresses have the same hash, and so the same queue and CPU. Drivers leave the ports of UDP out because fragments have none.",
        changes: &[[
            "Linux",
            "ethtool -N {card} rx-flow-hash {flow} sdfn",
            "ethtool -N {card} rx-flow-hash {flow} sd",
        ]],
        gain: "up to the number of queues, where few addresses carry most of the traffic",
        otherwise: Keys(
            r#"{"commands": [{"run": "ethtool -N {in} rx-flow-hash {flow} sdfn", "undo": "ethtool -N {in} rx-flow-hash {flow} sd"}]}"#,
        ),
        ..RULE
    },
    Rule {
        cause: "interrupts-on-one-cpu",
        look: By(interrupts),
        says: "CPU {cpu} serves {most} of the {number} interrupts of {card}.",
        mechanism: "The frames of a queue are forwarded on the CPU that takes its interrupt: queues that share a CPU share its time.",
        changes: &[
            [
                "Linux",
                "echo CPU > /proc/irq/N/smp_affinity_list for each, and no irqbalance",
                "the former lists; systemctl start irqbalance",
            ],
            [
                "FreeBSD",
                "cpuset -l CPU -x IRQ for each",
                "cpuset -l all -x IRQ",
            ],
        ],
        gain: "+2 % where the interrupts were spread before ({paper} 13); up to the number of CPUs where one had all",
        tries: INTERRUPTS,
        otherwise: INTERRUPTS_OF_LINUX,
    },
    Rule {
        cause: "other-numa-node",
        look: By(numa),
        says: "{far} of {number} interrupts of {card} are served on another NUMA node than the card's.",
        mechanism: "Frames and descriptors cross the link between the sockets, and the far CPU misses its cache for each of them.",
        changes: &[
            [
                "Linux",
                "echo CPU > /proc/irq/N/smp_affinity_list with CPUs of the card's node",
                "the former lists",
            ],
            [
                "FreeBSD",
                "cpuset -l CPU -x IRQ with CPUs of the card's domain",
                "cpuset -l all -x IRQ",
            ],
        ],
        gain: "+11.8 % on 2 x Xeon E5-2650v4 with 12 queues ({paper} 18)",
        tries: INTERRUPTS,
        otherwise: INTERRUPTS_OF_LINUX,
    },
    Rule {
        cause: "hyper-threads",
        look: By(siblings),
        says: "CPUs {cpus} worked under load and are hyper-threads of one core.",
        mechanism: "Hyper-threads share the units and caches of a core. Two that forward get little more done than one.",
        changes: &[
            [
                "Linux",
                "echo off > /sys/devices/system/cpu/smt/control, with one queue for each core",
                "echo on > /sys/devices/system/cpu/smt/control",
            ],
            [
                "FreeBSD",
                "machdep.hyperthreading_allowed=0 in loader.conf",
                "the former line",
            ],
        ],
        gain: "+24 % on a Xeon E5-2650 with 8 queues ({paper} 5); measure it: other CPUs lost",
        tries: &[
            (Embedded, WHOLE_MACHINE),
            (
                System(FreeBsd),
                Keys(r#"{"boot": {"machdep.hyperthreading_allowed": 0}}"#),
            ),
        ],
        otherwise: Keys(
            r#"{"commands": [{"run": "echo off > /sys/devices/system/cpu/smt/control", "undo": "echo on > /sys/devices/system/cpu/smt/control"}]}"#,
        ),
    },
    Rule {
        cause: "idle-cpus",
        look: By(idle_cpus),
        says: "{full} of the DUT's CPUs forwarded at their limit while {idle} were idle.",
        mechanism: "Frames of a receive queue are forwarded on the CPU that takes its interrupt. Without more queues or receive packet steering (RPS), other CPUs get nothing to do.",
        changes: &[
            [
                "Linux",
                "ethtool -L IF combined N; or echo MASK > /sys/class/net/IF/queues/rx-0/rps_cpus",
                "ethtool -L IF combined OLD; echo 0 > /sys/class/net/IF/queues/rx-0/rps_cpus",
            ],
            [
                "FreeBSD",
                "net.isr.maxthreads=-1 and net.isr.bindthreads=1 in loader.conf, and sysctl net.isr.dispatch=deferred; measure it",
                "the former lines and value",
            ],
        ],
        gain: "up to {times} times the rate",
        tries: &[(System(Linux), STEER)],
        otherwise: STEERS_LINUX,
    },
];

fn one_queue(case: &Case<'_>) -> Looked {
    /// A queue that takes this part of the frames beyond its fair share takes all.
    const UNFAIR: f64 = 0.5;
    let set_up = case.inside().ok().and_then(Card::receive_queues);
    // Inline, each CPU that sends has its queue, and forwards what is in it.
    if set_up == Some(1) || case.mode() == Mode::Inline && case.forwarding_cpus().len() < 2 {
        return Ok(None);
    }
    let queues = by_queue(case.counted(&[""])?);
    // A queue without a frame may have no counter that grew.
    let number = queues
        .keys()
        .next_back()
        .map_or(0, |last| last + 1)
        .max(set_up.unwrap_or(0));
    let all: u64 = queues.values().sum();
    let Some((busiest, most)) = queues
        .iter()
        .max_by_key(|(_, frames)| **frames)
        .filter(|_| all > 0)
    else {
        return Err("the driver counts no frames by receive queue".into());
    };
    let of_all = |frames: u64| frames as f64 / all as f64;
    let (share, fair) = (of_all(*most), 1.0 / f64::from(number.max(1)));
    if number < 2 || share < fair + UNFAIR * (1.0 - fair) {
        return Ok(None);
    }
    let evidence = queues.iter().take(16).map(|(queue, frames)| {
        format!(
            "queue {queue}: {frames} frames ({})",
            percent(of_all(*frames))
        )
    });
    let one_flow = if case.flows() == 1 {
        " The traffic has one flow, and a flow stays in its queue."
    } else {
        ""
    };
    let cpus = case.usable_cpus();
    let found = Found::new(Strength::Observed, 1.0 - fair / share, evidence)
        .with("busiest", busiest)
        .with("number", number)
        .with("share", percent(share))
        .with(
            "times",
            format!("{:.1}", (share / fair).min(f64::from(number))),
        )
        .with("flows", one_flow)
        .when(case.flows() == 1, "one-flow")
        .when(case.system() != Linux, "other-system")
        .when(cpus.len() == 1, "one-cpu");
    let found = if cpus.len() > 1 {
        found.with("cpus", joined(&cpus, ","))
    } else {
        found
    };
    Ok(Some(found))
}

fn few(case: &Case<'_>) -> Looked {
    let card = case.inside()?;
    let queues = card
        .receive_queues()
        .ok_or("the DUT does not say how many queues its card has")?;
    let cpus = case.usable_cpus().len();
    let steered = card
        .receive
        .values()
        .map(|queue| queue.rps.len())
        .max()
        .unwrap_or(0);
    if cpus == 0 {
        return Err("the number of the DUT's CPUs is not known".into());
    }
    if queues as usize >= cpus || steered >= cpus {
        return Ok(None);
    }
    let (full, name) = (case.row.full_cpus.len(), &card.name);
    let strength = if full > 0 && full < cpus {
        Strength::Inferred
    } else {
        Strength::Possible
    };
    let most = card
        .combined_queues
        .most
        .or(card.rx_queues.most)
        .map_or(String::new(), |most| format!(", of {most} possible"));
    let evidence = format!(
        "receive queues of {name}: {queues}{most}; CPUs: {cpus}; CPUs that were full: {full}"
    );
    let found = Found::new(strength, 1.0 - f64::from(queues) / cpus as f64, [evidence]);
    Ok(Some(
        found
            .with("cpus", cpus)
            .with("card", name)
            .with("queues", queues),
    ))
}

fn power_of_two(case: &Case<'_>) -> Looked {
    /// Drivers whose cards spread frames evenly over a power of two of queues only.
    const DRIVERS: [&str; 7] = ["cxgb4", "cxgbe", "cxl", "cc", "t5nex", "ixgbe", "ix"];
    let Some(card) = case.hardware()? else {
        return Ok(None);
    };
    let queues = card
        .receive_queues()
        .ok_or("the DUT does not say how many queues the card has")?;
    let driver = card
        .driver
        .as_deref()
        .ok_or("the card's driver is not known")?;
    if queues < 2 || queues.is_power_of_two() || !DRIVERS.contains(&driver) {
        return Ok(None);
    }
    let found = Found::new(
        Strength::Inferred,
        0.2,
        [format!(
            "{}: driver {driver}, {queues} receive queues",
            card.name
        )],
    );
    let found = found
        .with("queues", queues)
        .with("driver", driver)
        .with("card", &card.name);
    Ok(Some(found.with("cpus", queues.next_power_of_two())))
}

fn hash_fields(case: &Case<'_>) -> Looked {
    let Some(card) = case.hardware()? else {
        return Ok(None);
    };
    let version = if case.slot.family == "IPv6" { "6" } else { "4" };
    let flow = format!("{}{version}", case.slot.transport.to_lowercase());
    let fields = card
        .hash_fields
        .get(&flow)
        .filter(|fields| !fields.is_empty());
    let fields = fields.ok_or_else(|| {
        format!("the card does not say which fields choose the queue of {flow} frames")
    })?;
    if fields.iter().any(|field| field.contains("L4")) || card.receive_queues() < Some(2) {
        return Ok(None);
    }
    let found = Found::new(
        Strength::Inferred,
        0.3,
        [format!("rx-flow-hash {flow}: {}", fields.join(", "))],
    );
    Ok(Some(found.with("flow", flow).with("card", &card.name)))
}

fn interrupts(case: &Case<'_>) -> Looked {
    let (Some(card), cpus) = (case.hardware()?, &case.configuration()?.machine.cpus) else {
        return Ok(None);
    };
    let mut by_cpu: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (_, interrupt) in card.queue_interrupts() {
        if let [cpu] = interrupt.cpus[..] {
            by_cpu.entry(cpu).or_default().push(&interrupt.name);
        }
    }
    let number: usize = by_cpu.values().map(Vec::len).sum();
    let busiest = by_cpu.iter().max_by_key(|(_, names)| names.len());
    let (cpu, most) = busiest
        .map(|(cpu, names)| (cpu, names.len()))
        .ok_or("the card shows no interrupts of its queues")?;
    let fair = number.div_ceil(cpus.len().max(1));
    // Two queues may share a CPU by chance.
    if most <= fair + 1 && by_cpu.len() > 1 || most < 2 {
        return Ok(None);
    }
    let evidence = by_cpu
        .iter()
        .take(16)
        .map(|(cpu, names)| format!("CPU {cpu}: {}", names.join(", ")));
    let found = Found::new(
        Strength::Inferred,
        1.0 - fair as f64 / most as f64,
        evidence,
    );
    let found = found
        .with("cpu", cpu)
        .with("most", most)
        .with("number", number)
        .with("card", &card.name);
    Ok(Some(
        found.with("cpus", joined(cpus.iter().map(|cpu| cpu.cpu), ",")),
    ))
}

fn numa(case: &Case<'_>) -> Looked {
    let (Some(card), nodes) = (case.hardware()?, &case.configuration()?.machine.nodes) else {
        return Ok(None);
    };
    if nodes.len() == 1 {
        return Ok(None);
    }
    let node = card.pci.node.ok_or("the card's NUMA node is not known")?;
    let near = nodes
        .get(&node)
        .ok_or("the CPUs of the NUMA nodes are not known")?;
    let is_far = |cpus: &[u32]| !cpus.is_empty() && !cpus.iter().any(|cpu| near.contains(cpu));
    let far: Vec<&str> = card
        .interrupts
        .iter()
        .filter(|i| is_far(&i.cpus))
        .map(|i| i.name.as_str())
        .collect();
    if far.is_empty() {
        return Ok(None);
    }
    let number = card.interrupts.len();
    let evidence = format!(
        "{} is on node {node}; far interrupts: {}",
        card.name,
        far.join(", ")
    );
    let found = Found::new(
        Strength::Inferred,
        0.12 * far.len() as f64 / number as f64,
        [evidence],
    );
    let found = found
        .with("far", far.len())
        .with("number", number)
        .with("card", &card.name);
    Ok(Some(found.with("cpus", joined(near, ","))))
}

fn siblings(case: &Case<'_>) -> Looked {
    /// A CPU works from this share of busy time on.
    const WORKS: f64 = 0.5;
    let cpus = &case.configuration()?.machine.cpus;
    if cpus.iter().all(|cpu| cpu.siblings.is_empty()) {
        return Err("the DUT does not say which CPUs share a core".into());
    }
    let busy = case.known_cpus()?;
    let works = |cpu: &&u32| busy.get(cpu).is_some_and(|[busy, ..]| *busy >= WORKS);
    let shared = cpus
        .iter()
        .find(|cpu| cpu.siblings.iter().filter(works).count() > 1);
    let Some(core) = shared else { return Ok(None) };
    let evidence = core.siblings.iter().filter_map(|cpu| {
        Some(format!(
            "CPU {cpu}: {:.0} % busy",
            100.0 * busy.get(cpu)?[0]
        ))
    });
    Ok(Some(
        Found::new(Strength::Inferred, 0.2, evidence).with("cpus", joined(&core.siblings, " and ")),
    ))
}

fn idle_cpus(case: &Case<'_>) -> Looked {
    /// A CPU is full from this share of busy time on.
    const FULL: f64 = 0.95;
    /// A CPU is idle up to this share of busy time.
    const IDLE: f64 = 0.3;
    if case.mode() == Mode::Inline {
        return Err("in inline mode, generator, DUT and receiver share one CPU".into());
    }
    let cpus = case.known_cpus()?;
    let roles = &case.records.campaign.roles;
    let testers = [&roles.generator, &roles.receiver, &roles.control].map(|role| role.iter());
    let testers: Vec<&u32> = testers.into_iter().flatten().collect();
    let forwarding = case.forwarding_cpus();
    let chosen = |is: &dyn Fn(&u32, &[f64; 3]) -> bool| {
        cpus.iter()
            .filter(|(cpu, shares)| is(cpu, shares))
            .map(|(cpu, _)| *cpu)
            .collect::<Vec<u32>>()
    };
    let full = chosen(&|cpu, [busy, softirq, ..]| {
        *busy >= FULL && *softirq >= 0.5 && forwarding.contains(cpu)
    });
    let idle = chosen(&|cpu, [busy, ..]| *busy <= IDLE && !testers.contains(&cpu));
    if full.is_empty() || idle.is_empty() {
        return Ok(None);
    }
    let softirqs = if case.system() == Linux {
        "softirqs"
    } else {
        "the kernel"
    };
    let evidence = cpus.iter().take(16).map(|(cpu, [busy, softirq, ..])| {
        format!(
            "CPU {cpu}: {} busy, {} in {softirqs}",
            percent(*busy),
            percent(*softirq)
        )
    });
    let (working, all) = (full.len() as f64, (full.len() + idle.len()) as f64);
    let found = Found::new(Strength::Observed, idle.len() as f64 / all, evidence);
    let found = found
        .with("full", full.len())
        .with("idle", idle.len())
        .with("times", format!("{:.1}", all / working));
    Ok(Some(
        found.with("cpus", joined(full.iter().chain(&idle), ",")),
    ))
}
