//! Arguments of `linerate run`.

use super::CampaignArgs;
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

    /// Resume a campaign of `run` or `bench` that was stopped: no trial is lost, and the order stays as it was drawn
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "quick", "system", "name", "out", "seed", "budget"])]
    pub resume: Option<PathBuf>,

    /// The plan's quick form
    #[arg(long)]
    pub quick: bool,

    /// Operating system of the device under test, where the plan is for several [default: its first]
    #[arg(long, value_name = "NAME", value_parser = super::plan::system)]
    pub system: Option<System>,

    /// The lab file of a plan for a lab of hosts, instead of the one that the plan names
    #[arg(long, value_name = "FILE")]
    pub lab: Option<PathBuf>,

    /// Accept and remember keys of hosts that ssh does not know yet
    #[arg(long)]
    pub accept_new_keys: bool,

    /// A configuration of ssh instead of yours
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,

    #[command(flatten)]
    pub campaign: CampaignArgs,
}
