//! What the variables of a configuration come to, as the shell that bench-lab.sh runs in would have them.

use super::shell::{Action, Otherwise, Part, Statement, Word};
use std::collections::BTreeMap;

/// Bytes of one value at most.
const LONGEST: usize = 16 << 10;
/// Bytes of all values of one reading at most: names that contain each other twice would else fill any memory.
const MOST: usize = 1 << 20;

/// Bytes of all names and values of a shell at most, whatever it has read.
const MOST_HELD: usize = 8 << 20;

/// A variable's value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// Which file assigned it, by the caller's number.
    pub(super) file: usize,
    /// The line that assigned it.
    pub(super) line: usize,
    /// The value, or why nobody knows it.
    pub(super) text: Result<String, String>,
}

/// The variables of a shell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Values {
    all: BTreeMap<String, Value>,
    /// Bytes of names and values.
    held: usize,
}

impl Values {
    /// A variable's value where it is known and not empty.
    pub(super) fn known(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.text.as_deref().ok().map(str::trim).filter(|text| !text.is_empty())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.all.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.all.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn remove(&mut self, name: &str) {
        if let Some(value) = self.all.remove(name) {
            self.held -= bytes(name, &value.text);
        }
    }

    /// Runs a file's assignments, as `. file` would.
    pub(super) fn read(&mut self, statements: &[Statement], file: usize) {
        let mut reading = Reading { values: self, file, line: 0, left: MOST };
        for statement in statements {
            reading.line = statement.line;
            match &statement.action {
                Action::Assign { name, word, append } => {
                    let text = reading.expand(word);
                    let before = reading.values.get(name).filter(|_| *append).map(|v| v.text.clone());
                    let text = match (before, text) {
                        (Some(Ok(before)), Ok(text)) => Ok(before + &text),
                        (Some(Err(why)), _) => Err(why),
                        (_, text) => text,
                    };
                    reading.set(name, text);
                }
                Action::Nothing(words) => words.iter().for_each(|word| {
                    let _ = reading.expand(word);
                }),
                Action::Unset(name) => reading.values.remove(name),
            }
        }
    }
}

struct Reading<'v> {
    values: &'v mut Values,
    file: usize,
    line: usize,
    /// Bytes that may still be made.
    left: usize,
}

impl Reading<'_> {
    fn set(&mut self, name: &str, text: Result<String, String>) {
        let text = text.and_then(|text| match text.len() {
            0..=LONGEST => Ok(text),
            _ => Err(format!("it is longer than {LONGEST} bytes")),
        });
        self.values.remove(name);
        let held = self.values.held + bytes(name, &text);
        if held <= MOST_HELD {
            self.values.held = held;
            self.values.all.insert(name.to_string(), Value { file: self.file, line: self.line, text });
        }
    }

    /// A word's value, or why it is not known.
    fn expand(&mut self, word: &Word) -> Result<String, String> {
        let mut out = String::new();
        let mut unknown = None;
        for part in word {
            match self.part(part) {
                Ok(text) if out.len() + text.len() > LONGEST || text.len() > self.left => {
                    unknown = unknown
                        .or(Some(format!("it is longer than {LONGEST} bytes, or all values are too long")));
                }
                Ok(text) => {
                    self.left -= text.len();
                    out += &text;
                }
                Err(why) => unknown = unknown.or(Some(why)),
            }
        }
        unknown.map_or(Ok(out), Err)
    }

    fn part(&mut self, part: &Part) -> Result<String, String> {
        let (name, otherwise) = match part {
            Part::Text(text) => return Ok(text.clone()),
            Part::Computed(why) => return Err((*why).to_string()),
            Part::Variable { name, otherwise } => (name, otherwise),
        };
        let value = self.values.get(name).map(|v| v.text.clone());
        let missing = |empty: bool| match &value {
            None => true,
            Some(Ok(text)) => empty && text.is_empty(),
            Some(Err(_)) => false,
        };
        match otherwise {
            Otherwise::Use { empty, word } if missing(*empty) => self.expand(word),
            Otherwise::Assign { empty, word } if missing(*empty) => {
                let text = self.expand(word);
                self.set(name, text.clone());
                text
            }
            Otherwise::Instead { empty, word } => match missing(*empty) {
                true => Ok(String::new()),
                false => self.expand(word),
            },
            _ => value.unwrap_or_else(|| {
                let shown: String = name.chars().take(60).collect();
                Err(format!("{shown}, which is part of it, is not set before; the environment is not read"))
            }),
        }
    }
}

fn bytes(name: &str, text: &Result<String, String>) -> usize {
    let (Ok(text) | Err(text)) = text;
    size_of::<Value>() + 2 * name.len() + text.len()
}

/// The names that statements refer to.
pub(super) fn referred(statements: &[Statement]) -> Vec<String> {
    let mut names = Vec::new();
    for statement in statements {
        match &statement.action {
            Action::Assign { word, .. } => words(word, &mut names),
            Action::Nothing(all) => all.iter().for_each(|word| inner(word, &mut names)),
            Action::Unset(_) => {}
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn words(word: &Word, names: &mut Vec<String>) {
    for part in word {
        if let Part::Variable { name, .. } = part {
            names.push(name.clone());
        }
    }
    inner(word, names);
}

/// What stands within `${NAME:=...}`; NAME itself is set there, not used.
fn inner(word: &Word, names: &mut Vec<String>) {
    for part in word {
        if let Part::Variable { otherwise, .. } = part {
            match otherwise {
                Otherwise::Use { word, .. }
                | Otherwise::Assign { word, .. }
                | Otherwise::Instead { word, .. } => {
                    words(word, names);
                }
                Otherwise::Nothing => {}
            }
        }
    }
}
