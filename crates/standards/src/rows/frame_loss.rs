//! RFC 2544, section 26.3: frame loss rate.

use super::{figures, must, should};
use crate::Part::Test;
use crate::Section;
use crate::case::Case;
use linerate_measure::experiment::Benchmark::FrameLoss;
use linerate_measure::record::{self, TrialRecord};

pub const SECTIONS: &[Section] = &[(
    Test(FrameLoss),
    &[
        should(
            "2544-26.3a",
            "from 100 % down until two successive trials lose nothing",
            |case| {
                case.each(
                    losses(case),
                    "series from 100 % to two loads without loss",
                    |(of, loads)| {
                        let begins = loads.first().is_some_and(|first| first.share > 0.999);
                        let ends = loads.len() > 1
                            && loads.iter().rev().take(2).all(|load| load.lost == 0);
                        (!begins || !ends).then(|| {
                            format!(
                                "{}: from {:.0} %, {} loads",
                                case.name_of(*of),
                                100.0 * loads.first().map_or(0.0, |load| load.share),
                                loads.len()
                            )
                        })
                    },
                )
            },
        ),
        must(
            "2544-26.3b",
            "steps of at most 10 % of the maximum",
            |case| {
                case.each(
                    losses(case),
                    "series in steps of 10 % at most",
                    |(of, loads)| {
                        let step = loads
                            .windows(2)
                            .map(|pair| pair[0].share - pair[1].share)
                            .fold(0.0, f64::max);
                        (step > 0.100_001).then(|| {
                            format!("{}: a step of {:.1} %", case.name_of(*of), 100.0 * step)
                        })
                    },
                )
            },
        ),
        must(
            "2544-26.3c",
            "if plotted: % of the theoretical rate and % loss, both from 0 to 100",
            |case| {
                case.with_medium(|| {
                    case.some(losses(case), "pictures with both axes from 0 to 100 %")
                })
            },
        ),
    ],
)];

figures!(curves, FrameLoss, Vec<record::AtLoad>);

/// Loss over the load by slot: of the test, or of a loss curve's trials, whose first load is 100 %.
fn losses(case: &Case<'_>) -> Vec<(usize, Vec<record::AtLoad>)> {
    if !case.benchmarks.is_empty() {
        return curves(case)
            .map(|(of, loads)| (of.slot, loads.clone()))
            .collect();
    }
    let of_slot = |id: usize| {
        let trials = case
            .of(FrameLoss)
            .into_iter()
            .filter(|trial| trial.slot == id);
        let trials: Vec<(f64, &TrialRecord)> = trials
            .filter_map(|trial| Some((trial.asked_fps?, trial)))
            .collect();
        let most = trials.iter().map(|(load, _)| *load).fold(0.0, f64::max);
        let at = |(load, trial): &(f64, &TrialRecord)| record::AtLoad {
            load: *load,
            share: load / most,
            offered: trial.rates.map_or(0.0, |rates| rates.offered),
            forwarded: trial.rates.map_or(0.0, |rates| rates.received),
            sent: trial.generator.frames,
            lost: trial
                .generator
                .frames
                .saturating_sub(trial.receiver.unique()),
        };
        (id, trials.iter().map(at).collect())
    };
    case.slots.iter().map(|slot| of_slot(slot.id)).collect()
}
