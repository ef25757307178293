//! Forms of records that other programs read: JUnit XML, Prometheus text.

mod junit;
mod prometheus;

pub use junit::{Suite, junit};
pub use prometheus::{Metrics, prometheus};
