//! ministat's output: names, plot, rows of figures and differences. The plot has every quirk of ministat's: a stack of symbols for
//! each column, and bars from average minus to plus the deviation.

use super::{Confidence, Dataset, Difference, Era, Summary, difference};
use std::fmt::{Result, Write};

/// The symbols of the sets. Where points of several meet in the plot, that of the bitwise OR of their numbers is drawn.
const SYMBOLS: [char; 7] = ['x', '+', '*', '%', '#', '@', 'O'];

/// How many sets have a symbol; ministat takes no more.
pub const MAX_SETS: usize = SYMBOLS.len();

/// Options of the output.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The arithmetic.
    pub era: Era,
    /// How sure differences must be (`-c`).
    pub confidence: Confidence,
    /// Characters between the edges of the plot (`-w`), at least [`MIN_WIDTH`].
    pub width: usize,
    /// The names of the sets and the heading of the figures (not with `-q`).
    pub headings: bool,
    /// The plot (not with `-A`).
    pub plot: bool,
    /// Differences from the first set; without them no plot either (`-n`).
    pub differences: bool,
    /// A line of its own for each set's bar of average, median and deviation (`-s`).
    pub separate_bars: bool,
}

impl Default for Options {
    /// ministat's output without options, not on a terminal.
    fn default() -> Self {
        Options {
            era: Era::default(),
            confidence: Confidence::default(),
            width: DEFAULT_WIDTH,
            headings: true,
            plot: true,
            differences: true,
            separate_bars: false,
        }
    }
}

/// Width where nothing else is asked for.
pub const DEFAULT_WIDTH: usize = 74;

/// The smallest width that has a scale.
pub const MIN_WIDTH: usize = 2;

/// All that ministat prints of sets of at least 3 finite points each; of more than [`MAX_SETS`], the last share a symbol.
pub fn block(sets: &[Dataset], options: &Options) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_block(&mut text, sets, options);
    text
}

/// [`block`], line by line: the plot of many points in few places is far larger than the points.
///
/// # Errors
/// Errors of `out`.
pub fn write_block(out: &mut impl Write, sets: &[Dataset], options: &Options) -> Result {
    let summaries: Vec<Summary> = sets.iter().map(|set| set.summary(options.era)).collect();
    if options.headings {
        for (number, set) in sets.iter().enumerate() {
            writeln!(out, "{} {}", symbol(number), set.name())?;
        }
    }
    if options.plot && options.differences {
        write_plot(out, sets, &summaries, options)?;
    }
    if options.headings {
        let headings = ["N", "Min", "Max", "Median", "Avg", "Stddev"];
        let [n, min, max, median, avg, stddev] = headings;
        writeln!(
            out,
            "  {n:>3} {min:>13} {max:>13} {median:>13} {avg:>13} {stddev:>13}"
        )?;
    }
    for (number, summary) in summaries.iter().enumerate() {
        write_row(out, symbol(number), summary)?;
        if number > 0 && options.differences {
            let found = difference(&summaries[0], summary, options.confidence, options.era);
            write_difference(out, &found, options.confidence)?;
        }
    }
    Ok(())
}

/// The symbol of a set, counted from 0.
fn symbol(number: usize) -> char {
    SYMBOLS[number.min(MAX_SETS - 1)]
}

fn write_row(out: &mut impl Write, symbol: char, of: &Summary) -> Result {
    write!(out, "{symbol} {:3}", of.n)?;
    for figure in [of.min, of.max, of.median, of.avg, of.stddev] {
        write!(out, " {:>13}", printed(figure, 8))?;
    }
    writeln!(out)
}

fn write_difference(out: &mut impl Write, found: &Difference, confidence: Confidence) -> Result {
    let level = confidence.percent();
    if !found.proven {
        return writeln!(out, "No difference proven at {level:.1}% confidence");
    }
    let g = |figure| printed(figure, 6);
    writeln!(out, "Difference at {level:.1}% confidence")?;
    writeln!(out, "\t{} +/- {}", g(found.delta), g(found.error))?;
    writeln!(
        out,
        "\t{}% +/- {}%",
        g(found.percent),
        g(found.percent_error)
    )?;
    writeln!(out, "\t(Student's t, pooled s = {})", g(found.pooled))
}

/// A figure as ministat prints it. NaN comes from a root of a negative number or from 0/0, and has its sign set there on the
/// machines that ministat's output is known from; Rust leaves the sign open.
fn printed(figure: f64, significant: usize) -> String {
    if figure.is_nan() {
        "-nan".into()
    } else {
        format_g(figure, significant)
    }
}

/// A number as C's `printf("%.*g", significant, value)` writes it: at most `significant` digits (0 counts as 1), no trailing
/// zeros, an exponent where it is below -4 or at least `significant`.
pub fn format_g(value: f64, significant: usize) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let significant = significant.max(1);
    // Rust rounds the exact value, halves to even, as glibc does.
    let scientific = format!("{value:.*e}", significant - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= i32::try_from(significant).unwrap_or(i32::MAX) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs());
    }
    let decimals =
        usize::try_from(significant as i64 - 1 - i64::from(exponent)).unwrap_or_default();
    trimmed(&format!("{value:.decimals$}")).into()
}

/// Without trailing zeros of a fraction.
fn trimmed(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

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
        (span > 0.0).then_some(Scale {
            origin: min - 0.5 * step,
            step,
            width,
        })
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
            let here = rest
                .partition_point(|&point| scale.column(point) <= column)
                .max(1);
            counts[column] += here;
            rest = &rest[here..];
        }
        let height = counts.iter().copied().max().unwrap_or_default();
        Stacks { counts, height }
    }
}

