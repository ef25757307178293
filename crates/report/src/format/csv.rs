//! Comma-separated values (RFC 4180), for spreadsheets: first the texts of the page, then each table behind an empty line.
//! Numbers have all their digits, an interval has two columns.

use super::{Format, Style};
use crate::document::{Block, Cell, Column, Document, Link, Table, Tone};

#[derive(Debug)]
pub struct Csv;

impl Format for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn render(&self, document: &Document, _: Style) -> String {
        let mut said = Vec::new();
        let mut tables = String::new();
        let mut section = "";
        for block in document.flat() {
            match block {
                Block::Heading { text } | Block::Part { title: text, .. } => section = text,
                Block::Text { text, tone } => said.push(saying(section, *tone, "", text)),
                Block::Item { mark, text, tone } => said.push(saying(section, *tone, mark, text)),
                Block::Table(rows) => tables += &format!("\r\n{}", table(section, rows)),
                Block::Code { .. }
                | Block::Links { .. }
                | Block::Bars(_)
                | Block::Strip(_)
                | Block::Chart(_)
                | Block::Drawing(_)
                | Block::Search { .. }
                | Block::Gap => {}
            }
        }
        format!("section,tone,text\r\n{}{tables}", said.concat())
    }
}

fn saying(section: &str, tone: Tone, mark: &str, text: &str) -> String {
    let tone = match tone {
        Tone::Plain => "",
        Tone::Strong => "strong",
        Tone::Note => "note",
        Tone::Warning => "warning",
    };
    let text = match mark.trim() {
        "" | "-" | "!" => text.to_string(),
        name => format!("{} {text}", name),
    };
    line(&[quoted(section), tone.into(), quoted(&text)])
}

fn table(section: &str, table: &Table) -> String {
    let heads = table.columns.iter().flat_map(|column| {
        let head = column.head.join(" ").trim().to_string();
        match is_interval(column) {
            true => vec![quoted(&format!("{head} low")), quoted(&format!("{head} high"))],
            false => vec![quoted(&head)],
        }
    });
    let heads: Vec<String> = std::iter::once("section".into()).chain(heads).collect();
    let row = |row: usize| {
        let cells = table.columns.iter().flat_map(|column| values(column, &column.cells[row]));
        line(&std::iter::once(quoted(section)).chain(cells).collect::<Vec<_>>())
    };
    line(&heads) + &(0..table.rows()).map(row).collect::<String>()
}

fn is_interval(column: &Column) -> bool {
    column.cells.iter().any(|cell| matches!(cell, Cell::Interval { .. }))
}

fn values(column: &Column, cell: &Cell) -> Vec<String> {
    let mut values = match cell {
        Cell::Nothing => vec![String::new()],
        Cell::Text(text) | Cell::Link(Link { text, .. }) | Cell::Long { text, .. } => vec![quoted(text)],
        Cell::Number { value, .. } | Cell::Bar { share: value } => vec![value.to_string()],
        Cell::Interval { low, high, .. } => vec![low.to_string(), high.to_string()],
    };
    values.resize(if is_interval(column) { 2 } else { 1 }, String::new());
    values
}

fn line(values: &[String]) -> String {
    values.join(",") + "\r\n"
}

/// A text as one value. A spreadsheet must not take it for a formula.
fn quoted(text: &str) -> String {
    let text: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    match text.contains([',', '"']) || !guard.is_empty() {
        true => format!("\"{guard}{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}
