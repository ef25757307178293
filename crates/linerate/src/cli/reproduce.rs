//! Arguments of `linerate reproduce`.

use super::Printed;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate reproduce netbenches                       everything
  linerate reproduce netbenches --only 22,31          two illustrations
  linerate reproduce part-one part-two                an archive in two places; the first hit counts
  linerate reproduce netbenches --mapping mine.toml   figures of another document

The archive: git clone https://github.com/ocochard/netbenches (about 1 GB). Medians are taken from
its .pps files, or recomputed from its logs where there are none. docs/reproduce.md describes
mappings.

Exit status: 0 everything with data was recomputed, whether it agrees or not; 1 an archive or a mapping
cannot be read, or is empty; 2 bad arguments.")]
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

    #[command(flatten)]
    pub printed: Printed,
}
