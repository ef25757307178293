//! `linerate stat`: ministat's output for files of numbers, and further figures.

use crate::output::terminal_columns;
use crate::prelude::*;
use linerate_stats::analysis::{Analysis, Settings, analyse};
use linerate_stats::ministat::{
    Columns, Confidence, DEFAULT_WIDTH, Dataset, Era, MAX_SETS, MIN_WIDTH, Options, block,
    difference, write_block,
};
use std::path::Component;

/// Statistics of files of numbers, as ministat(1) prints them.
#[derive(Args)]
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
  mid    2015-16: the median of an even count is the mean of the two middle points
  fb11   FreeBSD 11: in addition, the relative error includes the uncertainty of the reference
  new    FreeBSD 12 and later: in addition, the variance is summed in two passes

Where ministat prints nonsense or crashes (NaN, infinity, sums that overflow, zero bytes, lines of
megabytes), linerate names the line and the fault. docs/statistics.md has the list.

Exit status: 0 printed; 1 a file cannot be read, a line has no number, or a set has fewer than 3;
2 bad arguments.")]
pub struct Stat {
    /// Files of numbers; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// No plot: figures and differences only
    #[arg(short = 'A', long)]
    no_plot: bool,

    /// Column of the numbers, counted from 1
    #[arg(short = 'C', long, value_name = "N", default_value_t = 1, value_parser = column)]
    column: usize,

    /// Confidence of the differences in percent: 80, 90, 95, 98, 99 or 99.5
    #[arg(short = 'c', long, value_name = "PERCENT", default_value_t = Confidence::default())]
    confidence: Confidence,

    /// Characters that separate columns; any number of them may stand between two columns [default: blank and tab]
    #[arg(short = 'd', long, value_name = "CHARS", default_value = " \t", hide_default_value = true, value_parser = delimiters)]
    delimiters: String,

    /// Figures only: no plot, no differences
    #[arg(short = 'n', long)]
    no_differences: bool,

    /// Print no names of sets and no headings; together with -n, this is for scripts
    #[arg(short = 'q', long)]
    quiet: bool,

    /// A line of its own for each set's bar: M median, A average, |___| a standard deviation each way
    #[arg(short = 's', long)]
    separate_bars: bool,

    /// Width of the plot [default: the terminal's, or 74]
    #[arg(short = 'w', long, value_name = "N", value_parser = width)]
    width: Option<usize>,

    /// Generation of ministat's arithmetic: old, mid, fb11 or new
    #[arg(long, value_name = "ERA", default_value_t = Era::default())]
    era: Era,

    /// After ministat's output, print verdicts in words, Mann-Whitney and Welch tests, shifts with intervals, and warnings
    #[arg(long, conflicts_with = "json")]
    full: bool,

    #[command(flatten)]
    printed: Printed,

    /// With --full or --format: print how many points are needed to show a difference of this many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    show: f64,

    /// With --full or --format: seed of the bootstrap's random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn column(text: &str) -> Result<usize, &'static str> {
    text.parse()
        .ok()
        .filter(|column| *column > 0)
        .ok_or("columns are counted from 1")
}

fn delimiters(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        Err("name at least one character")
    } else {
        Ok(text.into())
    }
}

fn percent(text: &str) -> Result<f64, &'static str> {
    let percent = text
        .parse()
        .ok()
        .filter(|percent: &f64| *percent > 0.0 && percent.is_finite());
    percent.ok_or("a difference is a number of percent above 0")
}

/// Narrower plots have no scale (ministat crashes or draws nothing), and wider ones no reader.
fn width(text: &str) -> Result<usize, &'static str> {
    let width = text
        .parse()
        .ok()
        .filter(|width| (MIN_WIDTH..=100_000).contains(width));
    width.ok_or("a plot is 2 to 100000 characters wide")
}

/// Fewest points of a set that ministat takes.
const FEWEST: usize = 3;

/// Largest share of a variance that may be lost in rounding without a warning.
const CANCELLED: f64 = 0.001;

/// More points than this are analysed for more than a moment.
const MANY: usize = 1_000_000;

/// Runs the verb.
///
/// # Errors
/// A set cannot be read, or has no figures.
pub fn run(args: &Stat) -> Exit {
    let files = files(args)?;
    let columns = Columns::new(args.column, &args.delimiters);
    let read = files
        .iter()
        .map(|path| read(path, &columns, args))
        .collect::<Result<Vec<_>>>()?;
    let (sets, in_order): (Vec<Dataset>, Vec<Vec<f64>>) = read.into_iter().unzip();
    let record = || {
        let names = sets.iter().map(|set| set.name().to_string()).collect();
        json!({ "ministat": figures(&sets, args), "analysis": analysis(names, &in_order, args) })
    };
    let page = || {
        let mut page = Document::default();
        if args.printed.is_text() {
            // As it goes: the plot of many equal points is far larger than they are.
            let _ = write_block(&mut Text(BufWriter::new(Output)), &sets, &options(args));
        } else {
            page.code(&block(&sets, &options(args)), Tone::Plain);
        }
        if is_analysed(args) {
            if args.printed.is_text() {
                print("\n");
            }
            page.append(linerate_report::pages::analysis(&analysis(
                distinct_ends(&files),
                &in_order,
                args,
            )));
        }
        page
    };
    result(&args.printed, record, page)
}

/// A set, and its points in the order of the runs where that is looked at.
fn read(path: &Path, columns: &Columns, args: &Stat) -> Result<(Dataset, Vec<f64>)> {
    let points = input::numbers(path, columns)?;
    let in_order = if is_analysed(args) {
        points.clone()
    } else {
        Vec::new()
    };
    let set = Dataset::new(input::name(path), points);
    check(&set, args)?;
    Ok((set, in_order))
}

