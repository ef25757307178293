//! Standard error: what every verb says there, and how wide and how colourful a terminal is.

use crate::input::without_number;
use linerate_plan::Diagnostic;
use linerate_report::document::Document;
use linerate_report::format::Style;
use linerate_report::pages;

/// Prints a message to standard error.
pub fn tell(text: impl std::fmt::Display) {
    eprint!("{}", message(text));
}

/// Arguments that do not make sense, or files of a user's that have faults: exit status 2. The text is fit for a terminal.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// An error and its causes, without causes that its text already contains, and without numbers of the system's errors.
pub fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let words = without_number(&cause);
        if text.is_empty() {
            text = words;
        } else if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
    }
    text
}

/// Makes a usage error of anything that can be shown.
pub fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    UsageError(message(error)).into()
}

/// Faults of a file that an error shows.
const MOST_FAULTS: usize = 10;

/// An error of the faults in one file: the first are shown line by line.
pub fn faulty(file: impl std::fmt::Display, faults: &[Diagnostic]) -> anyhow::Error {
    let shown = &faults[..faults.len().min(MOST_FAULTS)];
    let mut page = pages::diagnostics(&file.to_string(), shown);
    match faults.len() - shown.len() {
        0 => {}
        1 => page.say(format!("{file} has 1 more fault.")),
        more => page.say(format!("{file} has {more} more faults.")),
    }
    faulty_page(&page)
}

/// An error of faults that are shown as a page.
pub fn faulty_page(page: &Document) -> anyhow::Error {
    UsageError(page.text(style())).into()
}

/// A message for standard error. Control characters are replaced, because its quotations may contain anything.
fn message(text: impl std::fmt::Display) -> String {
    let plain = |c: char| match c {
        '\n' => c,
        c if c.is_whitespace() => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    format!(
        "linerate: {}\n",
        text.to_string().chars().map(plain).collect::<String>()
    )
}

/// Layout of text: colour on terminals only, unless NO_COLOR is set or the terminal is dumb.
pub fn style() -> Style {
    use std::io::IsTerminal;
    let colored = std::env::var_os("NO_COLOR").is_none() && !is_dumb();
    Style {
        color: std::io::stdout().is_terminal() && colored,
        width: width(),
    }
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

/// Lines of the terminal at standard output, if it is one.
pub fn terminal_rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_row > 0).then_some(usize::from(size.ws_row))
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
