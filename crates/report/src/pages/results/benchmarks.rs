//! Results of RFC 2544's tests: the tables and graphs that the RFCs ask for, and the single figure that they allow.

mod remarks;

use super::super::plan::{departures, terms};
use super::measured::modifiers;
use super::searches;
use super::shown::Shown;
use super::stability;
use crate::prelude::*;
use linerate_measure::experiment::Benchmark;
use linerate_measure::record::{AtLoad, EventClass, Figures, Maximum, Tested};

pub use remarks::nearly;

/// Most loss curves that are listed.
const MOST: usize = 7;

/// A slot with its results of one test.
struct Result<'a> {
    slot: &'a Slot,
    maximum: Option<Maximum>,
    tested: &'a Tested,
}

/// All tests, each with its table.
pub fn benchmarks(page: &mut Document, shown: &Shown<'_>) {
    let all = &shown.summary.benchmarks;
    let experiment = &shown.planned.experiment;
    let departs = departures(experiment, sizes(shown));
    page.say(&departs);
    single(shown)
        .into_iter()
        .for_each(|sentence| page.answer(sentence));
    page.fact("low load", stability::line(shown));
    page.note(remarks::medium(shown, all));
    if let Some(stalls) = searches::stalls(&experiment.trials, &shown.summary.searches) {
        page.note(format!("On this machine, {stalls}"));
    }
    if shown.slots().any(|slot| slot.direction == Direction::Both) {
        page.note("Frames go in both directions: loads, rates and lengths of bursts are those of each direction, and equal in both (RFC 2544, section 14). Numbers of frames cover both.");
    }
    stability::section(page, shown);
    for test in &experiment.trials.tests {
        let of_test = all.iter().filter_map(|of| {
            let tested = of.tests.iter().find(|tested| tested.test == *test)?;
            Some(Result {
                slot: shown.slot(of.slot)?,
                maximum: of.maximum,
                tested,
            })
        });
        let found: Vec<Result<'_>> = of_test.collect();
        if found.is_empty() {
            continue;
        }
        page.heading(test.title());
        if found
            .iter()
            .any(|result| result.tested.figures != Figures::None)
        {
            table(page, shown, *test, &found);
        }
        for result in &found {
            let why = result.tested.why.map(|why| why.words(*test).to_string());
            let why = why.or_else(|| searched(shown, result));
            if let Some(why) = why {
                page.item(
                    "! ",
                    format!("{}: {why}", shown.name(result.slot.id)),
                    Tone::Warning,
                );
            }
        }
    }
}

/// The number of frame lengths of the campaign.
pub fn sizes(shown: &Shown<'_>) -> usize {
    distinct(shown.slots().map(|slot| slot.frame.as_str())).len()
}

/// The figure that RFC 2544 allows in place of the graph: rate, frame size, theoretical limit and protocol.
pub fn single(shown: &Shown<'_>) -> Vec<String> {
    let experiment = &shown.planned.experiment;
    let mark = when(
        !experiment.trials.departures(sizes(shown)).is_empty(),
        "; departs from RFC 2544's recommendations",
    );
    let slots = shown.summary.benchmarks.iter();
    let unstable = slots.filter_map(|of| stability::sentence(shown, of.slot));
    let mut sentences: Vec<String> = unstable.collect();
    for slot in &shown.summary.benchmarks {
        let found = slot.tests.iter().find_map(|tested| match &tested.figures {
            Figures::Throughput(found) => Some((found.fps, found.upper.is_none())),
            _ => None,
        });
        let Some(((fps, no_loss), of)) = found.zip(shown.slot(slot.slot)) else {
            continue;
        };
        let at_least = no_loss && !slot.maximum.is_some_and(Maximum::is_line);
        let limit = slot.maximum.map_or(String::new(), |maximum| {
            if maximum.medium {
                format!("theoretical limit {} frames/s", grouped(maximum.fps as u64))
            } else {
                format!(
                    "a virtual link has no theoretical limit; the highest load is {} frames/s, 95 % of the tester's own rate",
                    grouped(maximum.fps as u64)
                )
            }
        });
        let unit = when(of.lengths_fcs.len() == 1, " B");
        let mut with = modifiers(of);
        if !with.is_empty() {
            with.insert_str(0, " with ");
        }
        sentences.push(format!(
            "{}: throughput {}{} frames/s{} of {}{unit}{}; {limit}; {} {}{with}{mark}",
            shown.name(slot.slot),
            when(at_least, "at least "),
            grouped(fps as u64),
            when(of.direction == Direction::Both, " in each direction"),
            of.frame,
            shown.spoiled(slot.slot, [" (", ")"]),
            of.family,
            of.transport,
        ));
    }
    sentences
}

