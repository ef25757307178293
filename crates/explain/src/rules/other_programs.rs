//! Another program runs on the CPU that forwards.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Mode, Strength};

/// linerate itself needs next to no user time where XDP does the work.
const LEAST: f64 = 0.04;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let asked = &case.records.campaign.asked;
    // The tester of a lab of hosts has CPUs of its own.
    if asked.mode != Mode::Hosts && (asked.generator != "xdp" || asked.receiver != "xdp") {
        return Err("the tester itself uses user time on these CPUs".into());
    }
    let cpus = case.cpus();
    let user = |cpu: &u32| cpus.get(cpu).map(|[_, _, _, user]| (*cpu, *user));
    let forwarding: Vec<(u32, f64)> = case.forwarding_cpus().iter().filter_map(user).collect();
    let Some((cpu, share)) = forwarding.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Err("how busy the DUT's CPUs were is not known".into());
    };
    if share < LEAST {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: format!("Another program takes {} of CPU {cpu}, which forwards.", percent(share)),
        strength: Strength::Observed,
        evidence: vec![format!("others than linerate had CPU {cpu} for {} of the load's time", percent(share))],
        mechanism: "A program on the CPU of a receive queue takes time from its frames, and empties the CPU's caches.".into(),
        changes: vec![change("Linux", "taskset or systemd's CPUAffinity= keep programs off the CPU; isolcpus= keeps all off", "remove the affinity")],
        gain: format!("up to {}", percent(share / (1.0 - share).max(0.01))),
        weight: share,
        untried: Some("the program is not of the plan: end it, and measure again".into()),
        ..Finding::default()
    }))
}
