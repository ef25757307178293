//! The hypervisor gives the CPUs to others.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::experiment::System;
use linerate_measure::record::{Finding, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    if !matches!(case.system(), System::Linux | System::Vyos) {
        return Err("only Linux shows the time that a hypervisor takes".into());
    }
    let cpus = case.cpus();
    if cpus.is_empty() {
        return Err("how busy the DUT's CPUs were is not known".into());
    }
    let most = cpus.values().map(|[_, _, steal, _]| *steal).fold(0.0, f64::max);
    if most < 0.02 {
        return Ok(None);
    }
    let shown = cpus.iter().map(|(cpu, [_, _, steal, _])| format!("CPU {cpu}: {} stolen", percent(*steal)));
    Ok(Some(Finding {
        statement: format!("The hypervisor took {} of a CPU's time for other machines.", percent(most)),
        strength: Strength::Observed,
        evidence: shown.collect(),
        mechanism: "A virtual CPU that does not run forwards nothing, and its rings overflow meanwhile.".into(),
        changes: vec![change("hypervisor", "CPUs of its own for the router (pinning, no overcommitment)", "the former placement")],
        gain: format!("up to {}", percent(most / (1.0 - most).max(0.01))),
        weight: most,
        untried: Some("the hypervisor decides it, and not the DUT".into()),
        ..Finding::default()
    }))
}