/// The class of an event by RFC 6201, with its section, or that it is no reset.
fn class(class: EventClass) -> &'static str {
    match class {
        EventClass::OsReset => "OS reset (4.2.1)",
        EventClass::ProcessReset => "process reset (4.2.2)",
        EventClass::PowerInterruption => "power interruption (4.3.1)",
        EventClass::Reconfiguration => "reconfiguration, no reset",
        EventClass::Interruption => "interruption, no reset",
    }
}

/// Why a throughput is not a regular result.
fn searched(shown: &Shown<'_>, result: &Result<'_>) -> Option<String> {
    let Figures::Throughput(found) = &result.tested.figures else {
        return None;
    };
    let search = shown
        .summary
        .searches
        .iter()
        .find(|search| search.slot == result.slot.id)?;
    let irregular = search.goals.first()?.outcome.irregular?;
    if found.upper.is_none() && result.maximum.is_some_and(Maximum::is_line) {
        return None;
    }
    Some(match (irregular, found.upper) {
        (_, None) => format!(
            "no loss at the highest load, {} frames/s: the DUT may be faster than the tester",
            words(search.limits.max, 4)
        ),
        _ => {
            let why = match search.ended {
                None => search.stopped(shown.summary.stopped),
                Some(_) => "the loss changes with time",
            };
            format!("irregular, because {why}: the bounds are further apart than the width")
        }
    })
}

/// A figure of a result of this kind, as a column of its table.
macro_rules! figure {
    ($kind:ident, $f:ident, $cell:expr) => {
        |result: &&Result<'_>| match &result.tested.figures {
            Figures::$kind($f) => Some($cell),
            _ => None,
        }
    };
}

fn rows<'a>(shown: &Shown<'_>, found: &'a [Result<'a>]) -> Rows<&'a Result<'a>> {
    Table::of(
        found
            .iter()
            .filter(|result| result.tested.figures != Figures::None),
    )
    .column("cell", "", |result| shown.numbered(result.slot.id))
}

fn table(page: &mut Document, shown: &Shown<'_>, test: Benchmark, found: &[Result<'_>]) {
    let unit = RateUnit::of(found.iter().filter_map(|result| Some(result.maximum?.fps)));
    match test {
        Benchmark::Throughput => throughput(page, shown, found, unit),
        Benchmark::Latency => latency(page, shown, found, unit),
        Benchmark::DelayVariation => delay_variation(page, shown, found, unit),
        Benchmark::FrameLoss => frame_loss(page, shown, found, unit),
        Benchmark::BackToBack => back_to_back(page, shown, found),
        Benchmark::Recovery => recovery(page, shown, found, unit),
        Benchmark::Reset => reset(page, shown, found, unit),
        Benchmark::ForwardingRate => forwarding_rate(page, shown, found, unit),
        Benchmark::Stability => {}
    }
}

fn throughput(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let medium = by_medium(found);
    let of_maximum = |result: &Result<'_>| match &result.tested.figures {
        Figures::Throughput(found) => Some(found.fps / result.maximum?.fps),
        _ => None,
    };
    let limited = if medium {
        "theoretical limit"
    } else {
        "reference rate"
    };
    let table = rows(shown, found)
        .rate("throughput", unit, figure!(Throughput, f, f.fps))
        .rate("upper bound", unit, figure!(Throughput, f, f.upper?))
        .column("frames", "sent", figure!(Throughput, f, count(f.frames)))
        .column("trial", "", figure!(Throughput, f, seconds(f.seconds)))
        .rate(limited, unit, |result| Some(result.maximum?.fps))
        .column("% of", "that", |result| of_maximum(result).map(share))
        .optional("", "", |result| {
            of_maximum(result).map(|share| Cell::Bar { share })
        });
    page.table(table);
    if let Some(goal) = shown
        .summary
        .searches
        .iter()
        .find_map(|search| search.goals.first())
    {
        page.note(format!(
            "Throughput is the highest load without loss, the upper bound the lowest with loss; {}.",
            terms(&goal.goal, &shown.planned.experiment.trials)
        ));
    }
    bursts(page, shown, found, unit);
    throughput_graph(page, shown, found, medium);
}

