//! Tables of a profile's functions, and of their changes.

use super::kernel::callers;
use crate::prelude::*;
use linerate_profile::{Difference, Function};

/// The functions of a profile with so many samples, those with most samples of their own first.
pub fn functions(functions: &[Function], samples: u64, event: Option<&str>) -> Document {
    let mut page = Document::default();
    let part = |count: u64| count as f64 / samples.max(1) as f64;
    if let [first, ..] = functions {
        page.answer(format!(
            "{} has {} % of {samples} samples.",
            first.name,
            percent(part(first.own))
        ));
    }
    if let Some(event) = event {
        page.fact("event", event);
    }
    let rows = Table::of(functions)
        .column("function", "", |f| f.name.as_str())
        .column("itself", "%", |f| share(part(f.own)))
        .column("with called", "%", |f| share(part(f.with_called)))
        .column("samples", "", |f| f.own as usize)
        .optional("called by", "", |f| callers(f));
    page.section("Functions", rows);
    page.note("Callers have shares of the samples in the function itself.");
    page
}

/// The functions whose share of the samples changed most.
pub fn function_changes(changes: &[Difference]) -> Document {
    let mut page = Document::default();
    let points = |[before, after]: [f64; 2]| 100.0 * (after - before);
    if let [first, ..] = changes {
        let [before, after] = first.own.map(percent);
        page.answer(format!(
            "{} went from {before} to {after} % of the samples.",
            first.name
        ));
    }
    let rows = Table::of(changes)
        .column("function", "", |d| d.name.as_str())
        .column("before", "%", |d| share(d.own[0]))
        .column("after", "%", |d| share(d.own[1]))
        .column("change", "points", |d| signed(points(d.own), 2))
        .column("with called", "points", |d| {
            signed(points(d.with_called), 2)
        });
    page.section("Functions", rows);
    page
}
