//! One CPU does all the work of softirqs while others are idle.

use super::{change, percent, softirqs};
use crate::{Case, Examined};
use linerate_measure::experiment::System;
use linerate_measure::record::{Finding, Mode, Strength};
use serde_json::json;

/// A CPU is full from this share of busy time on.
const FULL: f64 = 0.95;
/// A CPU is idle up to this share of busy time.
const IDLE: f64 = 0.3;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    if case.records.campaign.asked.mode == Mode::Inline {
        return Err("inline, the lab gives one CPU to generator, DUT and receiver".into());
    }
    let cpus = case.cpus();
    if cpus.is_empty() {
        return Err("how busy the DUT's CPUs were is not known".into());
    }
    let roles = &case.records.campaign.roles;
    let testers = |cpu: &u32| [&roles.generator, &roles.receiver, &roles.control].iter().any(|role| role.contains(cpu));
    let full: Vec<u32> = cpus.iter().filter(|(_, [busy, softirq, ..])| *busy >= FULL && *softirq >= 0.5).map(|(cpu, _)| *cpu).collect();
    let forwarding = case.forwarding_cpus();
    let full: Vec<u32> = full.into_iter().filter(|cpu| forwarding.contains(cpu)).collect();
    let idle: Vec<u32> = cpus.iter().filter(|(cpu, [busy, ..])| *busy <= IDLE && !testers(cpu)).map(|(cpu, _)| *cpu).collect();
    if full.is_empty() || idle.is_empty() {
        return Ok(None);
    }
    let all: Vec<String> = full.iter().chain(&idle).map(u32::to_string).collect();
    let softirqs = softirqs(case);
    let shown = cpus.iter().take(16).map(|(cpu, [busy, softirq, ..])| format!("CPU {cpu}: {} busy, {} in {softirqs}", percent(*busy), percent(*softirq)));
    let (patch, untried) = match case.system() {
        System::Linux | System::Vyos => (Some(json!({ "interface": { "in": { "rps": all.join(",") } } })), None),
        _ => (None, Some("a plan steers frames to other CPUs on Linux only".into())),
    };
    Ok(Some(Finding {
        statement: format!("{} of the DUT's CPUs forwarded at their limit while {} were idle.", full.len(), idle.len()),
        strength: Strength::Observed,
        evidence: shown.collect(),
        mechanism: "Frames of a receive queue are forwarded on the CPU that takes its interrupt. Without more queues or receive packet steering (RPS), other CPUs get nothing to do.".into(),
        changes: vec![
            change(
                "Linux",
                "ethtool -L IF combined N; or echo MASK > /sys/class/net/IF/queues/rx-0/rps_cpus",
                "ethtool -L IF combined OLD; echo 0 > /sys/class/net/IF/queues/rx-0/rps_cpus",
            ),
            change("FreeBSD", "net.isr.maxthreads=-1 and net.isr.bindthreads=1 in loader.conf, and sysctl net.isr.dispatch=deferred; measure it", "the former lines and value"),
        ],
        gain: format!("up to {:.1} times the rate", (full.len() + idle.len()) as f64 / full.len() as f64),
        weight: idle.len() as f64 / (full.len() + idle.len()) as f64,
        patch,
        untried,
        ..Finding::default()
    }))
}
