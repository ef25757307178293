//! RFC 8219, section 7.3: PDV and IPDV.

use super::{few, figures, row};
use crate::Level::Must;
use crate::Part::Test;
use crate::Row;
use crate::case::{Case, Outcome};
use linerate_measure::experiment::Benchmark::DelayVariation;

pub const ROWS: &[&Row] = &[
    &row(
        "8219-7.3.1",
        Must,
        Test(DelayVariation),
        "PDV = P99.9 - least, over all frames, of at least 20 runs",
        |case| {
            let all = case.of(DelayVariation).into_iter().find(|trial| {
                trial.receiver.delays.as_ref().map(|delays| delays.frames) != Some(trial.receiver.frames)
            });
            match all {
                Some(trial) => Outcome::Fails(format!("trial {}: not every frame has a delay", trial.trial)),
                None => enough(case),
            }
        },
    ),
    &row(
        "8219-7.3.2",
        Must,
        Test(DelayVariation),
        "IPDV of at least 20 runs: least, median, largest",
        enough,
    ),
];

figures!(variations, DelayVariation);

fn enough(case: &Case<'_>) -> Outcome {
    case.each_of(variations(case), |_, figure| few(figure.runs.len(), 20), "sizes with 20 runs or more")
}
