//! Forms of records that other programs read: JUnit XML, Prometheus text, Parquet, SVG.

mod junit;
mod parquet;
mod picture;
mod prometheus;

pub use junit::{Suite, junit};
pub use parquet::{Archive, Rows, columns};
pub use picture::{charts, picture};
pub use prometheus::{Metrics, prometheus};
