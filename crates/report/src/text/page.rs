//! Lines and tables of plain ASCII within a width, coloured only after they are laid out.

/// How text is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether the terminal understands ANSI colours.
    pub color: bool,
    /// Columns of the terminal. Below 40 it counts as 40.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Style { color: false, width: 100 }
    }
}

/// What a line is, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Text and figures.
    Plain,
    /// The answer, and headings.
    Bold,
    /// Explanations.
    Dim,
    /// What a reader must not overlook.
    Warning,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Ink::Plain => "",
            Ink::Bold => "\x1b[1m",
            Ink::Dim => "\x1b[2m",
            Ink::Warning => "\x1b[1;33m",
        }
    }
}

/// Printable ASCII only: what stands in a record must neither break the columns nor command the terminal.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{2026}' => out.push_str("..."),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
            '\u{b5}' | '\u{3bc}' => out.push('u'),
            '\u{d7}' => out.push('x'),
            '\u{e0}'..='\u{e5}' => out.push('a'),
            '\u{e8}'..='\u{eb}' => out.push('e'),
            '\u{f2}'..='\u{f6}' => out.push('o'),
            '\u{f9}'..='\u{fc}' => out.push('u'),
            '\u{2018}' | '\u{2019}' => out.push('\''),
            '\u{201c}' | '\u{201d}' => out.push('"'),
            '\u{2192}' => out.push_str("->"),
            _ => out.push('?'),
        }
    }
    out
}

/// Breaks text at spaces into lines of at most `width`. Longer words are cut, except paths: they are for copying.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in ascii(text).split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let mut rest = word;
        while rest.len() > width && !word.contains('/') {
            lines.push(rest[..width].to_string());
            rest = &rest[width..];
        }
        line.push_str(rest);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// A text under construction.
#[derive(Debug)]
pub struct Page {
    style: Style,
    out: String,
}

impl Page {
    /// An empty page.
    pub fn new(style: Style) -> Self {
        Page { style: Style { width: style.width.max(40), ..style }, out: String::new() }
    }

    /// Its columns.
    pub fn width(&self) -> usize {
        self.style.width
    }

    fn line(&mut self, text: &str, ink: Ink) {
        let text = text.trim_end();
        if self.style.color && ink != Ink::Plain && !text.is_empty() {
            self.out += &format!("{}{text}\x1b[0m\n", ink.code());
        } else {
            self.out += text;
            self.out.push('\n');
        }
    }

    /// An empty line, unless there is one already or nothing before it.
    pub fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A heading after an empty line.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.paragraph(text, Ink::Bold);
    }

    /// A line of a layout of its own, a plot or somebody else's table: neither broken nor cut, its tabs kept.
    pub fn verbatim(&mut self, text: &str, ink: Ink) {
        let parts: Vec<String> = text.split('\t').map(ascii).collect();
        self.line(&parts.join("\t"), ink);
    }

    /// Text broken at the width.
    pub fn paragraph(&mut self, text: &str, ink: Ink) {
        self.item("", text, ink);
    }

    /// Text behind a mark, further lines indented as far.
    pub fn item(&mut self, mark: &str, text: &str, ink: Ink) {
        let mark = ascii(mark);
        let indent = " ".repeat(mark.len());
        for (i, line) in wrap(text, self.style.width - mark.len()).iter().enumerate() {
            let start = if i == 0 { &mark } else { &indent };
            self.line(&format!("{start}{line}"), ink);
        }
    }

    /// A table; see [`Table`].
    pub fn table(&mut self, table: &Table) {
        for (line, ink) in table.lines(self.style.width) {
            self.line(&line, ink);
        }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.out
    }
}

/// A column of a table.
#[derive(Debug, Clone)]
struct Column {
    head: [String; 2],
    optional: bool,
}

