//! Where the extra time of a slower variant goes.

use crate::case::Case;
use crate::stages::stages;
use linerate_measure::record::{Events, longer_ns};
use linerate_profile::Function;
use linerate_stats::Estimate;
use linerate_stats::means::{Moments, welch};
use serde::Serialize;
use std::collections::BTreeMap;

/// The time of a frame in one slot against another, divided into parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Names of the slots: before and after.
    pub names: [String; 2],
    /// Nanoseconds of a frame, by the median rates.
    pub frame_ns: [f64; 2],
    /// Nanoseconds of a frame in the sampled trials, by their rate.
    pub sampled_frame_ns: [f64; 2],
    /// Nanoseconds that a frame takes longer, by the ratio of the rates, with its interval.
    pub measured_ns: Estimate,
    /// The difference in the sampled trials, with the interval of Welch's test of their rates. `n`: trials of both slots. The sum of
    /// the stages.
    pub sampled_ns: Estimate,
    /// The measured difference without that of the sampled trials. Half of its interval is the root of the sum of the squares of
    /// theirs.
    pub unexplained_ns: Estimate,
    /// Whether that interval contains 0; `None` where the measured difference has no interval.
    pub adds_up: Option<bool>,
    /// The time by stage, in the sampled trials.
    pub stages: Vec<Part>,
    /// By function, without the functions that it called: those whose difference is clear first, then the largest first.
    pub functions: Vec<Part>,
    /// Waits for locks, in trials of their own; `None` where they were not measured. They are a part of the functions' times.
    pub locks: Option<Locks>,
    /// Events of the CPUs that forward, for each frame of the sampled trials, before and after: `cache-misses`.
    pub counted: BTreeMap<String, [f64; 2]>,
}

/// Time of a frame that was waited for locks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Locks {
    /// All waits.
    pub all: Part,
    /// Waits of the functions that wanted a lock, in the same order.
    pub functions: Vec<Part>,
}

/// A part of a frame's time, in two slots.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The stage or the function.
    pub name: String,
    /// Nanoseconds of a frame, before and after.
    pub ns: [f64; 2],
    /// Standard error of their difference, of the number of samples; 0 for times that were measured.
    pub error: f64,
}

impl Part {
    /// Nanoseconds that it takes longer.
    pub fn longer(&self) -> f64 {
        self.ns[1] - self.ns[0]
    }

    /// Whether the difference is more than three standard errors.
    pub fn is_clear(&self) -> bool {
        self.longer().abs() > 3.0 * self.error
    }
}

/// The parts of one slot's sampled trials: nanoseconds and standard error by name.
struct Side {
    frame_ns: f64,
    sampled_frame_ns: f64,
    /// Nanoseconds of a frame in each sampled trial.
    trials: Vec<f64>,
    stages: Vec<(String, [f64; 2])>,
    functions: BTreeMap<String, [f64; 2]>,
}

impl Side {
    fn of(case: &Case<'_>) -> Result<Side, String> {
        let name = &case.slot.name;
        let frame_ns = case
            .frame_ns()
            .ok_or_else(|| format!("the rate of {name} was limited (a rate was asked for, or the simulated DUT has one), so the cost of a frame is not known"))?;
        let profile = case.profile().map_err(|why| format!("{name}: {why}"))?;
        // The stages are shares of the usual frame: the sampled trials had a time of their own.
        let looked = case.looked();
        let sampled = looked.and_then(|looked| case.ns_at(looked.received?));
        let scale = sampled.map_or(1.0, |ns| ns / frame_ns);
        let trials = looked.map_or(&[][..], |looked| &looked.rates);
        let stages = stages(case)
            .into_iter()
            .map(|stage| (stage.name, [stage.ns, stage.error].map(|ns| ns * scale)));
        let all = case.samples();
        let functions = profile.functions().into_iter().map(|function| {
            let share = function.own as f64 / all;
            let error = (share * (1.0 - share) / all).sqrt();
            (
                function.name,
                [share, error].map(|share| share * frame_ns * scale),
            )
        });
        Ok(Side {
            frame_ns,
            sampled_frame_ns: frame_ns * scale,
            trials: trials.iter().filter_map(|rate| case.ns_at(*rate)).collect(),
            stages: stages.collect(),
            functions: functions.collect(),
        })
    }
}

