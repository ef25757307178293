//! Arguments of `linerate stat`.

use super::Printed;
use clap::Args;
use linerate_stats::ministat::{Confidence, Era};
use std::path::PathBuf;

/// Statistics of files of numbers, as ministat(1) prints them.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
#[command(after_help = "Examples:
  linerate stat before.pps after.pps              is there a difference, and how large?
  linerate stat -s -w 100 a.pps b.pps c.pps       a wider plot, a bar for each set on its own line
  linerate stat -qn results/*.pps                 the figures alone, for scripts
  linerate stat -C 3 -d , table.csv               the third column of a table
  seq 1 100 | linerate stat -c 99                 standard input, another level of confidence
  linerate stat --era fb11 before.pps after.pps   the arithmetic of FreeBSD 11
  linerate stat --full before.pps after.pps       verdict in words, robust tests, warnings
  linerate stat --json --show 0.5 a.pps b.pps     all of it as JSON; points needed to show 0.5 %

Generations of ministat's arithmetic:
  old    to 2015, and Debian's package: the median of an even count is the upper middle point
  mid    2015-16: it is the mean of the two middle points
  fb11   FreeBSD 11: in addition, the relative error takes in that the reference is uncertain too
  new    FreeBSD 12 and later: in addition, the variance is summed in two passes

Where ministat prints nonsense or crashes (NaN, infinity, sums that overflow, zero bytes, lines of
megabytes), linerate names the line and the fault. docs/statistics.md has the list.

Exit status: 0 printed; 1 a file cannot be read, a line has no number, or a set fewer than 3;
2 bad arguments.")]
pub struct Stat {
    /// Files of numbers; - is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// No plot: figures and differences only
    #[arg(short = 'A', long)]
    pub no_plot: bool,

    /// Column of the numbers, counted from 1
    #[arg(short = 'C', long, value_name = "N", default_value_t = 1, value_parser = column)]
    pub column: usize,

    /// Confidence of the differences in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(short = 'c', long, value_name = "PERCENT", default_value_t = Confidence::default())]
    pub confidence: Confidence,

    /// Characters that separate columns, any number of them [default: blank and tab]
    #[arg(short = 'd', long, value_name = "CHARS", default_value = " \t", hide_default_value = true, value_parser = delimiters)]
    pub delimiters: String,

    /// Figures only: no plot, no differences
    #[arg(short = 'n', long)]
    pub no_differences: bool,

    /// No names of sets and no headings: with -n, what scripts read
    #[arg(short = 'q', long)]
    pub quiet: bool,

    /// A line of its own for each set's bar: M median, A average, |___| a standard deviation each way
    #[arg(short = 's', long)]
    pub separate_bars: bool,

    /// Width of the plot [default: the terminal's, or 74]
    #[arg(short = 'w', long, value_name = "N", value_parser = width)]
    pub width: Option<usize>,

    /// Generation of ministat's arithmetic: old, mid, fb11 or new
    #[arg(long, value_name = "ERA", default_value_t = Era::default())]
    pub era: Era,

    /// After ministat's output, print verdicts in words, Mann-Whitney and Welch tests, shifts with intervals, and warnings
    #[arg(long, conflicts_with = "json")]
    pub full: bool,

    #[command(flatten)]
    pub printed: Printed,

    /// With --full or --format: difference in percent for which the number of points needed is printed
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub show: f64,

    /// With --full or --format: seed of the bootstrap's random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

fn column(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(column @ 1..) => Ok(column),
        _ => Err("columns are counted from 1".into()),
    }
}

fn delimiters(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("name at least one character".into()) } else { Ok(text.into()) }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent.is_finite() => Ok(percent),
        _ => Err("a difference is a number of percent above 0".into()),
    }
}

/// Narrower plots have no scale (ministat crashes or draws nothing), and wider ones no reader.
fn width(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(width @ linerate_stats::ministat::MIN_WIDTH..=100_000) => Ok(width),
        _ => Err("a plot is 2 to 100000 characters wide".into()),
    }
}
