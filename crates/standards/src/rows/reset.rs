//! RFC 2544, section 26.6, and RFC 6201: reset.

use super::set_up::connected;
use super::{figures, must, should, step};
use crate::Part::Test;
use crate::Section;
use crate::case::{Case, Outcome, SECOND, fails, holds, met, not_applicable, not_run, seconds};
use linerate_measure::experiment::Benchmark::Reset;
use linerate_measure::record::{self, EventClass, POWER_OFF_NS, TrialRecord};
use linerate_measure::trial::Shape;

pub const SECTIONS: &[Section] = &[(
    Test(Reset),
    &[
        should(
            "2544-26.6a",
            "to directly connected networks only",
            connected,
        ),
        should(
            "2544-26.6b",
            "hardware, software and power reset, a statement for each",
            both_resets,
        ),
        should(
            "6201-1.3",
            "by lost frames if sending continues without a link; otherwise by time stamps",
            |case| {
                case.each_of(
                    resets(case),
                    "reset times by lost frames and by time stamps",
                    |_, figure| {
                        (figure.by_loss_ns.is_none() && figure.by_stamps_ns.is_none())
                            .then(|| "no frame came again".into())
                    },
                )
            },
        ),
        should(
            "6201-1.4b",
            "throughput, loss, ms, trials, protocol, size, medium, speed and encapsulation",
            |case| {
                case.with_medium(|| {
                    case.each_of(
                        resets(case),
                        "reset times with load, loss, trials, frames and medium",
                        |of, figure| {
                            let slot = case.slot(of.slot);
                            let known = slot.is_some_and(|slot| {
                                slot.traffic.is_some() && !slot.transport.is_empty()
                            });
                            let lacks = figure.runs.is_empty()
                                || figure.load.is_nan()
                                || figure.load <= 0.0
                                || !known;
                            lacks.then(|| "no trials, no load or no frames".into())
                        },
                    )
                })
            },
        ),
        step(
            "6201-4a",
            "15 s of forwarding before, the smallest size at its throughput",
            |case| {
                let early = |trial: &&TrialRecord| !matches!(trial.shape, Shape::Event { after_ns } if after_ns >= 15 * SECOND);
                case.each_of(resets(case), "resets", |of, figure| {
                    let length = case
                        .slot(of.slot)
                        .and_then(|slot| slot.lengths_fcs.first().copied());
                    if length > case.sizes().first().copied() {
                        return Some("not the smallest size".into());
                    }
                    let early = case.of(Reset).iter().any(early);
                    case.off(of.slot, figure.load)
                        .or(early.then(|| "less than 15 s before the event".into()))
                })
            },
        ),
        must(
            "6201-4b",
            "without line cards: power and operating system are reset",
            |case| {
                if case.is_virtual() {
                    return not_applicable("the DUT is virtual, without a power supply");
                }
                let off_ns = |trial: &&TrialRecord| {
                    trial
                        .event
                        .as_ref()
                        .filter(|event| event.class == EventClass::PowerInterruption)?;
                    let outages = trial.receiver.outages.iter();
                    Some((
                        trial.trial,
                        outages
                            .map(|outage| outage.to_ns.saturating_sub(outage.from_ns))
                            .max()?,
                    ))
                };
                match case
                    .of(Reset)
                    .iter()
                    .filter_map(off_ns)
                    .find(|(_, ns)| *ns < POWER_OFF_NS)
                {
                    Some((trial, ns)) => fails(format!(
                        "trial {trial}: power off for {} s at most",
                        seconds(ns)
                    )),
                    None => both_resets(case),
                }
            },
        ),
        should(
            "6201-3b",
            "first with static routes and neighbours",
            |case| {
                let killed =
                    resets(case).find(|(_, figure)| figure.event.class == EventClass::ProcessReset);
                match killed {
                    Some((of, _)) => fails(format!(
                        "{}: the killed process may own routes or neighbours",
                        case.name_of(of.slot)
                    )),
                    None if case.is_virtual() => met("routes and neighbours are static"),
                    None => not_run("the records do not show where the DUT's routes come from"),
                }
            },
        ),
    ],
)];

figures!(resets, Reset);

/// Whether power and operating system were reset. Without line cards, the power test replaces the hardware test (RFC 6201, section 4.1).
fn both_resets(case: &Case<'_>) -> Outcome {
    let events: Vec<&record::DutEvent> = resets(case).map(|(_, figure)| &figure.event).collect();
    let has = |class| events.iter().any(|event| event.class == class);
    let names: Vec<&str> = events.iter().map(|event| event.what.as_str()).collect();
    holds(
        has(EventClass::PowerInterruption) && has(EventClass::OsReset),
        format!("events: {}", names.join(", ")),
    )
}
