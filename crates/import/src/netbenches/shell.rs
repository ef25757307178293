//! Shell assignments (`NAME="value" # comment`), read and never executed: `.info`, rc.conf, loader.conf, sysctl.conf.

/// An assignment, or another line that is no comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The name; empty for a line that is no assignment.
    pub name: String,
    /// The value, quotes taken off; or the line.
    pub value: String,
    /// The line that it begins on, from 1.
    pub line: usize,
    /// Whether every quote is closed.
    pub closed: bool,
}

/// Reads a file. Values in quotes may go over several lines.
pub fn items(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut rest, mut line_number) = (text, 1);
    while !rest.is_empty() {
        let number = line_number;
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            (rest, line_number) = (after, number + 1);
            continue;
        }
        let (name, (value, closed, behind)) = match name(line) {
            Some((name, begun)) => (name, value(&rest[begun..])),
            None => ("", (trimmed.to_string(), true, after)),
        };
        items.push(Item {
            name: name.to_string(),
            value,
            line: number,
            closed,
        });
        line_number += rest[..rest.len() - behind.len()].matches('\n').count();
        rest = behind;
    }
    items
}

/// The name before `=`, and where the value begins.
fn name(line: &str) -> Option<(&str, usize)> {
    let equals = line.find('=')?;
    let name = line[..equals].trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '%' | '/');
    (!name.is_empty() && name.chars().all(allowed)).then_some((name, equals + 1))
}

/// A value, whether its quotes are closed, and the text behind its line.
fn value(text: &str) -> (String, bool, &str) {
    let mut value = String::new();
    let mut quote = None;
    let mut blank = true;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\\', Some('"')) => value.extend(chars.next().map(|(_, c)| c)),
            ('"' | '\'', None) => quote = Some(c),
            ('\n', None) => return (value.trim().to_string(), true, &text[at + 1..]),
            ('#', None) if blank => {
                let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
                return (value.trim().to_string(), true, &text[end..]);
            }
            (c, _) => value.push(c),
        }
        blank = quote.is_none() && c.is_whitespace();
    }
    (value.trim().to_string(), quote.is_none(), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        items(text)
            .into_iter()
            .map(|item| (item.name, item.value))
            .collect()
    }

    #[test]
    fn values_with_and_without_quotes_and_comments() {
        let text = "# rc.conf\nhostname=\"apu2\"\nupdate_motd=NO\nhw.usb.no_pf=\"1\"\t# Disable it\n a='b#c' \n\
                    x=\"two\nlines\"\n. /etc/other\nempty=\nlast=1";
        let expected = [
            ("hostname", "apu2"),
            ("update_motd", "NO"),
            ("hw.usb.no_pf", "1"),
            ("a", "b#c"),
            ("x", "two\nlines"),
            ("", ". /etc/other"),
            ("empty", ""),
            ("last", "1"),
        ];
        assert_eq!(
            pairs(text),
            expected.map(|(n, v)| (n.to_string(), v.to_string()))
        );
        assert_eq!(
            items(text).iter().map(|item| item.line).collect::<Vec<_>>(),
            [2, 3, 4, 5, 6, 8, 9, 10]
        );
    }

    #[test]
    fn nothing_is_executed_and_open_quotes_are_told() {
        assert_eq!(
            pairs("A=`reboot`\nB=$(reboot)"),
            [
                ("A".into(), "`reboot`".into()),
                ("B".into(), "$(reboot)".into())
            ]
        );
        let open = items("UNAME=\"FreeBSD apu2");
        assert_eq!(
            open,
            [Item {
                name: "UNAME".into(),
                value: "FreeBSD apu2".into(),
                line: 1,
                closed: false
            }]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[\\PC\n=\"'# ]{0,200}") {
            items(&text);
        }
    }
}
