//! linerate: how many packets does this router or firewall forward, why not more, and which setting makes it faster?

mod campaign;
mod cli;
mod commands;
mod interrupt;
mod points;
mod progress;
mod stand;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            let told = told(&error);
            eprintln!("linerate: {told}");
            // SAFETY: geteuid has no preconditions.
            if told.contains("Operation not permitted") && unsafe { libc::geteuid() } != 0 {
                eprintln!("linerate: namespaces, raw sockets and eBPF programs need root: run it with sudo");
            }
            ExitCode::from(commands::FAILED)
        }
    }
}

/// The error and its causes, without those that it has told itself.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let words = cause.split(" (os error ").next().unwrap_or_default();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(words) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let io = std::io::Error::from_raw_os_error(libc::EPERM);
        let error =
            anyhow::Error::from(io).context("cannot do it: Operation not permitted").context("starting");
        assert_eq!(told(&error), "starting: cannot do it: Operation not permitted");
    }
}
