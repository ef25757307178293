//! Statistics from the command line.

mod common;

#[path = "statistics/compare.rs"]
mod compare;
