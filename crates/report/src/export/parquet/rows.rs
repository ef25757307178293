//! The kinds of rows and their columns.

use crate::figures::{CAMPAIGN, CELL, COMMON, FACT, Figure, TRIAL, Unit};
use ::parquet::basic::Type as Physical;

/// Rows that are held until they are written as a group.
pub(super) const GROUP: usize = 1 << 14;
/// The name of the lab among the file's metadata.
pub(super) const LAB: &str = "linerate.lab";

/// The rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rows {
    Facts,
    Cells,
    Trials,
}

impl Rows {
    /// Each kind with its name.
    pub const ALL: [(Rows, &'static str); 3] = [
        (Rows::Facts, "facts"),
        (Rows::Cells, "cells"),
        (Rows::Trials, "trials"),
    ];

    pub fn name(self) -> &'static str {
        Rows::ALL[self as usize].1
    }

    pub fn named(name: &str) -> Option<Rows> {
        let (rows, _) = Rows::ALL.into_iter().find(|(_, of)| *of == name)?;
        Some(rows)
    }
}

/// The columns that such rows have.
pub(super) fn figures(rows: Rows) -> impl Iterator<Item = &'static Figure> {
    let own: [&[Figure]; 2] = match rows {
        Rows::Facts => [&FACT, &[]],
        Rows::Cells => [&COMMON, &CELL],
        Rows::Trials => [&COMMON, &TRIAL],
    };
    CAMPAIGN.iter().chain(own.into_iter().flatten())
}

pub(super) fn physical(unit: Unit) -> Physical {
    match unit {
        Unit::Text => Physical::BYTE_ARRAY,
        Unit::Flag => Physical::BOOLEAN,
        Unit::Time | Unit::Count | Unit::Cell | Unit::Nanoseconds => Physical::INT64,
        Unit::FramesPerSecond | Unit::BitsPerSecond | Unit::Plain => Physical::DOUBLE,
    }
}
