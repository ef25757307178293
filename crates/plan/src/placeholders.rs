//! Names in braces that stand for facts of the lab: `{in}` is the interface towards the generator.

/// The placeholders, with their meanings.
pub const PLACEHOLDERS: [(&str, &str); 6] = [
    ("in", "the name of the interface towards the generator"),
    ("in.driver", "that name without its number (ix of ix0)"),
    ("in.unit", "the number in that name (0 of ix0)"),
    ("out", "the name of the interface towards the receiver"),
    ("out.driver", "that name without its number (ix of ix1)"),
    ("out.unit", "the number in that name (1 of ix1)"),
];

/// All of them in their braces.
pub fn all() -> Vec<String> {
    PLACEHOLDERS
        .iter()
        .map(|(name, _)| format!("{{{name}}}"))
        .collect()
}

/// A piece of a text.
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
    /// Two opening braces, which are one.
    Brace,
}

/// Splits a text. Only lower-case words and dots in braces are names, so that `{ 10.0.0.0/8 }` of pf, `{}` of JSON and `${x}` of
/// the shell stay as they are; `{{` is a brace.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, after) = (&rest[..open], &rest[open + 1..]);
        if let Some(escaped) = after.strip_prefix('{') {
            pieces.extend([Piece::Text(before), Piece::Brace]);
            rest = escaped;
            continue;
        }
        let end = after
            .find(|c: char| !c.is_ascii_lowercase() && c != '.')
            .unwrap_or(after.len());
        if end > 0 && after[end..].starts_with('}') && !before.ends_with('$') {
            pieces.extend([Piece::Text(before), Piece::Name(&after[..end])]);
            rest = &after[end + 1..];
        } else {
            pieces.push(Piece::Text(&rest[..open + 1]));
            rest = after;
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// The first unknown name in braces, with its braces.
pub fn unknown(text: &str) -> Option<String> {
    let known = |name: &str| PLACEHOLDERS.iter().any(|(n, _)| *n == name);
    pieces(text).into_iter().find_map(|piece| match piece {
        Piece::Name(name) if !known(name) => Some(format!("{{{name}}}")),
        _ => None,
    })
}

/// Fills placeholders in: `inside` and `outside` are the names of the interfaces. Unknown names stay as they are.
///
/// ```
/// # use linerate_plan::placeholders::fill;
/// assert_eq!(fill("dev.{in.driver}.{in.unit}.fc", "ix0", "ix1"), "dev.ix.0.fc");
/// ```
pub fn fill(text: &str, inside: &str, outside: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out += text,
            Piece::Brace => out.push('{'),
            Piece::Name(name) => {
                let interface = if name.starts_with("in") {
                    inside
                } else {
                    outside
                };
                let (driver, unit) = split(interface);
                match name {
                    "in" | "out" => out += interface,
                    "in.driver" | "out.driver" => out += driver,
                    "in.unit" | "out.unit" => out += unit,
                    other => out += &format!("{{{other}}}"),
                }
            }
        }
    }
    out
}

/// A text that stays as it is when placeholders are filled in: the braces that would be taken for some are doubled.
///
/// ```
/// # use linerate_plan::placeholders::{fill, literal};
/// assert_eq!(literal("pass in on {in} from { 10.0.0.0/8 }"), "pass in on {{in} from { 10.0.0.0/8 }");
/// assert_eq!(fill(&literal("{in}"), "ix0", "ix1"), "{in}");
/// ```
pub fn literal(text: &str) -> String {
    let escaped = |piece| match piece {
        Piece::Text(text) => text.to_string(),
        Piece::Name(name) => format!("{{{{{name}}}"),
        Piece::Brace => "{{{{".into(),
    };
    pieces(text).into_iter().map(escaped).collect()
}

/// `ix0` is unit 0 of the driver ix.
fn split(interface: &str) -> (&str, &str) {
    let end = interface
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .len();
    interface.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn interfaces_are_filled_in() {
        assert_eq!(
            fill("ifconfig_{in}=up ifconfig_{out}=up", "cxl0", "cxl1"),
            "ifconfig_cxl0=up ifconfig_cxl1=up"
        );
        assert_eq!(
            fill("hw.{out.driver}.{out.unit}", "igb2", "igb13"),
            "hw.igb.13"
        );
    }

    #[test]
    fn braces_of_other_languages_stay() {
        for text in [
            "set limit { states 10 }",
            "table <t> {10.0.0.0/8}",
            "${fwcmd} -f flush",
            "{\"a\": {}}",
            "{",
            "}",
        ] {
            assert_eq!(fill(text, "a", "b"), text);
            assert_eq!(unknown(text), None, "{text}");
        }
        assert_eq!(fill("{{in}", "a", "b"), "{in}");
        assert_eq!(unknown("x {inside} y").as_deref(), Some("{inside}"));
    }

    proptest! {
        #[test]
        fn text_without_names_is_kept(text in "[^{]{0,40}") {
            prop_assert_eq!(fill(&text, "a", "b"), text);
        }

        #[test]
        fn literal_texts_are_kept(text in "[{}a-z.$ ]{0,30}") {
            let escaped = literal(&text);
            prop_assert_eq!(fill(&escaped, "ix0", "ix1"), text);
            prop_assert_eq!(unknown(&escaped), None);
        }

        #[test]
        fn never_panics(text in "[{}a-z.$µ ]{0,30}") {
            let _ = (fill(&text, "ix0", "ix1"), unknown(&text));
        }
    }
}
