//! One table of a page, by its name: for programs that read a single header.

use crate::prelude::*;

/// The name of a table before the first heading, and of the first table where none is there.
const FIRST: &str = "cells";

/// The tables of a page with their names: their headings, numbered from the second one below a heading on.
pub fn named(page: &Document) -> Vec<(String, &Table)> {
    let mut found: Vec<(String, &Table)> = Vec::new();
    let (mut heading, mut below) = (FIRST, 0);
    for block in page.flat() {
        match block {
            Block::Heading { text } | Block::Part { title: text, .. } => {
                (heading, below) = (text, 0);
            }
            Block::Table(table) => {
                below += 1;
                let number = when(below > 1, format!(" {below}"));
                found.push((format!("{heading}{number}"), table));
            }
            _ => {}
        }
    }
    found
}

/// A page of one table, by the beginning of its name.
///
/// # Errors
/// No table has this name: the names that there are.
pub fn only(page: &Document, name: &str) -> Result<Document, String> {
    let tables = named(page);
    let wanted = name.to_lowercase();
    let is = |of: &str| of.to_lowercase() == wanted;
    let begins = |of: &str| of.to_lowercase().starts_with(&wanted);
    let found = tables
        .iter()
        .find(|(of, _)| is(of))
        .or_else(|| tables.iter().find(|(of, _)| begins(of)))
        .or_else(|| tables.first().filter(|_| wanted == FIRST));
    let (heading, table) = found.ok_or_else(|| {
        let names = tables.iter().map(|(of, _)| format!("'{of}'")).joined(", ");
        format!("there is no table '{name}': this page has {names}")
    })?;
    Ok(alone(heading, table))
}

/// A page of a table.
pub fn alone(heading: &str, table: &Table) -> Document {
    let mut page = Document::default();
    page.heading(heading);
    page.table(table.clone());
    page
}

/// The sentences of a page beside its tables.
pub fn said(page: &Document) -> Document {
    let mut said = Document::default();
    for block in page.flat() {
        match block {
            Block::Table(_) => {}
            Block::Part { title, .. } => said.heading(title),
            other => said.blocks.push(other.clone()),
        }
    }
    said
}

/// The name of a table as that of a file: lower-case letters and digits, with dashes between.
pub fn slug(name: &str) -> String {
    let letters = name.to_ascii_lowercase();
    let words = letters.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FORMATS, Style};

    fn page() -> Document {
        let mut page = Document::default();
        let table = |n: usize| Table::of([n]).column("n", "", |n| *n);
        page.say("an answer");
        page.table(table(1));
        page.heading("Latency");
        page.table(table(2));
        page.note("of all");
        page.table(table(3));
        page
    }

    #[test]
    fn a_program_gets_one_table_with_one_header() {
        let drawn = |name: &str, format: &str| {
            let format = FORMATS.iter().find(|f| f.name() == format).unwrap();
            let style = Style {
                color: false,
                width: 80,
            };
            let text = format.render(&only(&page(), name).unwrap(), style);
            text.replace('\r', "")
        };
        assert_eq!(drawn("cells", "csv"), "section,n\ncells,1\n");
        assert_eq!(drawn("latency 2", "csv"), "section,n\nLatency 2,3\n");
        assert_eq!(
            drawn("lat", "markdown"),
            "## Latency\n\n| n |\n| :-- |\n| 2 |\n"
        );
        assert_eq!(
            only(&page(), "loss").unwrap_err(),
            "there is no table 'loss': this page has 'cells', 'Latency', 'Latency 2'"
        );
    }
}
