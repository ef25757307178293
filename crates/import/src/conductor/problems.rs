//! Faults of one file of a test.

use linerate_plan::diagnostic::{Diagnostic, Lines, Span};

/// Most faults shown for a test.
pub(super) const MOST_FAULTS: usize = 1000;

/// Faults found in one file.
pub(super) struct Problems<'a> {
    file: &'a str,
    lines: Lines<'a>,
    list: Vec<Diagnostic>,
}

impl<'a> Problems<'a> {
    /// Nothing yet in this file.
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Problems { file, lines: Lines::new(text), list: Vec::new() }
    }

    /// Adds a fault with its remedy. Faults beyond the limit are dropped, because no reader needs them.
    pub(super) fn add(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        if self.list.len() < MOST_FAULTS {
            self.list.push(Diagnostic::at(span, message).remedy(help));
        }
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, span: Span) -> usize {
        self.lines.place(span.start).0
    }

    /// The end of the file, as the place of missing parts.
    pub(super) fn end(&self) -> Span {
        Span { start: self.lines.bytes(), end: self.lines.bytes() }
    }

    /// Adds each fault once to those of the test, in the order of the file.
    pub(super) fn tell(mut self, faults: &mut Vec<Diagnostic>) {
        self.list.sort_by_key(|problem| (problem.span.start, problem.span.end));
        self.list.dedup_by(|a, b| a.span == b.span && a.message == b.message);
        let room = MOST_FAULTS.saturating_sub(faults.len());
        let told = self.list.into_iter().take(room).map(|problem| self.lines.locate(problem));
        faults.extend(told.map(|fault| fault.of(self.file)));
    }
}
