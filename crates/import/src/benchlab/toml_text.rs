//! TOML, written: names and texts of any kind.

use std::fmt::{Display, Write};

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
        self.put(key, value.map(|value| text(&value.to_string())));
    }

    /// A key with a list of texts, if there are any.
    pub(super) fn list(&mut self, key: &str, values: &[impl Display]) {
        let texts: Vec<String> = values.iter().map(|value| text(&value.to_string())).collect();
        self.put(key, (!texts.is_empty()).then(|| format!("[{}]", texts.join(", "))));
    }
}

/// A key: bare where it can be.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_string() } else { text(name) }
}

/// A text on one line.
pub(super) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape(text, "", &mut out);
    out.push('"');
    out
}

/// A text of several lines, as it stands where it can be.
pub(super) fn block(text: &str) -> String {
    let literal = |c: char| c == '\n' || c == '\t' || !c.is_control();
    if text.chars().all(literal) && !text.contains("'''") && !text.ends_with('\'') {
        return format!("'''\n{text}'''");
    }
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str("\"\"\"\n");
    escape(text, "\n\t", &mut out);
    out.push_str("\"\"\"");
    out
}

fn escape(text: &str, as_is: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if as_is.contains(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(key: &str, value: &str) -> (String, String) {
        let read: toml::Table = toml::from_str(&format!("{key} = {value}\n")).unwrap();
        let (key, value) = read.into_iter().next().unwrap();
        (key, value.as_str().unwrap().to_string())
    }

    #[test]
    fn files_stand_as_they_are() {
        assert_eq!(block("a=\"b\" # c\\d\n"), "'''\na=\"b\" # c\\d\n'''");
        assert_eq!((key("511-default"), key("a.b")), ("511-default".into(), "\"a.b\"".into()));
        let mut out = Toml::default();
        out.comment("a\nb\u{7}");
        assert_eq!(out.0, "# a\n# b?\n");
    }

    proptest! {
        #[test]
        fn every_text_comes_back(name in "\\PC{1,10}", value in "[\\x00-\\x7f\u{85}µ\u{202e}'\"\\\\\n\r\t]{0,40}") {
            for written in [text(&value), block(&value)] {
                prop_assert_eq!(back(&key(&name), &written), (name.clone(), value.clone()));
            }
        }
    }
}