fn latency(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let table = rows(shown, found)
        .rate("load", unit, figure!(Latency, f, f.load))
        .column("runs", "", figure!(Latency, f, f.runs.len()))
        .column(
            "tags",
            "a run",
            figure!(
                Latency,
                f,
                f.runs.iter().map(|run| run.tags).min().unwrap_or(0)
            ),
        )
        .column("latency", "mean", figure!(Latency, f, span(f.mean_ns)))
        .column("TL", "median", figure!(Latency, f, span(f.typical_ns)))
        .column("WCL", "p99.9", figure!(Latency, f, span(f.worst_ns)));
    page.table(table);
    page.note("latency: mean over the runs of the first tagged frame's latency (RFC 2544). TL (typical latency): the median of a run; WCL (worst case latency): its 99.9th percentile; both are medians over the runs (RFC 8219). Software stamps frames before the generator's link and on arrival: nearest to RFC 1242's store-and-forward.");
}

fn delay_variation(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let table = rows(shown, found)
        .rate("load", unit, figure!(DelayVariation, f, f.load))
        .column("runs", "", figure!(DelayVariation, f, f.runs.len()))
        .column("PDV", "", figure!(DelayVariation, f, span(f.pdv_ns)))
        .column(
            "IPDV",
            "least",
            figure!(DelayVariation, f, signed(f.ipdv_ns[0])),
        )
        .column(
            "IPDV",
            "median",
            figure!(DelayVariation, f, signed(f.ipdv_ns[1])),
        )
        .column(
            "IPDV",
            "largest",
            figure!(DelayVariation, f, signed(f.ipdv_ns[2])),
        );
    page.table(table);
    page.note("PDV: 99.9th percentile of the delays less the least delay; delays are counted in steps of 3 %, so PDV can be too large by 3 % of the delay. IPDV: differences between the delays of successive frames, without pairs that have a lost frame between them. All are medians over the runs.");
}

fn frame_loss(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let most = found
        .iter()
        .filter(|result| result.tested.figures != Figures::None);
    for result in most.take(MOST) {
        let Figures::FrameLoss(loads) = &result.tested.figures else {
            continue;
        };
        page.table(at_loads(&shown.numbered(result.slot.id), loads, unit));
    }
    loss_graph(page, shown, found, by_medium(found));
}

fn back_to_back(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>]) {
    let table = rows(shown, found)
        .column("N", "", figure!(BackToBack, f, f.bursts.len()))
        .column("burst", "mean", figure!(BackToBack, f, number(f.mean, 4)))
        .column("frames", "least", figure!(BackToBack, f, count(f.least)))
        .column("", "most", figure!(BackToBack, f, count(f.most)))
        .column(
            "",
            "stddev",
            figure!(BackToBack, f, f.deviation.map(|d| number(d, 3))),
        )
        .column(
            "implied",
            "buffer",
            figure!(BackToBack, f, span(1e9 * f.implied_s)),
        )
        .column(
            "corrected",
            "buffer",
            figure!(BackToBack, f, span(1e9 * f.corrected_s)),
        )
        .if_any("actual", "buffer", |result| match &result.tested.figures {
            Figures::BackToBack(f) => f.actual_s.map(|s| span(1e9 * s)),
            _ => None,
        })
        .column("limit", "frames", figure!(BackToBack, f, count(f.limit)))
        .column("step", "frames", figure!(BackToBack, f, count(f.step)));
    page.table(table);
    let verify = shown.planned.experiment.trials.verify;
    page.note(format!("N binary searches{}. implied = mean / maximum rate; corrected = implied x (1 - throughput / maximum rate); actual = corrected x maximum rate / measured rate of the bursts; limit = the longest burst allowed; step = the distance of the two lengths that ended a search.", when(verify > 0, format!(" with loss verification ({verify} further trials)"))));
}

