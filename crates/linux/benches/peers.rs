//! The speed benchmark: linerate's generator and receiver against other generators, and against the machine's limit.
//!
//! All contestants alternate in short slices on the same links, in an order drawn anew for each block; what counts is the
//! median of the ratios within blocks, with a 95 % interval, because a virtual machine's speed may change by half within
//! seconds. Frames count when the receiver's XDP program has seen them, whatever a generator says that it sent.
//!
//! `cargo bench -p linerate-linux --bench peers -- --help`; needs root.

#[path = "peers/bars.rs"]
mod bars;
#[path = "peers/blocks.rs"]
mod blocks;
#[path = "peers/contests.rs"]
mod contests;
#[path = "peers/memory.rs"]
mod memory;
#[path = "peers/options.rs"]
mod options;
#[path = "peers/session.rs"]
mod session;
#[path = "peers/stand.rs"]
mod stand;
#[path = "peers/tools.rs"]
mod tools;

use bars::Report;
use options::{Action, Options};
use std::process::ExitCode;

/// Anything that ends the benchmark, or a slice of it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let action = match options::parse(std::env::args().skip(1)) {
        Ok(action) => action,
        Err(message) => {
            eprintln!("peers: {message}\n\n{}", options::HELP);
            return ExitCode::from(2);
        }
    };
    let result = match &action {
        Action::Help => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Action::MemoryChild => memory::child().map(|()| true),
        Action::Run(options) => run(options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs every contest that was asked for; whether no bar was missed.
fn run(options: &Options) -> Result<bool, Failure> {
    let mut report = Report::new(options);
    contests::run(options, &mut report)?;
    report.write(options)?;
    Ok(report.all_met())
}
