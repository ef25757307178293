//! Statistics of files of numbers: held against ministat itself, and against what was published.

mod common;

#[path = "statistics/published.rs"]
mod published;
#[path = "statistics/stat.rs"]
mod stat;
