//! TOML, written: names and texts of any kind.

use std::fmt::Write;

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

/// A list of texts.
pub(super) fn list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|t| text(t.as_ref())).collect();
    format!("[{}]", texts.join(", "))
}

/// A comment: every line behind a `#`.
pub(super) fn comment(words: &str) -> String {
    words.lines().fold(String::new(), |mut out, line| {
        let line: String = line.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }).collect();
        let _ = writeln!(out, "# {line}");
        out
    })
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
        assert_eq!(comment("a\nb\u{7}"), "# a\n# b?\n");
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
