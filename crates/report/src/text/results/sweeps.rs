//! Factors with several levels as aligned series with bars, and what more CPUs bring.

use super::super::numbers::{digits, interval, percent, rate, rate_interval, significant};
use super::super::page::{Ink, Page, Table};
use super::Shown;
use super::words::{change, change_interval};
use linerate_measure::results::{Point, Series};

const NONE: &str = "-";

/// Columns of the longest bar.
const BAR: usize = 24;

/// Each series as a table.
pub fn series(page: &mut Page, shown: &Shown<'_>) {
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

fn table(page: &mut Page, shown: &Shown<'_>, series: &Series, factor: &str) {
    let (scale, unit) = shown.unit();
    let most = series.points.iter().map(|p| p.rate.median).fold(0.0, f64::max);
    let first = series.points.first().map_or("", |p| p.level.as_str());
    let has_ceiling = series.points.iter().any(|p| p.ceiling.is_some());
    let loses = shown.loses();
    let mut table = Table::default().column(factor, "").column("rate", unit).column("95 %", "interval");
    if loses {
        table = table.column("lost", "%");
    }
    table = table.column(&format!("against {first}"), "%").column("95 %", "interval");
    if has_ceiling {
        table = table.column("tester", "alone").column("% of", "that");
    }
    table = table.optional("", &format!("{:<BAR$}", "rate"));
    for point in &series.points {
        let mut row = vec![point.level.clone()];
        row.extend(rates(point, scale));
        if loses {
            row.push(shown.lost(point.cell));
        }
        row.extend(to_first(point));
        if has_ceiling {
            let share = point.ceiling.filter(|c| *c > 0.0 && point.rate.n > 0).map(|c| point.rate.median / c);
            row.push(point.ceiling.map_or(NONE.into(), |c| rate(c, scale, 4)));
            row.push(share.map_or(NONE.into(), percent));
        }
        row.push(bar(point.rate.median, most));
        table.row(row);
    }
    page.table(&table);
}

fn rates(point: &Point, scale: f64) -> [String; 2] {
    if point.rate.n == 0 {
        return [NONE, NONE].map(String::from);
    }
    let digits = digits(&point.rate).clamp(3, 5);
    let interval = rate_interval(&point.rate, scale, digits).unwrap_or_else(|| "too few".into());
    [rate(point.rate.median, scale, digits), interval]
}

fn to_first(point: &Point) -> [String; 2] {
    let ratio = point.to_first.as_ref();
    let interval = ratio.and_then(change_interval);
    [ratio.map_or(NONE.into(), change), interval.unwrap_or_else(|| NONE.into())]
}

/// A bar from 0, padded so that it begins at the left.
fn bar(rate: f64, most: f64) -> String {
    let share = if most > 0.0 { (rate / most).clamp(0.0, 1.0) } else { 0.0 };
    let length = (share * BAR as f64).round() as usize;
    let least = usize::from(rate > 0.0);
    format!("{:<BAR$}", "#".repeat(length.max(least)))
}

/// One core, all cores, speed-up: as "Measure Twice, Code Once" prints it.
pub fn speed_ups(page: &mut Page, shown: &Shown<'_>) {
    let ups: Vec<_> = shown.results.speed_ups.iter().filter(|s| s.ratio.is_some()).collect();
    if ups.is_empty() {
        return;
    }
    let (scale, unit) = shown.unit();
    page.heading("Speed-up by more CPUs");
    let mut table = Table::default()
        .column("setup", "")
        .column("CPUs", "")
        .column("rate", unit)
        .column("CPUs", "")
        .column("rate", unit)
        .column("speed-up", "")
        .column("95 %", "interval");
    let rate = |fps: Option<f64>| fps.map_or(NONE.into(), |fps| rate(fps, scale, 4));
    for up in ups {
        let Some(ratio) = &up.ratio else { continue };
        table.row(vec![
            shown.shortened(&up.name),
            up.from_level.clone(),
            rate(up.from_rate),
            up.to_level.clone(),
            rate(up.to_rate),
            significant(ratio.median, 3),
            interval(ratio, 1.0, 3).unwrap_or_else(|| "too few blocks".into()),
        ]);
    }
    page.table(&table);
    page.paragraph("The median of the ratios paired by block.", Ink::Dim);
}
