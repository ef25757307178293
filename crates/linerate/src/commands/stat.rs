//! `linerate stat`: ministat's output, for files of numbers, and what else there is to say of them.

use crate::cli::Stat;
use crate::output::Output;
use crate::output::terminal_columns;
use crate::output::{print, print_json, show, usage};
use crate::points;
use crate::progress::Progress;
use anyhow::{Result, bail};
use linerate_report::document::{Document, Tone};
use linerate_stats::analysis::{Analysis, Settings, analyse};
use linerate_stats::ministat::{
    Columns, DEFAULT_WIDTH, Dataset, Era, MAX_SETS, MIN_WIDTH, Options, Summary, block, difference,
    write_block,
};
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// Fewest points of a set that ministat takes.
const FEWEST: usize = 3;

/// Share of a variance that may be lost in rounding before it is said.
const CANCELLED: f64 = 0.001;

/// More points than this are analysed for more than a moment.
const MANY: usize = 1_000_000;

/// Runs the verb.
///
/// # Errors
/// A set cannot be read, or no figures can be told of it.
pub fn run(args: &Stat) -> Result<ExitCode> {
    let files = files(args)?;
    let columns = Columns::new(args.column, &args.delimiters);
    let read = files.iter().map(|path| read(path, &columns, args)).collect::<Result<Vec<_>>>()?;
    let (sets, in_order): (Vec<Dataset>, Vec<Vec<f64>>) = read.into_iter().unzip();
    if args.printed.is_json() {
        let names: Vec<&str> = sets.iter().map(Dataset::name).collect();
        let all = json!({ "ministat": figures(&sets, args), "analysis": analysis(&names, &in_order, args) });
        print_json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Document::default();
    if args.printed.is_text() {
        print_block(&sets, &options(args));
    } else {
        block(&sets, &options(args)).lines().for_each(|line| page.code(line, Tone::Plain));
    }
    if is_analysed(args) {
        let names = distinct_ends(&files);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if args.printed.is_text() {
            print("\n");
        }
        page.append(linerate_report::pages::analysis(&analysis(&names, &in_order, args)));
    }
    show(args.printed.format(), &page);
    Ok(ExitCode::SUCCESS)
}

/// A set, and its points in the order of the runs where that is looked at.
fn read(path: &Path, columns: &Columns, args: &Stat) -> Result<(Dataset, Vec<f64>)> {
    let points = points::read(path, columns)?;
    let in_order = if is_analysed(args) { points.clone() } else { Vec::new() };
    let set = Dataset::new(points::name(path), points);
    check(&set, args)?;
    Ok((set, in_order))
}

/// Whether more is told of the sets than ministat does: a format for reports has all of it.
fn is_analysed(args: &Stat) -> bool {
    args.full || !args.printed.is_text()
}

fn analysis(names: &[&str], in_order: &[Vec<f64>], args: &Stat) -> Analysis {
    let sets: Vec<(&str, &[f64])> = names.iter().copied().zip(in_order.iter().map(Vec::as_slice)).collect();
    let settings = Settings {
        confidence: args.confidence.percent() / 100.0,
        seed: args.seed,
        show_percent: Some(args.show),
        ..Settings::default()
    };
    let points: usize = in_order.iter().map(Vec::len).sum();
    let _progress = (points > MANY).then(|| Progress::busy("tests and intervals of all points"));
    analyse(&sets, &settings)
}

/// What is left of paths without the folders that they have in common: sentences and tables have little room.
fn distinct_ends(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<_>> = paths.iter().map(|path| path.components().collect()).collect();
    let shortest = parts.iter().map(Vec::len).min().unwrap_or_default();
    let common = |depth: &usize| parts.iter().all(|path| path[*depth] == parts[0][*depth]);
    let common = (0..shortest.saturating_sub(1)).take_while(common).count();
    let end = |path: &Vec<Component>| points::name(&path[common..].iter().collect::<PathBuf>());
    parts.iter().map(end).collect()
}

/// ministat's figures, not rounded.
fn figures(sets: &[Dataset], args: &Stat) -> Value {
    let summaries: Vec<Summary> = sets.iter().map(|set| set.summary(args.era)).collect();
    let named = |name: &str, figures: Value| {
        let mut all = json!({ "name": name });
        if let (Value::Object(all), Value::Object(figures)) = (&mut all, figures) {
            all.extend(figures);
        }
        all
    };
    let rows = sets.iter().zip(&summaries).map(|(set, summary)| named(set.name(), json!(summary)));
    let others = sets.iter().zip(&summaries).skip(1);
    let differences = others.map(|(set, summary)| {
        let found = difference(&summaries[0], summary, args.confidence, args.era);
        named(set.name(), json!(found))
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

/// Prints as it goes: the plot of many equal points is far larger than they are.
fn print_block(sets: &[Dataset], options: &Options) {
    let _ = write_block(&mut Text(BufWriter::new(Output)), sets, options);
}

/// Text to bytes.
struct Text<W>(W);

impl<W: Write> std::fmt::Write for Text<W> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write_all(text.as_bytes()).map_err(|_| std::fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart_by_their_ends() {
        let ends = |paths: &[&str]| distinct_ends(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(ends(&["/a/b/c.pps", "/a/b/d.pps"]), ["c.pps", "d.pps"]);
        assert_eq!(ends(&["/a/b/c.pps", "/a/x/c.pps"]), ["b/c.pps", "x/c.pps"]);
        assert_eq!(ends(&["a/b", "a/b/c"]), ["b", "b/c"]);
        assert_eq!(ends(&["a/b", "a/b"]), ["b", "b"]);
        assert_eq!(ends(&["a/b"]), ["b"]);
        assert_eq!(ends(&["-", "a"]), ["<stdin>", "a"]);
    }
}
