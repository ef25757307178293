//! Arguments of `linerate conduct`.

use super::shared::{Ssh, formats};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_hosts::phases::Phase;
use linerate_import::conductor::{DEFAULT_LIMIT_S, MOST_TRIALS, phase_name};
use linerate_report::format::Format;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate conduct conductor.cfg --dry-run                  what would be done, host by host, phase by phase
  linerate conduct conductor.cfg --dry-run --format json    the same for programs
  linerate conduct conductor.cfg                            over ssh, to the addresses of the players
  linerate conduct conductor.cfg --map client1=root@lynx1 --map 192.168.5.163=lynx3
  linerate conduct conductor.cfg --phases run collect --workers client1 client3 --trials 1
  sudo linerate conduct conductor.cfg --local               in the network namespaces client1, client2, ...

Both of Conductor's vocabularies are read: [Clients] and [Master], [Workers] and [Coordinator]. Files of players are looked
for beside the test, then in the working directory. linerate uses the system's ssh with your keys, agent and configuration;
no player needs to run. The reset phase is run in every case, also after Ctrl-C.
docs/conductor.md describes the format and the differences to Conductor.

Exit status: 0 all steps of all trials succeeded, or were shown; 1 a step failed, or a host was lost or not reached;
2 the test has faults, or bad arguments (nothing is run); 130 interrupted.")]
pub struct Conduct {
    /// The test: its main file, with [Test] and [Clients] or [Workers]
    #[arg(value_name = "TEST.cfg")]
    pub test: PathBuf,

    /// Number of trials, instead of the test's
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TRIALS)))]
    pub trials: Option<u32>,

    /// Phases to carry out
    #[arg(short, long, value_name = "PHASE", num_args = 1.., value_delimiter = ',', default_value = "all", value_parser = phases())]
    pub phases: Vec<Option<Phase>>,

    /// Workers that take part [default: all]
    #[arg(short = 'c', long, visible_alias = "clients", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub workers: Vec<String>,

    /// Time limit of steps that have none of their own
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_LIMIT_S, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub limit: u32,

    /// Show the steps, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How results are printed; json is a line for each trial [default: what the test says, or text]
    #[arg(short, long, value_name = "FORMAT", value_parser = formats())]
    pub format: Option<&'static dyn Format>,

    /// ssh destination of a worker, by the worker's name or its player's address; may be repeated
    #[arg(long, value_name = "NAME=SSH-DESTINATION", value_parser = mapping, conflicts_with = "local")]
    pub map: Vec<(String, String)>,

    /// Run on this machine: in the network namespace called like the worker, or outside of any for loopback addresses
    #[arg(long, conflicts_with_all = ["accept_new_keys", "ssh_config"])]
    pub local: bool,

    #[command(flatten)]
    pub ssh: Ssh,

    /// New file for the records, a line of JSON for each trial [default: linerate-results/TIME-NAME.jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl Conduct {
    /// The phases that are asked for, in their order.
    pub fn wanted(&self) -> Vec<Phase> {
        let asked = |phase: &Phase| self.phases.iter().any(|name| name.is_none_or(|p| p == *phase));
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

/// A phase as Conductor calls it; `None` is all of them.
fn phases() -> impl TypedValueParser<Value = Option<Phase>> {
    let names = Phase::ALL.into_iter().map(phase_name).chain(["all"]);
    PossibleValuesParser::new(names)
        .map(|name| Phase::ALL.into_iter().find(|phase| phase_name(*phase) == name))
}
