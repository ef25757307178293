//! Figures of RFC 2544's tests, from the trials and their strategy.

use crate::counters::Delays;
use crate::experiment::Benchmark;
use crate::record::{
    AtLoad, BackToBack, Benchmarked, DelayVariation, EventClass, Figures, ForwardingRate, Latency,
    LatencyRun, Maximum, POWER_OFF_NS, Recovery, RecoveryRun, Reset, ResetRun, Tested, Throughput,
    TrialRecord, VariationRun,
};
use crate::strategy::Benched;
use crate::trial::Shape;
use linerate_stats::histogram::Histogram;
use linerate_stats::means::Moments;
use linerate_stats::{median, sorted};

/// The results of all slots. `courses`: in the order of the slots.
pub(super) fn benchmarked(courses: &[Benched], trials: &[TrialRecord]) -> Vec<Benchmarked> {
    let of_slot = |courses: &[Benched]| Benchmarked {
        slot: courses[0].slot,
        maximum: maximum(&courses[0]),
        tests: courses
            .iter()
            .map(|course| tested(course, trials))
            .collect(),
    };
    courses
        .chunk_by(|a, b| a.slot == b.slot)
        .map(of_slot)
        .collect()
}

fn maximum(course: &Benched) -> Option<Maximum> {
    let tester_fps = course.highest?;
    Some(Maximum {
        fps: course.line.unwrap_or(tester_fps),
        medium: course.line.is_some(),
        tester_fps,
        kept: course.kept,
    })
}

fn tested(course: &Benched, trials: &[TrialRecord]) -> Tested {
    let of_test =
        |trial: &&TrialRecord| trial.slot == course.slot && trial.benchmark == Some(course.test);
    let all: Vec<&TrialRecord> = trials.iter().filter(of_test).collect();
    let valid: Vec<&TrialRecord> = all
        .iter()
        .copied()
        .filter(|trial| trial.audit.valid)
        .collect();
    let figures = maximum(course).and_then(|maximum| figures(course, maximum, &valid));
    Tested {
        test: course.test,
        why: course.why,
        valid_trials: valid.len(),
        trials: all.len(),
        figures: figures.unwrap_or_default(),
    }
}

fn figures(course: &Benched, maximum: Maximum, valid: &[&TrialRecord]) -> Option<Figures> {
    let load = || valid.first().and_then(|trial| trial.asked_fps);
    let loads = || -> Vec<AtLoad> {
        valid
            .iter()
            .filter_map(|trial| at_load(trial, maximum))
            .collect()
    };
    let some = !valid.is_empty();
    Some(match course.test {
        Benchmark::Throughput => Figures::Throughput(throughput(course, valid)?),
        Benchmark::Latency => Figures::Latency(latency(load()?, valid)?),
        Benchmark::DelayVariation => Figures::DelayVariation(variation(load()?, valid)?),
        Benchmark::FrameLoss => Figures::FrameLoss(some.then(loads)?),
        Benchmark::BackToBack => Figures::BackToBack(back_to_back(course, maximum, valid)?),
        Benchmark::Recovery => Figures::Recovery(recovery(course, valid)?),
        Benchmark::Reset => Figures::Reset(reset(valid)?),
        Benchmark::ForwardingRate => Figures::ForwardingRate(forwarding(loads())?),
        Benchmark::Stability => return None,
    })
}

fn lost(trial: &TrialRecord) -> u64 {
    trial
        .generator
        .frames
        .saturating_sub(trial.receiver.unique())
}

fn mean(values: &[f64]) -> Option<f64> {
    Moments::of(values).map(|moments| moments.mean)
}

fn throughput(course: &Benched, valid: &[&TrialRecord]) -> Option<Throughput> {
    let fps = course.throughput?;
    let at = valid
        .iter()
        .filter(|trial| trial.asked_fps == Some(fps) && lost(trial) == 0);
    let longest = at.max_by_key(|trial| trial.timing.run_ns)?;
    let loses = |trial: &&&TrialRecord| lost(trial) > 0 && trial.asked_fps > Some(fps);
    Some(Throughput {
        fps,
        upper: valid
            .iter()
            .filter(loses)
            .filter_map(|trial| trial.asked_fps)
            .reduce(f64::min),
        frames: longest.generator.frames,
        seconds: longest.timing.load_ns() as f64 / 1e9,
        burst_s: (longest.generator.bursts > 0)
            .then(|| longest.generator.bursts_ns as f64 / longest.generator.bursts as f64 / 1e9),
    })
}

