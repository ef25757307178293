//! Words of hosts and of their programs in messages: short, and fit for a terminal.

/// The beginning of a text, without control characters.
pub fn printable(text: &str, most: usize) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    text.trim().chars().take(most).map(clean).collect()
}

/// The beginning of a text, on one line.
pub fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = printable(&line, most);
    if cut.len() < line.len() {
        format!("{cut}...")
    } else {
        cut
    }
}

/// A text between two others; nothing where it is empty.
pub fn unless_empty(before: &str, text: &str, after: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{before}{text}{after}"),
    }
}
