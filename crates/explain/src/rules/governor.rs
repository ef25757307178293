//! The frequency governor saves power.

use super::change;
use crate::{Case, Examined};
use linerate_measure::record::{Finding, LabKind, Strength};

pub(super) fn examine(case: &Case<'_>) -> Examined {
    if case.records.campaign.asked.lab != LabKind::Namespaces {
        return Err("the governor of a host of a lab file is not asked for".into());
    }
    let governor = case.records.host.governor.as_str();
    match governor {
        "performance" => return Ok(None),
        "powersave" | "ondemand" | "conservative" | "schedutil" | "userspace" => {}
        unknown => return Err(format!("the governor is {unknown}")),
    }
    Ok(Some(Finding {
        statement: format!("The frequency governor is '{governor}'."),
        strength: Strength::Possible,
        evidence: vec![format!("cpufreq/scaling_governor: {governor}")],
        mechanism: "A CPU that saves power may run below its frequency, and needs time to reach it when a load begins.".into(),
        changes: vec![
            change("Linux", "cpupower frequency-set -g performance", format!("cpupower frequency-set -g {governor}")),
            change("FreeBSD", "service powerd stop", "service powerd start"),
        ],
        gain: "depends on the load and the CPU: measure it".into(),
        weight: 0.1,
        untried: Some("it is set for the whole machine: change it by hand, and measure again".into()),
        ..Finding::default()
    }))
}
