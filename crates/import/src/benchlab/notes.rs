//! Settings that were carried over, and settings that were not: each with its file and line.

use super::values::Value;
use crate::shortened;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Notes of a kind at most; the rest is counted.
const MOST: usize = 1000;
/// Characters of one at most.
const LONGEST: usize = 400;

/// A note about a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Note {
    /// The file.
    pub file: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The setting, and its new place or the reason why it has none.
    pub what: String,
}

impl fmt::Display for Note {
    /// `file:line: setting`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// All notes of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Notes {
    /// Settings that were carried over, with their new places.
    pub carried: Vec<Note>,
    /// Settings that were not, with reasons.
    pub not_carried: Vec<Note>,
    /// Notes that are too many to list.
    pub more: usize,
    #[serde(skip)]
    used: BTreeSet<String>,
}

impl Notes {
    /// Something went somewhere.
    pub(super) fn carry(&mut self, file: &str, line: Option<usize>, what: String) {
        add(&mut self.carried, &mut self.more, file, line, what);
    }

    /// Something did not.
    pub(super) fn left(&mut self, file: &str, line: Option<usize>, what: String) {
        add(&mut self.not_carried, &mut self.more, file, line, what);
    }

    /// A variable's value did not.
    pub(super) fn left_value(&mut self, value: &Value, what: String) {
        self.left(&value.file, Some(value.line), what);
    }

    /// A variable's value did, or need not.
    pub(super) fn used(&mut self, name: &str) {
        self.used.insert(name.to_string());
    }

    /// A variable's value went somewhere.
    pub(super) fn carry_value(&mut self, name: &str, value: &Value, to: &str) {
        self.used(name);
        self.carry(&value.file, Some(value.line), format!("{name}: {to}"));
    }

    /// Puts them in the order of files and lines.
    pub(super) fn sort(&mut self) {
        self.carried.sort();
        self.not_carried.sort();
    }

    pub(super) fn is_used(&self, name: &str) -> bool {
        self.used.contains(name)
    }
}

fn add(list: &mut Vec<Note>, more: &mut usize, file: &str, line: Option<usize>, what: String) {
    let note = Note {
        file: file.to_string(),
        line,
        what: shortened(&what, LONGEST),
    };
    if list.contains(&note) {
        return;
    }
    if list.len() < MOST {
        list.push(note)
    } else {
        *more += 1
    }
}
