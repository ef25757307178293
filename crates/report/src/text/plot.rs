//! Plots of plain ASCII: a bar for each point, with the spread of its runs at the end.

use super::numbers::significant;

/// A point to draw.
#[derive(Debug, Clone, Copy)]
pub struct Bar<'a> {
    /// Where it stands on the axis.
    pub name: &'a str,
    /// Least, median and greatest value, at least 0; `None` where there is nothing.
    pub runs: Option<[f64; 3]>,
}

/// A line for each point, none longer than `width`: `#` up to the least value, `=` on to the median, `-` on to the greatest.
/// `top` is the value at the right edge.
pub fn bars(points: &[Bar], top: f64, width: usize) -> Vec<String> {
    const FIGURE: usize = 7;
    let names = points.iter().map(|p| p.name.len()).max().unwrap_or(0).min(24);
    let room = width.saturating_sub(names + FIGURE + 6).max(10);
    points
        .iter()
        .map(|point| {
            let name: String = point.name.chars().take(names).collect();
            let Some(runs) = point.runs else { return format!("  {name:>names$} {:>FIGURE$}", "-") };
            let column = |value: f64| ((value / top * room as f64).round() as usize).min(room);
            let [least, median, greatest] = runs.map(column);
            let bar = format!(
                "{}{}{}",
                "#".repeat(least),
                "=".repeat(median.saturating_sub(least)),
                "-".repeat(greatest.saturating_sub(median))
            );
            format!("  {name:>names$} {:>FIGURE$} |{bar}", significant(runs[1], 4)).trim_end().to_string()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_the_median_and_end_with_the_spread() {
        let points = [
            Bar { name: "1", runs: Some([1.0, 2.0, 3.0]) },
            Bar { name: "10", runs: Some([10.0, 10.0, 10.0]) },
            Bar { name: "100", runs: None },
        ];
        let lines = bars(&points, 10.0, 36);
        assert_eq!(lines[0], "    1   2.000 |##==--");
        assert_eq!(lines[1], format!("   10   10.00 |{}", "#".repeat(20)));
        assert_eq!(lines[2], "  100       -");
        assert!(lines.iter().all(|l| l.len() <= 36));
    }
}
