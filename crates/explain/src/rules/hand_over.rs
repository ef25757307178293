//! Frames are handed over to another CPU, which cannot follow.

use super::{change, in_lab, percent};
use crate::{Case, Examined};
use linerate_measure::audit::{Cause, Side};
use linerate_measure::record::{Finding, Mode, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let card = case.inside()?;
    let steered: Vec<u32> = card.receive.values().flat_map(|queue| queue.rps.iter().copied()).collect();
    let mode = case.records.campaign.asked.mode;
    // In threaded mode, the threads are how the lab gives the DUT its CPUs.
    let threaded = card.napi_threaded == Some(true) && mode != Mode::Threaded;
    let lost = case.losses()?.iter().filter(|loss| loss.side == Side::Dut && loss.cause == Cause::QueueFull);
    let share = lost.map(|loss| loss.frames).sum::<u64>() as f64 / case.sent().max(1) as f64;
    // Where frames find a queue full without it, `ring-overrun` has them.
    if steered.is_empty() && !threaded || share < 0.001 {
        return Ok(None);
    }
    let (by, off, on) = match threaded {
        true => ("threads of NAPI", format!("echo 0 > /sys/class/net/{}/threaded", card.name), "echo 1 into the same file"),
        false => ("receive packet steering (RPS)", format!("echo 0 > /sys/class/net/{}/queues/rx-0/rps_cpus", card.name), "the former mask into the same file"),
    };
    let inline = match mode {
        Mode::Inline => " Inline, the load waits for the CPU that sends, and not for the one that forwards: measure it with --mode threaded.",
        _ => "",
    };
    let (patch, untried) = match (threaded, case.setting("/inside/rps")) {
        (true, _) => (Some(json!({ "interface": { "in": { "threaded-napi": false } } })), None),
        (false, Some(_)) => (Some(json!({ "interface": { "in": { "rps": null } } })), None),
        (false, None) => in_lab(case, "for queue in /sys/class/net/{in}/queues/rx-*; do echo 0 > $queue/rps_cpus; done"),
    };
    Ok(Some(Finding {
        statement: format!("Frames are handed over to another CPU by {by}, and {} of them find its queue full.{inline}", percent(share)),
        strength: Strength::Observed,
        evidence: case.row.losses.iter().take(4).map(|loss| format!("{}: {} frames", loss.place, loss.frames)).collect(),
        mechanism: "The CPU that receives puts each frame into a queue of another CPU, and wakes that CPU. What this CPU cannot forward in time is dropped after work has been done for it.".into(),
        changes: vec![change("Linux", off, on)],
        gain: format!("up to {} more frames forwarded, if the CPU that receives forwards as well", percent(share / (1.0 - share).max(0.001))),
        weight: share,
        patch,
        untried,
        ..Finding::default()
    }))
}
