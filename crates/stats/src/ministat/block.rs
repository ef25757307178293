//! ministat's output: names, plot, rows of figures and differences.

use super::format::format_g;
use super::plot::{DEFAULT_WIDTH, write_plot};
use super::{Confidence, Dataset, Difference, Era, Summary, difference};
use std::fmt::{Result, Write};

/// The symbols of the sets. Where points of several meet in the plot, that of the bitwise OR of their numbers is drawn.
pub(super) const SYMBOLS: [char; 7] = ['x', '+', '*', '%', '#', '@', 'O'];

/// How many sets have a symbol; ministat takes no more.
pub const MAX_SETS: usize = SYMBOLS.len();

/// Options of the output.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The arithmetic.
    pub era: Era,
    /// How sure differences must be (`-c`).
    pub confidence: Confidence,
    /// Characters between the edges of the plot (`-w`), at least [`super::MIN_WIDTH`].
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
/// Those of `out`.
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
        writeln!(out, "  {n:>3} {min:>13} {max:>13} {median:>13} {avg:>13} {stddev:>13}")?;
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
    writeln!(out, "\t{}% +/- {}%", g(found.percent), g(found.percent_error))?;
    writeln!(out, "\t(Student's t, pooled s = {})", g(found.pooled))
}

/// A figure as ministat prints it. NaN comes from a root of a negative number or from 0/0, and has its sign set there on the
/// machines that ministat's output is known from; Rust leaves the sign open.
fn printed(figure: f64, significant: usize) -> String {
    if figure.is_nan() { "-nan".into() } else { format_g(figure, significant) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(points: &[&[f64]]) -> Vec<Dataset> {
        let names = ["iguana", "chameleon"];
        points.iter().zip(names).map(|(points, name)| Dataset::new(name, points.to_vec())).collect()
    }

    /// The example of ministat's manual page, with the figures of later versions.
    #[test]
    fn the_example_of_the_manual_page() {
        let sets =
            sets(&[&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0], &[150.0, 400.0, 720.0, 500.0, 930.0]]);
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
        assert_eq!(lines(Options { plot: false, ..Options::default() }), 6);
        assert_eq!(lines(Options { differences: false, ..Options::default() }), 5);
        let rows = Options { differences: false, headings: false, ..Options::default() };
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
            let wild =
                [Dataset::new("", extremes.to_vec()), Dataset::new("", vec![]), Dataset::new("", vec![1.0])];
            block(&wild, &Options { width, ..Options::default() });
        }
    }
}
