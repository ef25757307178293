//! Standard output and standard error: how all verbs print.

use crate::args::Printed;
use anyhow::Result;
use linerate_linux::files::stdout_was_writable;
use linerate_linux::records::{self, StoredCampaign};
use linerate_measure::experiment::Measure;
use linerate_measure::record::{Campaign, HostFacts, SlotFacts, Summary};
use linerate_report::document::{Block, Document, Tone};
use linerate_report::format::Format;
use linerate_report::pages;
use linerate_report::printed::{self, Configured};
use linerate_runner::messages::style;
pub use linerate_runner::messages::{
    UsageError, faulty, faulty_page, is_dumb, tell, terminal_columns, usage,
};
use linerate_standards::{CONDITIONALLY, Conformance, Records};
use serde::Serialize;
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
pub fn all_of(text: &str) -> Exit {
    print(text);
    DONE
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
    let written = if stdout_was_writable() {
        write()
    } else {
        closed()
    };
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

/// How a command ends: with an exit status, or an error.
pub type Exit = Result<ExitCode>;

/// The end of a command that did its job.
pub const DONE: Exit = Ok(ExitCode::SUCCESS);

/// The end with an exit status.
pub fn exit(status: u8) -> Exit {
    Ok(status.into())
}

/// Exit status of a command that did its job.
pub const SUCCESS: u8 = 0;
/// Exit status of a command that could not do its job.
pub const FAILED: u8 = 1;
/// Exit status for arguments that do not make sense together, as clap's own.
pub const USAGE: u8 = 2;
/// Exit status after Ctrl-C, as shells have it (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

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
) -> Exit {
    all_of(&rendered(how, record, page)?)
}

/// As [`result`], as a text.
///
/// # Errors
/// The record cannot be written as JSON.
pub fn rendered<R: Serialize>(
    how: &Printed,
    record: impl FnOnce() -> R,
    page: impl FnOnce() -> Document,
) -> Result<String> {
    if how.is_json() {
        return Ok(format!("{}\n", serde_json::to_string_pretty(&record())?));
    }
    Ok(how.format().render(&page(), style()))
}

/// Judges stored records by the standards that they claim.
pub fn conformance(stored: &StoredCampaign) -> Option<Conformance> {
    let StoredCampaign {
        campaign,
        host,
        trials,
        facts,
        summary,
        ..
    } = stored;
    linerate_standards::conformance(&Records {
        campaign,
        host,
        trials,
        facts,
        summary: summary.as_ref(),
    })
}

/// The claims of a campaign's tests, if it made tests of a standard.
fn claims(directory: &Path, campaign: &Campaign) -> Option<String> {
    let planned = campaign.planned.as_ref()?;
    if planned.experiment.trials.measure == Measure::Rate {
        return None;
    }
    conformance(&records::read(directory).ok()?).map(|found| found.line())
}

/// Prints a record as JSON.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn print_json(record: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(record)?));
    Ok(())
}

/// A campaign as it is printed, the same for all verbs: [`linerate_report::printed::SCHEMA`] describes its JSON. As text, it is the first page unless
/// the `full` one is wanted.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn campaign(
    how: &Printed,
    full: bool,
    directory: &Path,
    campaign: &Campaign,
    host: &HostFacts,
    summary: &Summary,
    facts: &[SlotFacts],
) -> Result<String> {
    let record = || {
        let configurations = facts.iter().map(Configured::of).collect();
        printed::Printed {
            directory,
            campaign,
            host,
            summary,
            configurations,
        }
    };
    let folder = directory.display().to_string();
    let first =
        || pages::first(campaign, host, summary, facts, &folder).filter(|_| how.is_text() && !full);
    let whole = || {
        let mut page = pages::configured(campaign, host, summary, facts);
        if let Some(claims) = claims(directory, campaign) {
            let means = if claims.contains(": conditionally") {
                CONDITIONALLY
            } else {
                ""
            };
            page.note(format!(
                "{claims}. `linerate conformance {folder}` has the rows. {means}"
            ));
        }
        name_records(&mut page, &folder);
        if how.is_text() {
            again(&mut page);
            page.say(format!("Records: {folder}"));
        }
        page
    };
    rendered(how, record, || first().unwrap_or_else(whole))
}

/// Puts the campaign's folder into the commands of a page, so that they work as they are copied.
pub fn name_records(page: &mut Document, folder: &str) {
    name_in(&mut page.blocks, folder);
}

fn name_in(blocks: &mut [Block], folder: &str) {
    for block in blocks {
        match block {
            Block::Part { blocks, .. } => name_in(blocks, folder),
            Block::Text { text, .. } | Block::Item { text, .. } if text.contains("linerate ") => {
                *text = text.replace("DIRECTORY", folder);
            }
            _ => {}
        }
    }
}

/// The answer once more behind a page that is longer than the terminal: its first lines are out of sight.
fn again(page: &mut Document) {
    let rows = linerate_runner::messages::terminal_rows();
    if rows.is_some_and(|rows| page.text(style()).lines().count() >= rows) {
        let strong = |block: &&Block| {
            matches!(
                block,
                Block::Text {
                    tone: Tone::Strong,
                    ..
                }
            )
        };
        let answer: Vec<Block> = page.blocks.iter().filter(strong).cloned().collect();
        page.heading("The answer again");
        page.blocks.extend(answer);
    }
}

/// Says where a campaign's records are.
pub fn print_place(how: &Printed, directory: &Path) {
    if how.is_text() {
        print(&format!("Records: {}\n", directory.display()));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::named;

    #[test]
    fn commands_of_all_parts_name_the_folder() {
        let mut page = Document::default();
        page.folded("Causes", |part| {
            part.note("`linerate explain DIRECTORY` says more.")
        });
        page.say("a DIRECTORY of its own");
        name_records(&mut page, "r1");
        let csv = named("csv").render(&page, style());
        assert!(
            csv.contains("linerate explain r1") && csv.contains("a DIRECTORY"),
            "{csv}"
        );
    }
}
