//! linerate: how many packets does this router or firewall forward, why not more, and which setting makes it faster?

mod campaign;
mod cli;
mod commands;
mod interrupt;
mod progress;
mod stand;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("linerate: {error:#}");
            ExitCode::from(commands::FAILED)
        }
    }
}
