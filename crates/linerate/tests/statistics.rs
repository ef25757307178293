//! Statistics of files of numbers and of campaigns, against ministat itself and against published figures.

mod common;

#[path = "statistics/compare.rs"]
mod compare;
#[path = "statistics/published.rs"]
mod published;
#[path = "statistics/stat.rs"]
mod stat;
