//! Forms of records that other programs read: JUnit XML, TAP, Prometheus text, Parquet, SVG.

mod junit;
mod parquet;
mod picture;
mod prometheus;

pub use junit::{Suite, junit, tap};
pub use parquet::{Archive, Group, Rows, Stored, columns, identity};
pub use picture::{picture, pictures};
pub use prometheus::{Metrics, prometheus};

/// A file without characters that XML 1.0 does not have: names come from files and hosts.
fn xml(file: &str) -> String {
    let known = |c: char| match c {
        '\n' => c,
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => ' ',
        c => c,
    };
    file.chars().map(known).collect()
}
