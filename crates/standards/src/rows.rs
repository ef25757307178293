//! The rows: each requirement with its check.

mod back_to_back;
pub mod connections;
mod delay_variation;
mod forwarding_rate;
mod frame_loss;
mod frames;
mod latency;
mod recovery;
mod reset;
mod searches;
mod set_up;
mod throughput;

use crate::case::{Case, Outcome};
use crate::{Level, Part, Row, Section};

const SECTIONS: [&[Section]; 11] = [
    set_up::SECTIONS,
    frames::SECTIONS,
    searches::SECTIONS,
    throughput::SECTIONS,
    latency::SECTIONS,
    frame_loss::SECTIONS,
    back_to_back::SECTIONS,
    recovery::SECTIONS,
    reset::SECTIONS,
    delay_variation::SECTIONS,
    forwarding_rate::SECTIONS,
];

/// All rows, in the order of the documents.
pub fn all() -> impl Iterator<Item = Row> {
    let of_section = |(part, rows): &Section| {
        let part = *part;
        rows.iter().map(move |row| Row { part, ..*row })
    };
    let mut all: Vec<Row> = SECTIONS
        .into_iter()
        .flatten()
        .flat_map(of_section)
        .collect();
    // By document as they first appear; within one, by section.
    all.sort_by_key(|row| {
        let documents = [
            "2544", "6201", "6815", "9004", "9971", "8219", "4814", "5180", "2889",
        ];
        let section = row.id.split_once('-').map_or("", |(_, section)| section);
        let digits = |part: &str| {
            part.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        };
        let numbers: Vec<u32> = section
            .split('.')
            .map(|part| digits(part).parse().unwrap_or(0))
            .collect();
        (
            documents
                .iter()
                .position(|document| *document == row.document()),
            numbers,
            section,
        )
    });
    all.into_iter()
}

type Check = fn(&Case<'_>) -> Outcome;

const fn must(id: &'static str, asks: &'static str, check: Check) -> Row {
    Row {
        id,
        level: Level::Must,
        part: Part::All,
        asks,
        check,
    }
}

const fn should(id: &'static str, asks: &'static str, check: Check) -> Row {
    Row {
        level: Level::Should,
        ..must(id, asks, check)
    }
}

/// A step of a procedure.
const fn step(id: &'static str, asks: &'static str, check: Check) -> Row {
    Row {
        level: Level::Procedure,
        ..must(id, asks, check)
    }
}

/// The figures of a test, each with its slot's.
macro_rules! figures {
    ($name:ident, $kind:ident) => {
        figures!($name, $kind, linerate_measure::record::$kind);
    };
    ($name:ident, $kind:ident, $type:ty) => {
        fn $name<'c>(
            case: &crate::case::Case<'c>,
        ) -> impl Iterator<Item = (&'c linerate_measure::record::Benchmarked, &'c $type)> {
            case.tested($kind)
                .filter_map(|(of, tested)| match &tested.figures {
                    linerate_measure::record::Figures::$kind(figure) => Some((of, figure)),
                    _ => None,
                })
        }
    };
}
use figures;

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * b.abs().max(f64::MIN_POSITIVE)
}

fn few(runs: usize, wanted: usize) -> Option<String> {
    (runs < wanted).then(|| format!("{runs} of {wanted}"))
}
