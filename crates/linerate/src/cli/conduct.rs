//! Arguments of `linerate conduct`.

use clap::{Args, ValueEnum};
use linerate_hosts::phases::Phase;
use linerate_import::conductor::{DEFAULT_LIMIT_S, MOST_TRIALS};
use std::path::PathBuf;

/// Arguments of `linerate conduct`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate conduct conductor.cfg --dry-run                  what would be done, host by host, phase by phase
  linerate conduct conductor.cfg --dry-run --format json    the same for programs
  linerate conduct conductor.cfg                            over ssh, to the addresses of the players
  linerate conduct conductor.cfg --map client1=root@lynx1 --map 192.168.5.163=lynx3
  linerate conduct conductor.cfg --phases run collect --workers client1 client3 --trials 1
  sudo linerate conduct conductor.cfg --local               in the network namespaces client1, client2, ...

Both of Conductor's vocabularies are read: [Clients] and [Master], [Workers] and [Coordinator]. Files of players are looked
for beside the test, then in the working directory. All faults are told at once. ssh is the system's own, with your keys,
agent and configuration; players and their ports are not needed. Reset is run whatever happens, Ctrl-C included.
docs/conductor.md has the format, and what is done differently than by Conductor.

Exit status: 0 all steps of all trials ended well, or were shown; 1 a step failed, a host was lost or could not be reached;
2 the test has faults, or bad arguments (nothing is run); 130 interrupted.")]
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

    /// How results are printed: for people, or a line of JSON for each trial [default: what the test says, or text]
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// Where ssh finds a worker, by the worker's name or its player's address. May be repeated
    #[arg(long, value_name = "NAME=SSH-DESTINATION", value_parser = mapping, conflicts_with = "local")]
    pub map: Vec<(String, String)>,

    /// Run on this machine: in the network namespace of a worker's name, or outside of any for loopback addresses
    #[arg(long)]
    pub local: bool,

    /// Accept and remember keys of hosts that ssh does not know yet
    #[arg(long, conflicts_with = "local")]
    pub accept_new_keys: bool,

    /// A configuration of ssh instead of yours
    #[arg(long, value_name = "FILE", conflicts_with = "local")]
    pub ssh_config: Option<PathBuf>,

    /// New file for the records, a line of JSON for each trial [default: linerate-results/TIME-NAME.jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Conduct {
    /// The phases that are asked for, in their order.
    pub fn wanted(&self) -> Vec<Phase> {
        let asked = |phase: &Phase| self.phases.iter().any(|name| name.of(*phase));
        Phase::ALL.into_iter().filter(asked).collect()
    }
}

/// `NAME=SSH-DESTINATION`.
fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, to)) if !name.is_empty() && !to.is_empty() => Ok((name.to_string(), to.to_string())),
        _ => Err("write NAME=SSH-DESTINATION, such as client1=root@lynx1".into()),
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