/// A table whose first column names the row. Where it is wider than the page, columns marked as optional are left out;
/// where that is not enough, the remaining columns follow below with the first repeated.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a column with a heading of two lines.
    pub fn column(mut self, first: &str, second: &str) -> Self {
        self.columns.push(Column { head: [ascii(first), ascii(second)], optional: false });
        self
    }

    /// Adds a column that may be left out.
    pub fn optional(mut self, first: &str, second: &str) -> Self {
        self = self.column(first, second);
        self.columns.last_mut().expect("just added").optional = true;
        self
    }

    /// Adds a row, one cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells.iter().map(|c| ascii(c)).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let head = |c: &Column| c.head[0].len().max(c.head[1].len());
        let cell = |i: usize| self.rows.iter().filter_map(|r| r.get(i)).map(String::len).max().unwrap_or(0);
        self.columns.iter().enumerate().map(|(i, c)| head(c).max(cell(i))).collect()
    }

    fn lines(&self, width: usize) -> Vec<(String, Ink)> {
        let mut widths = self.widths();
        // The name must leave room for figures beside it.
        let head = self.columns[0].head.iter().map(String::len).max().unwrap_or(0);
        widths[0] = widths[0].min(head.max(width / 2));
        let mut lines = Vec::new();
        for (i, panel) in self.panels(&widths, width).iter().enumerate() {
            if i > 0 {
                lines.push((String::new(), Ink::Plain));
            }
            self.panel(panel, &widths, &mut lines);
        }
        lines
    }

    /// Which columns stand side by side.
    fn panels(&self, widths: &[usize], width: usize) -> Vec<Vec<usize>> {
        let mut shown: Vec<usize> = (1..widths.len()).collect();
        let total = |shown: &[usize]| widths[0] + shown.iter().map(|i| widths[*i] + 2).sum::<usize>();
        while total(&shown) > width {
            let Some(at) = shown.iter().rposition(|i| self.columns[*i].optional) else { break };
            shown.remove(at);
        }
        let mut panels: Vec<Vec<usize>> = Vec::new();
        for column in shown {
            match panels.last_mut() {
                Some(panel) if total(panel) + widths[column] + 2 <= width => panel.push(column),
                _ => panels.push(vec![column]),
            }
        }
        panels
    }

    fn panel(&self, panel: &[usize], widths: &[usize], lines: &mut Vec<(String, Ink)>) {
        for head in 0..2 {
            let cells = panel.iter().map(|i| self.columns[*i].head[head].as_str());
            let line =
                join(&self.columns[0].head[head], widths[0], cells.zip(panel.iter().map(|i| widths[*i])));
            if !line.trim().is_empty() {
                lines.push((line, Ink::Bold));
            }
        }
        for row in &self.rows {
            let mut names = wrap_indented(&row[0], widths[0]).into_iter();
            let cells = panel.iter().map(|i| (row[*i].as_str(), widths[*i]));
            lines.push((join(&names.next().unwrap_or_default(), widths[0], cells), Ink::Plain));
            lines.extend(names.map(|n| (n, Ink::Plain)));
        }
    }
}

/// Wraps a row's name, keeping its indentation.
fn wrap_indented(name: &str, width: usize) -> Vec<String> {
    let indent = name.len() - name.trim_start().len();
    let lines = wrap(name, width.saturating_sub(indent));
    lines.into_iter().map(|l| format!("{}{l}", " ".repeat(indent))).collect()
}

fn join<'a>(name: &str, width: usize, cells: impl Iterator<Item = (&'a str, usize)>) -> String {
    let mut line = format!("{name:width$}");
    for (cell, width) in cells {
        line += &format!("  {cell:>width$}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut t = Table::default()
            .column("what", "")
            .column("rate", "Mpps")
            .optional("steal", "%")
            .column("x", "y");
        t.row(vec!["a long name of a row".into(), "1.490".into(), "0".into(), "ok".into()]);
        t
    }

    fn rendered(table: &Table, width: usize) -> String {
        table.lines(width).iter().map(|(l, _)| format!("{}\n", l.trim_end())).collect()
    }

    #[test]
    fn columns_are_left_out_and_then_moved_below_and_names_wrapped() {
        assert_eq!(
            rendered(&table(), 60),
            "what                   rate  steal   x\n                       Mpps      %   y\na long name of a row  1.490      0  ok\n"
        );
        assert_eq!(
            rendered(&table(), 34),
            "what                rate   x\n                    Mpps   y\na long name of a   1.490  ok\nrow\n"
        );
        assert!(rendered(&table(), 10).lines().all(|l| l.len() <= 12));
    }

    #[test]
    fn lines_break_at_spaces_but_paths_stay_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("see /a/very/long/path now", 8), ["see", "/a/very/long/path", "now"]);
        assert_eq!(wrap("", 8), [""]);
    }

    #[test]
    fn a_record_cannot_command_the_terminal() {
        assert_eq!(ascii("a\x1b[2Jb\u{2026}\u{b5}\u{e9}\u{f1}"), "a?[2Jb...ue?");
        let mut page = Page::new(Style { color: true, width: 80 });
        page.paragraph("x\x1by", Ink::Bold);
        assert_eq!(page.finish(), "\x1b[1mx?y\x1b[0m\n");
    }
}
