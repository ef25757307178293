//! Diagnostics: each describes a fault of an input and its place, shows the line or a host's output, and names a remedy.

use serde::Serialize;
use std::fmt;

/// Characters of a line that are shown at most.
const SHOWN: usize = 100;

/// Most diagnostics shown for one file.
pub const MOST: usize = 1000;

/// A stretch of a text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl From<std::ops::Range<usize>> for Span {
    fn from(range: std::ops::Range<usize>) -> Self {
        Span {
            start: range.start,
            end: range.end,
        }
    }
}

/// How much harm it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing can be done with the input, or something else than was meant.
    Fault,
    /// The input can be used, but figures may be doubtful.
    Warning,
}

/// Something wrong with an input, which a person must mend: a plan, a lab file, a rule set, a host of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The file, host or field that it is about; `None` where that is clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Place in a text.
    #[serde(flatten)]
    pub place: Option<Place>,
    pub message: String,
    /// Evidence: the line of a text, or a part of a long line, or the output of a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Place in bytes, until it is located.
    #[serde(skip)]
    pub span: Span,
}

/// A place in a text for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Characters before the fault in the evidence.
    pub indent: usize,
    /// Characters of the fault in the evidence, at least 1.
    pub width: usize,
}

impl Diagnostic {
    /// A fault.
    pub fn new(message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Fault,
            subject: None,
            place: None,
            message: message.into(),
            evidence: None,
            remedy: None,
            span: Span::default(),
        }
    }

    /// A fault at a place of the text that is read, which [`Lines::locate`] turns into line and column.
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            span,
            ..Diagnostic::new(message)
        }
    }

    /// The diagnostic at a place.
    pub fn within(self, span: Span) -> Self {
        Diagnostic { span, ..self }
    }

    /// A warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic::at(span, message).doubtful()
    }

    /// The diagnostic as a warning.
    pub fn doubtful(self) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..self
        }
    }

    pub fn evidence(self, evidence: impl Into<String>) -> Self {
        Diagnostic {
            evidence: Some(evidence.into()),
            ..self
        }
    }

    pub fn is_fault(&self) -> bool {
        self.severity == Severity::Fault
    }

    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Diagnostic {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Without the remedy: `fw.nft:3:1: message`, `router: message (evidence)`. The evidence of a text is left out: it is a line of it.
    pub fn head(&self) -> String {
        let place = self
            .place
            .map(|place| format!("{}:{}:", place.line, place.column))
            .unwrap_or_default();
        let subject = self
            .subject
            .as_ref()
            .map(|subject| format!("{subject}:{place} "))
            .unwrap_or_default();
        let evidence = self.evidence.as_ref().filter(|_| self.place.is_none());
        let evidence = evidence
            .map(|evidence| format!(" ({evidence})"))
            .unwrap_or_default();
        format!("{subject}{}{evidence}", self.message)
    }

    /// Of this file, host or field.
    pub fn of(self, subject: impl Into<String>) -> Self {
        Diagnostic {
            subject: Some(subject.into()),
            ..self
        }
    }
}

/// On one line: `fw.nft:3:1: message: remedy`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        self.remedy
            .iter()
            .try_for_each(|remedy| write!(f, ": {remedy}"))
    }
}

impl std::error::Error for Diagnostic {}

/// A list of diagnostics that grows.
pub trait Problems {
    /// Adds a fault at a place.
    fn fault(&mut self, span: Span, message: impl Into<String>, remedy: impl Into<String>);
}

impl Problems for Vec<Diagnostic> {
    fn fault(&mut self, span: Span, message: impl Into<String>, remedy: impl Into<String>) {
        self.push(Diagnostic::at(span, message).remedy(remedy));
    }
}

