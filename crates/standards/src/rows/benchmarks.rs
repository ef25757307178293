//! The tests: RFC 2544, section 26, RFC 6201, RFC 9004, RFC 8219 and RFC 2889.

use super::row;
use super::set_up::{at, connected, found, missing_sizes};
use crate::Level::{Must, Procedure, Should};
use crate::Part::Test;
use crate::Row;
use crate::case::{Case, Outcome, SECOND, holds, not_run};
use linerate_measure::experiment::Benchmark::{
    self, BackToBack, DelayVariation, ForwardingRate, FrameLoss, Latency, Recovery, Reset, Throughput,
};
use linerate_measure::record::{self, Benchmarked, EventClass, Figures, TrialRecord};
use linerate_measure::trial::Shape;

pub const ROWS: &[&Row] = &[
    &row(
        "2544-26.1a",
        Procedure,
        Test(Throughput),
        "at the throughput, as many frames are received as are sent",
        |case| {
            let loses = |slot: &usize| {
                let throughput = case.throughput(*slot)?;
                let name = case.campaign.name_of(*slot);
                let longest = at(case, *slot, throughput).max_by_key(|trial| trial.timing.run_ns);
                match longest {
                    None => Some(format!("{name}: no trial at {throughput:.0} frames/s")),
                    Some(trial) => {
                        let (sent, received) = (trial.generator.frames, trial.receiver.frames);
                        (sent != received || trial.receiver.duplicates() > 0).then(|| {
                            format!("{name}: {received} of {sent} frames at {throughput:.0} frames/s")
                        })
                    }
                }
            };
            case.each(found(case), loses, "throughputs whose longest trial lost no frame")
        },
    ),
    &row(
        "2544-26.1b",
        Should,
        Test(Throughput),
        "a graph over the frame size with the theoretical rate and the result",
        |case| {
            case.with_medium(|| {
                let points = throughputs(case).filter(|(of, _)| of.maximum.is_some()).count();
                holds(points > 1, format!("{points} points, each with its theoretical rate"))
            })
        },
    ),
    &row(
        "2544-26.1c",
        Must,
        Test(Throughput),
        "a single figure has its frames/s, size, theoretical limit and protocol",
        |case| case.with_medium(|| case.each(found(case), |_| None, "figures with size, limit and protocol")),
    ),
    &row("2544-26.2a", Procedure, Test(Latency), "at the throughput of that size", |case| {
        case.each(
            latencies(case),
            |(of, figure)| off(case, of.slot, figure.load),
            "loads equal to the throughput",
        )
    }),
    &row("2544-26.2b", Should, Test(Latency), "a stream of 120 s with the tag after 60 s", |case| {
        case.each(case.of(Latency), early, "trials")
    }),
    &row("2544-26.2c", Must, Test(Latency), "the receiver recognises the tag and stamps it", |case| {
        let none = |(of, run): &(usize, record::LatencyRun)| {
            (run.tags == 0).then(|| format!("{}: a run without tagged frames", case.campaign.name_of(*of)))
        };
        case.each(latency_runs(case), none, "runs with tagged frames")
    }),
    &row("2544-26.2d", Must, Test(Latency), "at least 20 runs, and their mean", |case| {
        let other = |(of, figure): &(&Benchmarked, &record::Latency)| {
            few(case, of.slot, figure.runs.len(), 20).or_else(|| {
                let firsts: f64 = figure.runs.iter().map(|run| run.first_ns as f64).sum();
                let mean = firsts / figure.runs.len() as f64;
                (!close(figure.mean_ns, mean, 1e-6))
                    .then(|| format!("{}: their mean is {mean:.0} ns", case.campaign.name_of(of.slot)))
            })
        };
        case.each(latencies(case), other, "sizes with 20 runs or more")
    }),
    &row("2544-26.2e", Should, Test(Latency), "to the same destination and, again, to a new one", |case| {
        let networks = |(of, _): (&Benchmarked, &record::Latency)| {
            Some(case.slot(of.slot)?.traffic.as_ref()?.flows.networks())
        };
        let networks: Vec<_> = latencies(case).filter_map(networks).collect();
        match (networks.iter().any(|n| *n <= 1), networks.iter().any(|n| *n > 1)) {
            (true, true) => Outcome::Met("one pair and several networks".into()),
            (true, false) => Outcome::Fails("the same destinations throughout".into()),
            (false, _) => Outcome::Fails("new destinations throughout".into()),
        }
    }),
    &row(
        "2544-26.2f",
        Must,
        Test(Latency),
        "the report names the definition of latency (RFC 1242)",
        |case| {
            case.each(
                latencies(case),
                |_| None,
                "from the frame's writing to the receiver's program: nearest to store-and-forward",
            )
        },
    ),
    &row(
        "2544-26.3a",
        Should,
        Test(FrameLoss),
        "from 100 % down until two successive trials lose nothing",
        |case| {
            let open = |(of, loads): &(usize, Vec<record::AtLoad>)| {
                let begins = loads.first().is_some_and(|first| first.share > 0.999);
                let ends = loads.len() > 1 && loads.iter().rev().take(2).all(|load| load.lost == 0);
                (!begins || !ends).then(|| {
                    format!(
                        "{}: from {:.0} %, {} loads",
                        case.campaign.name_of(*of),
                        100.0 * loads.first().map_or(0.0, |load| load.share),
                        loads.len()
                    )
                })
            };
            case.each(losses(case), open, "series from 100 % to two loads without loss")
        },
    ),
    &row("2544-26.3b", Must, Test(FrameLoss), "steps of at most 10 % of the maximum", |case| {
        let coarse = |(of, loads): &(usize, Vec<record::AtLoad>)| {
            let step = loads.windows(2).map(|pair| pair[0].share - pair[1].share).fold(0.0, f64::max);
            (step > 0.100_001)
                .then(|| format!("{}: a step of {:.1} %", case.campaign.name_of(*of), 100.0 * step))
        };
        case.each(losses(case), coarse, "series in steps of 10 % at most")
    }),
    &row(
        "2544-26.3c",
        Must,
        Test(FrameLoss),
        "if plotted: % of the theoretical rate and % loss, both from 0 to 100",
        |case| {
            case.with_medium(|| case.each(losses(case), |_| None, "pictures with both axes from 0 to 100 %"))
        },
    ),
    &row("2544-26.4a", Must, Test(BackToBack), "trials of at least 2 s", |case| {
        let short = |trial: &&TrialRecord| {
            (trial.took_ns < 2 * SECOND)
                .then(|| format!("trial {}: {} s", trial.trial, trial.took_ns as f64 / 1e9))
        };
        case.each(case.of(BackToBack), short, "trials of 2 s and more")
    }),
    &row("2544-26.4b", Should, Test(BackToBack), "at least 50 repeats, and their mean", |case| {
        case.each(
            bursts(case),
            |(of, figure)| few(case, of.slot, figure.bursts.len(), 50),
            "sizes with 50 searches or more",
        )
    }),
    &row(
        "2544-26.5a",
        Procedure,
        Test(Recovery),
        "110 % of the throughput, at most the maximum, for 60 s, then half of it",
        |case| {
            let wrong = |(of, figure): &(&Benchmarked, &record::Recovery)| {
                let name = case.campaign.name_of(of.slot);
                let most = of.maximum.map_or(f64::INFINITY, |maximum| maximum.tester_fps.min(maximum.fps));
                let wanted = (1.1 * figure.throughput).min(most);
                if !close(figure.overload, wanted, 1e-3)
                    || !close(figure.reduced, figure.overload / 2.0, 1e-3)
                {
                    return Some(format!(
                        "{name}: {:.0}, then {:.0} frames/s, of a throughput of {:.0}",
                        figure.overload, figure.reduced, figure.throughput
                    ));
                }
                let early =
                    case.of(Recovery).into_iter().filter(|trial| trial.slot == of.slot).find_map(|trial| {
                        match trial.shape {
                            Shape::Step { after_ns, .. } if after_ns >= 60 * SECOND => None,
                            Shape::Step { after_ns, .. } => Some(after_ns),
                            _ => Some(0),
                        }
                    });
                early.map(|ns| format!("{name}: {} s before the load falls", ns as f64 / 1e9))
            };
            case.each(recoveries(case), wrong, "sizes with this overload")
        },
    ),
    &row("2544-26.5b", Should, Test(Recovery), "repeated, with the mean", |case| {
        case.each(
            recoveries(case),
            |(of, figure)| few(case, of.slot, figure.runs.len(), 2),
            "sizes with several runs",
        )
    }),
    &row("2544-26.6a", Should, Test(Reset), "to directly connected networks only", connected),
    &row(
        "2544-26.6b",
        Should,
        Test(Reset),
        "hardware, software and power reset, a statement for each",
        both_resets,
    ),
    &row(
        "6201-1.3",
        Should,
        Test(Reset),
        "by lost frames where sending continues without a link; otherwise by time stamps",
        |case| {
            let none = |(of, figure): &(&Benchmarked, &record::Reset)| {
                (figure.by_loss_ns.is_none() && figure.by_stamps_ns.is_none())
                    .then(|| format!("{}: no frame came again", case.campaign.name_of(of.slot)))
            };
            case.each(resets(case), none, "reset times by lost frames and by time stamps")
        },
    ),
    &row(
        "6201-1.4b",
        Should,
        Test(Reset),
        "throughput, loss, ms, trials, protocol, size, medium, speed and encapsulation",
        |case| {
            let lacks = |(of, figure): &(&Benchmarked, &record::Reset)| {
                let slot =
                    case.slot(of.slot).filter(|slot| slot.traffic.is_some() && !slot.transport.is_empty());
                (figure.runs.is_empty() || figure.load.is_nan() || figure.load <= 0.0 || slot.is_none())
                    .then(|| format!("{}: no trials, no load or no frames", case.campaign.name_of(of.slot)))
            };
            case.with_medium(|| {
                case.each(resets(case), lacks, "reset times with load, loss, trials, frames and medium")
            })
        },
    ),
    &row(
        "6201-4a",
        Procedure,
        Test(Reset),
        "15 s of forwarding before, the smallest size at its throughput",
        |case| {
            let wrong = |(of, figure): &(&Benchmarked, &record::Reset)| {
                let name = case.campaign.name_of(of.slot);
                let length = case.slot(of.slot).and_then(|slot| slot.lengths_fcs.first().copied());
                if length > case.sizes().first().copied() {
                    return Some(format!("{name}: not the smallest size"));
                }
                let early = |trial: &&TrialRecord| !matches!(trial.shape, Shape::Event { after_ns } if after_ns >= 15 * SECOND);
                let early = case.of(Reset).iter().any(early);
                off(case, of.slot, figure.load)
                    .or(early.then(|| format!("{name}: less than 15 s before the event")))
            };
            case.each(resets(case), wrong, "resets")
        },
    ),
    &row("6201-4b", Must, Test(Reset), "without line cards: power and operating system are reset", |case| {
        match case.is_virtual() {
            true => Outcome::NotApplicable("the DUT is virtual: it has no power of its own".into()),
            false => both_resets(case),
        }
    }),
    &row("9004-3a", Must, Test(BackToBack), "no mix of frame sizes", |case| {
        let mixed = |(of, _): &(&Benchmarked, &record::BackToBack)| {
            let lengths = case.slot(of.slot).map_or(0, |slot| slot.lengths_fcs.len());
            (lengths != 1).then(|| format!("{}: {lengths} lengths", case.campaign.name_of(of.slot)))
        };
        case.each(bursts(case), mixed, "sizes, each alone")
    }),
    &row(
        "9004-3b",
        Should,
        Test(BackToBack),
        "RFC 8239 where the buffer of the output is the known limit",
        |_| not_run("only the operator knows where the limit is"),
    ),
    &row("9004-5a", Must, Test(BackToBack), "all else is as RFC 2544 has it", |case| {
        case.each(bursts(case), |_| None, "see the rows of RFC 2544")
    }),
    &row(
        "9004-5b",
        Must,
        Test(BackToBack),
        "the speeds of the links are given, and used for the maximum rate",
        |case| case.with_medium(|| Outcome::Met("the maximum is that of the link".into())),
    ),
    &row(
        "9004-5c",
        Must,
        Test(BackToBack),
        "the throughput of all recommended sizes is at hand, without loss",
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
    &row("9004-5d", Must, Test(BackToBack), "the same directions and number of flows as there", |case| {
        let other =
            |(of, figure): &(&Benchmarked, &record::BackToBack)| off(case, of.slot, figure.throughput);
        case.each(bursts(case), other, "sizes with the throughput of the same frames and flows")
    }),
    &row("9004-5e", Must, Test(BackToBack), "measured by the tester, from bursts and their loss", |case| {
        let unseen = |(of, figure): &(&Benchmarked, &record::BackToBack)| {
            let trials = case.of(BackToBack);
            let whole = |frames: u64| {
                trials.iter().any(|trial| {
                    trial.slot == of.slot
                        && trial.shape == Shape::Burst { frames }
                        && trial.generator.frames == frames
                        && trial.receiver.unique() == frames
                })
            };
            figure.bursts.iter().find(|frames| **frames > 0 && !whole(**frames)).map(|frames| {
                format!("{}: no burst of {frames} frames passed whole", case.campaign.name_of(of.slot))
            })
        };
        case.each(bursts(case), unseen, "sizes whose bursts passed whole")
    }),
    &row("9004-5f", Should, Test(BackToBack), "other sources of loss are found and removed", |case| {
        let stalls: Vec<f64> = case.searches.iter().filter_map(|search| search.stalls).collect();
        match stalls
            .iter()
            .copied()
            .fold(None, |most: Option<f64>, stall| Some(most.map_or(stall, |most| most.max(stall))))
        {
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
            let at_maximum = |(of, figure): &(&Benchmarked, &record::BackToBack)| {
                let maximum = of.maximum.map_or(f64::INFINITY, |maximum| maximum.fps);
                (figure.throughput >= maximum).then(|| {
                    format!(
                        "{}: {:.0} frames/s are the maximum",
                        case.campaign.name_of(of.slot),
                        figure.throughput
                    )
                })
            };
            case.each(bursts(case), at_maximum, "sizes below the maximum")
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
            let near = |(of, figure): &(&Benchmarked, &record::BackToBack)| {
                (figure.most as f64 >= 0.9 * figure.limit as f64).then(|| {
                    format!(
                        "{}: {} of at most {} frames",
                        case.campaign.name_of(of.slot),
                        figure.most,
                        figure.limit
                    )
                })
            };
            case.each(bursts(case), near, "sizes whose results are below 90 % of the longest burst")
        },
    ),
    &row(
        "9004-6.2c",
        Must,
        Test(BackToBack),
        "binary search, or with loss verification; its step is reported",
        |case| {
            let unknown = |(of, figure): &(&Benchmarked, &record::BackToBack)| {
                (figure.step == 0).then(|| format!("{}: no step", case.campaign.name_of(of.slot)))
            };
            case.each(
                bursts(case),
                unknown,
                &format!("binary searches; a loss is verified {} times", case.design.verify),
            )
        },
    ),
    &row("9004-6.3", Must, Test(BackToBack), "N independent searches, N and each value kept", |case| {
        let runs = case.design.runs(BackToBack) as usize;
        let lacks = |(of, figure): &(&Benchmarked, &record::BackToBack)| {
            few(case, of.slot, figure.bursts.len(), runs)
        };
        case.each(bursts(case), lacks, &format!("sizes with {runs} searches each"))
    }),
    &row(
        "9004-6.4",
        Must,
        Test(BackToBack),
        "mean, extremes, deviation, and buffer times by the formulas",
        |case| {
            case.each(
                bursts(case),
                |(of, figure)| {
                    recomputed(of, figure).map(|what| format!("{}: {what}", case.campaign.name_of(of.slot)))
                },
                "sizes, recomputed from their values",
            )
        },
    ),
    &row(
        "9004-7",
        Must,
        Test(BackToBack),
        "a table with N, extremes, deviation and the corrected time",
        |case| {
            let lacks = |(of, figure): &(&Benchmarked, &record::BackToBack)| {
                (figure.bursts.len() > 1 && figure.deviation.is_none())
                    .then(|| format!("{}: no deviation", case.campaign.name_of(of.slot)))
            };
            case.each(bursts(case), lacks, "rows of the table")
        },
    ),
    &row(
        "8219-7.2a",
        Should,
        Test(Latency),
        "at the throughput, 120 s, 500 tagged frames after 60 s, median and P99.9",
        |case| {
            let loads = latencies(case).find_map(|(of, figure)| off(case, of.slot, figure.load));
            let early = case.of(Latency).iter().find_map(early);
            let few = latency_runs(case)
                .into_iter()
                .find(|(_, run)| run.tags < 500)
                .map(|(_, run)| format!("{} tagged frames", run.tags));
            match loads.or(early).or(few) {
                Some(why) => Outcome::Fails(why),
                None => case.each(latency_runs(case), |_| None, "runs with 500 tagged frames and more"),
            }
        },
    ),
    &row("8219-7.2b", Must, Test(Latency), "at least 20 runs, and their medians", |case| {
        let other = |(of, figure): &(&Benchmarked, &record::Latency)| {
            few(case, of.slot, figure.runs.len(), 20).or_else(|| {
                let middle = |time: fn(&record::LatencyRun) -> f64| {
                    linerate_stats::median(&figure.runs.iter().map(time).collect::<Vec<_>>())
                };
                let medians = [middle(|run| run.typical_ns)?, middle(|run| run.worst_ns)?];
                let same =
                    close(figure.typical_ns, medians[0], 1e-6) && close(figure.worst_ns, medians[1], 1e-6);
                (!same)
                    .then(|| format!("{}: their medians are {medians:?} ns", case.campaign.name_of(of.slot)))
            })
        };
        case.each(latencies(case), other, "sizes with 20 runs or more")
    }),
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
                None => case.each(
                    variations(case),
                    |(of, figure)| few(case, of.slot, figure.runs.len(), 20),
                    "sizes with 20 runs or more",
                ),
            }
        },
    ),
    &row(
        "8219-7.3.2",
        Must,
        Test(DelayVariation),
        "IPDV of at least 20 runs: least, median, largest",
        |case| {
            case.each(
                variations(case),
                |(of, figure)| few(case, of.slot, figure.runs.len(), 20),
                "sizes with 20 runs or more",
            )
        },
    ),
    &row(
        "2889-5.1a",
        Must,
        Test(ForwardingRate),
        "FRMOL and the maximum forwarding rate, each with its load",
        |case| {
            let wrong = |(of, figure): &(&Benchmarked, &record::ForwardingRate)| {
                let known =
                    figure.frmol_offered > 0.0 && figure.mfr_offered > 0.0 && figure.mfr >= figure.frmol;
                (!known).then(|| {
                    format!(
                        "{}: FRMOL {:.0} at {:.0}, MFR {:.0} at {:.0}",
                        case.campaign.name_of(of.slot),
                        figure.frmol,
                        figure.frmol_offered,
                        figure.mfr,
                        figure.mfr_offered
                    )
                })
            };
            case.each(rates(case), wrong, "sizes with both, and their loads")
        },
    ),
    &row("2889-5.1b", Should, Test(ForwardingRate), "trials of 30 s, adjustable from 1 to 300 s", |case| {
        let other = |trial: &&TrialRecord| {
            (!(SECOND..=300 * SECOND).contains(&trial.timing.run_ns))
                .then(|| format!("trial {}: {} s", trial.trial, trial.timing.run_ns as f64 / 1e9))
        };
        case.each(case.of(ForwardingRate), other, "trials of 1 to 300 s")
    }),
];

