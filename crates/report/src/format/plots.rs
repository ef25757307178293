//! Plots of plain ASCII.

use crate::chart::Extent;
use crate::document::{Strip, letter};
use crate::prelude::*;

/// A line for each point, none longer than `width`: `#` up to the least value, `=` on to the median, `-` on to the greatest.
pub fn bars(bars: &Bars, width: usize) -> Vec<String> {
    const FIGURE: usize = 7;
    let names = bars
        .points
        .iter()
        .map(|p| p.name.len())
        .max()
        .unwrap_or(0)
        .min(24);
    let room = width.saturating_sub(names + FIGURE + 6).max(10);
    let line = |point: &crate::document::Bar| {
        let name: String = point.name.chars().take(names).collect();
        let Some(runs) = point.runs else {
            return format!("  {name:>names$} {:>FIGURE$}", "-");
        };
        let column = |value: f64| ((value / bars.top * room as f64).round() as usize).min(room);
        let [least, median, greatest] = runs.map(column);
        let bar = format!(
            "{}{}{}",
            "#".repeat(least),
            "=".repeat(median.saturating_sub(least)),
            "-".repeat(greatest.saturating_sub(median))
        );
        format!(
            "  {name:>names$} {:>FIGURE$} |{bar}",
            significant(runs[1], 4)
        )
        .trim_end()
        .to_string()
    };
    bars.points.iter().map(line).collect()
}

/// Rows of a chart without its axis.
const CHART_ROWS: usize = 13;
/// Columns of a chart at most.
const CHART_COLUMNS: usize = 61;

/// A mark of its own for each series over both axes, and what the marks mean. None for charts over names and those of cells, whose figures
/// are in tables.
pub fn chart(chart: &Chart, width: usize) -> Vec<String> {
    let drawn = chart
        .extents()
        .filter(|[x, _]| x.names.is_empty() && !chart.is_of_cells());
    let Some([x, y]) = drawn else {
        return Vec::new();
    };
    let number = |value: f64| significant(value, 3);
    let ends = |of: &Extent| [number(of.range.start), number(of.range.end)];
    let ([left, right], [low, high]) = (ends(&x), ends(&y));
    let margin = low.len().max(high.len());
    let columns = width.saturating_sub(margin + 3).clamp(10, CHART_COLUMNS);
    let mut cells = vec![vec![' '; columns]; CHART_ROWS];
    let place =
        |share: f64, most: usize| (share.clamp(0.0, 1.0) * (most - 1) as f64).round() as usize;
    let shown = || {
        chart
            .series
            .iter()
            .enumerate()
            .filter(|(_, series)| series.look != Look::Span)
    };
    for (number, series) in shown() {
        for spot in series
            .points
            .iter()
            .filter(|spot| spot.x.is_finite() && spot.y.is_finite())
        {
            let row = CHART_ROWS - 1 - place(y.share(spot.y), CHART_ROWS);
            cells[row][place(x.share(spot.x), columns)] = mark(series, number);
        }
    }
    let mut lines = vec![chart.title.clone()];
    for (row, cells) in cells.iter().enumerate() {
        let label = match row {
            0 => high.as_str(),
            _ if row == CHART_ROWS - 1 => low.as_str(),
            _ => "",
        };
        lines.push(format!(
            "{label:>margin$} |{}",
            cells.iter().collect::<String>().trim_end()
        ));
    }
    lines.push(format!("{:>margin$} +{}", "", "-".repeat(columns)));
    let gap = columns.saturating_sub(left.len() + right.len()).max(1);
    lines.push(format!("{:>margin$}  {left}{}{right}", "", " ".repeat(gap)));
    lines.push(format!("x: {}; y: {}", chart.x.label, chart.y.label));
    lines.extend(
        shown().map(|(number, series)| format!("{} {}", mark(series, number), series.name)),
    );
    lines
}

/// The mark of series number `number`.
fn mark(series: &Series, number: usize) -> char {
    match series.look {
        Look::Limit => '-',
        _ => ['o', 'x', '+', '*', '#', '@'][number % 6],
    }
}

/// Rows of a strip without its axis.
const ROWS: usize = 8;

