//! Factors with several levels: series of rates, and what more CPUs bring.

use super::{Found, Point, Series, SpeedUp};
use linerate_plan::campaign::Cell;
use std::collections::HashMap;

/// For each factor with more than two levels: a series for each variant, at each combination of the other levels.
pub(super) fn series(found: &Found<'_>) -> Vec<Series> {
    let factors = found.plan.factors.iter().enumerate();
    let swept = factors.filter(|(_, f)| f.levels.len() > 2).map(|(at, _)| at);
    swept
        .flat_map(|factor| groups(found, factor).into_iter().map(move |g| (factor, g)))
        .filter(|(_, group)| group.cells.len() > 2)
        .map(|(factor, group)| Series { factor, points: points(found, factor, &group), name: group.name })
        .collect()
}

/// For each factor that sets the number of CPUs: each level against the first.
pub(super) fn speed_ups(found: &Found<'_>) -> Vec<SpeedUp> {
    let factors = found.plan.factors.iter().enumerate();
    let of_cpus = factors.filter(|(_, f)| f.sets.iter().any(|s| s == "cpus")).map(|(at, _)| at);
    of_cpus
        .flat_map(|factor| groups(found, factor).into_iter().map(move |g| (factor, g)))
        .flat_map(|(factor, group)| speed_ups_of(found, factor, &group))
        .collect()
}

/// Factors and their levels.
type Levels = Vec<(usize, usize)>;

/// Cells that differ in one factor alone: number and level, in the order of levels.
struct Group {
    name: String,
    cells: Vec<(usize, usize)>,
}

fn groups(found: &Found<'_>, factor: usize) -> Vec<Group> {
    let cells = &found.plan.cells;
    // Ceilings are told beside the cells that they belong to, unless the plan is about them.
    let duts = cells.iter().any(|c| !found.is_ceiling(c));
    let mut groups: Vec<Group> = Vec::new();
    let mut at: HashMap<(&str, Levels), usize> = HashMap::new();
    for (number, cell) in cells.iter().enumerate().filter(|(_, c)| !(duts && found.is_ceiling(c))) {
        let Some(level) = level_of(cell, factor) else { continue };
        let others: Levels = cell.levels.iter().filter(|(f, _)| *f != factor).copied().collect();
        let group = *at.entry((&cell.variant, others)).or_insert_with(|| {
            groups.push(Group { name: found.name_without(cell, Some(factor)), cells: Vec::new() });
            groups.len() - 1
        });
        groups[group].cells.push((number, level));
    }
    groups.iter_mut().for_each(|g| g.cells.sort_by_key(|(_, level)| *level));
    groups
}

fn level_of(cell: &Cell, factor: usize) -> Option<usize> {
    cell.levels.iter().find(|(f, _)| *f == factor).map(|(_, level)| *level)
}

fn label(found: &Found<'_>, factor: usize, level: usize) -> String {
    found.plan.factors[factor].levels.get(level).cloned().unwrap_or_default()
}

fn points(found: &Found<'_>, factor: usize, group: &Group) -> Vec<Point> {
    let numbers = found.plan.factors[factor].numbers.as_deref().unwrap_or_default();
    let first = group.cells.first().filter(|(_, level)| *level == 0).map(|(cell, _)| *cell);
    let point = |&(cell, level): &(usize, usize)| Point {
        cell,
        level: label(found, factor, level),
        number: numbers.get(level).copied(),
        rate: found.estimate(cell),
        to_first: first.filter(|f| *f != cell).and_then(|f| found.ratio(cell, f)),
        ceiling: found.plan.cells[cell].ceiling.and_then(|c| found.rate(c)),
    };
    group.cells.iter().map(point).collect()
}

fn speed_ups_of(found: &Found<'_>, factor: usize, group: &Group) -> Vec<SpeedUp> {
    let Some((&(from, 0), others)) = group.cells.split_first() else { return Vec::new() };
    let speed_up = |&(to, level): &(usize, usize)| SpeedUp {
        factor,
        name: group.name.clone(),
        from_level: label(found, factor, 0),
        to_level: label(found, factor, level),
        from,
        to,
        from_rate: found.rate(from),
        to_rate: found.rate(to),
        ratio: found.ratio(to, from),
    };
    others.iter().map(speed_up).collect()
}
