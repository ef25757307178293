//! Standard output and standard error: how all verbs print.

use crate::args::Printed;
use crate::commands::conformance;
use anyhow::Result;
use linerate_hosts::configuration::Configuration;
use linerate_linux::files::stdout_was_writable;
use linerate_linux::records::{self, StoredCampaign};
use linerate_measure::experiment::Measure;
use linerate_measure::record::{Campaign, HostFacts, SlotFacts, Summary};
use linerate_plan::Diagnostic;
use linerate_report::document::Document;
use linerate_report::format::{Format, Style};
use linerate_report::pages;
use serde::Serialize;
use serde_json::json;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

/// Why standard output takes no more. It is kept until the verb has ended: a campaign that cannot print its page is still
/// measured and recorded.
static BROKEN: OnceLock<io::Error> = OnceLock::new();

/// Standard output. The first error is kept for [`finish`], so that callers may ignore it.
pub struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        attempt(|| io::stdout().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        attempt(|| io::stdout().flush())
    }
}

/// Prints a text.
pub fn print(text: &str) {
    let _ = Output.write_all(text.as_bytes());
}

/// Prints a text that is the whole result of a verb.
///
/// # Errors
/// None: [`finish`] has those of standard output.
pub fn all_of(text: &str) -> Result<ExitCode> {
    print(text);
    Ok(ExitCode::SUCCESS)
}

/// Prints in a way of its own.
///
/// # Errors
/// Standard output takes nothing, or no more.
pub fn attempt(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if let Some(error) = BROKEN.get() {
        return Err(error.kind().into());
    }
    let closed = || Err(io::Error::from_raw_os_error(libc::EBADF));
    let written = if stdout_was_writable() { write() } else { closed() };
    written.map_err(|error| {
        let kind = error.kind();
        let _ = BROKEN.set(error);
        kind.into()
    })
}

/// Whether standard output takes no more.
pub fn output_is_closed() -> bool {
    BROKEN.get().is_some()
}

/// The exit status of a verb that has ended with `code`: a failure if its output could not be written. A reader that has closed
/// the pipe (`| head`) is no failure.
pub fn finish(code: ExitCode) -> ExitCode {
    if stdout_was_writable() {
        let _ = Output.flush();
    }
    match BROKEN.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("linerate: cannot write to standard output: {error}");
            ExitCode::from(FAILED)
        }
        _ => code,
    }
}

/// Exit status of a command that could not do its job.
pub const FAILED: u8 = 1;
/// Exit status for arguments that do not make sense together, as clap's own.
pub const USAGE: u8 = 2;
/// Exit status after Ctrl-C, as shells have it (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// Arguments that do not make sense, or files of a user's that have faults: exit status [`USAGE`]. The text is fit for a terminal.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Makes a usage error of anything that can be shown.
pub fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    UsageError(message(error)).into()
}

/// An error of the faults in one file: they are shown line by line.
pub fn faulty(file: impl std::fmt::Display, faults: &[Diagnostic]) -> anyhow::Error {
    faulty_page(&pages::diagnostics(&file.to_string(), faults))
}

/// An error of faults that are shown as a page.
pub fn faulty_page(page: &Document) -> anyhow::Error {
    UsageError(page.text(style())).into()
}

/// Prints a page.
pub fn show(format: &dyn Format, document: &Document) {
    print(&format.render(document, style()));
}

/// Prints a result: its record where JSON is asked for, its page in any other format.
///
/// # Errors
/// The record cannot be written as JSON.
pub fn result<R: Serialize>(
    how: &Printed,
    record: impl FnOnce() -> R,
    page: impl FnOnce() -> Document,
) -> Result<ExitCode> {
    if how.is_json() {
        print_json(&record())?;
    } else {
        show(how.format(), &page());
    }
    Ok(ExitCode::SUCCESS)
}

/// The claims of a campaign's tests, if it made tests of a standard.
fn claims(directory: &Path, campaign: &Campaign) -> Option<String> {
    let planned = campaign.planned.as_ref()?;
    if planned.experiment.trials.measure == Measure::Rate {
        return None;
    }
    conformance::of(&records::read(directory).ok()?).map(|found| found.line())
}

/// Prints a record as JSON.
///
/// # Errors
/// It cannot be written as JSON.
pub fn print_json(record: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(record)?));
    Ok(())
}

/// Prints a campaign, the same for all verbs: [`linerate_measure::record::SCHEMA`] describes its JSON.
///
/// # Errors
/// It cannot be written as JSON.
pub fn print_campaign(
    how: &Printed,
    directory: &Path,
    campaign: &Campaign,
    host: &HostFacts,
    summary: &Summary,
    facts: &[SlotFacts],
) -> Result<ExitCode> {
    let record = || {
        let read = |facts: &SlotFacts| json!({ "slot": facts.slot, "configuration": Configuration::recorded(facts) });
        let configurations: Vec<_> = facts.iter().map(read).collect();
        json!({
            "directory": directory, "campaign": campaign, "host": host, "summary": summary,
            "configurations": configurations,
        })
    };
    let page = || {
        let mut page = pages::summary(campaign, host, summary);
        if let Some(claims) = claims(directory, campaign) {
            page.note(format!("{claims}. `linerate conformance {}` has the rows.", directory.display()));
        }
        page
    };
    result(how, record, page)
}

/// Says where a campaign's records are.
pub fn print_place(how: &Printed, directory: &Path) {
    if how.is_text() {
        print(&format!("Records: {}\n", directory.display()));
    }
}

/// Prints a message to standard error.
pub fn tell(text: impl std::fmt::Display) {
    eprint!("{}", message(text));
}

/// The record in a directory. Tells what is missing in it.
///
/// # Errors
/// As [`records::read`].
pub fn stored(directory: &Path) -> Result<StoredCampaign, linerate_linux::Error> {
    let stored = records::read(directory)?;
    for missing in &stored.missing {
        tell(format!("{}: {missing}", directory.display()));
    }
    Ok(stored)
}

/// A message for standard error. Control characters are replaced, because its quotations may contain anything.
fn message(text: impl std::fmt::Display) -> String {
    let plain = |c: char| match c {
        '\n' => c,
        c if c.is_whitespace() => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    format!("linerate: {}\n", text.to_string().chars().map(plain).collect::<String>())
}

/// Layout of text: colour on terminals only, unless NO_COLOR is set or the terminal is dumb.
fn style() -> Style {
    use std::io::IsTerminal;
    let colored = std::env::var_os("NO_COLOR").is_none() && !is_dumb();
    Style { color: std::io::stdout().is_terminal() && colored, width: width() }
}

/// Whether the terminal knows no escapes.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn width() -> usize {
    terminal_columns().map_or(120, |columns| columns.min(160))
}

/// Columns of the terminal at standard output; `None` if standard output is not a terminal, or its width is unknown.
pub fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