/// Columns for one point, if there is room.
const SPACING: usize = 2;

/// Points, their levels, outliers, and letters where the level changed; at most `width` columns wide.
pub fn strip(strip: &Strip, width: usize) -> Vec<String> {
    let values = || strip.points.iter().map(|p| p.value);
    let (least, greatest) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, g), v| {
        (l.min(v), g.max(v))
    });
    if !(least.is_finite() && greatest.is_finite()) {
        return Vec::new();
    }
    let margin = strip.labels.iter().map(String::len).max().unwrap_or(0);
    let room = width.saturating_sub(margin + 2).max(10);
    let canvas = Canvas {
        points: strip.points.len(),
        columns: (strip.points.len() * SPACING)
            .saturating_sub(1)
            .clamp(1, room),
        least,
        span: greatest - least,
    };
    let label = |row| match row {
        0 => strip.labels[0].as_str(),
        _ if row == ROWS - 1 => strip.labels[1].as_str(),
        _ => "",
    };
    let rows = canvas.draw(strip).into_iter().enumerate();
    let mut lines: Vec<String> = rows
        .map(|(i, row)| format!("{:>margin$} |{row}", label(i)))
        .collect();
    lines.push(format!("{:>margin$} +{}", "", canvas.axis(strip)));
    lines.push(format!("{:>margin$}  {}", "", ends(strip, canvas.columns)));
    lines
}

/// The names of the first and the last point.
fn ends(strip: &Strip, columns: usize) -> String {
    let [first, last] =
        [strip.points.first(), strip.points.last()].map(|p| p.map_or("", |p| &p.name));
    let gap = columns.saturating_sub(first.len() + last.len()).max(1);
    format!("{first}{}{last}", " ".repeat(gap))
}

struct Canvas {
    points: usize,
    columns: usize,
    least: f64,
    span: f64,
}

impl Canvas {
    fn column(&self, point: usize) -> usize {
        match self.points {
            0 | 1 => 0,
            n => point * (self.columns - 1) / (n - 1),
        }
    }

    /// Row of a value, from the top.
    fn row(&self, value: f64) -> usize {
        if self.span <= 0.0 {
            return ROWS / 2;
        }
        let height = (value - self.least) / self.span * (ROWS - 1) as f64;
        ROWS - 1 - (height.round().clamp(0.0, (ROWS - 1) as f64) as usize)
    }

    fn draw(&self, strip: &Strip) -> Vec<String> {
        let mut cells = vec![vec![b' '; self.columns]; ROWS];
        for level in &strip.levels {
            let (from, to) = (
                self.column(level.start),
                self.column(level.end.saturating_sub(1)),
            );
            cells[self.row(level.value)][from..=to].fill(b'-');
        }
        for outliers in [false, true] {
            for (i, point) in strip
                .points
                .iter()
                .enumerate()
                .filter(|(_, p)| p.outlier == outliers)
            {
                cells[self.row(point.value)][self.column(i)] = if outliers { b'o' } else { b'*' };
            }
        }
        cells
            .into_iter()
            .map(|row| row.into_iter().map(char::from).collect())
            .collect()
    }

    fn axis(&self, strip: &Strip) -> String {
        let mut axis: Vec<char> = vec!['-'; self.columns];
        for (i, change) in strip.changes.iter().enumerate() {
            axis[self.column(*change)] = letter(i);
        }
        axis.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Bar;

    #[test]
    fn bars_grow_with_the_median_and_end_with_the_spread() {
        let bar = |name: &str, runs| Bar {
            name: name.into(),
            runs,
        };
        let points = vec![
            bar("1", Some([1.0, 2.0, 3.0])),
            bar("10", Some([10.0, 10.0, 10.0])),
            bar("100", None),
        ];
        let lines = bars(&Bars { points, top: 10.0 }, 36);
        assert_eq!(lines[0], "    1   2.000 |##==--");
        assert_eq!(lines[1], format!("   10   10.00 |{}", "#".repeat(20)));
        assert_eq!(lines[2], "  100       -");
        assert!(lines.iter().all(|l| l.len() <= 36));
    }
}
