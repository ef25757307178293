//! Factors with several levels, or that set the number of CPUs, as series.

use super::{Found, Point, Series};
use crate::experiment::Levels;
use std::collections::HashMap;

/// For each factor with more than two levels, and each that sets CPUs: a series for each variant, at each combination of the other
/// levels.
pub(super) fn series(found: &Found<'_>) -> Vec<Series> {
    let factors = found.experiment.factors.iter().enumerate();
    let swept = factors.filter(|(_, f)| f.levels.len() > 2 || f.sets_cpus());
    swept.flat_map(|(factor, _)| of_factor(found, factor)).collect()
}

fn of_factor(found: &Found<'_>, factor: usize) -> Vec<Series> {
    // Ceilings appear beside the slots that they belong to, unless the plan is about them.
    let duts = found.slots.iter().any(|slot| !slot.is_calibration());
    let mut groups: Vec<(String, Vec<(usize, usize)>)> = Vec::new();
    let mut at: HashMap<(&str, Levels), usize> = HashMap::new();
    for slot in found.slots.iter().filter(|slot| !(duts && slot.is_calibration())) {
        let Some(&(_, level)) = slot.levels.iter().find(|(f, _)| *f == factor) else { continue };
        let others = slot.levels.iter().filter(|(f, _)| *f != factor).copied().collect();
        let group = *at.entry((&slot.plan_variant, others)).or_insert_with(|| {
            groups.push((found.experiment.name_without(slot, Some(factor)), Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push((level, slot.id));
    }
    let least = if found.experiment.factors[factor].sets_cpus() { 2 } else { 3 };
    let whole = groups.into_iter().filter(|(_, slots)| slots.len() >= least);
    whole.map(|(name, slots)| Series { factor, name, points: points(found, factor, slots) }).collect()
}

/// `cells`: level and number of each.
fn points(found: &Found<'_>, factor: usize, mut cells: Vec<(usize, usize)>) -> Vec<Point> {
    cells.sort_unstable();
    let factor = &found.experiment.factors[factor];
    let numbers = factor.numbers.as_deref().unwrap_or_default();
    let first = cells.first().filter(|(level, _)| *level == 0).map(|(_, cell)| *cell);
    let point = |&(level, cell): &(usize, usize)| Point {
        cell,
        level: factor.levels.get(level).cloned().unwrap_or_default(),
        number: numbers.get(level).copied(),
        to_first: first.filter(|f| *f != cell).and_then(|f| found.ratio(cell, f)),
    };
    cells.iter().map(point).collect()
}
