//! One receive queue of several takes most frames.

use super::{change, percent};
use crate::balance::by_queue;
use crate::{Case, Examined};
use linerate_hosts::configuration::Card;
use linerate_measure::experiment::System;
use linerate_measure::record::{Finding, Mode, Strength};
use serde_json::json;

/// A queue that takes this part of the frames beyond its fair share takes all.
const UNFAIR: f64 = 0.5;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    if case.inside().is_ok_and(|card| card.receive_queues() == Some(1)) {
        return Ok(None);
    }
    // Inline, each CPU that sends has its queue, and forwards what is in it.
    if case.records.campaign.asked.mode == Mode::Inline && case.forwarding_cpus().len() < 2 {
        return Ok(None);
    }
    let queues = by_queue(case.counted(|_| true)?);
    // A queue without a frame may have no counter that grew.
    let set_up = case.inside().ok().and_then(Card::receive_queues).unwrap_or(0);
    let number = queues.keys().next_back().map_or(0, |last| last + 1).max(set_up);
    let all: u64 = queues.values().sum();
    if all == 0 {
        return Err("the driver counts no frames by receive queue".into());
    }
    let (busiest, most) = queues.iter().max_by_key(|(_, frames)| **frames).expect("some frames were counted");
    let (share, fair) = (*most as f64 / all as f64, 1.0 / f64::from(number.max(1)));
    if number < 2 || share < fair + UNFAIR * (1.0 - fair) {
        return Ok(None);
    }
    let flows = case.flows();
    let one_flow = if flows == 1 { " The traffic has one flow, and a flow stays in its queue." } else { "" };
    let cpus: Vec<String> = case.usable_cpus().iter().map(u32::to_string).collect();
    let (patch, untried) = match (flows, case.system(), cpus.len()) {
        (1, ..) => (None, Some("the one flow of the traffic stays in its queue: send more flows".into())),
        (_, System::Linux | System::Vyos, 2..) => (Some(json!({ "interface": { "in": { "rps": cpus.join(",") } } })), None),
        (_, System::Linux | System::Vyos, 1) => (None, Some("the DUT has one CPU".into())),
        (_, System::Linux | System::Vyos, 0) => (None, Some("the CPUs that could take the frames are not known".into())),
        _ => (None, Some("a plan steers frames to other CPUs on Linux only".into())),
    };
    Ok(Some(Finding {
        statement: format!("Receive queue {busiest} of {number} takes {} of the frames.{one_flow}", percent(share)),
        strength: Strength::Observed,
        evidence: queues.iter().take(16).map(|(queue, frames)| format!("queue {queue}: {frames} frames ({})", percent(*frames as f64 / all as f64))).collect(),
        mechanism: "Each queue is served by one CPU at a time. A queue that takes most frames leaves the other CPUs idle.".into(),
        changes: vec![
            change("Linux", "ethtool -N IF rx-flow-hash udp4 sdfn; ethtool -X IF equal N", "ethtool -N IF rx-flow-hash udp4 sd; ethtool -X IF default"),
            change("linerate", "send more flows: flows = 2000 in [traffic]", "nothing to undo"),
        ],
        gain: format!("up to {:.1} times the rate, if each queue has a CPU", (share / fair).min(f64::from(number))),
        weight: 1.0 - fair / share,
        patch,
        untried,
        ..Finding::default()
    }))
}
