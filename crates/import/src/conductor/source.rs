//! One file of a test while it is read: its sections, its faults, and the values that it gives.

use super::ini::{self, Ini, Section};
use super::interpolation;
use super::step::is_number;
use linerate_plan::diagnostic::{Diagnostic, Lines, MOST, Span, meant};

/// A file and its faults.
pub(super) struct Source<'a> {
    file: &'a str,
    pub(super) ini: Ini,
    pub(super) lines: Lines<'a>,
    problems: Vec<Diagnostic>,
    /// Bytes that the test may still cost.
    pub(super) budget: &'a mut usize,
}

/// A value and where it stands.
pub(super) struct Value {
    pub(super) text: String,
    pub(super) span: Span,
}

impl<'a> Source<'a> {
    /// Reads the sections of a file.
    ///
    /// # Errors
    /// The file is too long, or no text.
    pub(super) fn new(
        file: &'a str,
        bytes: &'a [u8],
        budget: &'a mut usize,
    ) -> Result<Self, Diagnostic> {
        let text = linerate_plan::text(bytes, "a file of Conductor", "is it another file?");
        let text = text.map_err(|fault| fault.of(file))?;
        let (lines, mut problems) = (Lines::new(text), Vec::new());
        Ok(Source {
            file,
            ini: ini::parse(&lines, text, &mut problems),
            lines,
            problems,
            budget,
        })
    }

    /// All faults, each once, in the order of the file.
    pub(super) fn faults(self) -> Vec<Diagnostic> {
        self.lines
            .locate_all(self.problems)
            .into_iter()
            .map(|fault| fault.of(self.file))
            .collect()
    }

    /// Adds a fault with its remedy.
    pub(super) fn add(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.put(Diagnostic::at(span, message).remedy(help));
    }

    /// Adds a fault that has its place. Faults beyond the limit are dropped, because no reader needs them.
    pub(super) fn put(&mut self, fault: Diagnostic) {
        if self.problems.len() < MOST {
            self.problems.push(fault);
        }
    }

    /// A fault of something that is missing: its place is the end of the file.
    pub(super) fn missing(&mut self, message: String, help: String) {
        let end = self.lines.bytes();
        self.add(Span { start: end, end }, message, help);
    }

    /// Reports sections that are probably misspelt names of `known`. Conductor ignores all others, and so does this.
    pub(super) fn misspelt_sections(&mut self, known: &[&str]) {
        let unknown = self
            .ini
            .own_sections()
            .iter()
            .filter(|s| !super::SECTIONS.contains(&s.name.as_str()));
        let misspelt = unknown.filter_map(|Section { name, span, .. }| {
            let right = meant(name.trim(), known.iter().copied())?;
            let fault = Diagnostic::at(*span, format!("[{name}] is not a section of this file"));
            Some(fault.remedy(format!("did you mean [{right}]?")))
        });
        self.problems.extend(misspelt.take(MOST));
    }

    /// Whether a section has nearly that name: then its fault is already reported.
    pub(super) fn is_misspelt(&self, name: &str) -> bool {
        self.ini
            .own_sections()
            .iter()
            .any(|section| meant(section.name.trim(), [name]).is_some())
    }

