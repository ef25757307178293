//! Markdown, as GitHub and most others read it: for reports, issues and mails.

use super::plots;
use super::render::{Format, Style, plain};
use crate::prelude::*;

#[derive(Debug)]
pub struct Markdown;

/// Columns of a plot.
const WIDTH: usize = 100;

/// The fence around code and plots.
const FENCE: &str = "~~~";

/// Longest bar of a table, in characters.
const BAR: f64 = 24.0;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn render(&self, document: &Document, _: Style) -> String {
        let all = document.flat();
        let same = |a: &&Block, b: &&Block| {
            matches!(
                (a, b),
                (Block::Item { .. }, Block::Item { .. }) | (Block::Code { .. }, Block::Code { .. })
            )
        };
        let parts = all.chunk_by(same).map(|blocks| match blocks {
            [Block::Code { .. }, ..] => fenced(blocks.iter().filter_map(|b| match b {
                Block::Code { line, .. } => Some(plain(line)),
                _ => None,
            })),
            _ => blocks.iter().map(|each| block(each)).collect(),
        });
        parts.filter(|part| !part.is_empty()).joined("\n")
    }
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading { text } | Block::Part { title: text, .. } => {
            format!("## {}\n", escaped(text))
        }
        Block::Text { text, tone } => format!("{}\n", toned(text, *tone)),
        Block::Item { mark, text, tone } => item(mark, &toned(text, *tone)),
        Block::Table(rows) => table(rows),
        Block::Bars(bars) => fenced(plots::bars(bars, WIDTH)),
        Block::Strip(strip) => fenced(plots::strip(strip, WIDTH)),
        Block::Chart(chart) => match plots::chart(chart, WIDTH) {
            lines if lines.is_empty() => String::new(),
            lines => fenced(lines),
        },
        Block::Links { links } => format!("{}\n", links.iter().map(link).joined(" ")),
        Block::Code { .. } | Block::Drawing(_) | Block::Search { .. } | Block::Gap => String::new(),
    }
}

/// An entry of a list. Without a mark, it continues the entry above it.
fn item(mark: &str, text: &str) -> String {
    match mark.trim() {
        "" if mark.len() > 2 => format!("  - {text}\n"),
        "" | "-" | "!" => format!("- {text}\n"),
        name => format!("- {}: {text}\n", escaped(name.trim_end_matches(':'))),
    }
}

fn toned(text: &str, tone: Tone) -> String {
    let text = escaped(text.trim());
    match tone {
        Tone::Plain => text,
        _ if text.is_empty() => text,
        Tone::Strong => format!("**{text}**"),
        Tone::Note => format!("_{text}_"),
        Tone::Warning => format!("**Warning:** {text}"),
    }
}

fn fenced(lines: impl IntoIterator<Item = String>) -> String {
    let line = |line: String| format!("{}\n", plain(line.trim_end()).replace(FENCE, "~"));
    let lines: String = lines.into_iter().map(line).collect();
    format!("{FENCE}\n{lines}{FENCE}\n")
}

fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let heads = table.columns.iter().map(|c| escaped(&c.title())).collect();
    let rule = table
        .columns
        .iter()
        .enumerate()
        .map(|(i, _)| if i == 0 { ":--" } else { "--:" }.into())
        .collect();
    let rows = (0..table.rows())
        .map(|row| line(table.columns.iter().map(|c| cell(&c.cells[row])).collect()));
    format!("{}{}{}", line(heads), line(rule), rows.collect::<String>())
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Link(to) => link(to),
        Cell::Bar { share } => "#".repeat((share * BAR).round() as usize),
        other => escaped(other.text().trim()),
    }
}

fn link(link: &Link) -> String {
    let text = escaped(link.text.trim());
    link.address()
        .map_or_else(|| text.clone(), |to| format!("[{text}]({to})"))
}

/// Text that means nothing to Markdown, but for code between two backticks.
fn escaped(text: &str) -> String {
    let text = plain(text);
    let parts: Vec<&str> = text.split('`').collect();
    let code = || parts.iter().skip(1).step_by(2);
    // Inside code nothing is escaped: a bar would end a cell of a table.
    if parts.len().is_multiple_of(2)
        || code().any(|code| code.trim().is_empty() || code.contains('|'))
    {
        return literal(&text);
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => literal(part),
        _ => format!("`{part}`"),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Text without any meaning to Markdown.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
