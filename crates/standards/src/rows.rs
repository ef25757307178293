//! The rows: what each document asks, and how the records answer.

mod benchmarks;
mod frames;
mod searches;
mod set_up;

use crate::case::{Case, Outcome};
use crate::{Level, Part, Row};

/// All rows, in the order of the documents.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let mut all: Vec<&Row> = [set_up::ROWS, frames::ROWS, benchmarks::ROWS, searches::ROWS].concat();
    // By document as they first appear; within one, by section.
    let place = |row: &Row| {
        let documents = ["2544", "6201", "6815", "9004", "9971", "8219", "4814", "5180", "2889"];
        let section = row.id.split_once('-').map_or("", |(_, section)| section);
        let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
        let numbers: Vec<u32> = section.split('.').map(|part| digits(part).parse().unwrap_or(0)).collect();
        (documents.iter().position(|document| *document == row.document()), numbers, section)
    };
    all.sort_by_key(|row| place(row));
    all.into_iter()
}

const fn row(
    id: &'static str,
    level: Level,
    part: Part,
    asks: &'static str,
    check: fn(&Case<'_>) -> Outcome,
) -> Row {
    Row { id, level, part, asks, check }
}
