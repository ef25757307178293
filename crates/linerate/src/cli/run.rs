//! Arguments of `linerate run`.

use super::Share;
use super::values::duration;
use clap::Args;
use linerate_plan::settings::System;
use std::path::PathBuf;

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate plan list                       the plans that come with linerate
  linerate plan show firewalls             what it would do, how long, and what it would change
  sudo linerate run firewalls --quick      below a minute
  sudo linerate run firewalls
  sudo linerate run my.toml                a plan of your own
  linerate run lab/tuning --lab LAB.toml   on the hosts of a real lab, over ssh (docs/lab-file.md)
  sudo linerate run --resume linerate-results/20260101T120000Z-firewalls
  sudo linerate run my.toml --quiet --fail-if-slower 3%       for CI
  linerate run my.toml --simulate ok       no packets at all: a simulated DUT
  linerate show linerate-results/NAME      the tables again

What this machine lacks is skipped, with the reason, and the rest is measured. Settings of the whole host
(the size of the connection table, say) are changed with --allow-host-changes only; they are written down
first, and put back at the end, or by the next linerate should this one be killed.

Exit status: 0 measured, and nothing that the plan expects was missed; 1 something failed, or a variant could
not be measured: none of its trials was valid, or it dropped every test frame; 2 the plan has faults, or bad
arguments (nothing is touched); 3 an expectation was missed, or --fail-if-slower found something; 4 everything
is skipped; 130 interrupted (what was measured until then is recorded and shown, and --resume goes on).")]
pub struct Run {
    /// The plan: a file (docs/plans.md has the format), or the name of one that comes with linerate
    #[arg(value_name = "PLAN", required_unless_present = "resume")]
    pub plan: Option<PathBuf>,

    /// Go on with a campaign that was stopped: no trial is lost, and the order stays as it was drawn
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "quick", "system", "name", "out", "seed", "budget"])]
    pub resume: Option<PathBuf>,

    /// The plan's quick form
    #[arg(long)]
    pub quick: bool,

    /// Operating system of the device under test, where the plan is for several [default: its first]
    #[arg(long, value_name = "NAME", value_parser = super::plan::system)]
    pub system: Option<System>,

    /// Let linerate change settings of the whole host while it measures, where the plan needs that
    #[arg(long)]
    pub allow_host_changes: bool,

    /// The lab file of a plan for a lab of hosts, instead of the one that the plan names
    #[arg(long, value_name = "FILE")]
    pub lab: Option<PathBuf>,

    /// Accept and remember keys of hosts that ssh does not know yet
    #[arg(long)]
    pub accept_new_keys: bool,

    /// A configuration of ssh instead of yours
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,

    /// Time for all trials, instead of the plan's
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<std::time::Duration>,

    /// Seed of the order of trials, instead of the plan's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Name of the campaign, part of the records' directory [default: the plan's file name]
    #[arg(long)]
    pub name: Option<String>,

    /// Directory for the records, instead of ./linerate-results/TIME-NAME
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Exit with status 3 where a variant is proven slower than the baseline variant, by at least this much: 3%
    #[arg(long, value_name = "SHARE")]
    pub fail_if_slower: Option<Share>,

    /// Print the campaign and its results as JSON (docs/records.md; `linerate show --schema` has the schema)
    #[arg(long)]
    pub json: bool,

    /// Print nothing but what went wrong: no page, and no line of progress
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,

    /// A simulated DUT in memory instead of a lab: ok, or loss=N,duplication=N,delay=T,rate=R. No privileges needed;
    /// its figures say nothing of any machine
    #[arg(long, value_name = "WHAT", conflicts_with = "allow_host_changes")]
    pub simulate: Option<String>,
}
