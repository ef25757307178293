//! The pictures of a campaign: every cell with its trials, and rates over factors.

use super::Shown;
use crate::chart::{Axis, Chart, Look, Scale, Series, Spot};
use crate::document::{Block, Document};
use crate::pages::numbers::words;
use linerate_measure::record::{Searched, SearchedLoad, Slot, TrialRecord};
use linerate_stats::histogram::Histogram;

/// Cells that a picture has room for.
const MOST_CELLS: usize = 60;
/// Series, and trials of one, that can be told apart.
const MOST_SERIES: usize = 8;
const MOST_TRIALS: usize = 2000;
/// Shares of frames at which a distribution is drawn.
const PARTS: [f64; 15] = [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999];
/// Numbers that are further apart than this are shown by their ratio.
const FAR: f64 = 20.0;

/// A point for each cell, with all trials.
pub fn cells(page: &mut Document, shown: &Shown<'_>) {
    let rows = shown.summary.rows.iter().filter(|row| row.received.n > 0);
    let cells: Vec<usize> = rows.map(|row| row.slot).collect();
    if shown.trials.is_empty() || cells.is_empty() || cells.len() > MOST_CELLS {
        return;
    }
    let names = cells.iter().map(|cell| shown.name(*cell)).collect();
    let points = (0u32..).zip(&cells).filter_map(|(at, cell)| spot(shown, f64::from(at), *cell));
    draw(
        page,
        "Forwarding rate of each cell",
        Axis { label: "cell".into(), scale: Scale::Names(names) },
        shown,
        vec![Series { name: "median".into(), look: Look::Marks, points: points.collect() }],
    );
}

/// The loss at each load of a search.
pub fn losses(page: &mut Document, shown: &Shown<'_>, search: &Searched) {
    if shown.trials.is_empty() {
        return;
    }
    let load = |load: &SearchedLoad| Spot {
        x: 100.0 * load.load / search.limits.max,
        y: 100.0 * load.loss,
        interval: None,
        trials: losses_at(shown, search.slot, load.load),
    };
    let series =
        Series { name: "median".into(), look: Look::Line, points: search.loads.iter().map(load).collect() };
    let highest = words(search.limits.max, 4);
    // RFC 2544, section 26.3: both axes of a loss curve go from 0 to 100 %.
    let curve = search.goals.is_empty();
    let (over, loss) = if curve {
        (Scale::Percent, Scale::Percent)
    } else {
        (Scale::Log, Scale::Linear { from_zero: true })
    };
    let x = Axis { label: format!("offered load, % of {highest} frames/s"), scale: over };
    let y = Axis { label: "loss, %".into(), scale: loss };
    let title = format!("Loss over offered load: {}", shown.name(search.slot));
    page.blocks.push(Block::Chart(Chart { title, x, y, series: vec![series], interval: None }));
}

/// Loss in per cent of the trials of a cell at a load.
fn losses_at(shown: &Shown<'_>, cell: usize, load: f64) -> Vec<f64> {
    let there =
        |trial: &&TrialRecord| trial.slot == cell && trial.audit.valid && trial.asked_fps == Some(load);
    shown.trials.iter().filter(there).map(|trial| 100.0 * trial.loss_ratio).collect()
}

/// The rate of every trial in the order of time.
pub fn over_time(page: &mut Document, shown: &Shown<'_>) {
    let (scale, unit) = shown.unit();
    let of = |slot: &Slot, valid: bool| -> Vec<Spot> {
        let here = shown.trials.iter().filter(|trial| trial.slot == slot.id && trial.audit.valid == valid);
        let spot = |trial: &TrialRecord| {
            let (x, y) = (trial.began_ns as f64 / 1e9, trial.rates?.received / scale);
            Some(Spot { x, y, interval: None, trials: Vec::new() })
        };
        here.filter_map(spot).take(MOST_TRIALS).collect()
    };
    let slots = &shown.campaign.slots;
    let valid = slots.iter().map(|slot| (shown.name(slot.id), of(slot, true)));
    let mut all: Vec<(String, Vec<Spot>)> =
        valid.filter(|(_, points)| !points.is_empty()).take(MOST_SERIES).collect();
    let invalid: Vec<Spot> = slots.iter().flat_map(|slot| of(slot, false)).collect();
    if !invalid.is_empty() {
        all.push(("audit failed, in no result".into(), invalid));
    }
    let series = |(name, points)| Series { name, look: Look::Marks, points };
    let chart = Chart {
        title: "Every trial in the order of time".into(),
        x: Axis { label: "time since the first trial, s".into(), scale: Scale::Linear { from_zero: true } },
        y: Axis { label: format!("received, {unit}"), scale: Scale::Linear { from_zero: true } },
        series: all.into_iter().map(series).collect(),
        interval: None,
    };
    if chart.series.iter().any(|series| series.points.len() > 1) {
        page.heading("Drift");
        page.blocks.push(Block::Chart(chart));
    }
}

