//! One file per verb.

mod agent;
pub mod bench;
pub mod compare;
pub mod conduct;
pub mod documents;
pub mod history;
pub mod import;
pub mod lab;
pub mod plan_file;
mod port;
pub mod receive;
pub mod reproduce;
pub mod rules;
pub mod run;
pub mod send;
pub mod show;
mod slower;
pub mod stat;

use crate::cli::{Cli, Command};
use crate::output::{USAGE, UsageError};
use anyhow::Result;
use std::process::ExitCode;

/// Runs the verb of the command line.
///
/// # Errors
/// The reason why the verb could not do its job.
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
    match done.as_ref().err().and_then(|error| error.downcast_ref::<UsageError>()) {
        Some(error) => {
            error.tell();
            Ok(ExitCode::from(USAGE))
        }
        None => done,
    }
}
