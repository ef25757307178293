//! Arguments of `linerate run`.

use super::CampaignArgs;
use super::shared::Ssh;
use clap::Args;
use linerate_plan::settings::System;
use std::path::PathBuf;

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

Variants that this machine cannot run are skipped, with the reason, and the rest is measured. Settings of the
whole host (such as the size of the connection table) are changed only with --allow-host-changes. linerate
writes them down first and restores them at the end; if it is killed, the next linerate restores them.

Exit status: 0 measured, and no expectation of the plan was missed; 1 an error, or a variant without a result:
none of its trials was valid, or it dropped every test frame; 2 the plan has faults, or bad arguments (nothing
is touched); 3 an expectation was missed, or --fail-if-slower found a slower variant; 4 everything is skipped;
130 interrupted (the results so far are recorded and shown; --resume continues).")]
pub struct Run {
    /// The plan: a file (docs/plans.md), or a name that `linerate plan list` shows
    #[arg(value_name = "PLAN", required_unless_present = "resume")]
    pub plan: Option<PathBuf>,

    /// Continue the stopped campaign of `run` or `bench` in this directory: no trial is lost, and the order stays as it was drawn
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "quick", "system", "name", "out", "seed", "budget"])]
    pub resume: Option<PathBuf>,

    /// The plan's quick form
    #[arg(long)]
    pub quick: bool,

    /// Operating system of the DUT, if the plan is for several [default: its first]
    #[arg(long, value_name = "NAME", value_parser = super::plan::system)]
    pub system: Option<System>,

    /// Lab file of the hosts, instead of the one that the plan names
    #[arg(long, value_name = "FILE")]
    pub lab: Option<PathBuf>,

    #[command(flatten)]
    pub ssh: Ssh,

    #[command(flatten)]
    pub campaign: CampaignArgs,
}
