//! The inside of trials: rates from sample to sample.

use super::super::shown::Shown;
use super::left_out;
use crate::prelude::*;
use linerate_measure::trial::{Sample, Shape};

/// Cells with a picture of the inside of their trials.
const MOST_LOADS: usize = 4;
/// The fewest samples of a trial that make a line.
const FEWEST_SAMPLES: usize = 4;
/// The share of the sent frames from which on a loss is marked: fewer may be under way.
const LOSS_SHOWN: f64 = 0.005;

/// Rates inside the trials, from sample to sample.
pub fn loads(page: &mut Document, shown: &Shown<'_>) {
    let of = |slot: &Slot| -> Vec<&TrialRecord> {
        let steady = shown
            .valid(slot.id)
            .filter(|trial| trial.samples.len() >= FEWEST_SAMPLES);
        // Trials at another load, or of another length, are others.
        let mut all: Vec<&TrialRecord> = steady.collect();
        let last = all
            .last()
            .map(|last| (last.asked_fps, last.timing, last.shape));
        all.retain(|trial| Some((trial.asked_fps, trial.timing, trial.shape)) == last);
        all
    };
    let with_dut = shown.slots().filter(|slot| !slot.is_calibration());
    let all: Vec<(&Slot, Vec<&TrialRecord>)> = with_dut
        .map(|slot| (slot, of(slot)))
        .filter(|(_, trials)| !trials.is_empty())
        .collect();
    if all.is_empty() {
        return;
    }
    page.heading("Inside the trials");
    for (slot, trials) in all.iter().take(MOST_LOADS) {
        page.chart(inside(shown, slot, trials));
    }
    let any = |of: fn(&TrialRecord) -> bool| {
        all.iter()
            .flat_map(|(_, trials)| trials)
            .any(|trial| of(trial))
    };
    let warm_up = match any(|trial| trial.timing.warm_up_ns > 0) {
        false => "",
        true if any(|trial| !trial.warm_up.is_empty()) => " The shaded warm-up is in no figure.",
        true => " The shaded warm-up was not sampled.",
    };
    page.note(format!(
        "Rates between two samples of the counters, medians over the trials of a cell at its last load.{warm_up}"
    ));
    left_out(page, all.len(), MOST_LOADS);
}

fn inside(shown: &Shown<'_>, slot: &Slot, trials: &[&TrialRecord]) -> Chart {
    let RateUnit { scale, name: unit } = shown.unit();
    let before = trials
        .iter()
        .map(|trial| trial.warm_up.len())
        .min()
        .unwrap_or(0);
    // The window begins at the same place of all.
    let of_load = |trial: &&TrialRecord| {
        let warm_up = &trial.warm_up[trial.warm_up.len() - before..];
        [warm_up, &trial.samples].concat()
    };
    let loads: Vec<Vec<Sample>> = trials.iter().map(of_load).collect();
    let sent = line(&loads, |sample| sample.sent, scale, false);
    let received = line(&loads, |sample| sample.received, scale, true);
    let lost = |(sent, received): (&Spot, &Spot)| {
        let lost = sent.y - received.y;
        (lost > LOSS_SHOWN * sent.y).then(|| Spot::at(sent.x, lost))
    };
    // In the warm-up, frames fill queues.
    let window = |(sent, _): &(&Spot, &Spot)| 1e9 * sent.x > trials[0].timing.warm_up_ns as f64;
    let lost: Vec<Spot> = sent
        .iter()
        .zip(&received)
        .filter(window)
        .filter_map(lost)
        .collect();
    let at = |x: f64| Spot::at(x, 0.0);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let timing = trials[0].timing;
    let warm_up = match timing.warm_up_ns {
        0 => Vec::new(),
        ns => vec![at(0.0), at(seconds(ns))],
    };
    let mut series = vec![
        Series::new("received", Look::Line, received),
        Series::new("lost", Look::Marks, lost),
        Series::new("sent", Look::Limit, sent),
        Series::new("warm-up, in no figure", Look::Span, warm_up),
    ];
    series.retain(|series| !series.points.is_empty());
    let event = match trials[0].shape {
        Shape::Step { after_ns, .. } => Some(("another load", after_ns)),
        Shape::Event { after_ns } => Some(("event", after_ns)),
        Shape::Constant | Shape::Burst { .. } => None,
    };
    if let Some((name, after_ns)) = event {
        let span = [after_ns, timing.run_ns].map(|ns| at(seconds(timing.warm_up_ns + ns)));
        series.push(Series::new(
            format!("from this time on: {name}"),
            Look::Span,
            span,
        ));
    }
    let title = format!(
        "Inside the trials: {}, {}",
        shown.name(slot.id),
        counted(trials.len(), "trial")
    );
    let x = Axis::from_zero("time since the load began, s");
    Chart::new(title, x, Axis::from_zero(format!("frames, {unit}")), series)
}

/// The rates of a count from sample to sample, in a unit of so many: medians over the loads, and those of each load if `all`.
fn line(loads: &[Vec<Sample>], count: fn(&Sample) -> u64, scale: f64, all: bool) -> Vec<Spot> {
    let rate = |two: &[Sample]| {
        let grown = count(&two[1]).saturating_sub(count(&two[0])) as f64;
        1e9 * grown / two[1].t_ns.saturating_sub(two[0].t_ns) as f64 / scale
    };
    let spot = |at: usize| {
        let between = loads.iter().filter_map(|samples| samples.get(at - 1..=at));
        let rates: Vec<f64> = between.map(rate).filter(|rate| rate.is_finite()).collect();
        let y = linerate_stats::median(&rates)?;
        let times = loads
            .iter()
            .map(|samples| samples[at - 1].t_ns.midpoint(samples[at].t_ns) as f64 / 1e9);
        let x = linerate_stats::median(&times.collect::<Vec<f64>>())?;
        Some(Spot {
            x,
            y,
            interval: None,
            trials: if all { rates } else { Vec::new() },
        })
    };
    let samples = loads.iter().map(Vec::len).min().unwrap_or(0);
    (1..samples).filter_map(spot).collect()
}
