//! A time line as a small plot: points, their levels, outliers, and letters where it changed.

use super::{letter, short_time};
use linerate_measure::history::Judged;

/// Rows of the plot without its axis.
const ROWS: usize = 8;

/// Columns for one point, where there is room.
const SPACING: usize = 2;

/// The lines of the plot, at most `width` columns wide.
pub fn strip(timeline: &Judged, width: usize, label: impl Fn(f64) -> String) -> Vec<String> {
    let values: Vec<f64> = timeline.points.iter().map(|p| p.figure.value).collect();
    let (least, greatest) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, g), v| (l.min(*v), g.max(*v)));
    if !(least.is_finite() && greatest.is_finite()) {
        return Vec::new();
    }
    let labels = [label(greatest), label(least)];
    let margin = labels.iter().map(String::len).max().unwrap_or(0);
    let canvas = Canvas::new(values.len(), width.saturating_sub(margin + 2).max(10), least, greatest);
    let mut rows = canvas.draw(timeline, &values);
    let axis = canvas.axis(timeline);
    let mut lines: Vec<String> = Vec::with_capacity(ROWS + 2);
    for (i, row) in rows.drain(..).enumerate() {
        let text = match i {
            0 => labels[0].as_str(),
            _ if i == ROWS - 1 => labels[1].as_str(),
            _ => "",
        };
        lines.push(format!("{text:>margin$} |{row}"));
    }
    lines.push(format!("{:>margin$} +{axis}", ""));
    lines.push(format!("{:>margin$}  {}", "", ends(timeline, canvas.columns)));
    lines
}

/// The names of the first and the last point.
fn ends(timeline: &Judged, columns: usize) -> String {
    let name =
        |p: Option<&linerate_measure::history::Followed>| p.map_or("", |p| short_time(&p.place)).to_string();
    let (first, last) = (name(timeline.points.first()), name(timeline.points.last()));
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
    fn new(points: usize, room: usize, least: f64, greatest: f64) -> Self {
        let columns = (points * SPACING).saturating_sub(1).clamp(1, room);
        Canvas { points, columns, least, span: greatest - least }
    }

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

    fn draw(&self, timeline: &Judged, values: &[f64]) -> Vec<String> {
        let mut cells = vec![vec![b' '; self.columns]; ROWS];
        for level in &timeline.levels {
            let (from, to) = (self.column(level.start), self.column(level.end.saturating_sub(1)));
            cells[self.row(level.value.value)][from..=to].fill(b'-');
        }
        for (i, value) in values.iter().enumerate() {
            cells[self.row(*value)][self.column(i)] = b'*';
        }
        for outlier in &timeline.outliers {
            cells[self.row(outlier.value)][self.column(outlier.index)] = b'o';
        }
        cells.into_iter().map(|row| row.into_iter().map(char::from).collect()).collect()
    }

    fn axis(&self, timeline: &Judged) -> String {
        let mut axis: Vec<char> = vec!['-'; self.columns];
        for (i, change) in timeline.changes.iter().enumerate() {
            axis[self.column(change.index)] = letter(i);
        }
        axis.into_iter().collect()
    }
}
