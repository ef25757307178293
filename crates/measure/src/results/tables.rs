//! Comparisons in the form in which papers print them: setup, A, B, and what ministat says.

use super::{Disagreement, Found, Ministat, Table, TableRow, proven};
use linerate_plan::campaign::{Comparison, Interest};
use linerate_stats::Estimate;
use linerate_stats::ministat::{Confidence, Dataset, Era, difference};

/// A table of the variants, and one for each factor.
pub(super) fn tables(found: &Found<'_>) -> Vec<Table> {
    let mut wanted = vec![Interest::Variants];
    wanted.extend((0..found.plan.factors.len()).map(Interest::Levels));
    wanted.into_iter().filter_map(|why| table(found, why)).collect()
}

fn table(found: &Found<'_>, why: Interest) -> Option<Table> {
    let cells = &found.plan.cells;
    let exist = |c: &&Comparison| c.why == why && c.of.max(c.than) < cells.len();
    let compared: Vec<&Comparison> = found.plan.comparisons.iter().filter(exist).collect();
    let first = compared.first()?;
    let side = |cell: usize| match why {
        Interest::Levels(factor) => {
            found.labels(&cells[cell]).find(|(f, _)| *f == factor).map_or("", |(_, label)| label)
        }
        _ => cells[cell].variant.as_str(),
    };
    let (a, b) = (side(first.than), side(first.of));
    let same_b = compared.iter().all(|c| side(c.of) == b);
    let (title, factor) = match why {
        Interest::Levels(factor) => (found.plan.factors.get(factor)?.name.clone(), Some(factor)),
        _ => ("variants".into(), None),
    };
    let named = |text: &str| factor.map_or(text.to_string(), |_| format!("{title} {text}"));
    let rows = compared.iter().map(|c| row(found, c, setup(found, c.of, factor, same_b))).collect();
    Some(Table { a: named(a), b: same_b.then(|| named(b)), title, rows })
}

/// What is the same on both sides; with B's own part, unless the column's heading says it.
fn setup(found: &Found<'_>, of: usize, factor: Option<usize>, same_b: bool) -> String {
    let cell = &found.plan.cells[of];
    match (same_b, factor) {
        (false, _) => cell.name.clone(),
        (true, Some(_)) => found.name_without(cell, factor),
        (true, None) => {
            let levels =
                found.labels(cell).map(|(f, label)| format!("{} {label}", found.plan.factors[f].name));
            let text = levels.collect::<Vec<_>>().join(", ");
            if text.is_empty() { found.plan.system.to_string() } else { text }
        }
    }
}

fn row(found: &Found<'_>, c: &Comparison, setup: String) -> TableRow {
    let ministat = ministat(found, c);
    let ratio = found.ratio(c.of, c.than);
    TableRow {
        setup,
        than: c.than,
        of: c.of,
        a: found.rate(c.than),
        b: found.rate(c.of),
        disagreement: ministat.zip(ratio).and_then(|(m, r)| disagreement(&m, &r)),
        ministat,
    }
}

/// `None` for fewer than two rates on a side, and where the arithmetic overflows.
fn ministat(found: &Found<'_>, c: &Comparison) -> Option<Ministat> {
    let set = |cell: usize| {
        let rates = found.rates.get(&cell).filter(|r| r.len() >= 2)?;
        Some(Dataset::new("", rates.clone()).summary(Era::default()))
    };
    let d = difference(&set(c.than)?, &set(c.of)?, Confidence::default(), Era::default());
    let verdict = Ministat { proven: d.proven, percent: d.percent, percent_error: d.percent_error };
    (d.percent.is_finite() && d.percent_error.is_finite()).then_some(verdict)
}

/// Without an interval, pairs say nothing yet, which is no disagreement.
fn disagreement(ministat: &Ministat, ratio: &Estimate) -> Option<Disagreement> {
    ratio.low?;
    match (ministat.proven, proven(ratio)) {
        (false, true) => Some(Disagreement::OnlyPairs),
        (true, false) => Some(Disagreement::OnlyMinistat),
        (true, true) if (ministat.percent > 0.0) != (ratio.median > 1.0) => Some(Disagreement::Opposite),
        _ => None,
    }
}
