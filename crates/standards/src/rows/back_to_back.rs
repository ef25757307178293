//! RFC 2544, section 26.4, and RFC 9004: back-to-back frames.

use super::set_up::{found, missing_sizes};
use super::{close, few, figures, must, should, step};
use crate::Part::Test;
use crate::Section;
use crate::case::{SECOND, fails, holds, met, not_run, seconds};
use linerate_measure::experiment::Benchmark::BackToBack;
use linerate_measure::record::{self, Benchmarked};
use linerate_measure::trial::Shape;

pub const SECTIONS: &[Section] = &[(
    Test(BackToBack),
    &[
        must("2544-26.4a", "trials of at least 2 s", |case| {
            case.each_trial(BackToBack, "trials of 2 s and more", |trial| {
                (trial.took_ns < 2 * SECOND).then(|| format!("{} s", seconds(trial.took_ns)))
            })
        }),
        should(
            "2544-26.4b",
            "at least 50 repeats, and their mean",
            |case| {
                case.each_of(
                    bursts(case),
                    "sizes with 50 searches or more",
                    |_, figure| few(figure.bursts.len(), 50),
                )
            },
        ),
        must("9004-3a", "no mix of frame sizes", |case| {
            case.each_of(bursts(case), "sizes, each alone", |of, _| {
                let lengths = case.slot(of.slot).map_or(0, |slot| slot.lengths_fcs.len());
                (lengths != 1).then(|| format!("{lengths} lengths"))
            })
        }),
        should(
            "9004-3b",
            "RFC 8239 instead, if the buffer of the output is the known limit",
            |_| not_run("only the operator knows the limit"),
        ),
        must("9004-5a", "everything else follows RFC 2544", |case| {
            case.some(bursts(case), "see the rows of RFC 2544")
        }),
        must(
            "9004-5b",
            "the speeds of the links are given, and the maximum rate follows from them",
            |case| case.with_medium(|| met("the maximum is that of the link")),
        ),
        must(
            "9004-5c",
            "the throughput of all recommended sizes is known, without loss",
            |case| {
                let missing = missing_sizes(case);
                let unknown = bursts(case).find(|(of, _)| case.throughput(of.slot).is_none());
                match (missing.is_empty(), unknown) {
                    (true, None) => met(format!("{} throughputs", found(case).len())),
                    (false, _) => fails(format!("not measured: {missing:?} B")),
                    (_, Some((of, _))) => {
                        fails(format!("no throughput of {}", case.name_of(of.slot)))
                    }
                }
            },
        ),
        must(
            "9004-5d",
            "the same directions and number of flows as in the throughput test",
            |case| {
                case.each_of(
                    bursts(case),
                    "sizes with the throughput of the same frames and flows",
                    |of, figure| case.off(of.slot, figure.throughput),
                )
            },
        ),
        must(
            "9004-5e",
            "measured by the tester, from bursts and their loss",
            |case| {
                case.each_of(
                    bursts(case),
                    "sizes whose bursts passed whole",
                    |of, figure| {
                        let trials = case.of(BackToBack);
                        let whole = |frames: u64| {
                            trials.iter().any(|trial| {
                                trial.slot == of.slot
                                    && trial.shape == Shape::Burst { frames }
                                    && trial.generator.frames == frames
                                    && trial.receiver.unique() == frames
                            })
                        };
                        let broken = figure
                            .bursts
                            .iter()
                            .find(|frames| **frames > 0 && !whole(**frames));
                        broken.map(|frames| format!("no burst of {frames} frames passed whole"))
                    },
                )
            },
        ),
        should(
            "9004-5f",
            "other sources of loss are found and removed",
            |case| {
                let stalls: Vec<f64> = case
                    .searches
                    .iter()
                    .filter_map(|search| search.stalls)
                    .collect();
                match stalls.into_iter().reduce(f64::max) {
                    None => not_run("the tester's stalls were not measured"),
                    Some(most) => holds(
                        most == 0.0,
                        format!("the tester alone lost frames {most:.2} times a second"),
                    ),
                }
            },
        ),
        step(
            "9004-6.1",
            "only sizes whose throughput is below the maximum",
            |case| {
                case.each_of(bursts(case), "sizes below the maximum", |of, figure| {
                    let maximum = of.maximum.map_or(f64::INFINITY, |maximum| maximum.fps);
                    (figure.throughput >= maximum).then(|| {
                        format!(
                            "the throughput, {:.0} frames/s, is the maximum",
                            figure.throughput
                        )
                    })
                })
            },
        ),
        must(
            "9004-6.2a",
            "burst, drain, and 2 s that do not overlap with the next",
            |case| {
                case.each_trial(BackToBack, "trials with 2 s of rest and more", |trial| {
                    let rest = trial.took_ns.saturating_sub(trial.timing.load_ns());
                    (rest < 2 * SECOND).then(|| format!("{} s beyond its load", seconds(rest)))
                })
            },
        ),
        must(
            "9004-6.2b",
            "a result near the longest burst is repeated with longer ones",
            |case| {
                case.each_of(
                    bursts(case),
                    "sizes whose results are below 90 % of the longest burst",
                    |_, figure| {
                        (figure.most as f64 >= 0.9 * figure.limit as f64)
                            .then(|| format!("{} of at most {} frames", figure.most, figure.limit))
                    },
                )
            },
        ),
        must(
            "9004-6.2c",
            "binary search, or with loss verification; its step is reported",
            |case| {
                let met = format!(
                    "binary searches; a loss is verified {} times",
                    case.design.verify
                );
                case.each_of(bursts(case), &met, |_, figure| {
                    (figure.step == 0).then(|| "no step".into())
                })
            },
        ),
        must(
            "9004-6.3",
            "N independent searches, N and each value kept",
            |case| {
                let runs = case.design.runs(BackToBack) as usize;
                case.each_of(
                    bursts(case),
                    &format!("sizes with {runs} searches each"),
                    |_, figure| few(figure.bursts.len(), runs),
                )
            },
        ),
        must(
            "9004-6.4",
            "mean, extremes, deviation, and buffer times by the formulas",
            |case| {
                case.each_of(
                    bursts(case),
                    "sizes, recomputed from their values",
                    recomputed,
                )
            },
        ),
        must(
            "9004-7",
            "a table with N, extremes, deviation and the corrected time",
            |case| {
                case.each_of(bursts(case), "rows of the table", |_, figure| {
                    (figure.bursts.len() > 1 && figure.deviation.is_none())
                        .then(|| "no deviation".into())
                })
            },
        ),
    ],
)];

