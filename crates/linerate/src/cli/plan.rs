//! Arguments of `linerate plan`.

use clap::{Args, Subcommand};
use linerate_plan::settings::System;
use std::path::PathBuf;

/// Arguments of `linerate plan`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linerate plan list                           the plans that come with linerate, by name
  linerate plan show firewalls                 cells, schedule, duration, and every change on every host
  linerate plan show firewalls --quick
  linerate plan show lab/firewalls --lab LAB.toml    the same, and each command on each host
  linerate plan example > my.toml              a plan to begin with
  linerate plan example firewalls > my.toml    one of those that come with linerate
  linerate plan check my.toml                  every fault, with its line, column and what to write instead
  linerate plan schema > plan.schema.json      for editors that complete and check TOML

Nothing is run and nothing is changed by any of these.

Exit status: 0 no faults; 1 a file cannot be read; 2 a plan has faults, or bad arguments.")]
pub struct Plan {
    /// What to do with plans.
    #[command(subcommand)]
    pub action: PlanAction,
}

/// What to do with plans.
#[derive(Debug, Subcommand)]
pub enum PlanAction {
    /// List all faults of plans: file, line, column, and what to write instead
    Check {
        /// Plans; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// As JSON: an array of faults
        #[arg(long)]
        json: bool,
    },
    /// Print what a plan will do: cells, schedule, duration, changes, needs and expectations
    Show {
        /// The plan: a file, - for standard input, or a name that `plan list` shows
        #[arg(value_name = "PLAN")]
        file: PathBuf,
        /// Its quick form
        #[arg(long)]
        quick: bool,
        /// Operating system of the device under test, where the plan is for several [default: its first]
        #[arg(long, value_name = "NAME", value_parser = system)]
        system: Option<System>,
        /// Also what would be done on the hosts of this lab file, which are not asked
        #[arg(long, value_name = "FILE")]
        lab: Option<PathBuf>,
        /// As JSON: the expanded campaign, timetable, first blocks and changes
        #[arg(long)]
        json: bool,
    },
    /// List the plans that come with linerate: the experiments of the literature
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a plan to begin with, that explains itself; or one of those that come with linerate
    Example {
        /// A name that `plan list` shows
        #[arg(value_name = "NAME")]
        name: Option<PathBuf>,
    },
    /// Print the JSON Schema of plans
    Schema,
}

pub(super) fn system(text: &str) -> Result<System, String> {
    System::of_key(text).ok_or_else(|| {
        let names: Vec<&str> = System::ALL.iter().map(|s| s.key()).collect();
        format!("'{text}' is no system: there are {}", names.join(", "))
    })
}
