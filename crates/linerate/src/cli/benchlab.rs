//! Arguments of `linerate import benchlab`.

use super::Printed;
use clap::Args;
use std::path::PathBuf;

/// A lab that bench-lab.sh drives, as a lab file and plans.
///
/// Reads the script's configuration, and the folders that it is called with: configuration sets (files for the DUT, a folder for each
/// variant) and pkt-gen presets. Makes a lab file of the hosts, their interfaces, addresses and tools, and a plan whose variants are
/// the sets and whose factors are what the presets vary; presets that are no levels of factors get a plan each.
///
/// The configuration is shell, and is never executed: quotes, variables and ${NAME:=default} are understood, anything that would run
/// something is told. What cannot be carried over is listed with its file and line, here and at the end of each plan. Links are not
/// followed. The lab file says isolated = false, so that nothing is sent before you have made sure of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate import benchlab bench-lab-2nodes.config                    what would become of it
  linerate import benchlab bench-lab-2nodes.config --out mine         writes mine/LAB.toml and mine/PLAN.toml
  linerate import benchlab bench-lab-2nodes.config -c configs -p pktgen.configs/RFC2544 -n 10 --out mine
  linerate plan show mine/PLAN.toml

The letters are the script's own.

Exit status: 0 read; 1 a file or folder cannot be read or written; 2 the configuration has faults, or bad arguments.")]
pub struct Benchlab {
    /// The script's configuration
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,

    /// Configuration sets: a folder with a folder for each
    #[arg(short = 'c', long, value_name = "DIR")]
    pub sets: Option<PathBuf>,

    /// pkt-gen presets: a folder of files
    #[arg(short = 'p', long, value_name = "DIR")]
    pub presets: Option<PathBuf>,

    /// How often each is measured [default: what the configuration says, else 6]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,

    /// Write the lab file and the plans into this folder, which must be new or empty
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub printed: Printed,
}
