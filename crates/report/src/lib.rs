//! Turns records into documents, which are lists of blocks. A format draws them. Pure, no I/O.
#![forbid(unsafe_code)]

pub mod chart;
pub mod document;
pub mod export;
mod figures;
pub mod format;
pub mod pages;
mod prelude;
pub mod printed;
pub mod tables;
pub mod watch;
