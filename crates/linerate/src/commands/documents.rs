//! Writes the man page and shell completions, which `make install` puts in place.

use crate::prelude::*;
use clap::Command;
use clap_complete::Shell;

/// Write documents.
#[derive(Args)]
pub struct Documents {
    /// Directory to write to
    directory: PathBuf,
}

/// Runs the verb.
///
/// # Errors
/// A file cannot be written.
pub fn run(args: &Documents, mut command: Command) -> Exit {
    let directory = &args.directory;
    let failed = || format!("writing documents into {}", directory.display());
    std::fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(command.clone(), directory).with_context(failed)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "linerate", directory)
            .with_context(failed)?;
    }
    DONE
}
