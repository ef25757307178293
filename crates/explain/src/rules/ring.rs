//! A ring or queue of the DUT overflows although its CPUs have time left.

use super::{change, percent};
use crate::{Case, Examined};
use linerate_measure::audit::{Cause, Side};
use linerate_measure::record::{Finding, Strength};
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let full = case.losses()?.iter().filter(|loss| loss.side == Side::Dut && loss.cause == Cause::QueueFull);
    let full: Vec<_> = full.collect();
    let sent = case.sent().max(1) as f64;
    let share = full.iter().map(|loss| loss.frames).sum::<u64>() as f64 / sent;
    if share < 0.001 {
        return Ok(None);
    }
    let cpus = case.cpus();
    let busy: Vec<f64> = case.forwarding_cpus().iter().filter_map(|cpu| Some(cpus.get(cpu)?[0])).collect();
    if busy.is_empty() {
        return Err("a ring overflowed, and how busy the CPUs were is not known: too much load, or too small a ring".into());
    }
    let busiest = busy.into_iter().fold(0.0, f64::max);
    if busiest >= 0.95 {
        // The load is more than the CPUs can do: the ring only shows it.
        return Ok(None);
    }
    let evidence = full.iter().map(|loss| format!("{}: {} frames ({})", loss.place, loss.frames, percent(loss.frames as f64 / sent)));
    let ring = case.inside().ok().map(|card| card.rx_ring);
    let larger = ring.and_then(|ring| Some((2 * ring.now?).min(ring.most?)).filter(|larger| Some(*larger) > ring.now));
    let (patch, untried) = match larger {
        Some(larger) => (Some(json!({ "interface": { "rx-ring": larger } })), None),
        None => (None, Some("the length of this queue cannot be set, or is the longest already".into())),
    };
    Ok(Some(Finding {
        statement: format!("A queue of the DUT overflowed: {} of the frames found it full.", percent(share)),
        strength: Strength::Observed,
        evidence: evidence.chain([format!("the CPUs that forward were {} busy at most", percent(busiest))]).collect(),
        mechanism: "Frames come in bursts, or the CPU comes late: a ring must hold the frames of that time.".into(),
        changes: vec![
            change("Linux", "ethtool -G IF rx N; sysctl net.core.netdev_max_backlog=N (with RPS)", "ethtool -G IF rx OLD; sysctl net.core.netdev_max_backlog=1000"),
            change("FreeBSD", "hw.IF.rxd=N in loader.conf; measure it: 4,096 descriptors cost an APU2 20 % (BSD Router Project, page on FreeBSD forwarding performance)", "the former line"),
        ],
        gain: format!("up to {} more frames", percent(share)),
        weight: share,
        patch,
        untried,
        ..Finding::default()
    }))
}
