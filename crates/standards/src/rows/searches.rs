//! Searches by MLRsearch (RFC 9971).

use super::{must, should};
use crate::Part::Searches;
use crate::Section;
use crate::case::{Case, met, not_applicable, not_run, seconds};
use linerate_measure::experiment::Benchmark::Throughput;
use linerate_measure::record::{Searched, SearchedGoal};
use linerate_search::{Irregular, Trial, outcome};

pub const SECTIONS: &[Section] = &[(
    Searches,
    &[
        must("9971-4.3", "the unit of every quantity is stated", |case| {
            case.some(
                case.searches,
                "searches: loads in frames/s, times in ns, lengths in octets with FCS",
            )
        }),
        must(
            "9971-4.4.3",
            "deviations from RFC 2544, section 23 are described",
            |case| case.some(case.searches, "searches; row 2544-23 lists the waits"),
        ),
        must(
            "9971-4.5.2a",
            "the scaling of a load that varies, or differs between interfaces, is described",
            |case| match case.both_ways() {
                false => not_applicable("one interface sends, at one rate"),
                true => met("both interfaces send at the same rate"),
            },
        ),
        must(
            "9971-4.5.2b",
            "it is stated whether a load is that of one interface, some, or all",
            |case| {
                // A trial of one interface has no separate counts by direction.
                let of = if case.both_ways() {
                    "of each sending interface, at the same rate"
                } else {
                    "of the one sending interface"
                };
                case.each_trial(Throughput, &format!("trials with the load {of}"), |trial| {
                    let ways = case.slot(trial.slot)?.direction.ways().len();
                    let counted = trial.directions.len().max(1);
                    (counted != ways)
                        .then(|| format!("{counted} interfaces counted, {ways} sending"))
                })
            },
        ),
        must(
            "9971-4.5.3",
            "the input of a trial is a load and a duration, and nothing else",
            |case| {
                case.each(
                    case.of(Throughput),
                    "trials by load and duration alone",
                    |trial| {
                        (!trial.shape.is_constant() || trial.asked_fps.is_none())
                            .then(|| format!("trial {} has more, or no load", trial.trial))
                    },
                )
            },
        ),
        must(
            "9971-4.5.4",
            "bidirectional traffic, modifiers and mixes are named",
            |case| {
                case.each(
                    case.slots.iter(),
                    "slots with their frames and directions",
                    |slot| match &slot.traffic {
                        None => Some(format!("no frames of {}", slot.name)),
                        Some(traffic) => (traffic.mix.pattern != slot.lengths_fcs).then(|| {
                            format!(
                                "{}: it says {} B, and {} B are sent",
                                slot.name, slot.frame, traffic.mix
                            )
                        }),
                    },
                )
            },
        ),
        must(
            "9971-4.5.5",
            "the forwarding ratio is from 0 to 1",
            |case| {
                case.each_trial(
                    Throughput,
                    "trials with a loss ratio from 0 to 1",
                    |trial| {
                        (!(0.0..=1.0).contains(&trial.loss_ratio))
                            .then(|| format!("loss ratio {}", trial.loss_ratio))
                    },
                )
            },
        ),
        must(
            "9971-4.5.8",
            "the effective duration is the duration, or explained",
            |case| {
                case.each_trial(Throughput, "trials as long as asked, within 5 %", |trial| {
                    let (seconds, asked) = (trial.rates?.seconds, seconds(trial.timing.run_ns));
                    ((seconds / asked - 1.0).abs() > 0.05)
                        .then(|| format!("{seconds:.3} s instead of {asked:.3}"))
                })
            },
        ),
        should(
            "9971-4.5.9",
            "unknown attributes of a trial's output are ignored",
            |_| not_run("a property of the program, not of a run"),
        ),
        must(
            "9971-4.6.1",
            "goals have durations above 0, and ratios from 0 to below 1",
            |case| {
                case.each(goals(case), "goals", |(_, of)| {
                    let goal = &of.goal;
                    let sound = goal.final_ns > 0
                        && goal.sum_ns > 0
                        && goal.initial_ns > 0
                        && goal.width > 0.0
                        && (0.0..1.0).contains(&goal.loss)
                        && goal.exceed < 1_000_000_000;
                    (!sound).then(|| format!("goal {} has other values", of.name))
                })
            },
        ),
        should(
            "9971-4.6.1s",
            "one final duration, no sum below it, exceed ratio 0.5, width at least the loss ratio",
            |case| {
                let first = goals(case).first().map(|(_, of)| of.goal.final_ns);
                case.each(goals(case), "goals", |(_, of)| {
                    let goal = &of.goal;
                    let usual = Some(goal.final_ns) == first
                        && goal.sum_ns >= goal.final_ns
                        && goal.exceed == 500_000_000
                        && goal.width >= goal.loss;
                    (!usual).then(|| {
                        format!(
                            "goal {}: exceed ratio {}, sum {} s",
                            of.name,
                            f64::from(goal.exceed) / 1e9,
                            seconds(goal.sum_ns)
                        )
                    })
                })
            },
        ),
        must("9971-4.6.5", "the meaning of the width is stated", |case| {
            case.some(
                goals(case),
                "goals: the distance of the bounds relative to the upper one",
            )
        }),
        must(
            "9971-4.6.6",
            "all trials at a load count, also shorter ones and those for other goals",
            |case| {
                let searched =
                    |of: &SearchedGoal| of.outcome.irregular != Some(Irregular::Unstable);
                case.each(
                    goals(case).into_iter().filter(|(_, of)| searched(of)),
                    "results, computed again from all trials",
                    |(search, of)| {
                        let trials = case
                            .of(Throughput)
                            .into_iter()
                            .filter(|trial| trial.slot == search.slot);
                        let trials: Vec<Trial> = trials
                            .filter_map(|trial| {
                                let duration_ns = trial.timing.run_ns;
                                Some(Trial {
                                    load: trial.asked_fps?,
                                    duration_ns,
                                    effective_ns: duration_ns,
                                    loss: trial.loss_ratio,
                                })
                            })
                            .collect();
                        let found = outcome(&of.goal, search.limits, &trials);
                        let same =
                            (found.lower, found.upper) == (of.outcome.lower, of.outcome.upper);
                        (!same).then(|| {
                            let name = case.name_of(search.slot);
                            format!(
                                "{name}, {}: bounds {:?} and {:?} by all trials",
                                of.name, found.lower, found.upper
                            )
                        })
                    },
                )
            },
        ),
        must(
            "9971-4.6.8",
            "no load above the highest or below the lowest",
            |case| {
                case.each_trial(Throughput, "trials within the limits", |trial| {
                    let limits = case
                        .searches
                        .iter()
                        .find(|search| search.slot == trial.slot)?
                        .limits;
                    let load = trial.asked_fps?;
                    // A search that began above what the tester keeps beside the DUT begins again with lower limits.
                    (load < limits.min * 0.999_999)
                        .then(|| {
                            format!(
                                "{load:.0} of {:.0} to {:.0} frames/s",
                                limits.min, limits.max
                            )
                        })
                        .or_else(|| {
                            (load > limits.max * 1.000_001 && trial.loss_ratio == 0.0).then(|| {
                                format!(
                                    "{load:.0} of {:.0} to {:.0} frames/s",
                                    limits.min, limits.max
                                )
                            })
                        })
                })
            },
        ),
        must(
            "9971-4.8.4a",
            "a regular result has both bounds, no further apart than the width",
            |case| {
                case.each(goals(case), "results", |(search, of)| {
                    let outcome = &of.outcome;
                    if outcome.irregular.is_some() {
                        return None;
                    }
                    match (outcome.lower, outcome.upper) {
                        (Some(lower), Some(upper))
                            if (upper - lower) / upper <= of.goal.width * 1.000_001 =>
                        {
                            None
                        }
                        _ => Some(format!(
                            "{}, {}: {:?} to {:?}",
                            case.name_of(search.slot),
                            of.name,
                            outcome.lower,
                            outcome.upper
                        )),
                    }
                })
            },
        ),
        must("9971-4.8.4b", "the relevant lower bound is shown", |case| {
            case.each(
                goals(case),
                "results with their lower bound, or marked as irregular",
                |(search, of)| {
                    (of.outcome.lower.is_none() && of.outcome.irregular.is_none())
                        .then(|| format!("{}: no lower bound", case.name_of(search.slot)))
                },
            )
        }),
        must("9971-4.8.4c", "irregular results are marked", |case| {
            case.each(goals(case), "results", |(search, of)| {
                let whole = of.outcome.lower.is_some() && of.outcome.upper.is_some();
                (!whole && of.outcome.irregular.is_none())
                    .then(|| format!("{}: a bound is missing", case.name_of(search.slot)))
            })
        }),
        must("9971-4.8.5", "a result for every goal", |case| {
            let wanted = case.design.goals.len().max(1);
            case.each(
                case.searches,
                "slots with a result for each goal",
                |search| {
                    (search.goals.len() < wanted).then(|| {
                        format!(
                            "{}: {} of {wanted}",
                            case.name_of(search.slot),
                            search.goals.len()
                        )
                    })
                },
            )
        }),
        should(
            "9971-4.9.1",
            "the tester is measured first, and its rate is the highest load",
            |case| {
                case.each(
                    case.searches,
                    "searches below the rate of the tester alone",
                    |search| {
                        let name = case.name_of(search.slot);
                        let ceiling = case.slot(search.slot)?.ceiling;
                        let Some(ceiling) = ceiling else {
                            return Some(format!("{name}: no tester alone"));
                        };
                        let alone = case.all_trials.iter().filter(|trial| trial.slot == ceiling);
                        let fastest = alone
                            .filter_map(|trial| Some(trial.rates?.received))
                            .fold(0.0, f64::max);
                        (search.limits.max > fastest).then(|| {
                            format!(
                                "{name}: up to {:.0} frames/s, the tester alone {fastest:.0}",
                                search.limits.max
                            )
                        })
                    },
                )
            },
        ),
    ],
)];

fn goals<'c>(case: &Case<'c>) -> Vec<(&'c Searched, &'c SearchedGoal)> {
    case.searches
        .iter()
        .flat_map(|search| search.goals.iter().map(move |goal| (search, goal)))
        .collect()
}
