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
pub mod plan;
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
use crate::output::print;
use anyhow::Result;
use linerate_measure::record::{Campaign, HostFacts, Summary};
use std::path::Path;
use std::process::ExitCode;

/// Exit status of a command that could not do its job.
pub const FAILED: u8 = 1;
/// Exit status for arguments that do not make sense together, as clap's own.
pub const USAGE: u8 = 2;
/// Exit status after Ctrl-C, as shells have it (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// Arguments that do not make sense: exit status [`USAGE`].
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Makes a usage error of anything that can be shown.
pub fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    UsageError(error.to_string()).into()
}

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
        other => other,
    }
}

/// Prints a campaign as JSON, the same for all verbs: [`linerate_measure::record::SCHEMA`] describes it.
fn print_campaign(directory: &Path, campaign: &Campaign, host: &HostFacts, summary: &Summary) {
    let document = serde_json::json!({
        "directory": directory, "campaign": campaign, "host": host, "summary": summary,
    });
    print(&format!("{document:#}\n"));
}

/// Prints a complaint to standard error. What it quotes may be anything: a terminal gets no orders from it.
pub fn tell(text: impl std::fmt::Display) {
    let plain = |c: char| match c {
        '\n' => c,
        c if c.is_whitespace() => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    eprintln!("linerate: {}", text.to_string().chars().map(plain).collect::<String>());
}

/// How text is laid out: colour on terminals only, and not where NO_COLOR asks for none, or the terminal knows none.
pub fn style() -> linerate_report::text::Style {
    use std::io::IsTerminal;
    let colored = std::env::var_os("NO_COLOR").is_none() && !is_dumb();
    linerate_report::text::Style { color: std::io::stdout().is_terminal() && colored, width: width() }
}

/// Whether the terminal knows no escapes.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn width() -> usize {
    terminal_columns().map_or(120, |columns| columns.min(160))
}

/// Columns of the terminal that standard output is; `None` if it is none, or does not know.
fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
