//! ministat's plot, every quirk of it: a stack of symbols for each column, and bars from average minus to plus the deviation.

use super::block::SYMBOLS;
use super::{Dataset, Options, Summary};
use std::fmt::{Result, Write};

/// Width where nothing else is asked for.
pub const DEFAULT_WIDTH: usize = 74;

/// The smallest width that has a scale.
pub const MIN_WIDTH: usize = 2;

/// From a value to its column.
struct Scale {
    origin: f64,
    step: f64,
    width: usize,
}

impl Scale {
    /// Wide enough for all points and bars; `None` where they all are in one place.
    fn new(summaries: &[Summary], width: usize) -> Option<Self> {
        let low = |s: &Summary| s.min.min(s.avg - s.stddev);
        let high = |s: &Summary| s.max.max(s.avg + s.stddev);
        let min = summaries.iter().map(low).fold(f64::INFINITY, f64::min);
        let max = summaries.iter().map(high).fold(f64::NEG_INFINITY, f64::max);
        let span = max - min;
        let width = width.max(MIN_WIDTH);
        let step = span / (width as f64 - 1.0);
        (span > 0.0).then_some(Scale { origin: min - 0.5 * step, step, width })
    }

    fn column(&self, value: f64) -> usize {
        // The cast truncates; values that cannot be placed land in the first or last column.
        (((value - self.origin) / self.step) as usize).min(self.width - 1)
    }
}

/// The points of one set: how many stand in each column, and how many of them are seen.
struct Stacks {
    counts: Vec<usize>,
    height: usize,
}

impl Stacks {
    fn new(sorted: &[f64], scale: &Scale) -> Self {
        let mut counts = vec![0; scale.width];
        let mut rest = sorted;
        // The column grows with the value, so the points of one stand together.
        while let Some(&first) = rest.first() {
            let column = scale.column(first);
            let here = rest.partition_point(|&point| scale.column(point) <= column).max(1);
            counts[column] += here;
            rest = &rest[here..];
        }
        let height = counts.iter().copied().max().unwrap_or_default();
        Stacks { counts, height }
    }
}

pub(super) fn write_plot(
    out: &mut impl Write,
    sets: &[Dataset],
    summaries: &[Summary],
    options: &Options,
) -> Result {
    let Some(scale) = Scale::new(summaries, options.width) else {
        return writeln!(out, "[no plot, span is zero width]");
    };
    let edge = format!("+{}+", "-".repeat(scale.width));
    writeln!(out, "{edge}")?;
    write_stacks(out, sets, &scale)?;
    let mut bars = vec![vec![' '; scale.width]; if options.separate_bars { sets.len() } else { 1 }];
    let last = bars.len() - 1;
    for (number, summary) in summaries.iter().enumerate() {
        draw_bar(&mut bars[number.min(last)], summary, &scale);
    }
    for bar in bars {
        writeln!(out, "|{}|", bar.iter().collect::<String>())?;
    }
    writeln!(out, "{edge}")
}

fn write_stacks(out: &mut impl Write, sets: &[Dataset], scale: &Scale) -> Result {
    let mut stacks: Vec<Stacks> = sets.iter().map(|set| Stacks::new(set.sorted(), scale)).collect();
    // Each set that ministat draws sets the height of the plot anew: higher points of earlier sets are lost, even if a later set
    // is high again.
    let mut seen = usize::MAX;
    for stack in stacks.iter_mut().rev() {
        seen = seen.min(stack.height);
        stack.height = seen;
    }
    let tops = stacks.iter().flat_map(|stack| stack.counts.iter().map(|count| stack.height.min(*count)));
    let mut levels: Vec<usize> = tops.chain([0]).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    // Between two levels, where no stack ends, all rows are the same.
    for (row, below) in levels.iter().zip(levels.iter().skip(1)) {
        let line: String = (0..scale.width).map(|column| meeting(&stacks, *row, column)).collect();
        for _ in *below..*row {
            writeln!(out, "|{line}|")?;
        }
    }
    Ok(())
}

/// The symbol of the sets that have a point in a column of a row, which is counted from 1 at the bottom.
fn meeting(stacks: &[Stacks], row: usize, column: usize) -> char {
    let there = |stack: &Stacks| stack.counts[column].min(stack.height) >= row;
    let sets = stacks.iter().zip(1..).filter(|(stack, _)| there(stack));
    match sets.fold(0, |all, (_, number)| all | number) {
        0 => ' ',
        number => SYMBOLS[(number - 1).min(SYMBOLS.len() - 1)],
    }
}

/// Later marks cover earlier ones, but the line itself covers nothing.
fn draw_bar(bar: &mut [char], summary: &Summary, scale: &Scale) {
    if !summary.stddev.is_nan() {
        let left = scale.column(summary.avg - summary.stddev);
        let right = scale.column(summary.avg + summary.stddev);
        for place in bar.iter_mut().take(right).skip(left + 1).filter(|place| **place == ' ') {
            *place = '_';
        }
        (bar[left], bar[right]) = ('|', '|');
    }
    bar[scale.column(summary.median)] = 'M';
    bar[scale.column(summary.avg)] = 'A';
}