fn recovery(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let table = rows(shown, found)
        .rate("throughput", unit, figure!(Recovery, f, f.throughput))
        .column(
            "overload",
            "",
            figure!(Recovery, f, rate(f.overload, unit.scale, 4)),
        )
        .column(
            "then",
            "",
            figure!(Recovery, f, rate(f.reduced, unit.scale, 4)),
        )
        .column("runs", "", figure!(Recovery, f, f.runs.len()))
        .column(
            "recovered",
            "",
            figure!(
                Recovery,
                f,
                f.runs.iter().filter(|run| run.ns.is_some()).count()
            ),
        )
        .column(
            "lost",
            "least",
            figure!(
                Recovery,
                f,
                f.runs.iter().map(|run| run.lost).min().map(count)
            ),
        )
        .column(
            "recovery",
            "mean",
            figure!(Recovery, f, f.mean_ns.map(time)),
        );
    page.table(table);
    page.note(
        "From the fall of the rate to the last lost frame; 0 if no frame was lost after the fall.",
    );
}

fn reset(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let table = rows(shown, found)
        .column("event", "", figure!(Reset, f, f.event.what.clone()))
        .column("class", "", figure!(Reset, f, class(f.event.class)))
        .rate("load", unit, figure!(Reset, f, f.load))
        .column("runs", "", figure!(Reset, f, f.runs.len()))
        .column(
            "back",
            "",
            figure!(Reset, f, f.runs.iter().filter(|run| run.back).count()),
        )
        .column(
            "lost",
            "most",
            figure!(Reset, f, f.runs.iter().map(|run| run.lost).max().map(count)),
        )
        .column(
            "frame-loss",
            "method",
            figure!(Reset, f, f.by_loss_ns.map(time)),
        )
        .column(
            "time-stamp",
            "method",
            figure!(Reset, f, f.by_stamps_ns.map(time)),
        );
    page.table(table);
    page.note("Frame-loss method: lost frames divided by the offered rate. Time-stamp method: from the last frame before the longest outage to the first frame after it. Means over the runs in which frames passed again.");
}

fn forwarding_rate(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let table = rows(shown, found)
        .rate("FRMOL", unit, figure!(ForwardingRate, f, f.frmol))
        .column(
            "at offered",
            "load",
            figure!(ForwardingRate, f, rate(f.frmol_offered, unit.scale, 4)),
        )
        .rate("MFR", unit, figure!(ForwardingRate, f, f.mfr))
        .column(
            "at offered",
            "load",
            figure!(ForwardingRate, f, rate(f.mfr_offered, unit.scale, 4)),
        );
    page.table(table);
    page.note("FRMOL: forwarding rate at the maximum offered load. MFR: the highest forwarding rate at any load. An MFR clearly above the FRMOL shows a collapse under overload (livelock).");
}

/// Whether each result is compared with the rate of its medium.
fn by_medium(found: &[Result<'_>]) -> bool {
    found
        .iter()
        .all(|result| result.maximum.is_some_and(|maximum| maximum.medium))
}

/// A time with its sign.
fn signed(ns: f64) -> String {
    format!("{}{}", when(ns < 0.0, "-"), time(ns.abs()))
}

fn at_loads(cell: &str, loads: &[AtLoad], unit: RateUnit) -> Table {
    Table::of(loads)
        .column("cell", "", |_| cell)
        .column("load", "%", |at| share(at.share))
        .rate("offered", unit, |at| at.offered)
        .rate("forwarded", unit, |at| at.forwarded)
        .column("sent", "frames", |at| count(at.sent))
        .column("lost", "frames", |at| count(at.lost))
        .column("loss", "%", |at| percent(loss(at)))
        .column("", "loss", |at| Cell::Bar { share: loss(at) })
        .into()
}

fn loss(at: &AtLoad) -> f64 {
    if at.sent > 0 {
        at.lost as f64 / at.sent as f64
    } else {
        0.0
    }
}

/// The shortest intervals between bursts without loss (RFC 2544, section 21).
fn bursts(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], unit: RateUnit) {
    let of = |result: &Result<'_>| {
        let Figures::Throughput(found) = &result.tested.figures else {
            return None;
        };
        Some((
            f64::from(result.slot.traffic.as_ref()?.burst),
            found.burst_s?,
            found.fps,
        ))
    };
    let rows: Vec<_> = found
        .iter()
        .filter_map(|result| Some((result, of(result)?)))
        .collect();
    if rows.is_empty() {
        return;
    }
    let pause = |(_, (frames, lasts_s, fps)): &(&Result<'_>, (f64, f64, f64))| {
        (frames / fps - lasts_s).max(0.0)
    };
    let table = Table::of(rows.iter())
        .column("cell", "", |(result, _)| shown.numbered(result.slot.id))
        .column("frames", "a burst", |(_, (frames, ..))| {
            count(*frames as u64)
        })
        .rate("in a burst", unit, |(_, (frames, lasts_s, _))| {
            (*lasts_s > 0.0 && *frames > 1.0).then(|| (frames - 1.0) / lasts_s)
        })
        .column("burst", "to burst", |(_, (frames, _, fps))| {
            span(frames / fps * 1e9)
        })
        .column("shortest", "pause", |row| span(pause(row) * 1e9));
    page.section("Bursts (RFC 2544, 21)", table);
    page.note("The shortest interval between bursts without loss: from the first frame of a burst to the first of the next, and from the last frame to the first of the next (pause).");
}

