//! The dialect of INI files that Conductor reads: the one that Python's `configparser.ConfigParser` accepts without any options.
//!
//! Keys are case-insensitive, sections are not; `=` or `:` separates; `#` and `;` begin a comment at the beginning of a line
//! only; a line that is indented deeper than its key continues the value; duplicates are faults. ConfigParser silently drops text
//! behind a section's `]`, and silently takes an indented key or section for a part of the value above: this reader reports both.

use super::{SECTIONS, step};
use linerate_plan::diagnostic::{Diagnostic, Lines, MOST, Problems, Span};
use std::collections::BTreeMap;

/// The section whose keys all others have as well.
const DEFAULTS: &str = "DEFAULT";

/// A file by sections.
#[derive(Debug)]
pub(super) struct Ini {
    /// `[DEFAULT]`, and behind it the others in the order of the file.
    sections: Vec<Section>,
    by_name: BTreeMap<String, usize>,
}

/// A section.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) name: String,
    /// Place of the name in the text.
    pub(super) span: Span,
    /// In the order of the file.
    pub(super) entries: Vec<Entry>,
    by_key: BTreeMap<String, usize>,
}

/// A key and its value.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// In lower case.
    pub(super) key: String,
    pub(super) key_span: Span,
    /// The lines of the value, without the blanks around them, joined by line breaks.
    pub(super) value: String,
    /// First line of the value; where that is blank, the key.
    pub(super) value_span: Span,
    /// Blank lines that belong to the value if another line of it follows.
    pub(super) blank: usize,
}

impl Ini {
    /// The section of that name.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.by_name.get(name).map(|at| &self.sections[*at])
    }

    /// The section whose keys all others have as well.
    pub(super) fn defaults(&self) -> &Section {
        &self.sections[0]
    }

    /// All sections but `[DEFAULT]`, in the order of the file.
    pub(super) fn own_sections(&self) -> &[Section] {
        &self.sections[1..]
    }
}

impl Section {
    /// The entry of that key.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.by_key.get(key).map(|at| &self.entries[*at])
    }
}

/// Reads a text. Faults go to `problems`; the rest is still read, unless there are more faults than are shown.
pub(super) fn parse(text_lines: &Lines, text: &str, problems: &mut Vec<Diagnostic>) -> Ini {
    let start = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let defaults = Section {
        name: DEFAULTS.into(),
        ..Section::default()
    };
    let ini = Ini {
        sections: vec![defaults],
        by_name: [(DEFAULTS.into(), 0)].into(),
    };
    let mut reader = Reader {
        text,
        lines: text_lines,
        problems,
        ini,
        section: None,
        entry: Open::None,
        indent: 0,
    };
    for line in lines(&text[start..]) {
        if reader.problems.len() < MOST {
            reader.line(line);
        }
    }
    reader.ini
}

/// Lines as Python reads them: ended by `\n`, `\r\n` or `\r`.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
        .flat_map(|line| line.trim_end_matches(['\r', '\n']).split('\r'))
}

/// The entry that an indented line continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    None,
    /// The last of its section.
    Entry,
    /// Something faulty that is already reported.
    Dropped,
}

