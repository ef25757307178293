//! Arguments of `linerate history`.

use clap::Args;
use std::path::PathBuf;

/// Find where results changed: regressions first, and what else changed there.
///
/// Campaigns of the same machine, variant and frames are put in order of time, results of an archive in order of source
/// revisions and versions. In each such time line of 8 points or more, changes of the level are looked for; outliers and two
/// modes are told from them, and of a hundred time lines without a change two to five will seem to have one. Of campaigns the
/// ratio to tester-baseline is followed, which a machine's drift does not move. docs/history.md says how, why, and how well.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate history linerate-results               all campaigns in there, at any depth
  linerate history linerate-results --json        with every point, for other programs
  linerate history netbenches/Atom_C2558_4Cores   a part of the public archive

Marks of a plot: * point, o outlier, - level, letters changes.

Exit status: 0 judged, with or without changes; 1 nothing to judge, or a folder cannot be read; 2 bad arguments.")]
pub struct History {
    /// Folders with campaigns at any depth, or with a tree laid out as the public archive is
    #[arg(value_name = "DIR", required = true)]
    pub directories: Vec<PathBuf>,

    /// Print time lines, changes and warnings as JSON
    #[arg(long)]
    pub json: bool,
}
