//! Factors with several levels, or that set the number of CPUs, as series.

use super::{Found, Point, Series, name_without, sets_cpus};
use std::collections::HashMap;

/// For each factor with more than two levels, and each that sets CPUs: a series for each variant, at each combination of the other
/// levels.
pub(super) fn series(found: &Found<'_>) -> Vec<Series> {
    let factors = found.plan.factors.iter().enumerate();
    let swept = factors.filter(|(_, f)| f.levels.len() > 2 || sets_cpus(f));
    swept.flat_map(|(factor, _)| of_factor(found, factor)).collect()
}

/// Pairs of two numbers, one of them a level: a factor and its level, or a level and its cell.
type Levels = Vec<(usize, usize)>;

fn of_factor(found: &Found<'_>, factor: usize) -> Vec<Series> {
    let plan = found.plan;
    // Ceilings appear beside the cells that they belong to, unless the plan is about them.
    let duts = plan.cells.iter().any(|c| !found.is_ceiling(c));
    let mut groups: Vec<(String, Levels)> = Vec::new();
    let mut at: HashMap<(&str, Levels), usize> = HashMap::new();
    for (number, cell) in plan.cells.iter().enumerate().filter(|(_, c)| !(duts && found.is_ceiling(c))) {
        let Some(&(_, level)) = cell.levels.iter().find(|(f, _)| *f == factor) else { continue };
        let others = cell.levels.iter().filter(|(f, _)| *f != factor).copied().collect();
        let group = *at.entry((&cell.variant, others)).or_insert_with(|| {
            groups.push((name_without(plan, cell, Some(factor)), Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push((level, number));
    }
    let least = if sets_cpus(&plan.factors[factor]) { 2 } else { 3 };
    let whole = groups.into_iter().filter(|(_, cells)| cells.len() >= least);
    whole.map(|(name, cells)| Series { factor, name, points: points(found, factor, cells) }).collect()
}

/// `cells`: level and number of each.
fn points(found: &Found<'_>, factor: usize, mut cells: Levels) -> Vec<Point> {
    cells.sort_unstable();
    let factor = &found.plan.factors[factor];
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
