//! The pictures of a campaign: every cell with its trials, and rates over factors.

mod inside;

use super::shown::Shown;
use crate::pages::explanation::balance;
use crate::pages::sets::limits;
use crate::prelude::*;
pub use inside::loads;
use linerate_explain::frames_by_place;
use linerate_measure::record::{Balance, Searched, SearchedLoad};
use linerate_stats::histogram::Histogram;

/// Cells that a picture has room for.
const MOST_CELLS: usize = 250;
/// Bars of one name that can be told apart.
const MOST_BARS: usize = 6;
/// Columns of a map, and bars of a picture.
const MOST_COLUMNS: usize = 60;
/// Cells with a map of their queues.
const MOST_MAPS: usize = 2;
/// Series that can be told apart.
const MOST_SERIES: usize = 8;
/// Percentiles, by how many frames one is slower of.
const SLOWEST: [f64; 12] = [
    2.0, 4.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 1e4, 1e5, 1e6,
];
/// A limit this many times above all rates leaves no room for them.
const FAR_ABOVE: f64 = 4.0;
/// The tester's rate without a DUT stands beside those of cells unless it is so many times as high.
const NEAR: f64 = 2.0;
/// Numbers that are further apart than this are shown by their ratio.
const FAR: f64 = 20.0;

/// The rates of all cells: bars side by side where all variants have the same few other levels, else a point for each cell.
pub fn cells(page: &mut Document, shown: &Shown<'_>) {
    if shown.trials.is_empty() {
        return;
    }
    if let Some((names, series)) = grouped(shown) {
        let x = Axis::new("variant", Scale::Names(names));
        return draw(page, "Forwarding rate of each variant", x, shown, series);
    }
    let measured = |slot: &&Slot| shown.rate(slot.id).is_some();
    let slots = || shown.slots().filter(measured);
    let with_dut = slots().any(|slot| !slot.is_calibration());
    let cells: Vec<&Slot> = slots()
        .filter(|slot| slot.is_calibration() != with_dut)
        .collect();
    if cells.is_empty() || cells.len() > MOST_CELLS {
        return;
    }
    let names = cells.iter().map(|slot| shown.name(slot.id)).collect();
    let numbered = || (0u32..).map(f64::from).zip(&cells);
    let points: Vec<Spot> = numbered()
        .filter_map(|(at, slot)| spot(shown, at, slot.id))
        .collect();
    let alone = numbered().filter_map(|(at, slot)| {
        let spot = spot(shown, at, slot.ceiling?)?;
        Some(Spot::at(at, spot.y))
    });
    // Where it is near, it may have been the limit; where it is far, it leaves no room for the others.
    let most = points.iter().map(|spot| spot.y).fold(0.0, f64::max);
    let alone: Vec<Spot> = alone.filter(|spot| spot.y < NEAR * most).collect();
    let mut series = vec![Series::new("cell", Look::Marks, points)];
    if !alone.is_empty() {
        series.push(Series::new("tester without a DUT", Look::Marks, alone));
    }
    let x = Axis::new("cell", Scale::Names(names));
    draw(page, "Forwarding rate of each cell", x, shown, series);
}

/// The variants, and a series of bars for each other level that they all have.
fn grouped(shown: &Shown<'_>) -> Option<(Vec<String>, Vec<Series>)> {
    let factors = &shown.planned.experiment.factors;
    let others = |slot: &Slot| {
        let level = |(factor, level): &(usize, usize)| {
            let factor = factors
                .get(*factor)
                .filter(|factor| factor.levels.len() > 1)?;
            let level = factor.levels.get(*level)?;
            Some(if factor.of_frames() {
                level.clone()
            } else {
                format!("{} {level}", factor.name)
            })
        };
        slot.levels.iter().filter_map(level).joined(", ")
    };
    let (mut names, mut series): (Vec<String>, Vec<Series>) = (Vec::new(), Vec::new());
    for slot in shown.slots().filter(|slot| !slot.is_calibration()) {
        let at = names
            .iter()
            .position(|name| *name == slot.plan_variant)
            .unwrap_or_else(|| {
                names.push(slot.plan_variant.clone());
                names.len() - 1
            });
        let Some(spot) = spot(shown, at as f64, slot.id) else {
            continue;
        };
        let name = others(slot);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(spot),
            None => series.push(Series::new(name, Look::Bars, [spot])),
        }
    }
    let fits = names.len() > 1
        && (2..=MOST_BARS).contains(&series.len())
        && names.len() * series.len() <= MOST_COLUMNS;
    (fits && shown.series().next().is_none()).then_some((names, series))
}

