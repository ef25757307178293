//! Searches by MLRsearch (RFC 9971).

use super::row;
use crate::Level::{Must, Should};
use crate::Part::Searches;
use crate::Row;
use crate::case::{Case, Outcome, not_run};
use linerate_measure::experiment::Benchmark::Throughput;
use linerate_measure::record::{Searched, SearchedGoal, Slot, TrialRecord};
use linerate_search::{Trial, outcome};

pub const ROWS: &[&Row] = &[
    &row("9971-4.3", Must, Searches, "the unit of every quantity is stated", |case| {
        case.each(
            case.searches,
            |_| None,
            "searches: loads in frames/s, times in ns, lengths in octets with FCS",
        )
    }),
    &row("9971-4.4.3", Must, Searches, "deviations from RFC 2544, section 23 are described", |case| {
        case.each(case.searches, |_| None, "searches; row 2544-23 lists the waits")
    }),
    &row(
        "9971-4.5.2a",
        Must,
        Searches,
        "the scaling of a load that varies, or differs between interfaces, is described",
        |case| match case.both_ways() {
            false => Outcome::NotApplicable("one interface sends, at one rate".into()),
            true => Outcome::Met("both interfaces send at the same rate".into()),
        },
    ),
    &row(
        "9971-4.5.2b",
        Must,
        Searches,
        "it is stated whether a load is that of one interface, some, or all",
        |case| {
            // A trial of one interface has no separate counts by direction.
            let other = |trial: &&TrialRecord| {
                let ways = case.slot(trial.slot)?.direction.ways().len();
                let counted = trial.directions.len().max(1);
                (counted != ways)
                    .then(|| format!("trial {}: {counted} interfaces counted, {ways} sending", trial.trial))
            };
            let of = if case.both_ways() {
                "of each sending interface, at the same rate"
            } else {
                "of the one sending interface"
            };
            case.each(case.of(Throughput), other, &format!("trials with the load {of}"))
        },
    ),
    &row(
        "9971-4.5.3",
        Must,
        Searches,
        "the input of a trial is a load and a duration, and nothing else",
        |case| {
            let more = |trial: &&TrialRecord| {
                (!trial.shape.is_constant() || trial.asked_fps.is_none())
                    .then(|| format!("trial {} has more, or no load", trial.trial))
            };
            case.each(case.of(Throughput), more, "trials by load and duration alone")
        },
    ),
    &row("9971-4.5.4", Must, Searches, "bidirectional traffic, modifiers and mixes are named", |case| {
        let unnamed = |slot: &&&Slot| match &slot.traffic {
            None => Some(format!("no frames of {}", slot.name)),
            Some(traffic) => (traffic.mix.pattern != slot.lengths_fcs)
                .then(|| format!("{}: it says {} B, and {} B are sent", slot.name, slot.frame, traffic.mix)),
        };
        case.each(case.slots.iter(), unnamed, "slots with their frames and directions")
    }),
    &row("9971-4.5.5", Must, Searches, "the forwarding ratio is from 0 to 1", |case| {
        let wrong = |trial: &&TrialRecord| {
            (!(0.0..=1.0).contains(&trial.loss_ratio))
                .then(|| format!("trial {}: loss ratio {}", trial.trial, trial.loss_ratio))
        };
        case.each(case.of(Throughput), wrong, "trials with a loss ratio from 0 to 1")
    }),
    &row("9971-4.5.8", Must, Searches, "the effective duration is the duration, or explained", |case| {
        let other = |trial: &&TrialRecord| {
            let (seconds, asked) = (trial.rates?.seconds, trial.timing.run_ns as f64 / 1e9);
            ((seconds / asked - 1.0).abs() > 0.05)
                .then(|| format!("trial {}: {seconds:.3} s instead of {asked:.3}", trial.trial))
        };
        case.each(case.of(Throughput), other, "trials as long as asked, within 5 %")
    }),
    &row("9971-4.5.9", Should, Searches, "unknown attributes of a trial's output are ignored", |_| {
        not_run("a property of the program, not of a run")
    }),
    &row(
        "9971-4.6.1",
        Must,
        Searches,
        "goals have durations above 0, and ratios from 0 to below 1",
        |case| {
            let wrong = |(_, of): &(&Searched, &SearchedGoal)| {
                let goal = &of.goal;
                let sound = goal.final_ns > 0
                    && goal.sum_ns > 0
                    && goal.initial_ns > 0
                    && goal.width > 0.0
                    && (0.0..1.0).contains(&goal.loss)
                    && goal.exceed < 1_000_000_000;
                (!sound).then(|| format!("goal {} has other values", of.name))
            };
            case.each(goals(case), wrong, "goals")
        },
    ),
    &row(
        "9971-4.6.1s",
        Should,
        Searches,
        "one final duration, no sum below it, exceed ratio 0.5, width at least the loss ratio",
        |case| {
            let first = goals(case).first().map(|(_, of)| of.goal.final_ns);
            let other = |(_, of): &(&Searched, &SearchedGoal)| {
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
                        goal.sum_ns as f64 / 1e9
                    )
                })
            };
            case.each(goals(case), other, "goals")
        },
    ),
    &row("9971-4.6.5", Must, Searches, "the meaning of the width is stated", |case| {
        case.each(goals(case), |_| None, "goals: the distance of the bounds relative to the upper one")
    }),
    &row(
        "9971-4.6.6",
        Must,
        Searches,
        "all trials at a load count, also shorter ones and those for other goals",
        |case| {
            let other = |(search, of): &(&Searched, &SearchedGoal)| {
                let trials = case.of(Throughput).into_iter().filter(|trial| trial.slot == search.slot);
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
                let same = (found.lower, found.upper) == (of.outcome.lower, of.outcome.upper);
                (!same).then(|| {
                    let name = case.campaign.name_of(search.slot);
                    format!(
                        "{name}, {}: bounds {:?} and {:?} by all trials",
                        of.name, found.lower, found.upper
                    )
                })
            };
            case.each(goals(case), other, "results, computed again from all trials")
        },
    ),
    &row("9971-4.6.8", Must, Searches, "no load above the highest or below the lowest", |case| {
        let outside = |trial: &&TrialRecord| {
            let limits = case.searches.iter().find(|search| search.slot == trial.slot)?.limits;
            let load = trial.asked_fps?;
            // A search that began above what the tester keeps beside the DUT begins again with lower limits.
            (load < limits.min * 0.999_999)
                .then(|| {
                    format!(
                        "trial {}: {load:.0} of {:.0} to {:.0} frames/s",
                        trial.trial, limits.min, limits.max
                    )
                })
                .or_else(|| {
                    (load > limits.max * 1.000_001 && trial.loss_ratio == 0.0).then(|| {
                        format!(
                            "trial {}: {load:.0} of {:.0} to {:.0} frames/s",
                            trial.trial, limits.min, limits.max
                        )
                    })
                })
        };
        case.each(case.of(Throughput), outside, "trials within the limits")
    }),
    &row(
        "9971-4.8.4a",
        Must,
        Searches,
        "a regular result has both bounds, no further apart than the width",
        |case| {
            let wide = |(search, of): &(&Searched, &SearchedGoal)| {
                let outcome = &of.outcome;
                if outcome.irregular.is_some() {
                    return None;
                }
                match (outcome.lower, outcome.upper) {
                    (Some(lower), Some(upper)) if (upper - lower) / upper <= of.goal.width * 1.000_001 => {
                        None
                    }
                    _ => Some(format!(
                        "{}, {}: {:?} to {:?}",
                        case.campaign.name_of(search.slot),
                        of.name,
                        outcome.lower,
                        outcome.upper
                    )),
                }
            };
            case.each(goals(case), wide, "results")
        },
    ),
    &row("9971-4.8.4b", Must, Searches, "the relevant lower bound is shown", |case| {
        let none = |(search, of): &(&Searched, &SearchedGoal)| {
            (of.outcome.lower.is_none() && of.outcome.irregular.is_none())
                .then(|| format!("{}: no lower bound", case.campaign.name_of(search.slot)))
        };
        case.each(goals(case), none, "results with their lower bound, or marked as irregular")
    }),
    &row("9971-4.8.4c", Must, Searches, "irregular results are marked", |case| {
        let unmarked = |(search, of): &(&Searched, &SearchedGoal)| {
            let whole = of.outcome.lower.is_some() && of.outcome.upper.is_some();
            (!whole && of.outcome.irregular.is_none())
                .then(|| format!("{}: a bound is missing", case.campaign.name_of(search.slot)))
        };
        case.each(goals(case), unmarked, "results")
    }),
    &row("9971-4.8.5", Must, Searches, "a result for every goal", |case| {
        let wanted = case.design.goals.len().max(1);
        let fewer = |search: &&Searched| {
            (search.goals.len() < wanted).then(|| {
                format!("{}: {} of {wanted}", case.campaign.name_of(search.slot), search.goals.len())
            })
        };
        case.each(case.searches, fewer, "slots with a result for each goal")
    }),
    &row(
        "9971-4.9.1",
        Should,
        Searches,
        "the tester is measured first, and its rate is the highest load",
        |case| {
            let before = |search: &&Searched| {
                let name = case.campaign.name_of(search.slot);
                let ceiling = case.slot(search.slot)?.ceiling;
                let Some(ceiling) = ceiling else { return Some(format!("{name}: no tester alone")) };
                let alone = case.all_trials.iter().filter(|trial| trial.slot == ceiling);
                let fastest = alone.filter_map(|trial| Some(trial.rates?.received)).fold(0.0, f64::max);
                (search.limits.max > fastest).then(|| {
                    format!("{name}: up to {:.0} frames/s, the tester alone {fastest:.0}", search.limits.max)
                })
            };
            case.each(case.searches, before, "searches below the rate of the tester alone")
        },
    ),
];

fn goals<'c>(case: &Case<'c>) -> Vec<(&'c Searched, &'c SearchedGoal)> {
    case.searches.iter().flat_map(|search| search.goals.iter().map(move |goal| (search, goal))).collect()
}