    /// The one section of two names for the same thing.
    pub(super) fn either(&mut self, names: [&'static str; 2], has: &str) -> Option<&'static str> {
        let [first, second] = names;
        match names.map(|name| self.ini.section(name).map(|section| section.span)) {
            [None, None] if !names.iter().any(|name| self.is_misspelt(name)) => {
                let message = format!("there is no section [{first}], nor [{second}]");
                self.missing(message, format!("add [{first}] with {has}"));
            }
            [Some(_), Some(span)] => {
                let message = format!("[{second}] and [{first}] are two words for the same");
                self.add(span, message, "put what both have into one of them");
            }
            _ => {}
        }
        names
            .into_iter()
            .find(|name| self.ini.section(name).is_some())
    }

    /// The value of a key of a section or of `[DEFAULT]`, without the comment behind it; `None` and no fault for an absent key.
    pub(super) fn get(&mut self, section: &str, key: &str) -> Option<Value> {
        let (section, defaults) = (self.ini.section(section)?, self.ini.defaults());
        let entry = section.get(key).or_else(|| defaults.get(key))?;
        let bare = without_comment(&entry.value);
        match interpolation::expand(bare, section, defaults, self.budget) {
            // A value may begin on the line behind its key.
            Ok(text) => Some(Value {
                text: text.trim().to_string(),
                span: entry.value_span,
            }),
            Err(fault) => {
                self.put(fault.within(entry.value_span));
                None
            }
        }
    }

    /// The value of a key as a type, if it is valid. `what` names the type.
    pub(super) fn valid<T>(
        &mut self,
        Value { text, span }: Value,
        read: impl Fn(&str) -> Option<T>,
        what: &str,
        help: &str,
    ) -> Option<T> {
        let found = read(&text);
        if found.is_none() {
            self.add(span, format!("'{text}' is not {what}"), help);
        }
        found
    }

    /// The value of a key that has to be there.
    pub(super) fn need(
        &mut self,
        name: &str,
        key: &str,
        known: &[&str],
        example: &str,
    ) -> Option<Value> {
        let section = self.ini.section(name)?;
        if section.get(key).is_some() || self.ini.defaults().get(key).is_some() {
            return self.get(name, key);
        }
        let (span, help) = match misspelt(section, key, known) {
            Some(span) => (span, format!("did you mean '{key}'?")),
            None => (section.span, format!("add `{key}: {example}`")),
        };
        self.add(span, format!("[{name}] has no '{key}'"), help);
        None
    }

    /// Says that a key is probably meant to be one that is not there.
    pub(super) fn optional(&mut self, name: &str, key: &str, known: &[&str]) {
        let section = self
            .ini
            .section(name)
            .filter(|section| section.get(key).is_none());
        if let Some(span) = section.and_then(|section| misspelt(section, key, known)) {
            let message = format!("[{name}] has no key of that name");
            self.add(span, message, format!("did you mean '{key}'?"));
        }
    }
}

/// A key that is probably a misspelt `key`.
fn misspelt(section: &Section, key: &str, known: &[&str]) -> Option<Span> {
    let others = section
        .entries
        .iter()
        .filter(|entry| !known.contains(&entry.key.as_str()));
    others
        .filter(|entry| meant(&entry.key, [key]).is_some())
        .map(|entry| entry.key_span)
        .next()
}

/// A value without the comment that Conductor's own examples have behind it: `#` or `;` behind a blank.
///
/// ConfigParser would make the comment a part of the value, and Conductor then cannot connect to it. Commands keep their
/// comments: the shell handles them.
fn without_comment(value: &str) -> &str {
    let begins =
        |at: &usize| value[..*at].is_empty() || value[..*at].ends_with(char::is_whitespace);
    let end = value
        .match_indices(['#', ';'])
        .map(|(at, _)| at)
        .find(begins);
    end.map_or(value, |at| value[..at].trim_end())
}

/// A whole number as Python's `int` reads it: a sign, digits, single underscores between digits. `None` for other texts; numbers
/// beyond an `i64` become its ends.
pub(super) fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let ends = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    digits
        .split('_')
        .all(is_number)
        .then(|| text.replace('_', "").parse().unwrap_or(ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_begin_behind_a_blank() {
        assert_eq!(
            without_comment("10.0.1.10          # Web server IP"),
            "10.0.1.10"
        );
        assert_eq!(without_comment("6970 ; port"), "6970");
        assert_eq!(without_comment("# fill in"), "");
        assert_eq!(without_comment("a#b;c.cfg"), "a#b;c.cfg");
    }

    #[test]
    fn integers_are_pythons() {
        for (text, value) in [("10", 10), ("+1_000", 1000), ("-3", -3), ("007", 7)] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        assert_eq!(integer(&"9".repeat(100)), Some(i64::MAX));
        for wrong in ["", "-", "1.5", "_1", "1_", "1__0", "0x10", "1 2", "++1"] {
            assert_eq!(integer(wrong), None, "{wrong}");
        }
    }
}
