//! `linerate report`: campaigns as one page for a browser.

use crate::args::named;
use crate::output::{all_of, tell};
use anyhow::{Context, Result};
use clap::Args;
use linerate_hosts::configuration::Configuration;
use linerate_linux::records::{self, StoredCampaign};
use linerate_measure::record::{Stopped, Summary};
use linerate_measure::summary::summarise;
use linerate_profile::flame_graph_part;
use linerate_report::document::{Block, Document, Drawing};
use linerate_report::format::Style;
use linerate_report::pages;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The file of a page beside the records of its campaign.
const FILE: &str = "report.html";
/// Flame graphs on a page at most: each has some hundred kilobytes.
const MOST_FLAMES: usize = 4;

/// Write campaigns as one page for a browser.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate report linerate-results/20260101T120000Z-bench -o report.html
  linerate report linerate-results/* -o all.html
  sudo linerate bench --report                  the page is written at the end, beside the records

The page is one file that loads nothing and needs no script: it can be mailed, archived and printed.")]
pub struct Report {
    /// The campaigns' directories
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// The page's file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the verb.
///
/// # Errors
/// A directory is no record, or the page cannot be written.
pub fn run(args: &Report) -> Result<ExitCode> {
    let pages = args.directories.iter().map(|directory| page(directory)).collect::<Result<Vec<_>>>()?;
    let text = drawn(match <[Document; 1]>::try_from(pages) {
        Ok([page]) => page,
        Err(pages) => together(pages),
    });
    let Some(file) = &args.output else { return all_of(&text) };
    write(file, &text)?;
    tell(format!("the page is in {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a campaign beside its records; `quiet`: without a word.
///
/// # Errors
/// It cannot be written.
pub fn beside(directory: &Path, quiet: bool) -> Result<()> {
    let file = directory.join(FILE);
    write(&file, &drawn(page(directory)?))?;
    if !quiet {
        tell(format!("the page is in {}", file.display()));
    }
    Ok(())
}

fn drawn(page: Document) -> String {
    named("html").render(&page, Style::default())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// One page of several, each below its title.
fn together(pages: Vec<Document>) -> Document {
    let mut all = Document { title: Some(format!("{} campaigns", pages.len())), ..Document::default() };
    for mut page in pages {
        all.heading(page.title.take().unwrap_or_default());
        all.append(page);
    }
    all
}

fn page(directory: &Path) -> Result<Document> {
    let stored = records::read(directory)?;
    page_of(&stored, &summary_of(&stored), directory)
}

/// The verdict of a campaign, also of one that got none.
pub(super) fn summary_of(stored: &StoredCampaign) -> Summary {
    let own = stored.summary.clone();
    own.unwrap_or_else(|| summarise(&stored.campaign, &stored.trials, Stopped::Failed, 0))
}

/// The page of a campaign, with the configuration of its DUTs.
pub(super) fn page_of(stored: &StoredCampaign, summary: &Summary, directory: &Path) -> Result<Document> {
    let stacks = stored.stacks(directory)?;
    let mut page = pages::report(&stored.campaign, &stored.host, summary, &stored.trials);
    for (slot, profile) in stacks.iter().take(MOST_FLAMES) {
        let title = format!("Flame graph: {}", stored.campaign.name_of(*slot));
        // A profile without samples has no picture.
        if let Ok(svg) = flame_graph_part(profile) {
            page.blocks.push(Block::Drawing(Drawing { says: title.clone(), title, svg, flames: true }));
        }
    }
    // DUTs that differ in their traffic alone are configured alike.
    let mut shown = Vec::new();
    for facts in &stored.facts {
        let Some(found) = Configuration::recorded(facts) else { continue };
        if !shown.contains(&found) {
            page.append(pages::facts(stored.campaign.name_of(facts.slot), &found));
            shown.push(found);
        }
    }
    Ok(page)
}
