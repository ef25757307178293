//! Arguments of `linerate conduct`.

use clap::{Args, ValueEnum};
use linerate_core::conductor::{DEFAULT_LIMIT_S, MOST_TRIALS};
use linerate_core::phases::Phase;
use std::path::PathBuf;

/// Arguments of `linerate conduct`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate conduct conductor.cfg --dry-run                  what would be done, host by host, phase by phase
  linerate conduct conductor.cfg --dry-run --format json    the same for programs
  linerate conduct test.cfg --dry-run --phases run collect --workers client1 client3
  linerate conduct test.cfg --dry-run -t 1

Both of Conductor's vocabularies are read: [Clients] and [Master], [Workers] and [Coordinator]. Files of players are looked
for beside the test, then in the working directory. All faults are told at once; docs/conductor.md has the format.

Exit status: 0 shown; 1 the test cannot be read, or was to be carried out; 2 it has faults, or bad arguments.")]
pub struct Conduct {
    /// The test: its main file, with [Test] and [Clients] or [Workers]
    #[arg(value_name = "TEST.cfg")]
    pub test: PathBuf,

    /// Number of trials, instead of the test's
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TRIALS)))]
    pub trials: Option<u32>,

    /// Phases to carry out
    #[arg(short, long, value_name = "PHASE", num_args = 1.., value_delimiter = ',', default_value = "all")]
    pub phases: Vec<Phases>,

    /// Workers to take part [default: all of the test]
    #[arg(short = 'c', long, visible_alias = "clients", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub workers: Vec<String>,

    /// Limit of steps that have none of their own
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_LIMIT_S, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub limit: u32,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How to print it
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

impl Conduct {
    /// The phases that are asked for, in their order.
    pub fn wanted(&self) -> Vec<Phase> {
        let asked = |phase: &Phase| self.phases.iter().any(|name| name.of(*phase));
        Phase::ALL.into_iter().filter(asked).collect()
    }
}

/// Phases as Conductor calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Phases {
    /// Hosts are prepared
    Startup,
    /// The test itself
    Run,
    /// Results are fetched
    Collect,
    /// Hosts are put back
    Reset,
    /// All of them
    All,
}

impl Phases {
    fn of(self, phase: Phase) -> bool {
        match self {
            Phases::Startup => phase == Phase::SetUp,
            Phases::Run => phase == Phase::Run,
            Phases::Collect => phase == Phase::Collect,
            Phases::Reset => phase == Phase::Reset,
            Phases::All => true,
        }
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}
