//! CPUs that forward: who else uses them, and the queues in front of them.

use super::Look::By;
use super::On::With;
use super::Try::{InLab, Keys, Not};
use super::{Found, Looked, PROGRAM, RULE, Rule, WHOLE_MACHINE, in_lab, joined, percent};
use crate::case::{Case, FULL};
use linerate_hosts::configuration::Cpu;
use linerate_measure::audit::Cause;
use linerate_measure::experiment::System::Linux;
use linerate_measure::record::{Limit, Mode, Strength};
use linerate_measure::summary::{Holder, NOTICEABLE, of_others};
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule {
        cause: "frequency-governor",
        look: By(governor),
        says: "The frequency governor is '{governor}'.",
        mechanism: "A CPU that saves power may run below its frequency, and needs time to reach it when a load begins.",
        changes: &[
            [
                "Linux",
                "cpupower frequency-set -g performance",
                "cpupower frequency-set -g {governor}",
            ],
            ["FreeBSD", "service powerd stop", "service powerd start"],
        ],
        gain: "depends on the load and the CPU: measure it",
        otherwise: WHOLE_MACHINE,
        ..RULE
    },
    Rule {
        cause: "steal",
        look: By(steal),
        says: "The hypervisor took {share} of a CPU's time for other machines.",
        mechanism: "A virtual CPU that does not run forwards nothing, and its rings overflow meanwhile.",
        changes: &[[
            "hypervisor",
            "CPUs of its own for the router (pinning, no overcommitment)",
            "the former placement",
        ]],
        gain: "{more}",
        otherwise: Not("the hypervisor decides it, and not the DUT"),
        ..RULE
    },
    Rule {
        cause: "other-programs",
        look: By(other_programs),
        says: "{who} {share} of CPU {cpu}, which forwards.",
        mechanism: "A program on the CPU of a receive queue takes time from its frames, and empties the CPU's caches.",
        changes: &[[
            "Linux",
            "taskset or systemd's CPUAffinity= keep programs off the CPU; isolcpus= keeps all off",
            "remove the affinity",
        ]],
        gain: "{more}",
        otherwise: PROGRAM,
        ..RULE
    },
    Rule {
        cause: "timer-interrupts",
        look: By(timers),
        says: "CPU {cpu}, which forwards, is interrupted by its timer {number} times a second.",
        mechanism: "Each interrupt stops the frame at hand, and a virtual machine may leave the CPU to its hypervisor meanwhile. Profilers that sample at a high frequency, and programs that sleep for very short times, set such timers.",
        changes: &[[
            "Linux",
            "end profilers (perf record -F, perf top) and programs with short sleeps; perf record -e timer:hrtimer_start -g names who sets the timers",
            "start the program again",
        ]],
        gain: "not known: profiles do not see interrupts",
        otherwise: PROGRAM,
        ..RULE
    },
    Rule {
        cause: "hand-over",
        look: By(hand_over),
        says: "Frames are handed over to another CPU by {by}, and {share} of them find its queue full.{inline}",
        mechanism: "The CPU that receives puts each frame into a queue of another CPU, and wakes that CPU. What this CPU cannot forward in time is dropped after work has been done for it.",
        changes: &[[
            "Linux",
            "echo 0 > /sys/class/net/{card}/{file}",
            "{on} into the same file",
        ]],
        gain: "up to {more} more frames forwarded, if the CPU that receives forwards as well",
        tries: &[
            (
                With("threaded"),
                Keys(r#"{"interface": {"in": {"threaded-napi": false}}}"#),
            ),
            (With("set"), Keys(r#"{"interface": {"in": {"rps": null}}}"#)),
        ],
        otherwise: InLab(
            "for queue in /sys/class/net/{device}/queues/rx-*; do echo 0 > $queue/rps_cpus; done",
        ),
    },
    Rule {
        cause: "ring-overrun",
        look: By(ring),
        says: "A queue of the DUT overflowed: {share} of the frames found it full{while}.",
        mechanism: "Frames come in bursts, or the CPU comes late: a ring must hold the frames of that time.",
        changes: &[
            [
                "Linux",
                "ethtool -G IF rx N; sysctl net.core.netdev_max_backlog=N (with RPS)",
                "ethtool -G IF rx OLD; sysctl net.core.netdev_max_backlog=1000",
            ],
            [
                "FreeBSD",
                "hw.IF.rxd=N in loader.conf; measure it: 4,096 descriptors cost an APU2 20 % (BSD Router Project, page on FreeBSD forwarding performance)",
                "the former line",
            ],
        ],
        gain: "{gain}",
        tries: &[(
            With("larger"),
            Keys(r#"{"interface": {"rx-ring": {larger}}}"#),
        )],
        otherwise: Not("the length of this queue cannot be set, or is the longest already"),
    },
    Rule {
        cause: "budget-squeezes",
        look: By(squeezes),
        says: "Softirqs stop before their work is done: the budget of frames or of time is used up.",
        mechanism: "After netdev_budget frames or netdev_budget_usecs the CPU leaves the poll to others. A small budget makes it leave too often.",
        changes: &[[
            "Linux",
            "sysctl net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000",
            "sysctl net.core.netdev_budget=300 net.core.netdev_budget_usecs=2000",
        ]],
        gain: "small where nothing else wants the CPU: measure it",
        otherwise: Keys(
            r#"{"sysctls": {"net.core.netdev_budget": 600, "net.core.netdev_budget_usecs": 8000}}"#,
        ),
        ..RULE
    },
];

fn governor(case: &Case<'_>) -> Looked {
    let governors = |cpus: &[Cpu]| {
        cpus.iter()
            .filter_map(|cpu| cpu.governor.clone())
            .collect::<BTreeSet<_>>()
    };
    let governor = match case.is_embedded() {
        true => case.records.host.governor.clone(),
        false => governors(&case.configuration()?.machine.cpus)
            .into_iter()
            .collect::<Vec<_>>()
            .join(" and "),
    };
    match governor.as_str() {
        "performance" => Ok(None),
        "" => Err("the host shows no governor".into()),
        governor @ ("powersave" | "ondemand" | "conservative" | "schedutil" | "userspace") => {
            let found = Found::new(
                Strength::Possible,
                0.1,
                [format!("cpufreq/scaling_governor: {governor}")],
            );
            Ok(Some(found.with("governor", governor)))
        }
        unknown => Err(match unknown.strip_prefix("none visible") {
            Some(why) => format!("no governor is visible{why}"),
            None => format!("the governor is {unknown}"),
        }),
    }
}

/// The gain of a CPU that other programs no longer take this share of, relative to the rest that it has now. A DUT that carried all that
/// was asked for has none to expect.
fn more(case: &Case<'_>, share: f64) -> String {
    match case.row.limit {
        Limit::OfferedLoad => "none at this load, which the DUT carried".into(),
        _ => format!("up to {}", percent(share / (1.0 - share).max(0.01))),
    }
}

fn steal(case: &Case<'_>) -> Looked {
    if case.system() != Linux {
        return Err("only Linux shows the time that a hypervisor takes".into());
    }
    let cpus = case.known_cpus()?;
    let most = cpus
        .values()
        .map(|[_, _, steal]| *steal)
        .fold(0.0, f64::max);
    let strength = match case.absent(|cpu| Some(cpu.steal)) {
        _ if most >= 0.02 => Strength::Observed,
        Some(_) => Strength::Inferred,
        None => return Ok(None),
    };
    let shown = cpus
        .iter()
        .map(|(cpu, [_, _, steal])| format!("CPU {cpu}: {} stolen", percent(*steal)));
    let found = Found::new(strength, most, shown).with("share", percent(most));
    Ok(Some(found.with("more", more(case, most))))
}

fn other_programs(case: &Case<'_>) -> Looked {
    let cpus = case.of_others();
    let of = |cpu: u32| cpus.get(&cpu).map(|share| (cpu, *share));
    let most = case
        .forwarding_cpus()
        .into_iter()
        .filter_map(of)
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let (cpu, share) = most.ok_or(crate::case::UNKNOWN_CPUS)?;
    if let Some(found) = held(case) {
        return Ok(Some(found));
    }
    // Ticks say less than what was counted at each switch of tasks.
    let is_counted = case.senders().get(&cpu).is_some_and(|of| of.is_counted);
    let absent = case.absent(|cpu| of_others(case.records.campaign, cpu));
    let (strength, (cpu, share)) = match absent {
        _ if share >= NOTICEABLE && !is_counted => (Strength::Observed, (cpu, share)),
        Some(absent) => (Strength::Inferred, absent),
        None => return Ok(None),
    };
    let evidence = format!(
        "others than linerate had CPU {cpu} for {} of the load's time",
        percent(share)
    );
    let programs = &case.records.summary.programs;
    let names = programs
        .iter()
        .map(|p| format!("{} ({:.1} s)", p.name, p.seconds));
    let names: Vec<String> = names.collect();
    let most = format!(
        "programs with most CPU time meanwhile: {}",
        names.join(", ")
    );
    let most = Some(most).filter(|_| !names.is_empty());
    Ok(Some(
        Found::new(
            strength,
            share,
            [Some(evidence), most].into_iter().flatten(),
        )
        .with("who", "Another program takes")
        .with("share", percent(share))
        .with("cpu", cpu)
        .with("more", more(case, share)),
    ))
}

/// The CPU that sends and forwards of which others had most, where the kernel counted whose time it was.
fn held(case: &Case<'_>) -> Option<Found> {
    let forwarding = case.forwarding_cpus();
    let all = case.senders().into_iter();
    let disturbed = all.filter_map(|(cpu, sending)| {
        let share = sending.disturbed();
        let is_noticeable = share >= NOTICEABLE && sending.waited >= NOTICEABLE;
        (is_noticeable && forwarding.contains(&cpu)).then_some((cpu, share, sending))
    });
    let (cpu, share, sending) = disturbed.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = sending.disturbing();
    let thread = format!(
        "the thread that sends, on CPU {cpu}, ran for {} of the load's time and waited for {} of it",
        percent(sending.ran),
        percent(sending.waited)
    );
    let named = others.iter().take(MOST_NAMES);
    let named = named.filter(|other| other.share >= TOLD);
    let named = named.map(|other| format!("{} for {}", words(other), percent(other.share)));
    let meanwhile = format!("others had CPU {cpu} meanwhile: {}", joined(named, ", "));
    Some(
        Found::new(Strength::Observed, share, [thread, meanwhile])
            .with("who", who(&others))
            .with("share", percent(share))
            .with("cpu", cpu)
            .with("more", more(case, share)),
    )
}

/// Interrupts of the timers of CPUs that send and forward.
fn timers(case: &Case<'_>) -> Looked {
    /// A kernel has up to 1,000 ticks a second, and labs on busy machines had up to 4,000 interrupts.
    const LEAST: f64 = 10_000.0;
    let counted = case.counters(|name| name.ends_with(": interrupt LOC"))?;
    let senders = || case.trials.iter().flat_map(|trial| &trial.senders);
    if senders().next().is_none() {
        return Err("the time of the threads that send was not recorded".into());
    }
    let each = case.forwarding_cpus().into_iter().filter_map(|cpu| {
        let n = counted.get(format!("CPU{cpu}: interrupt LOC").as_str())?;
        let ns: u64 = senders()
            .filter(|time| time.cpu == cpu)
            .map(|time| time.load_ns)
            .sum();
        (ns > 0).then(|| (cpu, *n as f64 * 1e9 / ns as f64))
    });
    let Some((cpu, number)) = each.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Ok(None);
    };
    let shown = format!("CPU{cpu}: interrupt LOC: {number:.0} a second of the load");
    let found = Found::new(Strength::Inferred, 0.05, [shown])
        .with("cpu", cpu)
        .with("number", format!("{number:.0}"));
    Ok((number >= LEAST).then_some(found))
}

/// The name of another linerate: the own time of a campaign is left out.
const LINERATE: &str = "linerate";

/// A program in words, as the object of a sentence.
fn words(other: &Holder) -> String {
    match other.name.as_str() {
        LINERATE => "another linerate".into(),
        name if other.of_kernel => format!("{name} (kernel)"),
        name => name.into(),
    }
}

/// Programs that evidence names, at most, and the least share of the time of each.
const MOST_NAMES: usize = 5;
const TOLD: f64 = 0.005;

/// The programs that had most of the CPU, as the subject of a sentence, with its verb.
fn who(others: &[&Holder]) -> String {
    const MOST: f64 = 0.8;
    let all = others.iter().map(|other| other.share).sum::<f64>();
    let mut sum = 0.0;
    let first = others.iter().take(MOST_NAMES).take_while(|other| {
        let is_before = sum < MOST * all;
        sum += other.share;
        is_before
    });
    let first: Vec<&&Holder> = first.collect();
    let names = joined(first.iter().map(|other| &other.name), ", ");
    match first[..] {
        [one] if one.name == LINERATE => "Another linerate takes".into(),
        [one] if one.of_kernel => format!("A thread of the kernel ({names}) takes"),
        [_] => format!("Another program ({names}) takes"),
        _ => format!("Other programs ({names}) take"),
    }
}

fn hand_over(case: &Case<'_>) -> Looked {
    let card = case.inside()?;
    let steered = card.receive.values().any(|queue| !queue.rps.is_empty());
    // In threaded mode, the threads are how the lab gives the DUT its CPUs.
    let threaded = card.napi_threaded == Some(true) && case.mode() != Mode::Threaded;
    let lost = case.lost(|cause| cause == Cause::QueueFull)?;
    let share = case.of_sent(lost.iter().map(|loss| loss.frames).sum());
    // Where frames find a queue full without it, `ring-overrun` has them.
    if !steered && !threaded || share == 0.0 || share < case.noticeable() {
        return Ok(None);
    }
    let [by, file, on] = match threaded {
        true => ["threads of NAPI", "threaded", "echo 1"],
        false => [
            "receive packet steering (RPS)",
            "queues/rx-0/rps_cpus",
            "the former mask",
        ],
    };
    let inline = match case.mode() {
        Mode::Inline if case.slot.http.is_none() => {
            " Inline, the load waits for the CPU that sends, and not for the one that forwards: measure it with --mode threaded."
        }
        _ => "",
    };
    let evidence = case
        .losses
        .iter()
        .take(4)
        .map(|loss| format!("{}: {} frames", loss.place, loss.frames));
    let found = Found::observed(share, evidence)
        .with("by", by)
        .with("file", file)
        .with("on", on)
        .with("inline", inline);
    let found = found
        .with("card", &card.name)
        .with("device", in_lab(&card.name))
        .with("more", percent(share / (1.0 - share).max(0.001)));
    Ok(Some(
        found
            .when(threaded, "threaded")
            .when(case.setting("/inside/rps").is_some(), "set"),
    ))
}

fn ring(case: &Case<'_>) -> Looked {
    let full = case.lost(|cause| cause == Cause::QueueFull)?;
    let share = case.of_sent(full.iter().map(|loss| loss.frames).sum());
    if share == 0.0 || share < case.noticeable() {
        return Ok(None);
    }
    let cpus = case.cpus();
    let busiest = case
        .forwarding_cpus()
        .iter()
        .filter_map(|cpu| Some(cpus.get(cpu)?[0]))
        .reduce(f64::max);
    let busiest = busiest.ok_or(
        "a ring overflowed, and how busy the CPUs were is not known: too much load, or too small a ring",
    )?;
    if busiest >= FULL {
        // The load is more than the CPUs can do: the ring only shows it.
        return Ok(None);
    }
    let lost = full.iter().map(|loss| {
        format!(
            "{}: {} frames ({})",
            loss.place,
            loss.frames,
            percent(case.of_sent(loss.frames))
        )
    });
    let busy = format!(
        "the CPUs that forward were {} busy at most",
        percent(busiest)
    );
    let found = Found::observed(share, lost.chain(case.loads()).chain([busy]));
    let stolen = case.absent(|cpu| Some(cpu.steal));
    let taken = case.absent(|cpu| of_others(case.records.campaign, cpu));
    let meanwhile = match (taken, stolen) {
        (Some((cpu, _)), _) => format!(", while other programs had CPU {cpu}"),
        (_, Some((cpu, _))) => format!(", while the hypervisor had taken CPU {cpu} away"),
        _ => String::new(),
    };
    let gain = match case.noticeable() {
        0.0 => "a higher load before the first loss".into(),
        _ => format!("up to {} more frames", percent(share)),
    };
    let found = found.with("while", meanwhile).with("gain", gain);
    let ring = case.inside().ok().map(|card| card.rx_ring);
    let larger = ring.and_then(|ring| {
        Some((2 * ring.now?).min(ring.most?)).filter(|larger| Some(*larger) > ring.now)
    });
    Ok(Some(if let Some(larger) = larger {
        found.with("larger", larger)
    } else {
        found
    }))
}

fn squeezes(case: &Case<'_>) -> Looked {
    let softnet =
        case.counters(|name| name.contains("softnet") || name.ends_with("time_squeeze"))?;
    if softnet.is_empty() {
        return Err("the DUT counts no squeezes".into());
    }
    let squeezes: u64 = softnet
        .iter()
        .filter(|(name, _)| name.ends_with("time_squeeze"))
        .map(|(_, n)| n)
        .sum();
    let lost = case.losses.iter().any(|loss| loss.place.contains("full"));
    let share = case.of_sent(squeezes);
    // A budget is 300 frames: one squeeze for each is a CPU that always has more to do, and no cause by itself.
    if share < 0.01 && !(lost && share > 0.001) {
        return Ok(None);
    }
    let evidence = format!(
        "softnet_stat: {squeezes} squeezes, {} of the frames sent",
        percent(share)
    );
    Ok(Some(Found::new(
        Strength::Inferred,
        (50.0 * share).min(0.5),
        [evidence],
    )))
}