/// The share of the stamped frames of each cell that took at most so long.
pub fn latencies(page: &mut Document, shown: &Shown<'_>) {
    let of = |slot: &Slot| {
        let mut all = Histogram::default();
        let valid = shown.trials.iter().filter(|trial| trial.slot == slot.id && trial.audit.valid);
        valid.for_each(|trial| all.merge(&trial.receiver.latency));
        let point = |part: &f64| {
            let x = all.quantile(*part)? as f64 / 1e3;
            Some(Spot { x, y: 100.0 * part, interval: None, trials: Vec::new() })
        };
        let points = PARTS.iter().filter_map(point).filter(|point| point.x > 0.0).collect();
        Series { name: shown.name(slot.id), look: Look::Line, points }
    };
    let series: Vec<Series> =
        shown.campaign.slots.iter().map(of).filter(|s| s.points.len() > 1).take(MOST_SERIES).collect();
    if series.is_empty() {
        return;
    }
    page.blocks.push(Block::Chart(Chart {
        title: "Latency: the share of stamped frames that took at most so long".into(),
        x: Axis { label: "latency, us".into(), scale: Scale::Log },
        y: Axis { label: "frames, %".into(), scale: Scale::Percent },
        series,
        interval: None,
    }));
}

/// Rates over each factor, a line for each series.
pub fn series(page: &mut Document, shown: &Shown<'_>) {
    let all: Vec<_> = shown.series().filter(|_| !shown.trials.is_empty()).collect();
    for of_factor in all.chunk_by(|a, b| a.factor == b.factor) {
        let Some(factor) = shown.planned.experiment.factors.get(of_factor[0].factor) else { continue };
        let numbers: Option<Vec<f64>> = of_factor[0].points.iter().map(|point| point.number).collect();
        let scale = match &numbers {
            Some(numbers) => {
                let [low, high] =
                    [f64::min, f64::max].map(|end| numbers.iter().copied().reduce(end).unwrap_or(0.0));
                if low > 0.0 && high / low > FAR { Scale::Log } else { Scale::Linear { from_zero: false } }
            }
            None => Scale::Names(of_factor[0].points.iter().map(|point| point.level.clone()).collect()),
        };
        let look = if numbers.is_some() { Look::Line } else { Look::Marks };
        let lines = of_factor.iter().map(|series| {
            let points = (0u32..)
                .zip(&series.points)
                .filter_map(|(at, point)| spot(shown, point.number.unwrap_or(f64::from(at)), point.cell));
            Series { name: shown.shortened(&series.name), look, points: points.collect() }
        });
        let label = factor.about.clone().unwrap_or_else(|| factor.name.clone());
        draw(page, &format!("Rate over {}", factor.name), Axis { label, scale }, shown, lines.collect());
    }
}

/// The rate of a cell with its interval and its valid trials, or the rate that was searched for with its bounds, in the unit of the page.
fn spot(shown: &Shown<'_>, x: f64, cell: usize) -> Option<Spot> {
    let (scale, _) = shown.unit();
    if let Some(search) = shown.summary.searches.iter().find(|search| search.slot == cell) {
        let found = search.goals.first()?.outcome;
        let interval = found.lower.zip(found.upper).map(|(low, high)| [low / scale, high / scale]);
        return Some(Spot { x, y: found.conditional? / scale, interval, trials: Vec::new() });
    }
    let rate = shown.row(cell).filter(|row| row.received.n > 0)?.received;
    let valid = shown.trials.iter().filter(|trial| trial.slot == cell && trial.audit.valid);
    Some(Spot {
        x,
        y: rate.median / scale,
        interval: rate.low.zip(rate.high).map(|(low, high)| [low / scale, high / scale]),
        trials: valid.filter_map(|trial| Some(trial.rates?.received / scale)).collect(),
    })
}

fn draw(page: &mut Document, title: &str, x: Axis, shown: &Shown<'_>, series: Vec<Series>) {
    let (_, unit) = shown.unit();
    let y = Axis { label: format!("forwarding rate, {unit}"), scale: Scale::Linear { from_zero: true } };
    let interval = Some("95 % interval of the median".into());
    page.blocks.push(Block::Chart(Chart { title: title.into(), x, y, series, interval }));
}
