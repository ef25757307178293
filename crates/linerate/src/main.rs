//! linerate: how many packets does this router or firewall forward, why not more, and which setting makes it faster?

#[macro_use]
extern crate linerate_runner;

mod args;
mod cli;
mod commands;
mod http;
mod output;
mod prelude;
mod watch;

use linerate_linux::guest::inside::{self, Part};
use linerate_runner::testbed::guests;
use linerate_runner::{fault, input};
use std::process::ExitCode;

fn main() -> ExitCode {
    match inside::part() {
        Some(Part::First) => guests::inside::serve(),
        Some(Part::Modprobe) => return ExitCode::from(inside::modprobe()),
        None => {}
    }
    fault::install();
    if let Some(number) = commands::calc::negative() {
        eprintln!("linerate: {number} is negative: calculators take numbers above 0");
        return ExitCode::from(output::USAGE);
    }
    let code = match cli::parse() {
        Ok(cli) => run(cli),
        Err(wrong) if wrong.use_stderr() => wrong.exit(),
        Err(help) => {
            let _ = output::attempt(|| help.print());
            ExitCode::SUCCESS
        }
    };
    output::finish(code)
}

fn run(cli: cli::Cli) -> ExitCode {
    let error = match cli.command.run() {
        Ok(code) => return code,
        Err(error) => error,
    };
    if let Some(error) = error.downcast_ref::<output::UsageError>() {
        eprint!("{error}");
        return ExitCode::from(output::USAGE);
    }
    let told = told(&error);
    output::tell(&told);
    if told.contains("Operation not permitted") && !rustix::process::geteuid().is_root() {
        eprintln!(
            "linerate: namespaces, raw sockets and eBPF programs need root: run it with sudo"
        );
    }
    ExitCode::from(output::FAILED)
}

/// The error and its causes, without causes that the error's text already contains, and without numbers of the system's errors.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let words = input::without_number(&cause);
        if text.is_empty() {
            text = words;
        } else if !text.contains(&words) {
            text = format!("{text}: {words}");
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
        let error = anyhow::Error::from(io)
            .context("cannot do it: Operation not permitted")
            .context("starting");
        assert_eq!(
            told(&error),
            "starting: cannot do it: Operation not permitted"
        );
    }
}
