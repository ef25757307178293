//! The variables of a shell.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Most bytes of all names and values of a shell.
const MOST_HELD: usize = 8 << 20;

/// A variable's value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// The file that assigned it.
    pub(super) file: Rc<str>,
    /// The line that assigned it.
    pub(super) line: usize,
    /// The value, or the reason why it is unknown.
    pub(super) text: Result<String, String>,
}

/// The variables of a shell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Values {
    all: BTreeMap<String, Value>,
    /// Names that values were made of.
    pub(super) referred: BTreeSet<String>,
    /// Bytes of names and values.
    held: usize,
}

impl Values {
    /// A variable's value where it is known and not empty.
    pub(super) fn known(&self, name: &str) -> Option<&str> {
        self.all
            .get(name)?
            .text
            .as_deref()
            .ok()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.all.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.all.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether another value was made of this variable.
    pub(super) fn is_referred(&self, name: &str) -> bool {
        self.referred.contains(name)
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(value) = self.all.remove(name) {
            self.held -= bytes(name, &value.text);
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.remove(name);
        let held = self.held + bytes(name, &value.text);
        if held <= MOST_HELD {
            self.held = held;
            self.all.insert(name.to_string(), value);
        }
    }
}

fn bytes(name: &str, text: &Result<String, String>) -> usize {
    let (Ok(text) | Err(text)) = text;
    size_of::<Value>() + 2 * name.len() + text.len()
}
