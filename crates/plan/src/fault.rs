//! What is wrong with a text that a user wrote, and where: every fault names its line and column, shows the line, and says what to do.

use serde::Serialize;

/// Characters of a line that are shown.
const SHOWN: usize = 100;

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
        Span { start: range.start, end: range.end }
    }
}

/// Something wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The line, or the part of a long one that the fault is in.
    pub excerpt: String,
    /// Characters before the fault in the excerpt.
    pub indent: usize,
    /// Characters of the fault in the excerpt, at least 1.
    pub width: usize,
}

/// A fault whose place is known as bytes only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub span: Span,
    pub message: String,
    pub help: Option<String>,
}

impl Problem {
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Problem { span, message: message.into(), help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A text with the places of its lines.
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// Bytes of the text.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Line (from 1) and column (from 1, in characters) of a byte.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let at = self.boundary(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        (line, self.text[start..at].chars().count() + 1)
    }

    pub fn fault(&self, problem: Problem) -> Fault {
        let (line, column) = self.place(problem.span.start);
        let start = self.starts[line - 1];
        let whole = self.text[start..].lines().next().unwrap_or_default();
        let here = self.boundary(problem.span.start);
        let end = self.boundary(problem.span.end).clamp(here, start + whole.len().max(here - start));
        let width = self.text[here..end].chars().count().max(1);
        // A long line is shown from a little before the fault.
        let skipped = if column + width.min(40) > SHOWN { column.saturating_sub(20) } else { 0 };
        let excerpt: String = whole.chars().skip(skipped).take(SHOWN).collect();
        let indent = column - 1 - skipped;
        let width = width.min(SHOWN.saturating_sub(indent)).max(1);
        Fault { line, column, message: problem.message, help: problem.help, excerpt, indent, width }
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
/// The first byte that is none.
pub fn utf8(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let right = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let end = Span { start: right.len(), end: right.len() };
        let problem = Problem::new(end, format!("byte {} is not UTF-8 text", error.valid_up_to()));
        Lines::new(right).fault(problem.help("save the file as UTF-8"))
    })
}

/// The name among `names` that was probably meant by `word`.
pub fn meant<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower: Vec<char> = word.to_lowercase().replace('_', "-").chars().take(60).collect();
    let allowed = (lower.len() / 3).min(3);
    let near = names
        .into_iter()
        .map(|name| (distance(&lower, &name.to_lowercase().chars().collect::<Vec<_>>()), name));
    near.filter(|(far, _)| *far <= allowed).min_by_key(|(far, _)| *far).map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word of the other (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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

/// A number in groups of three digits.
pub fn thousands(n: u128) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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
        let fault = lines.fault(Problem::new(Span { start: 6, end: 7 }, "wrong"));
        assert_eq!((fault.line, fault.column, fault.excerpt.as_str()), (2, 3, "µµb = 1"));
        assert_eq!((fault.indent, fault.width), (2, 1));
    }

    #[test]
    fn long_lines_are_shown_around_the_fault() {
        let text = format!("{}here{}", "x".repeat(500), "y".repeat(500));
        let fault = Lines::new(&text).fault(Problem::new(Span { start: 500, end: 504 }, ""));
        assert_eq!(fault.excerpt.chars().count(), SHOWN);
        assert_eq!(&fault.excerpt[fault.indent..fault.indent + fault.width], "here");
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
            let fault = Lines::new(&text).fault(Problem::new(Span { start, end: start + length }, ""));
            prop_assert!(fault.width >= 1 && fault.excerpt.chars().count() <= SHOWN);
            prop_assert!(fault.indent <= SHOWN);
        }
    }
}