fn write_plot(
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
    let mut stacks: Vec<Stacks> = sets
        .iter()
        .map(|set| Stacks::new(set.sorted(), scale))
        .collect();
    // Each set that ministat draws sets the height of the plot anew: higher points of earlier sets are lost, even if a later set
    // is high again.
    let mut seen = usize::MAX;
    for stack in stacks.iter_mut().rev() {
        seen = seen.min(stack.height);
        stack.height = seen;
    }
    let tops = stacks
        .iter()
        .flat_map(|stack| stack.counts.iter().map(|count| stack.height.min(*count)));
    let mut levels: Vec<usize> = tops.chain([0]).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    // Between two levels, where no stack ends, all rows are the same.
    for (row, below) in levels.iter().zip(levels.iter().skip(1)) {
        let line: String = (0..scale.width)
            .map(|column| meeting(&stacks, *row, column))
            .collect();
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
        for place in bar
            .iter_mut()
            .take(right)
            .skip(left + 1)
            .filter(|place| **place == ' ')
        {
            *place = '_';
        }
        (bar[left], bar[right]) = ('|', '|');
    }
    bar[scale.column(summary.median)] = 'M';
    bar[scale.column(summary.avg)] = 'A';
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(points: &[&[f64]]) -> Vec<Dataset> {
        let names = ["iguana", "chameleon"];
        points
            .iter()
            .zip(names)
            .map(|(points, name)| Dataset::new(name, points.to_vec()))
            .collect()
    }

    /// The example of ministat's manual page, with the figures of later versions.
    #[test]
    fn the_example_of_the_manual_page() {
        let sets = sets(&[
            &[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0],
            &[150.0, 400.0, 720.0, 500.0, 930.0],
        ]);
        let options = Options {
            width: 60,
            separate_bars: true,
            confidence: "80".parse().unwrap(),
            era: Era::Old,
            ..Options::default()
        };
        let text = block(&sets, &options);
        let shown = [
            "x iguana",
            "+ chameleon",
            "+------------------------------------------------------------+",
            "|x      *  x            *      +              + x           +|",
            "| |________M______A_______________|                          |",
            "|             |________________M__A___________________|      |",
            "+------------------------------------------------------------+",
            "    N           Min           Max        Median           Avg        Stddev",
            "x   7            50           750           200           300     238.04761",
            "+   5           150           930           500           540     299.08193",
            "Difference at 80.0% confidence",
            "\t240 +/- 212.215",
            "\t80% +/- 70.7384%",
            "\t(Student's t, pooled s = 264.159)",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), shown);
    }

    #[test]
    fn options_leave_parts_out() {
        let sets = sets(&[&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]]);
        let lines = |options: Options| block(&sets, &options).lines().count();
        assert_eq!(lines(Options::default()), 10);
        assert_eq!(
            lines(Options {
                plot: false,
                ..Options::default()
            }),
            6
        );
        assert_eq!(
            lines(Options {
                differences: false,
                ..Options::default()
            }),
            5
        );
        let rows = Options {
            differences: false,
            headings: false,
            ..Options::default()
        };
        assert_eq!(
            block(&sets[..1], &rows),
            "x   3             1             3             2             2             1\n"
        );
    }

    #[test]
    fn constant_sets_have_no_plot_and_impossible_ones_no_panic() {
        let sets = sets(&[&[5.0; 3], &[5.0; 4]]);
        assert!(block(&sets, &Options::default()).contains("\n[no plot, span is zero width]\n"));
        let extremes = [f64::MAX, f64::MIN, f64::INFINITY, f64::NAN, 0.0];
        for width in [0, 1, 2, 74] {
            let wild = [
                Dataset::new("", extremes.to_vec()),
                Dataset::new("", vec![]),
                Dataset::new("", vec![1.0]),
            ];
            block(
                &wild,
                &Options {
                    width,
                    ..Options::default()
                },
            );
        }
    }

    /// As glibc's printf writes them.
    #[test]
    fn numbers_look_as_in_c() {
        let cases = [
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (1.0, 6, "1"),
            (100_000.0, 6, "100000"),
            (999_999.5, 6, "1e+06"),
            (1_118_510.0, 6, "1.11851e+06"),
            (0.000_1, 6, "0.0001"),
            (0.000_099_999_96, 6, "0.0001"),
            (0.000_012_345_67, 6, "1.23457e-05"),
            (-2_386_340.0, 6, "-2.38634e+06"),
            (9_092_915.5, 8, "9092915.5"),
            (10_942_352.5, 8, "10942352"),
            (10_942_353.5, 8, "10942354"),
            (123_456_789.0, 8, "1.2345679e+08"),
            (901.227_67, 8, "901.22767"),
            (2.5, 1, "2"),
            (3.5, 1, "4"),
            (0.5, 0, "0.5"),
            (1e100, 6, "1e+100"),
            (f64::MAX, 8, "1.7976931e+308"),
            (5e-324, 8, "4.9406565e-324"),
            (0.1, 17, "0.10000000000000001"),
            (f64::INFINITY, 6, "inf"),
            (f64::NEG_INFINITY, 6, "-inf"),
            (f64::NAN, 6, "nan"),
        ];
        for (value, significant, text) in cases {
            assert_eq!(
                format_g(value, significant),
                text,
                "{value:?} with {significant} digits"
            );
        }
    }
}
