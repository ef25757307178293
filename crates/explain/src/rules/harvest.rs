//! FreeBSD gathers entropy from each frame and interrupt.

use super::change;
use crate::{Case, Examined};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let spent = case.spent(&["random_harvest_queue*", "random_harvest_fast*"])?;
    if !spent.is_clear(0.005) {
        return Ok(None);
    }
    Ok(Some(Finding {
        statement: "The kernel gathers entropy from each frame.".into(),
        strength: Strength::Observed,
        evidence: vec![spent.evidence()],
        mechanism: "The first bytes of each frame, or the time of each interrupt, are collected under one lock.".into(),
        changes: vec![change("FreeBSD", "sysrc harvest_mask=351; service random restart", "sysrc harvest_mask=511; service random restart")],
        gain: "+3.1 % on a PC Engines APU2, +4.8 % on a Netgate RCC-VE 4860 ('Tuning FreeBSD for routing and firewalling', 2018, illustration 9)".into(),
        weight: spent.share,
        patch: Some(json!({ "sysctls": { "kern.random.harvest.mask": 351 } })),
        ..Finding::default()
    }))
}
