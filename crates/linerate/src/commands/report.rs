//! `linerate report`: a campaign as one page for a browser.

use crate::args::named;
use crate::output::{all_of, tell};
use anyhow::{Context, Result};
use clap::Args;
use linerate_hosts::configuration::Configuration;
use linerate_linux::records;
use linerate_measure::record::Stopped;
use linerate_measure::summary::summarise;
use linerate_report::format::Style;
use linerate_report::pages;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write a campaign as one page for a browser.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate report linerate-results/20260101T120000Z-bench -o report.html
  linerate report DIRECTORY > report.html

The page is one file that loads nothing: it can be mailed, archived and printed.")]
pub struct Report {
    /// The campaign's directory
    pub directory: PathBuf,
    /// The page's file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// The directory is no record, or the page cannot be written.
pub fn run(args: &Report) -> Result<ExitCode> {
    let stored = records::read(&args.directory)?;
    let summary =
        stored.summary.unwrap_or_else(|| summarise(&stored.campaign, &stored.trials, Stopped::Failed, 0));
    let mut page = pages::report(&stored.campaign, &stored.host, &summary, &stored.trials);
    // DUTs that differ in their traffic alone are configured alike.
    let mut shown = Vec::new();
    for facts in &stored.facts {
        let Some(found) = Configuration::recorded(facts) else { continue };
        if !shown.contains(&found) {
            page.append(pages::facts(stored.campaign.name_of(facts.slot), &found));
            shown.push(found);
        }
    }
    let text = named("html").render(&page, Style::default());
    let Some(file) = &args.output else { return all_of(&text) };
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    tell(format!("the page is in {}", file.display()));
    Ok(ExitCode::SUCCESS)
}
