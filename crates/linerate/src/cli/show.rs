//! Arguments of `linerate show` and `linerate documents`.

use clap::Args;
use std::path::PathBuf;

/// Print the tables of a recorded campaign again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate show linerate-results/20260101T120000Z-bench --trials
  linerate show --schema                        what --json prints, as a JSON Schema")]
pub struct Show {
    /// The campaign's directory
    #[arg(required_unless_present = "schema")]
    pub directory: Option<PathBuf>,
    /// A line for each trial as well
    #[arg(long)]
    pub trials: bool,
    /// The campaign and its summary as JSON (docs/records.md), as `bench` and `run` print them
    #[arg(long)]
    pub json: bool,
    /// The JSON Schema of the output of `bench`, `run` and `show` with --json
    #[arg(long, conflicts_with_all = ["directory", "trials", "json"])]
    pub schema: bool,
}

/// Write documents.
#[derive(Debug, Args)]
pub struct Documents {
    /// Where to
    pub directory: PathBuf,
}
