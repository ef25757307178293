//! Tables of a profile's functions, and of their changes.

use crate::prelude::*;
use linerate_profile::{Difference, Function};

/// Callers of a function that are named.
const CALLERS: usize = 3;

/// The functions of a profile with so many samples, those with most samples of their own first.
pub fn functions(functions: &[Function], samples: u64, event: Option<&str>) -> Document {
    let mut page = Document::default();
    let share = |count: u64| count as f64 / samples.max(1) as f64;
    if let [first, ..] = functions {
        page.answer(format!("{} has {} % of {samples} samples.", first.name, percent(share(first.own))));
    }
    if let Some(event) = event {
        page.fact("event", event);
    }
    let callers = |function: &&Function| {
        let known = function.callers.iter().take(CALLERS);
        let part = |(name, count): &(String, u64)| {
            format!("{name} {} %", percent(*count as f64 / function.own.max(1) as f64))
        };
        known.map(part).joined(", ")
    };
    let cell = |count: u64| Cell::number(100.0 * share(count), percent(share(count)));
    let rows = Table::of(functions)
        .column("function", "", |f| f.name.as_str())
        .column("itself", "%", |f| cell(f.own))
        .column("with called", "%", |f| cell(f.with_called))
        .column("samples", "", |f| f.own as usize)
        .optional("called by", "", callers);
    page.section("Functions", rows);
    page.note("Callers have shares of the samples in the function itself.");
    page
}

/// The functions whose share of the samples changed most.
pub fn function_changes(changes: &[Difference]) -> Document {
    let mut page = Document::default();
    let points = |[before, after]: [f64; 2]| 100.0 * (after - before);
    let signed = |shares: [f64; 2]| Cell::number(points(shares), format!("{:+.2}", points(shares)));
    let cell = |share: f64| Cell::number(100.0 * share, percent(share));
    if let [first, ..] = changes {
        let [before, after] = first.own.map(percent);
        page.answer(format!("{} went from {before} to {after} % of the samples.", first.name));
    }
    let rows = Table::of(changes)
        .column("function", "", |d| d.name.as_str())
        .column("before", "%", |d| cell(d.own[0]))
        .column("after", "%", |d| cell(d.own[1]))
        .column("change", "points", |d| signed(d.own))
        .column("with called", "points", |d| signed(d.with_called));
    page.section("Functions", rows);
    page
}
