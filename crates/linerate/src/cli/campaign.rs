//! Arguments of every verb that carries out a campaign.

use super::Share;
use super::values::duration;
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

    /// Let linerate change settings of the whole host while it measures, where the campaign needs that
    #[arg(long)]
    pub allow_host_changes: bool,

    /// Leave the embedded lab up afterwards (`linerate lab status` shows it, `linerate lab down` removes it)
    #[arg(long, conflicts_with = "simulate")]
    pub keep: bool,

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
