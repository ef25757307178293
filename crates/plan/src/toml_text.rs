//! TOML, written: names and texts of any kind.

use crate::grammar::{Kind, Table};
use linerate_wire::units::grouped;
use serde_json::{Map, Value as Json};
use std::fmt::{Display, Write};
use toml_writer::{ToTomlKey, ToTomlValue};

/// A TOML text that grows.
#[derive(Debug, Default)]
pub struct Toml(pub String);

/// Characters of a line, if it can be broken.
const WIDTH: usize = 100;

impl Toml {
    /// Comments: every line behind a `#`.
    pub fn comment(&mut self, words: &str) {
        for line in words.lines() {
            let line = line.replace(|c: char| c.is_control() && c != '\t', "?");
            let _ = writeln!(self.0, "# {line}");
        }
    }

    /// `[heading]`, behind a blank line.
    pub fn heading(&mut self, heading: &str) {
        let _ = writeln!(self.0, "\n[{heading}]");
    }

    /// A key with its value as TOML, if there is one.
    pub fn put(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            let _ = writeln!(self.0, "{key} = {value}");
        }
    }

    /// A key with a text, if there is one.
    pub fn text(&mut self, key: &str, value: Option<impl Display>) {
        self.put(key, value.map(|value| value.to_string().to_toml_value()));
    }

    /// A key with a list of texts, if there are any.
    pub fn list(&mut self, key: &str, values: &[impl Display]) {
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        self.put(key, (!texts.is_empty()).then(|| texts.to_toml_value()));
    }

    /// A section of a plan: its keys in the order of the grammar, then the sections within it. Small tables stay on one line.
    pub(crate) fn section(
        &mut self,
        heading: &str,
        of: &'static Table,
        values: &Map<String, Json>,
    ) {
        self.heading(heading);
        self.entries(heading, &Kind::Table(of), values);
    }

    fn entries(&mut self, heading: &str, of: &Kind, values: &Map<String, Json>) {
        let mut large = Vec::new();
        for (key, kind, value) in entries(of, values) {
            let line = line(&key, kind, value);
            let fits = line.len() <= WIDTH && !line.contains('\n');
            match value {
                Json::Object(_) if !fits => large.push((key, kind, value)),
                Json::Array(items) if !fits && items.iter().any(Json::is_object) => {
                    large.push((key, kind, value))
                }
                Json::Array(items) if !fits => {
                    let items = items
                        .iter()
                        .map(|item| format!("    {},\n", inline(kind, item)));
                    self.0 += &format!("{key} = [\n{}]\n", items.collect::<String>());
                }
                _ => self.0 += &(line + "\n"),
            }
        }
        for (key, kind, value) in large {
            let place = format!("{heading}.{key}");
            match (kind, value) {
                (Kind::Tables(of), Json::Array(items)) => {
                    items
                        .iter()
                        .filter_map(Json::as_object)
                        .for_each(|item| self.section(&format!("[{place}]"), of, item));
                }
                (_, value) => {
                    self.heading(&place);
                    value
                        .as_object()
                        .into_iter()
                        .for_each(|values| self.entries(&place, kind, values));
                }
            }
        }
    }
}

/// The entries of a table, with their keys as TOML: in the order of the grammar where it names them.
fn entries<'v>(of: &Kind, values: &'v Map<String, Json>) -> Vec<(String, &'static Kind, &'v Json)> {
    match of {
        Kind::Table(table) => {
            let known = table
                .all()
                .filter_map(|key| Some((key.name.into(), &key.kind, values.get(key.name)?)));
            // The reader will refuse the others, at their places.
            let others = values.iter().filter(|(name, _)| table.find(name).is_none());
            known
                .chain(others.map(|(name, value)| (name.to_toml_key(), &Kind::Levels, value)))
                .collect()
        }
        Kind::Named(kind, _) => values
            .iter()
            .map(|(name, value)| (name.to_toml_key(), *kind, value))
            .collect(),
        _ => {
            // Of a selector: the variant, then its levels.
            let mut all: Vec<_> = values
                .iter()
                .map(|(name, value)| (name.to_toml_key(), &Kind::Levels, value))
                .collect();
            all.sort_by_key(|(name, ..)| name != "variant");
            all
        }
    }
}

/// A key with its value; a table of one entry is a dotted key.
fn line(key: &str, kind: &Kind, value: &Json) -> String {
    match value {
        Json::Object(inner) if inner.len() == 1 && !matches!(kind, Kind::Selector) => {
            let inner = entries(kind, inner);
            inner
                .iter()
                .map(|(name, kind, value)| line(&format!("{key}.{name}"), kind, value))
                .collect()
        }
        value => format!("{key} = {}", inline(kind, value)),
    }
}

fn inline(kind: &Kind, value: &Json) -> String {
    let joined = |items: Vec<String>| items.join(", ");
    match value {
        Json::Object(values) => {
            let items = entries(kind, values);
            let items = items
                .iter()
                .map(|(key, kind, value)| format!("{key} = {}", inline(kind, value)));
            format!("{{ {} }}", joined(items.collect()))
        }
        Json::Array(items) => {
            let kind = match kind {
                Kind::Tables(of) => Kind::Table(of),
                kind => *kind,
            };
            format!(
                "[{}]",
                joined(items.iter().map(|item| inline(&kind, item)).collect())
            )
        }
        Json::String(text) => text.to_toml_value(),
        number => number
            .as_u64()
            .map_or(number.to_string(), |n| grouped(n).replace(',', "_")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(text: &str) -> (String, String) {
        let read: toml::Table = toml::from_str(text).unwrap();
        let (key, value) = read.into_iter().next().unwrap();
        (key, value.as_str().unwrap().to_string())
    }

    #[test]
    fn files_stand_as_they_are() {
        let mut out = Toml::default();
        out.text("a", Some("a=\"b\" # c\\d\n"));
        out.comment("a\nb\u{7}");
        assert_eq!(out.0, "a = '''\na=\"b\" # c\\d\n'''\n# a\n# b?\n");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(name in "\\PC{1,10}", value in "[\\x00-\\x7f\u{85}µ\u{202e}'\"\\\\\n\r\t]{0,40}") {
            let mut out = Toml::default();
            out.text(&name.to_toml_key(), Some(&value));
            prop_assert_eq!(back(&out.0), (name, value));
        }
    }
}
