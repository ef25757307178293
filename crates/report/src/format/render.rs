//! A format as the others see it: it renders a document in a style.

use crate::document::Document;

/// A way to draw documents.
pub trait Format: std::fmt::Debug + Sync {
    /// Name of the format for `--format`.
    fn name(&self) -> &'static str;

    fn render(&self, document: &Document, style: Style) -> String;
}

/// How text is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether the terminal understands ANSI colours.
    pub color: bool,
    /// Columns of the terminal. Below 40 it counts as 40.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            color: false,
            width: 100,
        }
    }
}

/// Text without control characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Text in lines of so many characters, where its words are no longer.
pub(crate) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                *line += &format!(" {word}")
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}
