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
use linerate_runner::{fault, messages};
use std::process::ExitCode;

fn main() -> ExitCode {
    match inside::part() {
        Some(Part::First) => guests::inside::serve(),
        Some(Part::Modprobe) => return ExitCode::from(inside::modprobe()),
        None => {}
    }
    fault::install();
    // A limit on file sizes (ulimit -f) is then an error of the write, reported with the file, and not the program's end.
    // SAFETY: ignoring a signal touches no memory.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
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
    let told = messages::told(&error);
    output::tell(&told);
    if told.contains("Operation not permitted") && !rustix::process::geteuid().is_root() {
        eprintln!(
            "linerate: namespaces, raw sockets and eBPF programs need root: run it with sudo"
        );
    }
    ExitCode::from(output::FAILED)
}