/// Whether the output has more than ministat's: formats for reports have all figures.
fn is_analysed(args: &Stat) -> bool {
    args.full || !args.printed.is_text()
}

fn analysis(names: Vec<String>, in_order: &[Vec<f64>], args: &Stat) -> Analysis {
    let sets = names
        .iter()
        .map(String::as_str)
        .zip(in_order.iter().map(Vec::as_slice));
    let sets: Vec<(&str, &[f64])> = sets.collect();
    let settings = Settings {
        confidence: args.confidence.percent() / 100.0,
        seed: args.seed,
        show_percent: Some(args.show),
        ..Settings::default()
    };
    let points: usize = in_order.iter().map(Vec::len).sum();
    let progress = (points > MANY).then(Progress::of_steps);
    progress
        .iter()
        .for_each(|line| line.say("tests and intervals of all points"));
    analyse(&sets, &settings)
}

/// The ends of paths, without their common folders: sentences and tables have little room.
fn distinct_ends(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<_>> = paths
        .iter()
        .map(|path| path.components().collect())
        .collect();
    let shortest = parts.iter().map(Vec::len).min().unwrap_or_default();
    let common = |depth: &usize| parts.iter().all(|path| path[*depth] == parts[0][*depth]);
    let common = (0..shortest.saturating_sub(1)).take_while(common).count();
    let end = |path: &Vec<Component>| input::name(&path[common..].iter().collect::<PathBuf>());
    parts.iter().map(end).collect()
}

/// The figures of a set.
#[derive(Serialize)]
struct Figures<'a, F> {
    name: &'a str,
    #[serde(flatten)]
    figures: F,
}

/// ministat's figures, not rounded.
fn figures(sets: &[Dataset], args: &Stat) -> Value {
    let of = |set: &Dataset| set.summary(args.era);
    let rows = sets.iter().map(|set| Figures {
        name: set.name(),
        figures: of(set),
    });
    let differences = sets.iter().skip(1).map(|set| Figures {
        name: set.name(),
        figures: difference(&of(&sets[0]), &of(set), args.confidence, args.era),
    });
    json!({
        "era": args.era.name(),
        "confidence_percent": args.confidence.percent(),
        "sets": rows.collect::<Vec<_>>(),
        "differences": differences.collect::<Vec<_>>(),
    })
}

/// The files asked for, or standard input.
fn files(args: &Stat) -> Result<Vec<PathBuf>> {
    let files = if args.files.is_empty() {
        vec!["-".into()]
    } else {
        args.files.clone()
    };
    if files.len() > MAX_SETS {
        bail_usage!(
            "{} files, but there are symbols for {MAX_SETS} sets only",
            files.len()
        );
    }
    if files.iter().filter(|path| input::is_stdin(path)).count() > 1 {
        bail_usage!("standard input (-) can be read once only");
    }
    Ok(files)
}

fn options(args: &Stat) -> Options {
    Options {
        era: args.era,
        confidence: args.confidence,
        width: args.width.unwrap_or_else(default_width),
        headings: !args.quiet,
        plot: !args.no_plot,
        differences: !args.no_differences,
        separate_bars: args.separate_bars,
    }
}

/// ministat's choice: on a terminal, `COLUMNS` as it is, or else the width between the plot's edges.
fn default_width() -> usize {
    use std::io::IsTerminal;
    if !std::io::stdout().is_terminal() {
        return DEFAULT_WIDTH;
    }
    let asked = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let fits = || terminal_columns().map(|columns| columns.saturating_sub(2));
    asked
        .or_else(fits)
        .filter(|width| (MIN_WIDTH..=100_000).contains(width))
        .unwrap_or(DEFAULT_WIDTH)
}

/// Whether a set has figures.
fn check(set: &Dataset, args: &Stat) -> Result<()> {
    let (n, name) = (set.sorted().len(), set.name());
    if n < FEWEST {
        let column = when(args.column > 1, format!(" in column {}", args.column));
        bail!("{name} has {n} numbers{column}: at least {FEWEST} are needed");
    }
    let summary = set.summary(args.era);
    if !summary.avg.is_finite() || !summary.variance.is_finite() {
        bail!(
            "{name}: the numbers are too large, the sum of their squares overflows; divide them, by 1e200 say"
        );
    }
    let exact = set.summary(Era::New).variance;
    // Also where it is less than zero, and its root no number.
    if (summary.variance - exact).abs() > CANCELLED * exact {
        let era = args.era;
        tell(format!(
            "{name}: the one-pass arithmetic of era {era} has lost the deviation in rounding; --era new has not"
        ));
    }
    Ok(())
}

/// Text to bytes.
struct Text<W>(W);

impl<W: Write> std::fmt::Write for Text<W> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0
            .write_all(text.as_bytes())
            .map_err(|_| std::fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart_by_their_ends() {
        let ends =
            |paths: &[&str]| distinct_ends(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(ends(&["/a/b/c.pps", "/a/b/d.pps"]), ["c.pps", "d.pps"]);
        assert_eq!(ends(&["/a/b/c.pps", "/a/x/c.pps"]), ["b/c.pps", "x/c.pps"]);
        assert_eq!(ends(&["a/b", "a/b/c"]), ["b", "b/c"]);
        assert_eq!(ends(&["a/b", "a/b"]), ["b", "b"]);
        assert_eq!(ends(&["a/b"]), ["b"]);
        assert_eq!(ends(&["-", "a"]), ["<stdin>", "a"]);
    }
}
