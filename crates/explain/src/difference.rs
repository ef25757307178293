//! Where the extra time of a slower variant goes.

use crate::case::Case;
use crate::stages::stages;
use linerate_stats::Estimate;
use serde::Serialize;
use std::collections::BTreeMap;

/// The time of a frame in one slot against another, divided into parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Names of the slots: before and after.
    pub names: [String; 2],
    /// Nanoseconds of a frame, by the median rates.
    pub frame_ns: [f64; 2],
    /// Nanoseconds that a frame takes longer, by the ratio of the rates, with its interval.
    pub measured_ns: Estimate,
    /// The same by stage, of the two sampled trials. Their sum and `unexplained_ns` are the measured difference.
    pub stages: Vec<Part>,
    /// By function, without the functions that it called; the largest first.
    pub functions: Vec<Part>,
    /// The measured difference without that of the two sampled trials.
    pub unexplained_ns: f64,
    /// Whether the difference of the sampled trials lies in the interval of the measured one; `None` without an interval.
    pub adds_up: Option<bool>,
}

/// A part of a frame's time, in two slots.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// The stage or the function.
    pub name: String,
    /// Nanoseconds of a frame, before and after.
    pub ns: [f64; 2],
    /// Standard error of their difference, of the number of samples.
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

/// The parts of one slot's sampled trial: nanoseconds and standard error by name.
struct Side {
    frame_ns: f64,
    stages: Vec<(String, [f64; 2])>,
    functions: BTreeMap<String, [f64; 2]>,
}

impl Side {
    fn of(case: &Case<'_>) -> Result<Side, String> {
        let name = &case.slot.name;
        let frame_ns = case
            .frame_ns()
            .ok_or_else(|| format!("the frames of {name} were paced, so they have no cost"))?;
        let profile = case.profile().map_err(|why| format!("{name}: {why}"))?;
        // The stages are shares of the usual frame: the sampled trial had a time of its own.
        let scale = case.sampled_ns().map_or(1.0, |ns| ns / frame_ns);
        let stages =
            stages(case).into_iter().map(|stage| (stage.name, [stage.ns, stage.error].map(|ns| ns * scale)));
        let all = case.samples();
        let functions = profile.functions().into_iter().map(|function| {
            let share = function.own as f64 / all;
            let error = (share * (1.0 - share) / all).sqrt();
            (function.name, [share, error].map(|share| share * frame_ns * scale))
        });
        Ok(Side { frame_ns, stages: stages.collect(), functions: functions.collect() })
    }
}

/// Compares the time of a frame in two slots. `ratio`: the rate after by the rate before.
///
/// # Errors
/// One of the slots was not profiled, or its frames were paced.
pub fn difference([before, after]: [&Case<'_>; 2], ratio: Estimate) -> Result<Difference, String> {
    let [a, b] = [Side::of(before)?, Side::of(after)?];
    let part = |name: &String, a: [f64; 2], b: [f64; 2]| Part {
        name: name.clone(),
        ns: [a[0], b[0]],
        error: a[1].hypot(b[1]),
    };
    let stages: Vec<Part> =
        a.stages.iter().zip(&b.stages).map(|((name, a), (_, b))| part(name, *a, *b)).collect();
    let mut names: Vec<&String> = a.functions.keys().chain(b.functions.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |side: &Side, name: &String| side.functions.get(name).copied().unwrap_or_default();
    let mut functions: Vec<Part> =
        names.into_iter().map(|name| part(name, of(&a, name), of(&b, name))).collect();
    functions.sort_by(|x, y| y.longer().abs().total_cmp(&x.longer().abs()));
    // The larger the ratio of the rates, the shorter the time.
    let longer = |ratio: f64| a.frame_ns * (1.0 / ratio - 1.0);
    let measured_ns = Estimate {
        median: longer(ratio.median),
        low: ratio.high.map(longer),
        high: ratio.low.map(longer),
        n: ratio.n,
    };
    let sampled: f64 = stages.iter().map(Part::longer).sum();
    let adds_up = measured_ns.low.zip(measured_ns.high).map(|(low, high)| (low..=high).contains(&sampled));
    Ok(Difference {
        names: [before, after].map(|case| case.slot.name.clone()),
        frame_ns: [a.frame_ns, b.frame_ns],
        unexplained_ns: measured_ns.median - sampled,
        measured_ns,
        stages,
        functions,
        adds_up,
    })
}