/// Parts of the names that either side has: those whose difference is clear first, then the largest first.
fn by_name(a: &BTreeMap<String, [f64; 2]>, b: &BTreeMap<String, [f64; 2]>) -> Vec<Part> {
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |side: &BTreeMap<String, [f64; 2]>, name: &String| {
        side.get(name).copied().unwrap_or_default()
    };
    let mut parts: Vec<Part> = names
        .into_iter()
        .map(|name| part(name, of(a, name), of(b, name)))
        .collect();
    parts.sort_by(|x, y| {
        y.is_clear()
            .cmp(&x.is_clear())
            .then(y.longer().abs().total_cmp(&x.longer().abs()))
    });
    parts
}

fn part(name: &str, a: [f64; 2], b: [f64; 2]) -> Part {
    Part {
        name: name.into(),
        ns: [a[0], b[0]],
        error: a[1].hypot(b[1]),
    }
}

/// Compares the time of a frame in two slots. `ratio`: the rate after by the rate before.
///
/// # Errors
/// One of the slots was not profiled, or its frames were paced.
pub fn difference(cases: [&Case<'_>; 2], ratio: Estimate) -> Result<Difference, String> {
    let [a, b] = [Side::of(cases[0])?, Side::of(cases[1])?];
    let stages: Vec<Part> = a
        .stages
        .iter()
        .zip(&b.stages)
        .map(|((name, a), (_, b))| part(name, *a, *b))
        .collect();
    let measured =
        longer_ns(a.frame_ns, ratio.inverse()).ok_or("one of the two forwarded no frame")?;
    let sampled: f64 = stages.iter().map(Part::longer).sum();
    let spread = Moments::of(&a.trials).zip(Moments::of(&b.trials));
    let spread = spread
        .and_then(|(a, b)| welch(&a, &b, 0.95))
        .map(|welch| welch.high - welch.difference);
    let rest = measured.median - sampled;
    let half = |end: f64| (end - measured.median).hypot(spread.unwrap_or(0.0));
    let unexplained = Estimate {
        median: rest,
        low: measured.low.map(|low| rest - half(low)),
        high: measured.high.map(|high| rest + half(high)),
        n: measured.n,
    };
    Ok(Difference {
        names: cases.map(|case| case.slot.name.clone()),
        frame_ns: [a.frame_ns, b.frame_ns],
        sampled_frame_ns: [a.sampled_frame_ns, b.sampled_frame_ns],
        adds_up: unexplained
            .low
            .zip(unexplained.high)
            .map(|(low, high)| (low..=high).contains(&0.0)),
        sampled_ns: Estimate {
            median: sampled,
            low: spread.map(|half| sampled - half),
            high: spread.map(|half| sampled + half),
            n: a.trials.len() + b.trials.len(),
        },
        measured_ns: measured,
        unexplained_ns: unexplained,
        stages,
        functions: by_name(&a.functions, &b.functions),
        locks: locks(cases),
        counted: counted(cases),
    })
}

fn locks(cases: [&Case<'_>; 2]) -> Option<Locks> {
    let waited = |case: &Case<'_>| {
        let Events {
            sent,
            waits: Some(waits),
            ..
        } = case.looked()?.events.clone()?
        else {
            return None;
        };
        let each = |ns: u64| [ns as f64 / sent.max(1) as f64, 0.0];
        let of_function = |f: Function| (f.name, each(f.own));
        Some((
            each(waits.ns),
            waits.functions.into_iter().map(of_function).collect(),
        ))
    };
    let ((all_a, a), (all_b, b)) = (waited(cases[0])?, waited(cases[1])?);
    Some(Locks {
        all: part("all waits for locks", all_a, all_b),
        functions: by_name(&a, &b),
    })
}

fn counted(cases: [&Case<'_>; 2]) -> BTreeMap<String, [f64; 2]> {
    let [a, b] = cases.map(|case| {
        case.looked()
            .map(|looked| looked.counted_by_frame())
            .unwrap_or_default()
    });
    a.into_iter()
        .filter_map(|(name, before)| Some((name.clone(), [before, *b.get(&name)?])))
        .collect()
}
