//! `linerate export`: campaigns in the forms that other programs read.

use super::each::each;
use super::report;
use super::tune::record;
use crate::prelude::*;
use linerate_report::export::{
    Archive, Metrics, Rows, Suite, junit, picture, pictures, prometheus, tap,
};
use linerate_report::pages::Unreal;

/// Write campaigns in the forms that other programs read.
#[derive(Args)]
pub struct Export {
    #[command(subcommand)]
    form: Form,
}

/// The forms.
#[derive(Subcommand)]
pub enum Form {
    /// JUnit XML for CI: test cases that a campaign can pass or fail
    ///
    /// There is a test case for each expectation of the plan and, with --fail-if-slower, for each variant against its baseline. Each
    /// cell has one for its audit, and one, which never fails, for whether the DUT was its limit; the campaign has one for whether it
    /// came to its end. A failed test case shows its figures. A test case is skipped, with the reason, where the trials do not decide
    /// or something was not measured.
    #[command(after_help = "Examples:
  sudo linerate run firewalls --quick --out results
  linerate export junit results -o junit.xml
  linerate compare before after --fail-if-slower 3% --junit slower.xml")]
    Junit(Verdicts),
    /// The Test Anything Protocol, as the kernel's selftests print it: the same test cases as `junit`
    #[command(after_help = "Example:
  linerate export tap last --fail-if-slower 3% > results.tap")]
    Tap(Verdicts),
    /// Metrics for the textfile directory of a Prometheus node exporter
    ///
    /// Rates with their intervals, loss, latency, trials, and when the campaign began. Of several campaigns with the same name,
    /// only the last is exported, because a metric has one value: --name of `bench` and `run` gives a campaign its name. The file is there whole or not at all, so that the exporter never
    /// reads half of it.
    #[command(after_help = "Example:
  linerate export prometheus linerate-results -o /var/lib/prometheus/node-exporter/linerate.prom")]
    Prometheus(Campaigns),
    /// An archive of many campaigns for DuckDB, Polars and others: a row for each trial, cell or fact
    ///
    /// The file also tells the meanings and units of its columns. The same campaigns give the same bytes (docs/archive-schema.md).
    #[command(after_help = "Examples:
  linerate export parquet linerate-results -o trials.parquet
  linerate export parquet linerate-results --rows cells -o cells.parquet
  linerate export parquet ~/netbenches -o netbenches.parquet      the public archive
  duckdb -c \"SELECT machine, name, median(received_fps) FROM 'trials.parquet' WHERE valid GROUP BY ALL\"")]
    Parquet(Parquet),
    /// A plot of a campaign's page as an SVG file of its own
    ///
    /// Without the name of a plot, the command lists the plots of the page.
    #[command(after_help = "Examples:
  linerate export picture linerate-results/NAME
  linerate export picture linerate-results/NAME \"Rate over rules\" -o rules.svg
  rsvg-convert -z 2 rules.svg -o rules.png      as PNG (Debian: librsvg2-bin)")]
    Picture(Picture),
}

/// An archive.
#[derive(Args)]
pub struct Parquet {
    /// Campaigns, folders of campaigns, or a tree laid out as the public archive
    #[arg(required = true, value_name = "DIR", value_parser = handle::folder)]
    directories: Vec<PathBuf>,
    /// The rows of the file
    #[arg(long, value_name = "ROWS", default_value = "trials", value_parser = ["trials", "cells", "facts"])]
    rows: String,
    /// The file
    #[arg(short, long, alias = "output", value_name = "FILE")]
    out: PathBuf,
}

/// A picture.
#[derive(Args)]
pub struct Picture {
    /// The campaign
    #[arg(value_name = "DIR", value_parser = handle::folder)]
    directory: PathBuf,
    /// Title or number of the plot, as the list shows them
    #[arg(value_name = "PLOT")]
    name: Option<String>,
    /// The file [default: standard output]
    #[arg(short, long, alias = "output", value_name = "FILE", requires = "name")]
    out: Option<PathBuf>,
}

