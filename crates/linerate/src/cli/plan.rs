//! Arguments of `linerate plan`.

use super::Printed;
use clap::{Args, Subcommand};
use linerate_plan::names::Named;
use linerate_plan::settings::System;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate plan list                           the plans that come with linerate, by name
  linerate plan show firewalls                 cells, schedule, duration, and every change on every host
  linerate plan show firewalls --quick
  linerate plan show lab/firewalls --lab LAB.toml    the same, and each command on each host
  linerate plan example > my.toml              a commented plan to begin with
  linerate plan example firewalls > my.toml    a plan that comes with linerate
  linerate plan check my.toml                  every fault, with its line, column and remedy
  linerate plan schema > plan.schema.json      for editors that complete and check TOML

None of these runs or changes anything.

Exit status: 0 no faults; 1 a file cannot be read; 2 a plan has faults, or bad arguments.")]
pub struct Plan {
    #[command(subcommand)]
    pub action: PlanAction,
}

/// What to do with plans.
#[derive(Debug, Subcommand)]
pub enum PlanAction {
    /// List all faults of plans: file, line, column and remedy
    Check {
        /// Plans; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        printed: Printed,
    },
    /// Print what a plan will do: cells, schedule, duration, changes, needs and expectations
    Show {
        /// The plan: a file, - for standard input, or a name that `plan list` shows
        #[arg(value_name = "PLAN")]
        file: PathBuf,
        /// Its quick form
        #[arg(long)]
        quick: bool,
        /// Operating system of the DUT, if the plan is for several [default: its first]
        #[arg(long, value_name = "NAME", value_parser = system)]
        system: Option<System>,
        /// Also show the commands on the hosts of this lab file, without connecting to them
        #[arg(long, value_name = "FILE")]
        lab: Option<PathBuf>,
        #[command(flatten)]
        printed: Printed,
    },
    /// List the plans that come with linerate: the experiments of the literature
    List {
        #[command(flatten)]
        printed: Printed,
    },
    /// Print a commented plan to begin with, or a plan that comes with linerate
    Example {
        /// A name that `plan list` shows
        #[arg(value_name = "NAME")]
        name: Option<PathBuf>,
    },
    /// Print the JSON Schema of plans
    Schema,
}

pub(super) fn system(text: &str) -> Result<System, String> {
    System::parse_name(text, "a system")
}
