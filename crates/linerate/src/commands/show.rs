//! `linerate show`: the tables of a recorded campaign.

use super::tune;
use crate::args::Printed;
use crate::output::{self, all_of, print_campaign, result, show, tell};
use anyhow::Result;
use clap::Args;
use linerate_measure::record::{SCHEMA, Stopped};
use linerate_measure::summary::summarise;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the tables of a recorded campaign again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate show linerate-results/20260101T120000Z-bench --trials
  linerate show --schema                        what --json prints, as a JSON Schema")]
pub struct Show {
    /// The campaign's directory
    #[arg(required_unless_present = "schema")]
    pub directory: Option<PathBuf>,
    /// Also print a line for each trial
    #[arg(long)]
    pub trials: bool,
    #[command(flatten)]
    pub printed: Printed,
    /// Print the JSON Schema of the output of `bench`, `run` and `show` with --json (docs/records.md)
    #[arg(long, conflicts_with_all = ["directory", "trials", "json", "format"])]
    pub schema: bool,
}

/// Runs the verb.
///
/// # Errors
/// The directory is no record.
pub fn run(args: &Show) -> Result<ExitCode> {
    let Some(directory) = &args.directory else {
        return all_of(SCHEMA);
    };
    if let Some(tuned) = tune::read(directory)? {
        return result(&args.printed, || &tuned, || linerate_report::pages::tuning(&tuned));
    }
    let stored = output::stored(directory)?;
    // A campaign that was killed has no summary: its trials until then are whole.
    let ended = stored.summary.is_some();
    let summary =
        stored.summary.unwrap_or_else(|| summarise(&stored.campaign, &stored.trials, Stopped::Failed, 0));
    print_campaign(&args.printed, directory, &stored.campaign, &stored.host, &summary, &stored.facts)?;
    if args.printed.is_json() {
        return Ok(ExitCode::SUCCESS);
    }
    if args.trials {
        show(args.printed.format(), &linerate_report::pages::trials(&stored.campaign, &stored.trials));
    }
    if !ended {
        tell(format!(
            "this campaign did not come to its end; the above is computed from its {}",
            linerate_report::pages::counted(stored.trials.len(), "trial")
        ));
    }
    Ok(ExitCode::SUCCESS)
}