/// The loss at each load of a search.
pub fn losses(page: &mut Document, shown: &Shown<'_>, search: &Searched) {
    if shown.trials.is_empty() {
        return;
    }
    let load = |load: &SearchedLoad| Spot {
        trials: losses_at(shown, search.slot, load.load),
        ..Spot::at(100.0 * load.load / search.limits.max, 100.0 * load.loss)
    };
    let series = Series::new("median", Look::Line, search.loads.iter().map(load));
    let highest = words(search.limits.max, 4);
    // RFC 2544, section 26.3: both axes of a loss curve go from 0 to 100 %.
    let curve = search.goals.is_empty();
    let (over, loss) = if curve {
        (Scale::Percent, Scale::Percent)
    } else {
        (Scale::Log, Scale::Linear { from_zero: true })
    };
    let x = Axis::new(format!("offered load, % of {highest} frames/s"), over);
    let title = format!("Loss over offered load: {}", shown.name(search.slot));
    let y = Axis::new("loss, %", loss);
    page.chart(Chart::new(title, x, y, vec![series]));
}

/// Loss in per cent of the trials of a cell at a load.
fn losses_at(shown: &Shown<'_>, cell: usize, load: f64) -> Vec<f64> {
    let there = shown
        .valid(cell)
        .filter(|trial| trial.asked_fps == Some(load));
    there.map(|trial| 100.0 * trial.loss_ratio).collect()
}

/// The rate of every trial in the order of time. The tester's own, without a DUT, is so high that it leaves no room for others.
pub fn over_time(page: &mut Document, shown: &Shown<'_>) {
    let RateUnit { scale, name: unit } = shown.unit();
    let of = |slot: &Slot, valid: bool| -> Vec<Spot> {
        let here = |trial: &&TrialRecord| trial.slot == slot.id && trial.audit.valid == valid;
        let spot = |trial: &TrialRecord| {
            let rate = trial.rates?.received / scale;
            Some(Spot::at(trial.began_ns as f64 / 1e9, rate))
        };
        shown.trials.iter().filter(here).filter_map(spot).collect()
    };
    let slots = shown.measured_slots();
    let valid = slots
        .iter()
        .map(|slot| (shown.name(slot.id), of(slot, true)));
    let mut all: Vec<(String, Vec<Spot>)> =
        valid.filter(|(_, points)| !points.is_empty()).collect();
    let cells = all.len();
    all.truncate(MOST_SERIES);
    let invalid: Vec<Spot> = slots.iter().flat_map(|slot| of(slot, false)).collect();
    if !invalid.is_empty() {
        all.push(("audit failed, in no result".into(), invalid));
    }
    if all.iter().any(|(_, points)| points.len() > 1) {
        let x = Axis::from_zero("time since the first trial, s");
        let y = Axis::from_zero(format!("received, {unit}"));
        let series = all
            .into_iter()
            .map(|(name, points)| Series::new(name, Look::Marks, points));
        page.heading("Drift");
        let title = "The trials in the order of time";
        page.chart(Chart::new(title, x, y, series.collect()));
        left_out(page, cells, MOST_SERIES);
    }
}

/// Says how many cells a picture does not show.
pub fn left_out(page: &mut Document, all: usize, most: usize) {
    if all > most {
        page.note(format!(
            "Drawn: the first {most} of {all} cells. The records have them all."
        ));
    }
}

