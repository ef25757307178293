//! Arguments of `linerate import`.

use super::Printed;
pub use super::benchlab::Benchlab;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Read what other tools use and leave: results become linerate's records, labs become lab files and plans.
#[derive(Debug, Args)]
pub struct Import {
    /// Whose results.
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// What can be imported.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// The public FreeBSD forwarding archive, any part of it, or a tree laid out like it.
    Netbenches(Netbenches),
    /// A lab that bench-lab.sh drives: its configuration, configuration sets and pkt-gen presets, as a lab file and plans.
    Benchlab(Benchlab),
}

/// The public FreeBSD forwarding archive (netbenches), any part of it, or a tree laid out like it.
///
/// Reads pkt-gen's logs, the medians published beside them, tables, configurations and facts. Recomputes each run's median as
/// the archive's script does, holds it against what was published, and names every set that disagrees, with what differs. A second
/// figure rests on the steady part of each run, found by where its rate changes. Broken files are listed with the reason; they
/// neither stop the import nor become numbers. Nothing is executed; links are not followed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate import netbenches ~/netbenches                            read and check everything
  linerate import netbenches ~/netbenches/Atom_C2558_4Cores          one machine
  linerate import netbenches ~/netbenches --out records              and write records, a campaign per results folder
  linerate import netbenches . --json | jq 'select(.agrees == false) | .dir, .set, .disagreement'

With --json, problems of files that belong to no set are on standard error.

Exit status: 0 read, whatever it found; 1 the folder cannot be read, holds no results, or the records
cannot be written; 2 bad arguments.")]
pub struct Netbenches {
    /// The archive, or a folder of it
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Write records into this folder, which must be new or empty: a campaign for each results folder
    #[arg(long, value_name = "RECORDS")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub printed: Printed,
}
