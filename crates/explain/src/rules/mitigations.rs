//! Mitigations of CPU vulnerabilities take time.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::experiment::System;
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["srso_*", "__x86_indirect_thunk_*", "retbleed_*", "entry_ibpb", "__x86_return_thunk", "its_return_thunk", "zen_untrain_ret"])?;
    if !spent.is_clear(0.03) {
        return Ok(None);
    }
    let active = case.records.host.mitigations.iter().filter(|(_, state)| state.starts_with("Mitigation")).take(6);
    let (patch, untried) = match (case.is_embedded(), case.system()) {
        (true, _) => (None, Some("this machine would have to boot with another command line".into())),
        (_, System::FreeBsd | System::PfSense | System::OpnSense) => (Some(json!({ "boot": { "vm.pmap.pti": 0, "hw.ibrs_disable": 1 } })), None),
        _ => (Some(json!({ "boot": { "mitigations": "off" } })), None),
    };
    Ok(Some(Finding {
        statement: "Mitigations of CPU vulnerabilities take a part of each frame's time.".into(),
        strength: Strength::Observed,
        evidence: std::iter::once(spent.evidence()).chain(active.map(|(name, state)| format!("{name}: {state}"))).collect(),
        mechanism: "Indirect calls and returns go through code that keeps the CPU from predicting them. A router makes some hundred calls for each frame.".into(),
        changes: vec![
            change("Linux", "mitigations=off on the kernel's command line, only on a router that runs no foreign code", "the former command line"),
            change("FreeBSD", "vm.pmap.pti=0 and hw.ibrs_disable=1 in loader.conf, only on a router that runs no foreign code", "the former lines"),
        ],
        gain: format!("up to {} of a frame's time, and the predictions beside it: measure it", percent(spent.share)),
        weight: spent.share,
        patch,
        untried,
        ..Finding::default()
    }))
}