struct Reader<'a> {
    text: &'a str,
    lines: &'a Lines<'a>,
    problems: &'a mut Vec<Diagnostic>,
    ini: Ini,
    /// The section that lines go to; `None` before the first.
    section: Option<usize>,
    entry: Open,
    indent: usize,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) {
        let value = line.trim();
        if value.is_empty() {
            if let Some(entry) = self.open() {
                entry.blank += 1;
            }
            return;
        }
        if value.starts_with(['#', ';']) {
            return;
        }
        let indent = line.chars().take_while(|c| c.is_whitespace()).count();
        if self.entry != Open::None && indent > self.indent {
            return self.continued(value);
        }
        self.indent = indent;
        match (header(value), self.section) {
            (Some((name, rest)), _) => self.header(name, rest),
            (None, Some(section)) => self.option(value, section),
            (None, None) => self.homeless(value),
        }
    }

    fn open(&mut self) -> Option<&mut Entry> {
        let section = self.section.filter(|_| self.entry == Open::Entry)?;
        self.ini.sections[section].entries.last_mut()
    }

    fn span(&self, part: &str) -> Span {
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        Span {
            start,
            end: start + part.len(),
        }
    }

    fn fault(&mut self, part: &str, message: impl Into<String>, help: impl Into<String>) {
        self.problems.fault(self.span(part), message, help);
    }

    fn continued(&mut self, value: &str) {
        if let Some(what) = misplaced(value) {
            let of = self
                .open()
                .map(|entry| entry.key.clone())
                .unwrap_or_default();
            let message = format!("{what} is indented, so that it belongs to the value of '{of}'");
            self.fault(value, message, "remove the blanks before it");
        }
        if let Some(entry) = self.open() {
            entry.value += &"\n".repeat(1 + std::mem::take(&mut entry.blank));
            entry.value.push_str(value);
        }
    }

    fn header(&mut self, name: &str, rest: &str) {
        if !(rest.is_empty() || rest.starts_with(['#', ';'])) {
            self.fault(
                rest,
                format!("text behind [{name}] is not read"),
                "put it on a line of its own",
            );
        }
        self.entry = Open::None;
        let known = self.ini.by_name.get(name).copied();
        self.section = known.or(Some(self.ini.sections.len()));
        match known {
            // `[DEFAULT]` may be there any number of times.
            Some(0) => {}
            Some(at) => {
                let first = self.lines.place(self.ini.sections[at].span.start).0;
                let message = format!("[{name}] is there twice, first on line {first}");
                self.fault(name, message, "put what both have into one of them");
            }
            None => {
                let section = Section {
                    name: name.into(),
                    span: self.span(name),
                    ..Section::default()
                };
                self.ini
                    .by_name
                    .insert(name.to_string(), self.ini.sections.len());
                self.ini.sections.push(section);
            }
        }
    }

    fn homeless(&mut self, value: &str) {
        if self.entry == Open::None {
            self.fault(
                value,
                "this stands before the first section",
                "begin with a section such as [Test]",
            );
        }
        // Told once.
        self.entry = Open::Dropped;
    }

    fn option(&mut self, value: &str, section: usize) {
        self.entry = Open::Dropped;
        let Some((name, rest)) = value.split_once(['=', ':']) else {
            let help = match value.starts_with('[') {
                true => "close it with ]",
                false => {
                    "write `key: value`; a line that continues the one above begins with a blank"
                }
            };
            return self.fault(value, "this is neither `key: value` nor a [section]", help);
        };
        let (name, rest) = (name.trim_end(), rest.trim());
        if name.is_empty() {
            let help = "write it before the first = or :, such as `step1: `";
            return self.fault(value, "the key is missing", help);
        }
        let (key, key_span) = (name.to_lowercase(), self.span(name));
        let value_span = if rest.is_empty() {
            key_span
        } else {
            self.span(rest)
        };
        let to = &mut self.ini.sections[section];
        if let Some(first) = to.get(&key) {
            let line = self.lines.place(first.key_span.start).0;
            let message = format!(
                "'{key}' is there twice in [{}], first on line {line}",
                to.name
            );
            return self
                .problems
                .fault(key_span, message, step::another_key(&key));
        }
        to.by_key.insert(key.clone(), to.entries.len());
        to.entries.push(Entry {
            key,
            key_span,
            value: rest.to_string(),
            value_span,
            blank: 0,
        });
        self.entry = Open::Entry;
    }
}

/// The name in a section's header, and the text behind it.
fn header(value: &str) -> Option<(&str, &str)> {
    let (name, rest) = value.strip_prefix('[')?.split_once(']')?;
    (!name.is_empty()).then_some((name, rest.trim()))
}

/// The meaning that a continued line would have without its indent.
fn misplaced(value: &str) -> Option<String> {
    if let Some((name, _)) = header(value) {
        return SECTIONS.contains(&name).then(|| format!("[{name}]"));
    }
    let key = value[..value.find(['=', ':'])?].trim_end();
    step::is_numbered(&key.to_lowercase()).then(|| format!("'{key}'"))
}