/// How the latencies of each cell are distributed, and how long the slowest frames took.
pub fn latencies(page: &mut Document, shown: &Shown<'_>) {
    let of = |slot: &Slot| {
        let mut all = Histogram::default();
        shown
            .valid(slot.id)
            .for_each(|trial| all.merge(&trial.receiver.latency));
        (all.count() > 0).then(|| (shown.name(slot.id), all))
    };
    let mut all: Vec<(String, Histogram)> =
        shown.measured_slots().into_iter().filter_map(of).collect();
    let cells = all.len();
    all.truncate(MOST_SERIES);
    if all.is_empty() {
        return;
    }
    let lines = |points: &dyn Fn(&Histogram) -> Vec<Spot>| -> Vec<Series> {
        let line =
            |(name, of): &(String, Histogram)| Series::new(name.as_str(), Look::Line, points(of));
        all.iter().map(line).collect()
    };
    let shares = |of: &Histogram| {
        let share = |(from, frames): (u64, u64)| {
            let percent = 100.0 * frames as f64 / of.count() as f64;
            Spot::at((from.max(1) as f64 * 1.5) / 1e3, percent)
        };
        of.powers().into_iter().map(share).collect()
    };
    let slowest = |of: &Histogram| {
        let spot = |one: &f64| {
            let ns = of.quantile(1.0 - 1.0 / one)?;
            Some(Spot::at(*one, ns as f64 / 1e3))
        };
        let some = SLOWEST.iter().filter(|one| of.count() as f64 >= **one);
        some.filter_map(spot).collect()
    };
    let latency = || Axis::new("latency, us", Scale::Log);
    page.chart(Chart::new(
        "Latency: the share of stamped frames in each range from one power of two to the next",
        latency(),
        Axis::from_zero("frames, %"),
        lines(&shares),
    ));
    page.chart(Chart::new(
        "Latency percentiles: one frame in 2 (p50), 10 (p90), 100 (p99) and so on took longer",
        Axis::new("one frame in so many", Scale::Log),
        latency(),
        lines(&slowest),
    ));
    left_out(page, cells, MOST_SERIES);
}

/// A map of frames by receive queue, or by CPU, over the trials of each cell whose frames come to several.
pub fn queues(page: &mut Document, shown: &Shown<'_>) {
    let spread = shown
        .summary
        .explanations
        .iter()
        .filter(|explained| explained.balance.len() > 1);
    for explained in spread.take(MOST_MAPS) {
        let kind = explained.balance[0].place;
        let counted = shown
            .valid(explained.slot)
            .map(|trial| frames_by_place(&trial.dut, kind));
        let counted: Vec<BTreeMap<u32, u64>> = counted.filter(|by| !by.is_empty()).collect();
        let each = counted.len().div_ceil(MOST_COLUMNS).max(1);
        let columns: Vec<&[BTreeMap<u32, u64>]> = counted.chunks(each).collect();
        if columns.len() < 2 {
            continue;
        }
        let share = |column: &[BTreeMap<u32, u64>], number: u32| {
            let all: u64 = column.iter().flat_map(BTreeMap::values).sum();
            let own: u64 = column.iter().filter_map(|by| by.get(&number)).sum();
            100.0 * own as f64 / all.max(1) as f64
        };
        let (what, short) = balance::names(kind);
        let row = |of: &Balance| {
            let spots = (1u32..).zip(&columns);
            let spots = spots.map(|(x, column)| Spot::at(f64::from(x), share(column, of.number)));
            Series::new(format!("{short} {}", of.number), Look::Cells, spots)
        };
        let groups = when(each > 1, format!("groups of {each} "));
        page.chart(Chart::new(
            format!("Frames by {what} over time: {}", shown.name(explained.slot)),
            Axis::free(format!("{groups}trials of the cell, in the order of time")),
            Axis::from_zero("share of the frames, %"),
            explained.balance.iter().map(row).collect(),
        ));
    }
}

/// A map of how busy each CPU was in the trials of each cell.
pub fn cpus(page: &mut Document, shown: &Shown<'_>) {
    let row = |slot: &Slot| {
        let mut busy: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let cpus = shown.valid(slot.id).flat_map(|trial| &trial.cpus);
        cpus.for_each(|of| busy.entry(of.cpu).or_default().push(100.0 * of.busy));
        let spot = |(cpu, shares): (u32, Vec<f64>)| {
            Some(Spot::at(f64::from(cpu), linerate_stats::median(&shares)?))
        };
        let spots = busy.into_iter().filter_map(spot);
        let row = Series::new(shown.name(slot.id), Look::Cells, spots);
        (!row.points.is_empty()).then_some(row)
    };
    let series: Vec<Series> = shown
        .slots()
        .filter_map(row)
        .take(MOST_COLUMNS / 2)
        .collect();
    if !series.is_empty() {
        let of_dut = when(shown.campaign.asked.lab == LabKind::Hosts, " of the DUT");
        page.heading("CPUs");
        let title = format!("How busy each CPU{of_dut} was: medians of the trials of each cell");
        let y = Axis::new("busy, %", Scale::Percent);
        page.chart(Chart::new(title, Axis::free("CPU"), y, series));
    }
}

