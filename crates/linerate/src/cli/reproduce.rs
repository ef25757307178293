//! Arguments of `linerate reproduce`.

use clap::Args;
use std::path::PathBuf;

/// What to hold against what.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate reproduce netbenches                       everything
  linerate reproduce netbenches --only 22,31          two illustrations
  linerate reproduce part-one part-two                an archive in two places; the first hit counts
  linerate reproduce netbenches --mapping mine.toml   figures of another document

The archive: git clone https://github.com/ocochard/netbenches (about 1 GB). Medians are taken from
its .pps files, or recomputed from its logs where there are none. docs/reproduce.md describes
mappings.

Exit status: 0 everything that has data was computed, whatever came of it; 1 an archive or a mapping
cannot be read, or holds nothing; 2 bad arguments.")]
pub struct Reproduce {
    /// Folders of the archive, or laid out like it
    #[arg(required = true, value_name = "ARCHIVE")]
    pub archives: Vec<PathBuf>,

    /// Only these illustrations: 9,22,perf-1
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Figures and their data, instead of the built-in ones; may be repeated
    #[arg(long = "mapping", value_name = "FILE")]
    pub mappings: Vec<PathBuf>,

    /// One object per figure, block and plot, as JSON
    #[arg(long)]
    pub json: bool,
}
