//! Long pages: as many as their rows need.

use super::names::Names;
use super::words::home;
use crate::prelude::*;

/// Rows of a page: more stand on further pages.
pub const MOST_ROWS: usize = 600;

/// A page that may be long: what stands first, and sections with their rows.
pub struct Paged {
    pub title: String,
    pub first: Document,
    pub sections: Vec<(usize, Document)>,
}

/// Sections on as many pages as they need.
pub fn write_parts<E>(
    file: &str,
    names: &mut Names,
    page: &mut impl FnMut(&str, Document) -> Result<(), E>,
    paged: Paged,
) -> Result<(), E> {
    let Paged {
        title,
        first,
        sections,
    } = paged;
    let mut parts: Vec<(usize, Vec<Document>)> = vec![(0, Vec::new())];
    for (rows, section) in sections {
        if parts
            .last()
            .is_some_and(|(all, _)| *all > 0 && all + rows > MOST_ROWS)
        {
            parts.push((0, Vec::new()));
        }
        if let Some((all, part)) = parts.last_mut() {
            *all += rows;
            part.push(section);
        }
    }
    let (folder, base) = file.rsplit_once('/').unwrap_or(("", file));
    let more = (1..parts.len()).map(|_| names.take(folder, base.trim_end_matches(".html")));
    let files: Vec<String> = std::iter::once(file.to_string()).chain(more).collect();
    let all = parts.len();
    let mut first = Some(first);
    for (at, (_, sections)) in parts.into_iter().enumerate() {
        let part = if all > 1 {
            format!("{title}, part {} of {all}", at + 1)
        } else {
            title.clone()
        };
        let mut document = Document::titled(part);
        document.links(home());
        if all > 1 {
            let local = |file: &String| file.rsplit('/').next().unwrap_or(file).to_string();
            let parts = files
                .iter()
                .enumerate()
                .map(|(n, file)| Link::new(format!("Part {}", n + 1), local(file)));
            document.links(parts.collect());
        }
        first
            .take()
            .into_iter()
            .for_each(|first| document.append(first));
        sections
            .into_iter()
            .for_each(|section| document.append(section));
        page(&files[at], document)?;
    }
    Ok(())
}

/// Rows below a heading, in sections that fit on a page.
pub fn sections<R>(
    heading: &str,
    rows: &[R],
    table: impl Fn(&[R]) -> Table,
) -> Vec<(usize, Document)> {
    let section = |(at, rows): (usize, &[R])| {
        let mut page = Document::default();
        page.heading(if at == 0 {
            heading.to_string()
        } else {
            format!("{heading} (continued)")
        });
        page.table(table(rows));
        (rows.len(), page)
    };
    rows.chunks(MOST_ROWS).enumerate().map(section).collect()
}