figures!(bursts, BackToBack);

/// The figure that differs from its formula (RFC 9004, section 6.4).
fn recomputed(of: &Benchmarked, figure: &record::BackToBack) -> Option<String> {
    let n = figure.bursts.len() as f64;
    let values: Vec<f64> = figure.bursts.iter().map(|frames| *frames as f64).collect();
    let mean = values.iter().sum::<f64>() / n;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    let maximum = of.maximum?.fps;
    let implied = mean / maximum;
    let same = |a: f64, b: f64| close(a, b, 1e-6) || (a - b).abs() < 1e-12;
    let checks = [
        (same(figure.mean, mean), "the mean"),
        (
            Some(figure.least) == figure.bursts.iter().min().copied(),
            "the least",
        ),
        (
            Some(figure.most) == figure.bursts.iter().max().copied(),
            "the largest",
        ),
        (
            figure
                .deviation
                .is_none_or(|deviation| same(deviation, variance.sqrt())),
            "the deviation",
        ),
        (same(figure.implied_s, implied), "the implied buffer time"),
        (
            same(
                figure.corrected_s,
                implied * (1.0 - figure.throughput / maximum),
            ),
            "the corrected buffer time",
        ),
    ];
    checks
        .into_iter()
        .find(|(same, _)| !same)
        .map(|(_, what)| what.into())
}
