//! The format for terminals: lines and tables of plain ASCII within a width. Colours come after the layout.

use super::plots;
use super::render::{Format, Style};
use crate::document::Column;
use crate::prelude::*;

#[derive(Debug)]
pub struct Text;

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn render(&self, document: &Document, style: Style) -> String {
        let mut page = Page {
            color: style.color,
            width: style.width.max(40),
            out: String::new(),
        };
        let mut below_heading = false;
        for block in document.flat() {
            page.block(block, below_heading);
            below_heading = matches!(block, Block::Heading { .. } | Block::Part { .. });
        }
        page.out
    }
}

impl Document {
    /// As text for a terminal.
    pub fn text(&self, style: Style) -> String {
        Text.render(self, style)
    }
}

fn code(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Strong => "\x1b[1m",
        Tone::Note => "\x1b[2m",
        Tone::Warning => "\x1b[1;33m",
    }
}

/// Printable ASCII only: texts of a record must neither break the columns nor command the terminal.
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
fn wrap(text: &str, width: usize) -> Vec<String> {
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
struct Page {
    color: bool,
    width: usize,
    out: String,
}

impl Page {
    fn block(&mut self, block: &Block, below_heading: bool) {
        match block {
            Block::Heading { text } | Block::Part { title: text, .. } => {
                self.gap();
                self.item("", text, Tone::Strong);
            }
            Block::Text { text, tone } => self.item("", text, *tone),
            Block::Item { mark, text, tone } => self.item(mark, text, *tone),
            Block::Code { line, tone } => self.verbatim(line, *tone),
            Block::Table(table) => {
                if !below_heading {
                    self.gap();
                }
                table_lines(table, self.width)
                    .iter()
                    .for_each(|(line, tone)| self.line(line, *tone));
            }
            Block::Bars(bars) => self.plot(plots::bars(bars, self.width)),
            Block::Strip(strip) => self.plot(plots::strip(strip, self.width)),
            Block::Chart(chart) => self.plot(plots::chart(chart, self.width)),
            Block::Links { links } => {
                let names = links.iter().map(|link| link.text.as_str()).joined(" ");
                self.item("", &names, Tone::Note);
            }
            Block::Drawing(_) | Block::Search { .. } => {}
            Block::Gap => self.gap(),
        }
    }

    fn line(&mut self, text: &str, tone: Tone) {
        let text = text.trim_end();
        if self.color && tone != Tone::Plain && !text.is_empty() {
            self.out += &format!("{}{text}\x1b[0m\n", code(tone));
        } else {
            self.out += text;
            self.out.push('\n');
        }
    }

    /// An empty line, unless there is one already or nothing before it.
    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn verbatim(&mut self, text: &str, tone: Tone) {
        let parts = text.split('\t').map(ascii).joined("\t");
        self.line(&parts, tone);
    }

    fn plot(&mut self, lines: Vec<String>) {
        lines
            .iter()
            .for_each(|line| self.verbatim(line, Tone::Plain));
    }

    /// Text behind a mark, broken at the width; further lines are indented as far.
    fn item(&mut self, mark: &str, text: &str, tone: Tone) {
        let mark = ascii(mark);
        let indent = " ".repeat(mark.len());
        for (i, line) in wrap(text, self.width.saturating_sub(mark.len()))
            .iter()
            .enumerate()
        {
            let start = if i == 0 { &mark } else { &indent };
            self.line(&format!("{start}{line}"), tone);
        }
    }
}

/// Pages narrower than this use the short text of long cells.
const NARROW: usize = 92;

/// Columns of the longest bar in a table.
const BAR: usize = 24;

/// A bar from 0, padded so that it begins at the left.
fn bar(share: f64) -> String {
    let length = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let least = usize::from(share > 0.0);
    format!("{:<BAR$}", "#".repeat(length.max(least)))
}

/// A column as it is drawn.
struct Drawn {
    head: [String; 2],
    optional: bool,
    cells: Vec<String>,
    width: usize,
}

impl Drawn {
    fn new(column: &Column, page: usize) -> Drawn {
        let cells = column.cells.iter().map(|cell| match cell {
            Cell::Bar { share } => bar(*share),
            Cell::Long { short, .. } if page < NARROW => ascii(short),
            other => ascii(other.text()),
        });
        let cells: Vec<String> = cells.collect();
        // A bar begins at the left, and so does its heading.
        let bars = column
            .cells
            .iter()
            .any(|cell| matches!(cell, Cell::Bar { .. }));
        let least = if bars { BAR } else { 0 };
        let head = column
            .head
            .each_ref()
            .map(|head| format!("{:<least$}", ascii(head)));
        let width = head
            .iter()
            .chain(&cells)
            .map(String::len)
            .max()
            .unwrap_or(0);
        Drawn {
            head,
            optional: column.optional,
            cells,
            width,
        }
    }
}

/// A table as it is drawn. Where it is wider than the page, columns marked as optional are left out; where that is not enough, the
/// remaining columns follow below with the first repeated.
fn table_lines(table: &Table, page: usize) -> Vec<(String, Tone)> {
    let mut columns: Vec<Drawn> = table
        .columns
        .iter()
        .map(|column| Drawn::new(column, page))
        .collect();
    let Some((names, others)) = columns.split_first_mut() else {
        return Vec::new();
    };
    // The name must leave room for figures beside it.
    let head = names.head.iter().map(String::len).max().unwrap_or(0);
    names.width = names.width.min(head.max(page / 2));
    let mut lines = Vec::new();
    for panel in panels(names.width, others, page) {
        if !lines.is_empty() {
            lines.push((String::new(), Tone::Plain));
        }
        panel_lines(names, &panel, &mut lines);
    }
    lines
}

/// The columns that stand side by side with the names.
fn panels(names: usize, others: &[Drawn], page: usize) -> Vec<Vec<&Drawn>> {
    let total =
        |shown: &[&Drawn]| names + shown.iter().map(|column| column.width + 2).sum::<usize>();
    let mut shown: Vec<&Drawn> = others.iter().collect();
    while total(&shown) > page {
        let Some(at) = shown.iter().rposition(|column| column.optional) else {
            break;
        };
        shown.remove(at);
    }
    let mut panels: Vec<Vec<&Drawn>> = Vec::new();
    for column in shown {
        match panels.last_mut() {
            Some(panel) if total(panel) + column.width + 2 <= page => panel.push(column),
            _ => panels.push(vec![column]),
        }
    }
    panels
}

fn panel_lines(names: &Drawn, panel: &[&Drawn], lines: &mut Vec<(String, Tone)>) {
    let line = |name: &str, text: &dyn Fn(&Drawn) -> String| {
        let cells = panel
            .iter()
            .map(|column| format!("  {:>width$}", text(column), width = column.width));
        format!(
            "{name:width$}{}",
            cells.collect::<String>(),
            width = names.width
        )
    };
    for head in 0..2 {
        let line = line(&names.head[head], &|column| column.head[head].clone());
        if !line.trim().is_empty() {
            lines.push((line, Tone::Strong));
        }
    }
    for (row, name) in names.cells.iter().enumerate() {
        let mut wrapped = wrap_indented(name, names.width).into_iter();
        let first = wrapped.next().unwrap_or_default();
        lines.push((
            line(&first, &|column| column.cells[row].clone()),
            Tone::Plain,
        ));
        lines.extend(wrapped.map(|n| (n, Tone::Plain)));
    }
}

/// Wraps a row's name, keeping its indentation.
fn wrap_indented(name: &str, width: usize) -> Vec<String> {
    let indent = name.len() - name.trim_start().len();
    let lines = wrap(name, width.saturating_sub(indent));
    lines
        .into_iter()
        .map(|l| format!("{}{l}", " ".repeat(indent)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::of(["a long name of a row"])
            .column("what", "", |name| *name)
            .column("rate", "Mpps", |_| "1.490")
            .optional("steal", "%", |_| "0")
            .column("x", "y", |_| "ok")
            .into()
    }

    fn rendered(table: &Table, width: usize) -> String {
        table_lines(table, width)
            .iter()
            .map(|(l, _)| format!("{}\n", l.trim_end()))
            .collect()
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
        assert_eq!(
            wrap("see /a/very/long/path now", 8),
            ["see", "/a/very/long/path", "now"]
        );
        assert_eq!(wrap("", 8), [""]);
    }

    #[test]
    fn a_record_cannot_command_the_terminal() {
        assert_eq!(ascii("a\x1b[2Jb\u{2026}\u{b5}\u{e9}\u{f1}"), "a?[2Jb...ue?");
        let mut page = Document::default();
        page.paragraph("x\x1by", Tone::Strong);
        assert_eq!(
            page.text(Style {
                color: true,
                width: 80
            }),
            "\x1b[1mx?y\x1b[0m\n"
        );
    }
}
