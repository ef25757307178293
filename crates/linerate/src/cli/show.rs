//! Arguments of `linerate show` and `linerate documents`.

use clap::Args;
use std::path::PathBuf;

/// Print the tables of a recorded campaign again.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  linerate show linerate-results/20260101T120000Z-bench --trials")]
pub struct Show {
    /// The campaign's directory
    pub directory: PathBuf,
    /// A line for each trial as well
    #[arg(long)]
    pub trials: bool,
    /// The summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Write documents.
#[derive(Debug, Args)]
pub struct Documents {
    /// Where to
    pub directory: PathBuf,
}
