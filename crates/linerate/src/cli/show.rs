//! Arguments of `linerate show` and `linerate documents`.

use super::Printed;
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
    /// Also print a line for each trial
    #[arg(long)]
    pub trials: bool,
    #[command(flatten)]
    pub printed: Printed,
    /// Print the JSON Schema of the output of `bench`, `run` and `show` with --json (docs/records.md)
    #[arg(long, conflicts_with_all = ["directory", "trials", "json", "format"])]
    pub schema: bool,
}

/// Write documents.
#[derive(Debug, Args)]
pub struct Documents {
    /// Directory to write to
    pub directory: PathBuf,
}
