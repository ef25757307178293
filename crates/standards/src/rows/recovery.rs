//! RFC 2544, section 26.5: system recovery.

use super::{close, few, figures, row};
use crate::Level::{Procedure, Should};
use crate::Part::Test;
use crate::Row;
use crate::case::SECOND;
use linerate_measure::experiment::Benchmark::Recovery;
use linerate_measure::record::{self, Benchmarked, TrialRecord};
use linerate_measure::trial::Shape;

pub const ROWS: &[&Row] = &[
    &row(
        "2544-26.5a",
        Procedure,
        Test(Recovery),
        "110 % of the throughput, at most the maximum, for 60 s, then half of it",
        |case| {
            let wrong = |of: &Benchmarked, figure: &record::Recovery| {
                let record::Recovery { throughput, overload, reduced, .. } = *figure;
                let most = of.maximum.map_or(f64::INFINITY, |maximum| maximum.tester_fps.min(maximum.fps));
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
                early.map(|ns| format!("{} s before the load falls", ns as f64 / 1e9))
            };
            case.each_of(recoveries(case), wrong, "sizes with this overload")
        },
    ),
    &row("2544-26.5b", Should, Test(Recovery), "repeated, with the mean", |case| {
        case.each_of(recoveries(case), |_, figure| few(figure.runs.len(), 2), "sizes with several runs")
    }),
];

figures!(recoveries, Recovery);