/// A text with the places of its lines.
pub struct Lines<'a> {
    text: &'a str,
    /// Bytes of the text. Behind it stand arguments, each on its line.
    own: usize,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let breaks = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(at, _)| at + 1);
        Lines {
            text,
            own: text.len(),
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    /// A text of so many bytes, with the names of arguments behind it.
    pub(crate) fn with_arguments(text: &'a str, own: usize) -> Self {
        Lines {
            own,
            ..Lines::new(text)
        }
    }

    /// Bytes of the text.
    pub fn bytes(&self) -> usize {
        self.own
    }

    /// Line (from 1) and column (from 1, in characters) of a byte.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let at = self.boundary(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        (line, self.text[start..at].chars().count() + 1)
    }

    /// Adds line, column and the line itself; or the argument.
    pub fn locate(&self, diagnostic: Diagnostic) -> Diagnostic {
        let start = diagnostic.span.start;
        if start > self.own && self.own < self.text.len() {
            let argument = self.text[start..]
                .lines()
                .next()
                .unwrap_or_default()
                .to_string();
            return Diagnostic {
                subject: Some(argument).filter(|name| !name.is_empty()),
                ..diagnostic
            };
        }
        if self.own == 0 && !self.text.is_empty() {
            return diagnostic;
        }
        let Span {
            start: from,
            end: to,
        } = diagnostic.span;
        let (line, column) = self.place(from);
        let start = self.starts[line - 1];
        let whole = self.text[start..].lines().next().unwrap_or_default();
        let here = self.boundary(from);
        let end = self
            .boundary(to)
            .clamp(here, start + whole.len().max(here - start));
        let width = self.text[here..end].chars().count().max(1);
        // A long line is shown from a little before the fault.
        let skipped = if column + width.min(40) > SHOWN {
            column.saturating_sub(20)
        } else {
            0
        };
        let evidence = Some(whole.chars().skip(skipped).take(SHOWN).collect());
        let indent = column - 1 - skipped;
        let width = width.min(SHOWN.saturating_sub(indent)).max(1);
        Diagnostic {
            place: Some(Place {
                line,
                column,
                indent,
                width,
            }),
            evidence,
            ..diagnostic
        }
    }

    /// The diagnostics of a text, located: each once, in the order of the text, and not more than [`MOST`].
    pub fn locate_all(&self, mut all: Vec<Diagnostic>) -> Vec<Diagnostic> {
        all.sort_by_key(|one| (one.span.start, one.span.end));
        // One for each place: a fault that is inherited, or that several levels share, would otherwise appear many times.
        all.dedup_by(|a, b| {
            a.span == b.span && (a.span.end > a.span.start || a.message == b.message)
        });
        all.into_iter()
            .take(MOST)
            .map(|one| self.locate(one))
            .collect()
    }

    fn boundary(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// Bytes as text.
///
/// # Errors
/// Place of the first byte that is not UTF-8.
pub fn utf8(bytes: &[u8]) -> Result<&str, Diagnostic> {
    std::str::from_utf8(bytes).map_err(|error| {
        let right = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let end = Span {
            start: right.len(),
            end: right.len(),
        };
        let fault = Diagnostic::at(
            end,
            format!("byte {} is not UTF-8 text", error.valid_up_to()),
        );
        Lines::new(right).locate(fault.remedy("save the file as UTF-8"))
    })
}

/// The name among `names` that was probably meant by `word`.
pub fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower: String = word
        .to_lowercase()
        .replace('_', "-")
        .chars()
        .take(60)
        .collect();
    let allowed = (lower.chars().count() / 3).min(3);
    let near = names
        .into_iter()
        .map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name));
    near.filter(|(far, _)| *far <= allowed)
        .min_by_key(|(far, _)| *far)
        .map(|(_, name)| name)
}

/// The replacement for a word that is not among `names`: the nearest name, or else the list of all names.
pub fn suggestion<'a>(word: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match meant(word, names.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!(
            "there are {}",
            listed(&names.into_iter().collect::<Vec<_>>(), "and")
        ),
    }
}

/// `a`, `b` and `c`.
pub fn listed<T: AsRef<str>>(names: &[T], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_string(),
        [most @ .., end] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} {last} {}", most.join(", "), end.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_count_characters_from_one() {
        let lines = Lines::new("a\nµµb = 1\r\n");
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(6), (2, 3));
        assert_eq!(lines.place(100), (3, 1));
        let fault = lines.locate(Diagnostic::at(Span { start: 6, end: 7 }, "wrong"));
        assert_eq!(
            fault.place,
            Some(Place {
                line: 2,
                column: 3,
                indent: 2,
                width: 1
            })
        );
        assert_eq!(fault.evidence.as_deref(), Some("µµb = 1"));
    }

    #[test]
    fn long_lines_are_shown_around_the_fault() {
        let text = format!("{}here{}", "x".repeat(500), "y".repeat(500));
        let fault = Lines::new(&text).locate(Diagnostic::at(
            Span {
                start: 500,
                end: 504,
            },
            "",
        ));
        let (Some(place), Some(evidence)) = (fault.place, fault.evidence) else {
            panic!()
        };
        assert_eq!(evidence.chars().count(), SHOWN);
        assert_eq!(&evidence[place.indent..place.indent + place.width], "here");
    }

    #[test]
    fn near_names_are_found() {
        let names = ["duration", "blocks", "budget"];
        assert_eq!(meant("durration", names), Some("duration"));
        assert_eq!(meant("Blokcs", names), Some("blocks"));
        assert_eq!(meant("budge_t", names), Some("budget"));
        assert_eq!(meant("seed", names), None);
        assert_eq!(listed(&names, "or"), "duration, blocks or budget");
    }

    proptest! {
        #[test]
        fn any_place_in_any_text(text in ".{0,300}(\r?\n.{0,200}){0,3}", start in 0usize..600, length in 0usize..600) {
            let fault = Lines::new(&text).locate(Diagnostic::at(Span { start, end: start + length }, ""));
            let (Some(place), Some(evidence)) = (fault.place, fault.evidence) else { panic!() };
            prop_assert!(place.width >= 1 && evidence.chars().count() <= SHOWN);
            prop_assert!(place.indent <= SHOWN);
        }
    }
}