/// Rates over each factor, a line for each series.
pub fn series(page: &mut Document, shown: &Shown<'_>) {
    let all: Vec<_> = shown
        .series()
        .filter(|_| !shown.trials.is_empty())
        .collect();
    for of_factor in all.chunk_by(|a, b| a.factor == b.factor) {
        let Some(factor) = shown.planned.experiment.factors.get(of_factor[0].factor) else {
            continue;
        };
        let points = of_factor[0].points.iter();
        let numbers: Option<Vec<f64>> = points.clone().map(|point| point.number).collect();
        let scale = match &numbers {
            Some(numbers) => {
                let above = numbers.iter().copied().filter(|number| *number > 0.0);
                let [low, high] = ends(above).unwrap_or([1.0; 2]);
                let negative = numbers.iter().any(|number| *number < 0.0);
                if high / low > FAR && !negative {
                    Scale::Log
                } else {
                    Scale::Linear { from_zero: false }
                }
            }
            None => Scale::Names(points.map(|point| point.level.clone()).collect()),
        };
        let look = if numbers.is_some() {
            Look::Line
        } else {
            Look::Bars
        };
        let lengths = numbers.is_some() && factor.sets == ["traffic.size"];
        let lines = of_factor.iter().map(|series| {
            let points = (0u32..).zip(&series.points).filter_map(|(at, point)| {
                spot(shown, point.number.unwrap_or(f64::from(at)), point.cell)
            });
            Series::new(shown.shortened(&series.name), look, points)
        });
        let mut lines: Vec<Series> = lines.collect();
        if lengths {
            lines.extend(limits(&lines, shown.unit().scale, shown.link_speed()));
        }
        let label = match &factor.about {
            Some(about) => about.clone(),
            None if lengths => "frame size with FCS, B".into(),
            None => factor.name.clone(),
        };
        let title = format!("Rate over {}", factor.name);
        draw(page, &title, Axis::new(label, scale), shown, lines);
        if lengths && shown.campaign.asked.lab != LabKind::Hosts {
            page.note("The links of this lab are virtual and have no line rate: those of Ethernet are drawn for comparison.");
        }
    }
}

/// The rate of a cell with its interval and its valid trials, or the rate that was searched for with its bounds, in the unit of the page.
fn spot(shown: &Shown<'_>, x: f64, cell: usize) -> Option<Spot> {
    let scale = shown.unit().scale;
    if let Some(search) = shown.search(cell) {
        let found = search.goals.first()?.outcome;
        let bounds = found.lower.zip(found.upper);
        return Some(Spot {
            interval: bounds.map(|(low, high)| [low / scale, high / scale]),
            ..Spot::at(x, found.conditional? / scale)
        });
    }
    let rate = shown.row(cell).filter(|row| row.received.n > 0)?.received;
    let trials = shown
        .valid(cell)
        .filter_map(|trial| Some(trial.rates?.received));
    Some(Spot::of(x, &rate, trials, scale))
}

fn draw(page: &mut Document, title: &str, x: Axis, shown: &Shown<'_>, series: Vec<Series>) {
    let unit = shown.unit().name;
    let ends = |limits: bool| {
        let of = series
            .iter()
            .filter(|series| (series.look == Look::Limit) == limits);
        let rates = of.flat_map(|series| &series.points).map(|spot| spot.y);
        ends(rates.filter(|rate| *rate > 0.0))
    };
    let ([least, most], limit) = (ends(false).unwrap_or([1.0; 2]), ends(true));
    // Bars are compared by their lengths. Beside limits that are far above, rates are told apart by their ratios.
    let bars = series.iter().any(|series| series.look == Look::Bars);
    let far = !bars && most > FAR * least;
    let scale = if far || limit.is_some_and(|[_, limit]| limit > FAR_ABOVE * most) {
        Scale::Log
    } else {
        Scale::Linear { from_zero: true }
    };
    let y = Axis::new(format!("forwarding rate, {unit}"), scale);
    page.chart(Chart::new(title, x, y, series).of_medians());
}
