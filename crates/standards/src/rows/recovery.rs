//! RFC 2544, section 26.5: system recovery.

use super::{close, few, figures, should, step};
use crate::Part::Test;
use crate::Section;
use crate::case::{SECOND, seconds};
use linerate_measure::experiment::Benchmark::Recovery;
use linerate_measure::record::{self, TrialRecord};
use linerate_measure::trial::Shape;

pub const SECTIONS: &[Section] = &[(
    Test(Recovery),
    &[
        step(
            "2544-26.5a",
            "110 % of the throughput, at most the maximum, for 60 s, then half of it",
            |case| {
                case.each_of(recoveries(case), "sizes with this overload", |of, figure| {
                    let record::Recovery { throughput, overload, reduced, .. } = *figure;
                    let most =
                        of.maximum.map_or(f64::INFINITY, |maximum| maximum.tester_fps.min(maximum.fps));
                    let wanted = (1.1 * throughput).min(most);
                    if !close(overload, wanted, 1e-3) || !close(reduced, overload / 2.0, 1e-3) {
                        return Some(format!(
                            "{overload:.0}, then {reduced:.0} frames/s, of a throughput of {throughput:.0}"
                        ));
                    }
                    let falls_ns = |trial: &TrialRecord| match trial.shape {
                        Shape::Step { after_ns, .. } => after_ns,
                        _ => 0,
                    };
                    let trials = case.of(Recovery).into_iter().filter(|trial| trial.slot == of.slot);
                    let early = trials.map(falls_ns).find(|ns| *ns < 60 * SECOND);
                    early.map(|ns| format!("{} s before the load falls", seconds(ns)))
                })
            },
        ),
        should("2544-26.5b", "repeated, with the mean", |case| {
            case.each_of(recoveries(case), "sizes with several runs", |_, figure| {
                few(figure.runs.len(), 2)
            })
        }),
    ],
)];

figures!(recoveries, Recovery);