/// The figures of a test, each with its slot's.
macro_rules! figures {
    ($name:ident, $kind:ident, $type:ty) => {
        fn $name<'c>(case: &Case<'c>) -> impl Iterator<Item = (&'c Benchmarked, &'c $type)> {
            case.tested(Benchmark::$kind).filter_map(|(of, tested)| match &tested.figures {
                Figures::$kind(figure) => Some((of, figure)),
                _ => None,
            })
        }
    };
}

figures!(throughputs, Throughput, record::Throughput);
figures!(latencies, Latency, record::Latency);
figures!(variations, DelayVariation, record::DelayVariation);
figures!(bursts, BackToBack, record::BackToBack);
figures!(recoveries, Recovery, record::Recovery);
figures!(resets, Reset, record::Reset);
figures!(rates, ForwardingRate, record::ForwardingRate);
figures!(curves, FrameLoss, Vec<record::AtLoad>);

fn latency_runs(case: &Case<'_>) -> Vec<(usize, record::LatencyRun)> {
    latencies(case).flat_map(|(of, figure)| figure.runs.iter().map(move |run| (of.slot, *run))).collect()
}

/// Loss over the load by slot: of the test, or of a loss curve's trials, whose first load is 100 %.
fn losses(case: &Case<'_>) -> Vec<(usize, Vec<record::AtLoad>)> {
    if !case.benchmarks.is_empty() {
        return curves(case).map(|(of, loads)| (of.slot, loads.clone())).collect();
    }
    let of_slot = |id: usize| {
        let trials = case.of(FrameLoss).into_iter().filter(|trial| trial.slot == id);
        let trials: Vec<(f64, &TrialRecord)> =
            trials.filter_map(|trial| Some((trial.asked_fps?, trial))).collect();
        let most = trials.iter().map(|(load, _)| *load).fold(0.0, f64::max);
        let at = |(load, trial): &(f64, &TrialRecord)| record::AtLoad {
            load: *load,
            share: load / most,
            offered: trial.rates.map_or(0.0, |rates| rates.offered),
            forwarded: trial.rates.map_or(0.0, |rates| rates.received),
            sent: trial.generator.frames,
            lost: trial.generator.frames.saturating_sub(trial.receiver.unique()),
        };
        (id, trials.iter().map(at).collect())
    };
    case.slots.iter().map(|slot| of_slot(slot.id)).collect()
}

