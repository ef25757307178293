//! RFC 8219, section 7.3: PDV and IPDV.

use super::{few, figures, must};
use crate::Part::Test;
use crate::Section;
use crate::case::{Case, Outcome, fails};
use linerate_measure::experiment::Benchmark::DelayVariation;

pub const SECTIONS: &[Section] = &[(
    Test(DelayVariation),
    &[
        must(
            "8219-7.3.1",
            "PDV = P99.9 - least, over all frames, of at least 20 runs",
            |case| {
                let all = case.of(DelayVariation).into_iter().find(|trial| {
                    trial.receiver.delays.as_ref().map(|delays| delays.frames)
                        != Some(trial.receiver.frames)
                });
                match all {
                    Some(trial) => fails(format!(
                        "trial {}: not every frame has a delay",
                        trial.trial
                    )),
                    None => enough(case),
                }
            },
        ),
        must(
            "8219-7.3.2",
            "IPDV of at least 20 runs: least, median, largest",
            enough,
        ),
    ],
)];

figures!(variations, DelayVariation);

fn enough(case: &Case<'_>) -> Outcome {
    case.each_of(
        variations(case),
        "sizes with 20 runs or more",
        |_, figure| few(figure.runs.len(), 20),
    )
}
