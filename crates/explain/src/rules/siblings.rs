//! Two CPUs that forward are hyper-threads of one core.

use super::change;
use crate::{Case, Examined};
use linerate_measure::experiment::System;
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

/// A CPU works from this share of busy time on.
const WORKS: f64 = 0.5;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let machine = &case.configuration()?.machine;
    if machine.cpus.iter().all(|cpu| cpu.siblings.is_empty()) {
        return Err("the DUT does not say which CPUs share a core".into());
    }
    let busy = case.cpus();
    if busy.is_empty() {
        return Err("how busy the DUT's CPUs were is not known".into());
    }
    let works = |cpu: &&u32| busy.get(cpu).is_some_and(|[busy, ..]| *busy >= WORKS);
    let shared = machine.cpus.iter().find(|cpu| cpu.siblings.iter().filter(works).count() > 1);
    let Some(core) = shared else { return Ok(None) };
    let names: Vec<String> = core.siblings.iter().map(u32::to_string).collect();
    let (patch, untried) = match (case.is_embedded(), case.system()) {
        (true, _) => (None, Some("it is set for the whole machine: change it by hand, and measure again".into())),
        (_, System::FreeBsd | System::PfSense | System::OpnSense) => (Some(json!({ "boot": { "machdep.hyperthreading_allowed": 0 } })), None),
        _ => {
            let smt = "/sys/devices/system/cpu/smt/control";
            (Some(json!({ "commands": [{ "run": format!("echo off > {smt}"), "undo": format!("echo on > {smt}") }] })), None)
        }
    };
    Ok(Some(Finding {
        statement: format!("CPUs {} worked under load and are hyper-threads of one core.", names.join(" and ")),
        strength: Strength::Inferred,
        evidence: core.siblings.iter().filter_map(|cpu| Some(format!("CPU {cpu}: {:.0} % busy", 100.0 * busy.get(cpu)?[0]))).collect(),
        mechanism: "Hyper-threads share the units and caches of a core. Two that forward get little more done than one.".into(),
        changes: vec![
            change("Linux", "echo off > /sys/devices/system/cpu/smt/control, with one queue for each core", "echo on > /sys/devices/system/cpu/smt/control"),
            change("FreeBSD", "machdep.hyperthreading_allowed=0 in loader.conf", "the former line"),
        ],
        gain: "+24 % on a Xeon E5-2650 with 8 queues ('Tuning FreeBSD for routing and firewalling', 2018, illustration 5); measure it: other CPUs lost".into(),
        weight: 0.2,
        patch,
        untried,
        ..Finding::default()
    }))
}
