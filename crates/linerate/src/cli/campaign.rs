//! Arguments of every verb that carries out a campaign.

use super::values::duration;
use super::{Printed, Share};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// How a campaign is carried out, whatever its plan.
#[derive(Debug, Args)]
pub struct CampaignArgs {
    /// Time for all trials, instead of the plan's [bench: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,

    /// Seed of the order of trials [default: the plan's, or drawn and recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Name of the campaign, part of the records' directory [default: the plan's file name, or bench]
    #[arg(long)]
    pub name: Option<String>,

    /// Directory for the records, instead of ./linerate-results/TIME-NAME
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Allow changes of settings of the whole host during the campaign, if it needs them
    #[arg(long)]
    pub allow_host_changes: bool,

    /// Leave the embedded lab up afterwards (`linerate lab status` shows it, `linerate lab down` removes it)
    #[arg(long, conflicts_with = "simulate")]
    pub keep: bool,

    /// Exit with status 3 if a variant is proven slower than the baseline variant by at least this much: 3%
    #[arg(long, value_name = "SHARE")]
    pub fail_if_slower: Option<Share>,

    #[command(flatten)]
    pub printed: Printed,

    /// Print errors only: no results, no progress
    #[arg(short, long, conflicts_with_all = ["json", "format"])]
    pub quiet: bool,

    /// Simulate the DUT in memory instead of building a lab: ok, or loss=N,duplication=N,delay=T,rate=R. Needs no privileges;
    /// the figures are not of this machine
    #[arg(long, value_name = "WHAT", conflicts_with = "allow_host_changes")]
    pub simulate: Option<String>,
}
