//! Arguments of `linerate history`.

use super::Printed;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate history linerate-results               all campaigns below this folder
  linerate history linerate-results --json        with every point, for other programs
  linerate history netbenches/Atom_C2558_4Cores   a part of the public archive

Marks of a plot: * point, o outlier, - level, letters changes.

Exit status: 0 judged, with or without changes; 1 nothing to judge, or a folder cannot be read; 2 bad arguments.")]
pub struct History {
    /// Folders with campaigns at any depth, or with a tree laid out as the public archive is
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,

    #[command(flatten)]
    pub printed: Printed,
}