/// Whether power and operating system were reset. Without line cards the power test stands for hardware (RFC 6201, section 4.1).
fn both_resets(case: &Case<'_>) -> Outcome {
    let events: Vec<&record::DutEvent> = resets(case).map(|(_, figure)| &figure.event).collect();
    let has = |class| events.iter().any(|event| event.class == class);
    let names: Vec<&str> = events.iter().map(|event| event.what.as_str()).collect();
    holds(
        has(EventClass::PowerInterruption) && has(EventClass::OsReset),
        format!("events: {}", names.join(", ")),
    )
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * b.abs().max(f64::MIN_POSITIVE)
}

/// A load that is not the throughput of its slot.
fn off(case: &Case<'_>, slot: usize, load: f64) -> Option<String> {
    let name = case.campaign.name_of(slot);
    match case.throughput(slot) {
        None => Some(format!("{name}: no throughput")),
        Some(throughput) => (!close(load, throughput, 1e-6))
            .then(|| format!("{name}: {load:.0} frames/s, and a throughput of {throughput:.0}")),
    }
}

fn few(case: &Case<'_>, slot: usize, runs: usize, wanted: usize) -> Option<String> {
    (runs < wanted).then(|| format!("{}: {runs} of {wanted}", case.campaign.name_of(slot)))
}

/// A trial of latency that is too short, or whose frames are tagged too early.
fn early(trial: &&TrialRecord) -> Option<String> {
    let tagged =
        trial.receiver.delays.as_ref().and_then(|delays| delays.tagged.iter().map(|(sent, _)| *sent).min());
    let first = tagged.unwrap_or(0);
    (trial.timing.run_ns < 120 * SECOND || first < 60 * SECOND).then(|| {
        format!(
            "trial {}: {} s, first tag after {:.1} s",
            trial.trial,
            trial.timing.run_ns as f64 / 1e9,
            first as f64 / 1e9
        )
    })
}

/// The figure that differs from its formula (RFC 9004, section 6.4).
fn recomputed(of: &Benchmarked, figure: &record::BackToBack) -> Option<&'static str> {
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
    checks.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
}
