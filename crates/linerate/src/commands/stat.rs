//! `linerate stat`: ministat's output, for files of numbers.

use super::{terminal_columns, usage};
use crate::cli::Stat;
use crate::points;
use anyhow::{Context, Result, bail};
use linerate_core::ministat::{
    Columns, DEFAULT_WIDTH, Dataset, Era, MAX_SETS, MIN_WIDTH, Options, write_block,
};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Fewest points of a set that ministat takes.
const FEWEST: usize = 3;

/// Share of a variance that may be lost in rounding before it is said.
const CANCELLED: f64 = 0.001;

/// Runs the verb.
///
/// # Errors
/// A set cannot be read, or no figures can be told of it.
pub fn run(args: &Stat) -> Result<ExitCode> {
    let files = files(args)?;
    let columns = Columns::new(args.column, &args.delimiters);
    let options = options(args);
    let sets = files
        .iter()
        .map(|path| {
            let set = Dataset::new(points::name(path), points::read(path, &columns)?);
            check(&set, args)?;
            Ok(set)
        })
        .collect::<Result<Vec<Dataset>>>()?;
    print_block(&sets, &options)?;
    Ok(ExitCode::SUCCESS)
}

/// The files asked for, or standard input.
fn files(args: &Stat) -> Result<Vec<PathBuf>> {
    let files = if args.files.is_empty() { vec!["-".into()] } else { args.files.clone() };
    if files.len() > MAX_SETS {
        return Err(usage(format!("{} files, but there are symbols for {MAX_SETS} sets only", files.len())));
    }
    if files.iter().filter(|path| points::is_stdin(path)).count() > 1 {
        return Err(usage("standard input (-) can be read once only"));
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

/// ministat's choice: on a terminal, `COLUMNS` as it is, or else what fits between the plot's edges.
fn default_width() -> usize {
    use std::io::IsTerminal;
    if !std::io::stdout().is_terminal() {
        return DEFAULT_WIDTH;
    }
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let fits = || terminal_columns().map(|columns| columns.saturating_sub(2));
    asked.or_else(fits).filter(|width| (MIN_WIDTH..=100_000).contains(width)).unwrap_or(DEFAULT_WIDTH)
}

/// Whether figures can be told of a set.
fn check(set: &Dataset, args: &Stat) -> Result<()> {
    let (n, name) = (set.sorted().len(), set.name());
    if n < FEWEST {
        let column = if args.column > 1 { format!(" in column {}", args.column) } else { String::new() };
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
        eprintln!(
            "linerate: {name}: the one-pass arithmetic of era {era} has lost the deviation in rounding; --era new has not"
        );
    }
    Ok(())
}

/// Prints as it goes: the plot of many equal points is far larger than they are. A reader that has gone away is no error.
fn print_block(sets: &[Dataset], options: &Options) -> Result<()> {
    let mut out = Output { out: BufWriter::new(std::io::stdout().lock()), error: None };
    let _ = write_block(&mut out, sets, options);
    match out.error.map_or_else(|| out.out.flush(), Err) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Text to bytes, keeping the error that [`std::fmt::Error`] has no room for.
struct Output<W> {
    out: W,
    error: Option<std::io::Error>,
}

impl<W: Write> std::fmt::Write for Output<W> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.error = Some(error);
            std::fmt::Error
        })
    }
}
