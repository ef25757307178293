//! `linerate export`: campaigns in the forms that other programs read.

use super::report;
use crate::output::{all_of, tell};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use linerate_linux::files;
use linerate_linux::records;
use linerate_measure::record::Campaign;
use linerate_report::export::{Metrics, Suite, junit, prometheus};
use linerate_report::pages::Records;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write campaigns in the forms that other programs read.
#[derive(Debug, Args)]
pub struct Export {
    #[command(subcommand)]
    pub form: Form,
}

/// The forms.
#[derive(Debug, Subcommand)]
pub enum Form {
    /// JUnit XML for CI: what a campaign can fail, as test cases
    ///
    /// Each expectation of the plan, the audit of each cell, each finding, and whether the campaign came to its end is a test case. It
    /// fails with its figures; it is skipped where the trials are inconclusive or something was not measured, with the reason.
    #[command(after_help = "Examples:
  sudo linerate run firewalls --quick --out results
  linerate export junit results -o junit.xml
  linerate compare before after --fail-if-slower 3% --junit slower.xml")]
    Junit(Campaigns),
    /// Metrics for the textfile directory of a Prometheus node exporter
    ///
    /// Rates with their intervals, loss, latency, trials, and when the campaign began. Of several campaigns of one name, those of the
    /// last: a metric has one value. The file is there whole or not at all, so that the exporter never reads half of it.
    #[command(after_help = "Example:
  linerate export prometheus linerate-results -o /var/lib/prometheus/node-exporter/linerate.prom")]
    Prometheus(Campaigns),
}

/// Campaigns, and the file that is made of them.
#[derive(Debug, Args)]
pub struct Campaigns {
    /// Campaigns, or folders of campaigns
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// The file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// A directory holds no campaign, or the file cannot be written.
pub fn run(args: &Export) -> Result<ExitCode> {
    match &args.form {
        Form::Junit(args) => {
            let mut suites = Vec::new();
            each(&args.directories, |records| suites.push(Suite::of_campaign(records)))?;
            write(args.output.as_deref(), &junit(&suites))
        }
        Form::Prometheus(args) => {
            let mut newest: BTreeMap<String, (String, Metrics)> = BTreeMap::new();
            each(&args.directories, |records| {
                let Campaign { name, started, .. } = records.campaign;
                if newest.get(name).is_none_or(|(before, _)| before <= started) {
                    newest.insert(name.clone(), (started.clone(), Metrics::of(records)));
                }
            })?;
            let all: Vec<Metrics> = newest.into_values().map(|(_, metrics)| metrics).collect();
            write(args.output.as_deref(), &prometheus(&all))
        }
    }
}

/// Takes the records of the campaigns at or below these directories, one after the other.
fn each(directories: &[PathBuf], mut take: impl FnMut(&Records<'_>)) -> Result<()> {
    for directory in directories {
        let below = records::find(directory)?;
        if below.is_empty() {
            bail!("{} holds no campaign", directory.display());
        }
        for path in below {
            let stored = records::read(&path)?;
            take(&Records {
                campaign: &stored.campaign,
                host: &stored.host,
                summary: &report::summary_of(&stored),
                trials: &stored.trials,
                facts: &stored.facts,
                stacks: &BTreeMap::new(),
            });
        }
    }
    Ok(())
}

/// Writes a file whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn write(file: Option<&Path>, text: &str) -> Result<ExitCode> {
    let Some(file) = file else { return all_of(text) };
    let written = files::replace_by(file, |to| to.write_all(text.as_bytes()));
    written.with_context(|| format!("writing {}", file.display()))?;
    tell(format!("written: {}", file.display()));
    Ok(ExitCode::SUCCESS)
}