fn at_load(trial: &&TrialRecord, maximum: Maximum) -> Option<AtLoad> {
    let (load, rates, ways) = (trial.asked_fps?, trial.rates?, trial.ways() as f64);
    Some(AtLoad {
        load,
        share: load / maximum.fps,
        offered: rates.offered / ways,
        forwarded: rates.received / ways,
        sent: trial.generator.frames,
        lost: lost(trial),
    })
}

/// The value below which a share of the values lies; of 500, 99.9 % are below the largest alone.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

fn shift(trial: &TrialRecord) -> u64 {
    trial.clocks.map_or(0, |clocks| clocks.shift_ns)
}

fn latency(load: f64, valid: &[&TrialRecord]) -> Option<Latency> {
    let run = |trial: &&TrialRecord| {
        let tagged = &trial.receiver.delays.as_ref()?.tagged;
        let beyond = |(_, ns): &(u64, u64)| ns.saturating_sub(shift(trial));
        let all = sorted(tagged.iter().map(|tag| beyond(tag) as f64));
        Some(LatencyRun {
            tags: tagged.len(),
            first_ns: tagged
                .iter()
                .min_by_key(|(sent_ns, _)| *sent_ns)
                .map(beyond)?,
            typical_ns: median(&all)?,
            worst_ns: quantile(&all, 0.999)?,
        })
    };
    let runs: Vec<LatencyRun> = valid.iter().filter_map(run).collect();
    let of = |figure: fn(&LatencyRun) -> f64| runs.iter().map(figure).collect::<Vec<f64>>();
    Some(Latency {
        load,
        mean_ns: mean(&of(|run| run.first_ns as f64))?,
        typical_ns: median(&of(|run| run.typical_ns))?,
        worst_ns: median(&of(|run| run.worst_ns))?,
        runs,
    })
}

/// The median of differences that are counted by their sign.
fn middle(delays: &Delays) -> Option<f64> {
    let Delays { earlier, later, .. } = delays;
    let (below, above) = (earlier.count(), later.count());
    let of = |histogram: &Histogram, rank: f64, count: u64| {
        histogram.quantile(rank / count as f64).map(|ns| ns as f64)
    };
    let half = (below + above) as f64 / 2.0;
    match half < below as f64 {
        // The largest of those below zero are the smallest by their size.
        true => of(earlier, below as f64 - half, below).map(|ns| -ns),
        false => of(later, half - below as f64, above),
    }
}

fn variation(load: f64, valid: &[&TrialRecord]) -> Option<DelayVariation> {
    let run = |trial: &&TrialRecord| {
        let delays = trial.receiver.delays.as_ref()?;
        Some(VariationRun {
            frames: delays.frames,
            // The clocks' offset is part of both.
            pdv_ns: (trial.receiver.latency.quantile(0.999)? as f64 - delays.min_ns as f64)
                .max(0.0),
            ipdv_ns: [
                delays.least_ns as f64,
                middle(delays)?,
                delays.most_ns as f64,
            ],
            broken: delays.broken,
        })
    };
    let runs: Vec<VariationRun> = valid.iter().filter_map(run).collect();
    let middle = |figure: &dyn Fn(&VariationRun) -> f64| {
        median(&runs.iter().map(figure).collect::<Vec<f64>>())
    };
    Some(DelayVariation {
        load,
        pdv_ns: middle(&|run| run.pdv_ns)?,
        ipdv_ns: [
            middle(&|run| run.ipdv_ns[0])?,
            middle(&|run| run.ipdv_ns[1])?,
            middle(&|run| run.ipdv_ns[2])?,
        ],
        runs,
    })
}