/// Campaigns, and the file that is made of them.
#[derive(Args)]
pub struct Campaigns {
    /// Campaigns, or folders of campaigns
    #[arg(required = true, value_name = "DIR", value_parser = handle::folder)]
    directories: Vec<PathBuf>,
    /// The file [default: standard output]
    #[arg(short, long, alias = "output", value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Campaigns whose verdicts are written.
#[derive(Args)]
pub struct Verdicts {
    #[command(flatten)]
    campaigns: Campaigns,
    /// Also a test case for each variant: failed if it is proven slower than its baseline by at least this share, such as 3%
    #[arg(long, value_name = "SHARE")]
    fail_if_slower: Option<Share>,
}

/// Runs the verb.
///
/// # Errors
/// A directory holds no campaign, or the file cannot be written.
pub fn run(args: &Export) -> Exit {
    match &args.form {
        Form::Junit(args) => {
            let (suites, code) = verdicts(&args.campaigns.directories, args.fail_if_slower)?;
            write(args.campaigns.out.as_deref(), &junit(&suites)).map(|_| code)
        }
        Form::Tap(args) => {
            let (suites, code) = verdicts(&args.campaigns.directories, args.fail_if_slower)?;
            write(args.campaigns.out.as_deref(), &tap(&suites)).map(|_| code)
        }
        Form::Prometheus(args) => {
            let mut named: BTreeMap<String, Named> = BTreeMap::new();
            let code = each(&args.directories, |folder, records| {
                let Campaign { name, started, .. } = records.campaign;
                let of_name = named.entry(name.clone()).or_default();
                of_name.campaigns += 1;
                if of_name.started <= *started {
                    of_name.folder = folder.into();
                    of_name.started.clone_from(started);
                    of_name.newest = Some(Metrics::of(records));
                }
                Ok(())
            })?;
            for (name, of_name) in named.iter().filter(|(_, of_name)| of_name.campaigns > 1) {
                tell(format!(
                    "{} campaigns have the name {name}, and a metric has one value: only the newest is exported, {}; give campaigns names of their own when you measure (--name)",
                    of_name.campaigns, of_name.folder
                ));
            }
            let all: Vec<Metrics> = named.into_values().filter_map(|of| of.newest).collect();
            write(args.out.as_deref(), &prometheus(&all)).map(|_| code)
        }
        Form::Parquet(args) => parquet(args),
        Form::Picture(args) => one_picture(args),
    }
}

/// Campaigns of one name.
#[derive(Default)]
struct Named {
    campaigns: usize,
    /// Where the newest of them is, when it began, and its metrics.
    folder: String,
    started: String,
    newest: Option<Metrics>,
}

/// The test cases of campaigns, and the exit status.
fn verdicts(directories: &[PathBuf], limit: Option<Share>) -> Result<(Vec<Suite>, ExitCode)> {
    let mut suites = Vec::new();
    let code = each(directories, |_, records| {
        suites.push(Suite::of_campaign(records, limit.map(|Share(limit)| limit)));
        Ok(())
    })?;
    Ok((suites, code))
}

/// Writes the verdicts of a campaign as JUnit XML.
///
/// # Errors
/// The directory is no record, or the file cannot be written.
pub fn verdicts_of(directory: &Path, limit: Option<Share>, file: &Path) -> Result<()> {
    replace(file, &junit(&verdicts(&[directory.into()], limit)?.0))
}

fn parquet(args: &Parquet) -> Exit {
    let mut filled = DONE;
    let written = files::replace_by(&args.out, |to| {
        filled = fill(args, to);
        filled
            .as_ref()
            .map(drop)
            .map_err(|_| io::ErrorKind::Other.into())
    });
    let code = filled.and_then(|code| Ok(written.map(|()| code)?));
    let code = code.with_context(|| format!("writing {}", args.out.display()))?;
    tell(format!("written: {}", args.out.display()));
    Ok(code)
}

fn fill(args: &Parquet, to: impl Write + Send) -> Exit {
    let mut archive = Archive::new(to, Rows::named(&args.rows).context("no such rows")?, None)?;
    let mut without = Vec::new();
    let code = each(&args.directories, |folder, records| {
        if !archive.add(folder, records)? {
            without.push(folder.to_owned());
        }
        Ok(())
    })?;
    archive.finish()?;
    if !without.is_empty() {
        tell(format!(
            "campaigns without a row, because no single trial is recorded there: {} ({})",
            without.len(),
            without.join(", ")
        ));
    }
    Ok(code)
}

fn one_picture(args: &Picture) -> Exit {
    let (page, origin) = page_and_origin(&args.directory)?;
    let all = pictures(&page);
    let list = || {
        let line = |(at, title): (usize, &str)| format!("{:>3}  {title}\n", at + 1);
        all.iter()
            .map(|picture| picture.title())
            .enumerate()
            .map(line)
            .collect::<String>()
    };
    let Some(name) = &args.name else {
        return all_of(&list());
    };
    if args
        .out
        .as_ref()
        .is_some_and(|file| file.extension().is_some_and(|ending| ending == "png"))
    {
        bail_usage!(
            "linerate writes SVG, and rsvg-convert makes PNG of it: rsvg-convert -z 2 FILE.svg -o FILE.png"
        );
    }
    let number = name
        .parse::<usize>()
        .ok()
        .and_then(|number| all.get(number.checked_sub(1)?));
    let Some(found) = number.or_else(|| all.iter().find(|picture| picture.title() == *name)) else {
        bail_usage!(
            "there is no picture '{name}' on the page of {}; there are\n{}",
            args.directory.display(),
            list()
        );
    };
    let picture =
        picture(*found, &origin).with_context(|| format!("{} has no point", found.title()))?;
    write(args.out.as_deref(), &picture)
}

/// The page of a campaign or a tuning, and where its figures come from, for its pictures.
fn page_and_origin(directory: &Path) -> Result<(Document, String)> {
    let simulated = |is: bool| when(is, " SIMULATED: not of this machine.");
    if let Some(tuned) = record::read(directory)? {
        let (started, page) = report::page(directory)?;
        let simulated = simulated(tuned.simulated);
        return Ok((
            page,
            format!("Tuning {}, {started}.{simulated}", tuned.title),
        ));
    }
    let stored = output::stored(directory)?;
    let page = report::page_of(&stored, &report::summary_of(&stored), directory)?;
    let Campaign {
        name,
        started,
        linerate,
        ..
    } = &stored.campaign;
    let simulated = match pages::unreal(&stored.campaign) {
        Some(Unreal::Emulated) => " EMULATED: not of a real machine.",
        of => simulated(of.is_some()),
    };
    let origin = format!("Campaign {name}, {started}, linerate {linerate}.{simulated}");
    Ok((page, origin))
}

/// Writes a file whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: Option<&Path>, text: &str) -> Exit {
    let Some(file) = file else {
        return all_of(text);
    };
    replace(file, text)?;
    tell(format!("written: {}", file.display()));
    DONE
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn replace(file: &Path, text: &str) -> Result<()> {
    let written = files::replace_by(file, |to| to.write_all(text.as_bytes()));
    written.with_context(|| format!("writing {}", file.display()))
}
