//! One file of a test while it is read: its sections, its faults, and the values that it gives.

use super::MOST_BYTES;
use super::ini::{self, Ini, Section};
use super::interpolation::{self, Budget};
use super::problems::{MOST_FAULTS, Problems};
use super::value::without_comment;
use linerate_plan::diagnostic::{self, Diagnostic, Span, meant};

/// A file and its faults.
pub(super) struct Source<'a> {
    pub(super) ini: Ini,
    pub(super) problems: Problems<'a>,
    pub(super) budget: &'a mut Budget,
}

/// A value and where it stands.
pub(super) struct Value {
    pub(super) text: String,
    pub(super) span: Span,
}

/// Bytes as text.
///
/// # Errors
/// Too many, or no text.
pub(super) fn text<'b>(file: &str, bytes: &'b [u8], faults: &mut Vec<Diagnostic>) -> Option<&'b str> {
    let fault = if bytes.len() > MOST_BYTES {
        let message =
            format!("Conductor's files have at most {MOST_BYTES} bytes here, and this one has more");
        Diagnostic::new(message).remedy("is it another file?")
    } else {
        match diagnostic::utf8(bytes) {
            Ok(text) => return Some(text),
            Err(fault) => fault,
        }
    };
    tell(file, fault, faults);
    None
}

/// Adds a fault of a file that is not even a text.
pub(super) fn tell(file: &str, fault: Diagnostic, faults: &mut Vec<Diagnostic>) {
    if faults.len() < MOST_FAULTS {
        faults.push(fault.of(file));
    }
}

impl<'a> Source<'a> {
    /// Reads the sections of a file.
    pub(super) fn new(file: &'a str, text: &'a str, budget: &'a mut Budget) -> Self {
        let mut problems = Problems::new(file, text);
        let ini = ini::parse(text, &mut problems);
        Source { ini, problems, budget }
    }

    /// Reports sections that are probably misspelt names of `known`. Conductor ignores all others, and so does this.
    pub(super) fn misspelt_sections(&mut self, known: &[&str]) {
        for section in &self.ini.sections {
            let name = section.name.as_str();
            if super::SECTIONS.contains(&name) {
                continue;
            }
            if let Some(right) = meant(name.trim(), known.iter().copied()) {
                let message = format!("[{name}] is not a section of this file");
                self.problems.add(section.span, message, format!("did you mean [{right}]?"));
            }
        }
    }

    /// The one section of two names for the same thing.
    pub(super) fn either(&mut self, names: [&'static str; 2], has: &str) -> Option<&'static str> {
        let spans = names.map(|name| self.ini.section(name).map(|section| section.span));
        match spans {
            [None, None] => {
                let near = |name: &&'static str| {
                    self.ini.sections.iter().any(|s| meant(s.name.trim(), [*name]).is_some())
                };
                // A misspelt one is already reported.
                if !names.iter().any(near) {
                    let [first, second] = names;
                    let message = format!("there is no section [{first}], nor [{second}]");
                    let end = self.problems.end();
                    self.problems.add(end, message, format!("add [{first}] with {has}"));
                }
                None
            }
            [Some(_), Some(span)] => {
                let [first, second] = names;
                let message = format!("[{second}] and [{first}] are two words for the same");
                self.problems.add(span, message, "put what both have into one of them");
                Some(first)
            }
            [Some(_), None] => Some(names[0]),
            [None, Some(_)] => Some(names[1]),
        }
    }

    /// A key that is probably a misspelt `key`.
    fn misspelt(section: &Section, key: &str, known: &[&str]) -> Option<Span> {
        let others = section.entries.iter().filter(|entry| !known.contains(&entry.key.as_str()));
        others.filter(|entry| meant(&entry.key, [key]).is_some()).map(|entry| entry.key_span).next()
    }

    /// The value of a key of a section or of `[DEFAULT]`, without the comment behind it; `None` and no fault for an absent key.
    pub(super) fn get(&mut self, section: &str, key: &str) -> Option<Value> {
        let (section, defaults) = (self.ini.section(section)?, &self.ini.defaults);
        let entry = section.get(key).or_else(|| defaults.get(key))?;
        let bare = without_comment(&entry.value);
        match interpolation::expand(bare, section, defaults, self.budget) {
            // A value may begin on the line behind its key.
            Ok(text) => Some(Value { text: text.trim().to_string(), span: entry.value_span }),
            Err((message, help)) => {
                self.problems.add(entry.value_span, message, help);
                None
            }
        }
    }

    /// The same, of a key that has to be there.
    pub(super) fn need(
        &mut self,
        name: &'static str,
        key: &str,
        known: &[&str],
        example: &str,
    ) -> Option<Value> {
        let section = self.ini.section(name)?;
        if section.get(key).is_some() || self.ini.defaults.get(key).is_some() {
            return self.get(name, key);
        }
        match Self::misspelt(section, key, known) {
            Some(span) => {
                self.problems.add(span, format!("[{name}] needs '{key}'"), format!("did you mean '{key}'?"))
            }
            None => {
                let span = section.span;
                self.problems.add(
                    span,
                    format!("[{name}] has no '{key}'"),
                    format!("add `{key}: {example}`"),
                );
            }
        }
        None
    }

    /// Says that a key is probably meant to be one that is not there.
    pub(super) fn optional(&mut self, name: &str, key: &str, known: &[&str]) {
        let Some(section) = self.ini.section(name).filter(|section| section.get(key).is_none()) else {
            return;
        };
        if let Some(span) = Self::misspelt(section, key, known) {
            self.problems.add(
                span,
                format!("[{name}] has no key of that name"),
                format!("did you mean '{key}'?"),
            );
        }
    }
}
