//! Writes the man page and shell completions, which `make install` puts in place.

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write documents.
#[derive(Debug, Args)]
pub struct Documents {
    /// Directory to write to
    pub directory: PathBuf,
}

/// Runs the verb.
///
/// # Errors
/// A file cannot be written.
pub fn run(args: &Documents, mut command: Command) -> Result<ExitCode> {
    let directory = &args.directory;
    let failed = || format!("writing documents into {}", directory.display());
    std::fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(command.clone(), directory).with_context(failed)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "linerate", directory)
            .with_context(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
