//! Factors with several levels as aligned series with bars, and the gain from more CPUs.

use super::super::numbers::{digits, number, rate, rate_interval, share};
use super::Shown;
use super::changes::{change, change_interval};
use super::tables::median;
use crate::document::{Cell, Document, Rows, Table};
use linerate_measure::experiment::Factor;
use linerate_measure::results::{Point, Series};
use linerate_stats::Estimate;

/// Each series as a table.
pub fn series(page: &mut Document, shown: &Shown<'_>) {
    for series in shown.series() {
        let Some(factor) = shown.planned.experiment.factors.get(series.factor) else { continue };
        if series.points.iter().any(|p| shown.rate(p.cell).is_some()) {
            let heading = format!("{} over {}", shown.shortened(&series.name), factor.name);
            page.section(heading, table(shown, series, &factor.name));
        }
    }
}

fn table<'a>(shown: &Shown<'_>, series: &'a Series, factor: &str) -> Rows<&'a Point> {
    let (scale, unit) = shown.unit();
    let most = series.points.iter().filter_map(|p| shown.rate(p.cell)).fold(0.0, f64::max);
    let first = series.points.first().map_or("", |p| p.level.as_str());
    let estimate = |p: &&Point| shown.row(p.cell).map_or(Estimate::default(), |r| r.received);
    let ceiling = |p: &&Point| shown.rate(shown.row(p.cell)?.ceiling?.than).filter(|c| *c > 0.0);
    Table::of(&series.points)
        .column(factor, "", |p| p.level.as_str())
        .column("rate", unit, |p| median(&estimate(p), scale))
        .column("95 %", "interval", |p| {
            let rate = estimate(p);
            (rate.n > 0).then(|| rate_interval(&rate, scale, digits(&rate).clamp(3, 5)))
        })
        .when(shown.loses(), |table| table.column("lost", "%", |p| shown.lost(p.cell)))
        .column(&format!("against {first}"), "%", |p| p.to_first.as_ref().map(change))
        .column("95 %", "interval", |p| p.to_first.as_ref().and_then(change_interval))
        .if_any("tester", "alone", |p| Some(rate(ceiling(p)?, scale, 4)))
        .if_any("% of", "that", |p| Some(share(shown.rate(p.cell)? / ceiling(p)?)))
        .optional("", "rate", |p| Cell::Bar {
            share: shown.rate(p.cell).filter(|_| most > 0.0).unwrap_or(0.0) / most,
        })
}

/// One core, all cores, speed-up: as "Measure Twice, Code Once" prints it.
pub fn speed_ups(page: &mut Document, shown: &Shown<'_>) {
    let of_cpus = |s: &&Series| shown.planned.experiment.factors.get(s.factor).is_some_and(Factor::sets_cpus);
    let all = shown.summary.series.iter().filter(of_cpus);
    let ups: Vec<_> = all
        .filter_map(|series| Some((series, series.points.first()?)))
        .flat_map(|(series, first)| {
            series.points.iter().filter_map(move |to| Some((series, first, to, to.to_first.as_ref()?)))
        })
        .collect();
    if ups.is_empty() {
        return;
    }
    let (scale, unit) = shown.unit();
    let table = Table::of(ups)
        .column("setup", "", |(series, ..)| shown.shortened(&series.name))
        .column("CPUs", "", |(_, from, ..)| from.level.as_str())
        .column("rate", unit, |(_, from, ..)| Some(rate(shown.rate(from.cell)?, scale, 4)))
        .column("CPUs", "", |(_, _, to, _)| to.level.as_str())
        .column("rate", unit, |(_, _, to, _)| Some(rate(shown.rate(to.cell)?, scale, 4)))
        .column("speed-up", "", |(.., ratio)| number(ratio.median, 3))
        .column("95 %", "interval", |(.., ratio)| rate_interval(ratio, 1.0, 3));
    page.section("Speed-up by more CPUs", table);
    page.note("The median of the ratios paired by block.");
}
