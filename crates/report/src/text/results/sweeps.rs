//! Factors with several levels as aligned series with bars, and what more CPUs bring.

use super::super::numbers::{digits, number, rate, rate_interval, share};
use super::Shown;
use super::tables::median;
use super::words::{change, change_interval};
use crate::document::{Cell, Document, Table, Tone};
use linerate_measure::results::{Point, Series};

/// Each series as a table.
pub fn series(page: &mut Document, shown: &Shown<'_>) {
    for series in shown.results.series.iter().filter(|s| is_shown(shown, s)) {
        let Some(factor) = shown.planned.plan.factors.get(series.factor) else { continue };
        if series.points.iter().all(|p| p.rate.n == 0) {
            continue;
        }
        page.heading(&format!("{} over {}", shown.shortened(&series.name), factor.name));
        table(page, shown, series, &factor.name);
    }
}

/// Whether a series is part of the page. Where factors are crossed, the same cells are part of several: those over numbers are.
pub fn is_shown(shown: &Shown<'_>, series: &Series) -> bool {
    let numeric = |s: &Series| s.points.iter().all(|p| p.number.is_some());
    let cell = series.points.first().map(|p| p.cell);
    let shared = |s: &&Series| s.factor != series.factor && s.points.iter().any(|p| Some(p.cell) == cell);
    numeric(series) || !shown.results.series.iter().filter(shared).any(numeric)
}

fn table(page: &mut Document, shown: &Shown<'_>, series: &Series, factor: &str) {
    let (scale, unit) = shown.unit();
    let most = series.points.iter().map(|p| p.rate.median).fold(0.0, f64::max);
    let first = series.points.first().map_or("", |p| p.level.as_str());
    let has_ceiling = series.points.iter().any(|p| p.ceiling.is_some());
    let known = |p: &&Point| p.rate.n > 0;
    let table = Table::of(&series.points)
        .column(factor, "", |p| p.level.as_str())
        .column("rate", unit, |p| median(&p.rate, scale))
        .column("95 %", "interval", |p| {
            known(p).then(|| rate_interval(&p.rate, scale, digits(&p.rate).clamp(3, 5)))
        })
        .when(shown.loses(), |table| table.column("lost", "%", |p| shown.lost(p.cell)))
        .column(&format!("against {first}"), "%", |p| p.to_first.as_ref().map(change))
        .column("95 %", "interval", |p| p.to_first.as_ref().and_then(change_interval))
        .if_any("tester", "alone", |p| Some(rate(p.ceiling?, scale, 4)))
        .when(has_ceiling, |table| {
            table.column("% of", "that", |p| {
                let ceiling = p.ceiling.filter(|c| *c > 0.0 && known(p))?;
                Some(share(p.rate.median / ceiling))
            })
        })
        .optional("", "rate", |p| Cell::Bar { share: if most > 0.0 { p.rate.median / most } else { 0.0 } });
    page.table(table);
}

/// One core, all cores, speed-up: as "Measure Twice, Code Once" prints it.
pub fn speed_ups(page: &mut Document, shown: &Shown<'_>) {
    let ups: Vec<_> = shown.results.speed_ups.iter().filter(|s| s.ratio.is_some()).collect();
    if ups.is_empty() {
        return;
    }
    let (scale, unit) = shown.unit();
    page.heading("Speed-up by more CPUs");
    let table = Table::of(ups)
        .column("setup", "", |up| shown.shortened(&up.name))
        .column("CPUs", "", |up| up.from_level.as_str())
        .column("rate", unit, |up| Some(rate(up.from_rate?, scale, 4)))
        .column("CPUs", "", |up| up.to_level.as_str())
        .column("rate", unit, |up| Some(rate(up.to_rate?, scale, 4)))
        .column("speed-up", "", |up| Some(number(up.ratio.as_ref()?.median, 3)))
        .column("95 %", "interval", |up| Some(rate_interval(up.ratio.as_ref()?, 1.0, 3)));
    page.table(table);
    page.paragraph("The median of the ratios paired by block.", Tone::Note);
}
