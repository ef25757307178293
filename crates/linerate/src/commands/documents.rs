//! Writes the man page and shell completions: what `make install` puts in place.

use crate::cli::{Cli, Documents};
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// A file cannot be written.
pub fn run(args: &Documents) -> Result<ExitCode> {
    let directory = &args.directory;
    let failed = || format!("writing documents into {}", directory.display());
    std::fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).with_context(failed)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "linerate", directory).with_context(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
