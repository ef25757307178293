//! One file per verb.

mod agent;
mod bench;
mod benchlab;
mod compare;
mod conduct;
mod documents;
mod guard;
mod history;
mod import;
mod lab;
mod lab_check;
mod lab_restore;

mod plan_file;
mod receive;
mod reproduce;
mod rules;
mod run;
mod send;
mod show;
mod stat;
mod tally;

use crate::cli::{Cli, Command};
use crate::output::{Faulty, USAGE, UsageError};
use anyhow::Result;
use std::process::ExitCode;

/// Runs what was asked for.
///
/// # Errors
/// What kept it from doing its job.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let done = match cli.command {
        Command::Bench(args) => bench::run(&args),
        Command::Send(args) => send::run(&args),
        Command::Receive(args) => receive::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Plan(args) => plan_file::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Conduct(args) => conduct::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Import(args) => import::run(&args),
        Command::History(args) => history::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Agent => agent::run(),
        Command::Documents(args) => documents::run(&args),
    };
    match done {
        Err(error) if error.is::<UsageError>() => {
            eprintln!("linerate: {error}");
            Ok(ExitCode::from(USAGE))
        }
        Err(error) if error.is::<Faulty>() => {
            eprint!("{error}");
            Ok(ExitCode::from(USAGE))
        }
        other => other,
    }
}
