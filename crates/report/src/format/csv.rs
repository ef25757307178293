//! Comma-separated values (RFC 4180), for spreadsheets: first the texts of the page, then each table behind an empty line. A page
//! without texts is its tables alone.
//! Numbers have all their digits, an interval has two columns, and figures with intervals among them have three.

use super::render::{Format, Style, plain};
use crate::document::Column;
use crate::prelude::*;

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
        if said.is_empty() && !tables.is_empty() {
            return tables.trim_start().to_string();
        }
        format!("section,tone,text\r\n{}{tables}", said.concat())
    }
}

fn saying(section: &str, tone: Tone, mark: &str, text: &str) -> String {
    let tone = if tone == Tone::Plain { "" } else { tone.name() };
    let text = match mark.trim() {
        "" | "-" | "!" => text.to_string(),
        name => format!("{name} {text}"),
    };
    line(&[quoted(section), tone.into(), quoted(&text)])
}

fn table(section: &str, table: &Table) -> String {
    let mut figure = String::new();
    let mut heads = vec!["section".into()];
    for column in &table.columns {
        let figures = column.cells.iter().filter(|cell| is_figure(cell));
        let times = figures.clone().any(is_time) && figures.clone().all(is_time);
        let unit = when(times, " ns");
        let head = format!("{}{unit}", column.title());
        // A column that is called an interval is that of the figure before it.
        let of = if head.contains("interval") {
            format!("{figure} {head}")
        } else {
            figure.clone_from(&head);
            head
        };
        heads.extend(
            parts(column)
                .iter()
                .map(|part| quoted(&format!("{of}{part}"))),
        );
    }
    // The name of an indented row begins with that of the row above it.
    let mut above = "";
    let mut rows = String::new();
    for row in 0..table.rows() {
        let mut values = vec![quoted(section)];
        for (at, column) in table.columns.iter().enumerate() {
            match &column.cells[row] {
                Cell::Text(name) if at == 0 && name.starts_with(INDENT) => {
                    let of = when(!above.is_empty(), format!("{}: ", above.trim()));
                    values.push(quoted(&(of + name.trim())));
                }
                cell => {
                    above = if at == 0 { cell.text() } else { above };
                    values.extend(of_cell(column, cell));
                }
            }
        }
        rows += &line(&values);
    }
    line(&heads) + &rows
}

/// Blanks in front of a row that belongs to the one above it. Numbers of cells have fewer.
const INDENT: &str = "   ";

/// The columns that a column of the page takes, each with the end of its head: a figure has one, an interval two, and a column with both
/// has three.
fn parts(column: &Column) -> &'static [&'static str] {
    let any = |is: fn(&Cell) -> bool| column.cells.iter().any(is);
    let intervals = any(|cell| matches!(cell, Cell::Interval { .. }));
    let figures = any(|cell| matches!(cell, Cell::Number { .. }));
    match (intervals, figures) {
        (false, _) => &[""],
        (true, false) => &[" low", " high"],
        (true, true) => &["", " low", " high"],
    }
}

/// Whether it is a number that needs a unit: 0 needs none.
fn is_figure(cell: &Cell) -> bool {
    matches!(cell, Cell::Number { value, .. } if *value != 0.0)
}

/// Whether its text has a unit of time: then its value is in nanoseconds.
fn is_time(cell: &Cell) -> bool {
    let unit = |text: &str| {
        text.rsplit_once(' ')
            .is_some_and(|(_, unit)| ["ns", "us", "ms", "s"].contains(&unit))
    };
    matches!(cell, Cell::Number { text, .. } if unit(text))
}

fn of_cell(column: &Column, cell: &Cell) -> Vec<String> {
    let parts = parts(column).len();
    let mut values = match cell {
        Cell::Nothing => vec![String::new()],
        Cell::Text(text) | Cell::Long { text, .. } | Cell::Link(Link { text, .. }) => {
            vec![quoted(text)]
        }
        Cell::Number { value, .. } | Cell::Bar { share: value } => vec![number(*value)],
        Cell::Interval { low, high, .. } => {
            let figure = (parts == 3).then(String::new);
            let ends = [number(*low), number(*high)];
            figure.into_iter().chain(ends).collect()
        }
    };
    values.resize(parts, String::new());
    values
}

/// All digits that arithmetic leaves exact: 40 and not 39.99999999999999.
fn number(value: f64) -> String {
    let rounded = format!("{value:.14e}").parse().unwrap_or(value);
    rounded.to_string()
}

fn line(values: &[String]) -> String {
    values.join(",") + "\r\n"
}

/// A text as one value. A spreadsheet must not take it for a formula.
fn quoted(text: &str) -> String {
    let text = plain(text.trim());
    let guard = when(text.starts_with(['=', '+', '-', '@']), "'");
    if text.contains([',', '"']) || !guard.is_empty() {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
