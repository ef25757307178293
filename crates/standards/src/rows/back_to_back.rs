//! RFC 2544, section 26.4, and RFC 9004: back-to-back frames.

use super::set_up::{found, missing_sizes};
use super::{close, few, figures, row};
use crate::Level::{Must, Procedure, Should};
use crate::Part::Test;
use crate::Row;
use crate::case::{Outcome, SECOND, holds, not_run};
use linerate_measure::experiment::Benchmark::BackToBack;
use linerate_measure::record::{self, Benchmarked, TrialRecord};
use linerate_measure::trial::Shape;

pub const ROWS: &[&Row] = &[
    &row("2544-26.4a", Must, Test(BackToBack), "trials of at least 2 s", |case| {
        let short = |trial: &&TrialRecord| {
            (trial.took_ns < 2 * SECOND)
                .then(|| format!("trial {}: {} s", trial.trial, trial.took_ns as f64 / 1e9))
        };
        case.each(case.of(BackToBack), short, "trials of 2 s and more")
    }),
    &row("2544-26.4b", Should, Test(BackToBack), "at least 50 repeats, and their mean", |case| {
        case.each_of(bursts(case), |_, figure| few(figure.bursts.len(), 50), "sizes with 50 searches or more")
    }),
    &row("9004-3a", Must, Test(BackToBack), "no mix of frame sizes", |case| {
        let mixed = |of: &Benchmarked, _: &_| {
            let lengths = case.slot(of.slot).map_or(0, |slot| slot.lengths_fcs.len());
            (lengths != 1).then(|| format!("{lengths} lengths"))
        };
        case.each_of(bursts(case), mixed, "sizes, each alone")
    }),
    &row(
        "9004-3b",
        Should,
        Test(BackToBack),
        "RFC 8239 instead, if the buffer of the output is the known limit",
        |_| not_run("only the operator knows the limit"),
    ),
    &row("9004-5a", Must, Test(BackToBack), "everything else follows RFC 2544", |case| {
        case.each(bursts(case), |_| None, "see the rows of RFC 2544")
    }),
    &row(
        "9004-5b",
        Must,
        Test(BackToBack),
        "the speeds of the links are given, and the maximum rate follows from them",
        |case| case.with_medium(|| Outcome::Met("the maximum is that of the link".into())),
    ),
    &row(
        "9004-5c",
        Must,
        Test(BackToBack),
        "the throughput of all recommended sizes is known, without loss",
        |case| {
            let missing = missing_sizes(case);
            let unknown = bursts(case).find(|(of, _)| case.throughput(of.slot).is_none());
            match (missing.is_empty(), unknown) {
                (true, None) => Outcome::Met(format!("{} throughputs", found(case).len())),
                (false, _) => Outcome::Fails(format!("not measured: {missing:?} B")),
                (_, Some((of, _))) => {
                    Outcome::Fails(format!("no throughput of {}", case.campaign.name_of(of.slot)))
                }
            }
        },
    ),
    &row(
        "9004-5d",
        Must,
        Test(BackToBack),
        "the same directions and number of flows as in the throughput test",
        |case| {
            let other = |of: &Benchmarked, figure: &record::BackToBack| case.off(of.slot, figure.throughput);
            case.each_of(bursts(case), other, "sizes with the throughput of the same frames and flows")
        },
    ),
    &row("9004-5e", Must, Test(BackToBack), "measured by the tester, from bursts and their loss", |case| {
        let unseen = |of: &Benchmarked, figure: &record::BackToBack| {
            let trials = case.of(BackToBack);
            let whole = |frames: u64| {
                trials.iter().any(|trial| {
                    trial.slot == of.slot
                        && trial.shape == Shape::Burst { frames }
                        && trial.generator.frames == frames
                        && trial.receiver.unique() == frames
                })
            };
            let broken = figure.bursts.iter().find(|frames| **frames > 0 && !whole(**frames));
            broken.map(|frames| format!("no burst of {frames} frames passed whole"))
        };
        case.each_of(bursts(case), unseen, "sizes whose bursts passed whole")
    }),
    &row("9004-5f", Should, Test(BackToBack), "other sources of loss are found and removed", |case| {
        let stalls: Vec<f64> = case.searches.iter().filter_map(|search| search.stalls).collect();
        match stalls.into_iter().reduce(f64::max) {
            None => not_run("the tester's stalls were not measured"),
            Some(most) => {
                holds(most == 0.0, format!("the tester alone lost frames {most:.2} times a second"))
            }
        }
    }),
    &row(
        "9004-6.1",
        Procedure,
        Test(BackToBack),
        "only sizes whose throughput is below the maximum",
        |case| {
            let at_maximum = |of: &Benchmarked, figure: &record::BackToBack| {
                let maximum = of.maximum.map_or(f64::INFINITY, |maximum| maximum.fps);
                (figure.throughput >= maximum)
                    .then(|| format!("the throughput, {:.0} frames/s, is the maximum", figure.throughput))
            };
            case.each_of(bursts(case), at_maximum, "sizes below the maximum")
        },
    ),
    &row(
        "9004-6.2a",
        Must,
        Test(BackToBack),
        "burst, drain, and 2 s that do not overlap with the next",
        |case| {
            let close = |trial: &&TrialRecord| {
                let rest = trial.took_ns.saturating_sub(trial.timing.load_ns());
                (rest < 2 * SECOND)
                    .then(|| format!("trial {}: {} s beyond its load", trial.trial, rest as f64 / 1e9))
            };
            case.each(case.of(BackToBack), close, "trials with 2 s of rest and more")
        },
    ),
    &row(
        "9004-6.2b",
        Must,
        Test(BackToBack),
        "a result near the longest burst is repeated with longer ones",
        |case| {
            let near = |_: &_, figure: &record::BackToBack| {
                (figure.most as f64 >= 0.9 * figure.limit as f64)
                    .then(|| format!("{} of at most {} frames", figure.most, figure.limit))
            };
            case.each_of(bursts(case), near, "sizes whose results are below 90 % of the longest burst")
        },
    ),
    &row(
        "9004-6.2c",
        Must,
        Test(BackToBack),
        "binary search, or with loss verification; its step is reported",
        |case| {
            let unknown = |_: &_, figure: &record::BackToBack| (figure.step == 0).then(|| "no step".into());
            let met = format!("binary searches; a loss is verified {} times", case.design.verify);
            case.each_of(bursts(case), unknown, &met)
        },
    ),
    &row("9004-6.3", Must, Test(BackToBack), "N independent searches, N and each value kept", |case| {
        let runs = case.design.runs(BackToBack) as usize;
        let lacks = |_: &_, figure: &record::BackToBack| few(figure.bursts.len(), runs);
        case.each_of(bursts(case), lacks, &format!("sizes with {runs} searches each"))
    }),
    &row(
        "9004-6.4",
        Must,
        Test(BackToBack),
        "mean, extremes, deviation, and buffer times by the formulas",
        |case| case.each_of(bursts(case), recomputed, "sizes, recomputed from their values"),
    ),
    &row(
        "9004-7",
        Must,
        Test(BackToBack),
        "a table with N, extremes, deviation and the corrected time",
        |case| {
            let lacks = |_: &_, figure: &record::BackToBack| {
                (figure.bursts.len() > 1 && figure.deviation.is_none()).then(|| "no deviation".into())
            };
            case.each_of(bursts(case), lacks, "rows of the table")
        },
    ),
];

figures!(bursts, BackToBack);

/// The figure that differs from its formula (RFC 9004, section 6.4).
fn recomputed(of: &Benchmarked, figure: &record::BackToBack) -> Option<String> {
    let n = figure.bursts.len() as f64;
    let values: Vec<f64> = figure.bursts.iter().map(|frames| *frames as f64).collect();
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let maximum = of.maximum?.fps;
    let implied = mean / maximum;
    let same = |a: f64, b: f64| close(a, b, 1e-6) || (a - b).abs() < 1e-12;
    let checks = [
        (same(figure.mean, mean), "the mean"),
        (Some(figure.least) == figure.bursts.iter().min().copied(), "the least"),
        (Some(figure.most) == figure.bursts.iter().max().copied(), "the largest"),
        (figure.deviation.is_none_or(|deviation| same(deviation, variance.sqrt())), "the deviation"),
        (same(figure.implied_s, implied), "the implied buffer time"),
        (
            same(figure.corrected_s, implied * (1.0 - figure.throughput / maximum)),
            "the corrected buffer time",
        ),
    ];
    checks.into_iter().find(|(same, _)| !same).map(|(_, what)| what.into())
}
