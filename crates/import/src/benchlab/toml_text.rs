//! TOML, written: names and texts of any kind.

use std::fmt::{Display, Write};
use toml_writer::ToTomlValue;

/// A TOML text that grows.
#[derive(Default)]
pub(super) struct Toml(pub(super) String);

impl Toml {
    /// Comments: every line behind a `#`.
    pub(super) fn comment(&mut self, words: &str) {
        for line in words.lines() {
            let line = line.replace(|c: char| c.is_control() && c != '\t', "?");
            let _ = writeln!(self.0, "# {line}");
        }
    }

    /// `[heading]`, behind a blank line.
    pub(super) fn heading(&mut self, heading: &str) {
        let _ = writeln!(self.0, "\n[{heading}]");
    }

    /// A key with its value as TOML, if there is one.
    pub(super) fn put(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            let _ = writeln!(self.0, "{key} = {value}");
        }
    }

    /// A key with a text, if there is one.
    pub(super) fn text(&mut self, key: &str, value: Option<impl Display>) {
        self.put(key, value.map(|value| value.to_string().to_toml_value()));
    }

    /// A key with a list of texts, if there are any.
    pub(super) fn list(&mut self, key: &str, values: &[impl Display]) {
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        self.put(key, (!texts.is_empty()).then(|| texts.to_toml_value()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use toml_writer::ToTomlKey;

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