/// RFC 2544, section 26.1: throughput over the frame size, with the theoretical rate of the medium.
fn throughput_graph(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], medium: bool) {
    let known = found.iter().filter_map(|result| {
        let Figures::Throughput(throughput) = &result.tested.figures else {
            return None;
        };
        let length = result.slot.average_len_fcs();
        Some((
            &result.slot.variant,
            length,
            throughput.fps,
            result.maximum?.fps,
        ))
    });
    let mut points: Vec<(&String, f64, f64, f64)> = known.collect();
    points.sort_by(|a, b| a.1.total_cmp(&b.1));
    // One frame size makes no graph: the answer has its figure.
    if points.first().map(|point| point.1) == points.last().map(|point| point.1) {
        return;
    }
    let RateUnit { scale, name: unit } = RateUnit::of(points.iter().map(|point| point.3));
    let spot = |x: f64, fps: f64| Spot::at(x, fps / scale);
    let mut limits: Vec<Spot> = points
        .iter()
        .map(|(_, x, _, limit)| spot(*x, *limit))
        .collect();
    limits.dedup_by(|a, b| a.x == b.x);
    let of = |name: &String| {
        let own = points.iter().filter(|(variant, ..)| *variant == name);
        Series::new(
            shown.shortened(name),
            Look::Line,
            own.map(|(_, x, fps, _)| spot(*x, *fps)),
        )
    };
    let mut series = vec![Series::new(reference(medium), Look::Limit, limits)];
    series.extend(
        distinct(points.iter().map(|(name, ..)| *name))
            .into_iter()
            .map(of),
    );
    let y = Axis::from_zero(format!("throughput, {unit}"));
    let x = Axis::from_zero("frame size in bytes, with FCS");
    page.chart(Chart::new(Benchmark::Throughput.title(), x, y, series));
}

fn reference(medium: bool) -> &'static str {
    if medium {
        "theoretical rate of the medium"
    } else {
        "reference rate (95 % of the tester's own), no medium"
    }
}

/// Section 26.3: the offered load against the loss, both from 0 to 100 %.
fn loss_graph(page: &mut Document, shown: &Shown<'_>, found: &[Result<'_>], medium: bool) {
    let of = |result: &Result<'_>| {
        let Figures::FrameLoss(loads) = &result.tested.figures else {
            return None;
        };
        let points = loads
            .iter()
            .rev()
            .map(|at| Spot::at(100.0 * at.share, 100.0 * loss(at)));
        Some(Series::new(shown.name(result.slot.id), Look::Line, points))
    };
    let x = Axis::new(
        format!("offered load, % of the {}", reference(medium)),
        Scale::Percent,
    );
    let y = Axis::new("frame loss, %", Scale::Percent);
    page.chart(Chart::new(
        Benchmark::FrameLoss.title(),
        x,
        y,
        found.iter().filter_map(of).collect(),
    ));
}
