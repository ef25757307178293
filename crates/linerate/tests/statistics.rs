//! Statistics of files of numbers and of campaigns: held against ministat itself, and against what was published.

mod common;

#[path = "statistics/compare.rs"]
mod compare;
#[path = "statistics/published.rs"]
mod published;
#[path = "statistics/stat.rs"]
mod stat;