/// RFC 9004, section 6.4, in frames/s throughout.
fn back_to_back(course: &Benched, maximum: Maximum, valid: &[&TrialRecord]) -> Option<BackToBack> {
    let bursts = course.bursts.clone();
    let frames: Vec<f64> = bursts.iter().map(|frames| *frames as f64).collect();
    let (Moments { mean, stddev, .. }, throughput) = (Moments::of(&frames)?, course.throughput?);
    // Without a medium, bursts have the rate that the tester was asked for.
    let rate = if maximum.medium {
        maximum.fps
    } else {
        maximum.tester_fps
    };
    let implied_s = mean / rate;
    let corrected_s = implied_s * (1.0 - throughput / rate).max(0.0);
    let actual = |trial: &&TrialRecord| {
        let (frames, ns) = (
            trial.generator.frames / trial.ways() as u64,
            trial.generator.active_ns,
        );
        (ns > 0 && frames > 1).then(|| (frames - 1) as f64 * 1e9 / ns as f64)
    };
    let actual = median(&valid.iter().filter_map(actual).collect::<Vec<f64>>());
    Some(BackToBack {
        mean,
        least: *bursts.iter().min()?,
        most: *bursts.iter().max()?,
        deviation: stddev,
        implied_s,
        corrected_s,
        actual_s: actual.map(|actual| corrected_s * rate / actual),
        throughput,
        limit: course.most,
        step: course.step,
        bursts,
    })
}

fn recovery(course: &Benched, valid: &[&TrialRecord]) -> Option<Recovery> {
    let mut loads = (0.0, 0.0);
    let mut runs = Vec::new();
    for trial in valid {
        let (Shape::Step { after_ns, fps }, Some(load)) = (trial.shape, trial.asked_fps) else {
            continue;
        };
        loads = (load, fps);
        let (falls, ends) = (trial.timing.warm_up_ns + after_ns, trial.timing.load_ns());
        let last = trial.receiver.last_loss_ns.unwrap_or(0);
        // The frame that reveals a loss comes one gap after it.
        let until_the_end = last as f64 + 2e9 / fps >= ends as f64;
        runs.push(RecoveryRun {
            lost: lost(trial),
            ns: (!until_the_end).then(|| last.saturating_sub(falls)),
        });
    }
    let known: Vec<f64> = runs.iter().filter_map(|run| Some(run.ns? as f64)).collect();
    let (throughput, (overload, reduced)) = (course.throughput?, loads);
    (!runs.is_empty()).then(|| Recovery {
        throughput,
        overload,
        reduced,
        mean_ns: mean(&known),
        runs,
    })
}

fn reset(valid: &[&TrialRecord]) -> Option<Reset> {
    let event = valid.iter().find_map(|trial| trial.event.clone())?;
    let off_ns = if event.class == EventClass::PowerInterruption {
        POWER_OFF_NS
    } else {
        0
    };
    let run = |trial: &&TrialRecord| {
        let rate = trial.rates?.offered;
        let lost = lost(trial);
        let outage = trial
            .receiver
            .outages
            .iter()
            .filter(|outage| outage.missing > 0);
        let longest = outage.max_by_key(|outage| outage.to_ns.saturating_sub(outage.from_ns));
        let last = trial.receiver.last_loss_ns.unwrap_or(0);
        Some(ResetRun {
            lost,
            by_loss_ns: (1e9 * lost as f64 / rate - off_ns as f64).max(0.0),
            by_stamps_ns: longest.map(|outage| {
                outage
                    .to_ns
                    .saturating_sub(outage.from_ns)
                    .saturating_sub(off_ns)
            }),
            back: (last as f64 + 2e9 / rate) < trial.timing.load_ns() as f64,
        })
    };
    let runs: Vec<ResetRun> = valid
        .iter()
        .filter_map(run)
        .filter(|run| run.by_loss_ns.is_finite())
        .collect();
    let back = || runs.iter().filter(|run| run.back);
    Some(Reset {
        event,
        load: valid.first()?.asked_fps?,
        by_loss_ns: mean(&back().map(|run| run.by_loss_ns).collect::<Vec<f64>>()),
        by_stamps_ns: mean(
            &back()
                .filter_map(|run| Some(run.by_stamps_ns? as f64))
                .collect::<Vec<f64>>(),
        ),
        runs,
    })
}

fn forwarding(loads: Vec<AtLoad>) -> Option<ForwardingRate> {
    let highest = *loads.first()?;
    let best = loads
        .iter()
        .copied()
        .reduce(|a, b| if b.forwarded > a.forwarded { b } else { a })?;
    Some(ForwardingRate {
        frmol: highest.forwarded,
        frmol_offered: highest.offered,
        mfr: best.forwarded,
        mfr_offered: best.offered,
        loads,
    })
}
