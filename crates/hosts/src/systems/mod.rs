//! Facts of a lab's hosts from their own commands: questions, and parsers of the answers.
//!
//! A [`Question`] has a command for each kernel, a vector of arguments; [`Facts::answer`] takes its output. Hosts are not
//! trusted: any bytes may come, parsers return the parts that they recognise and ignore the rest, and no more than [`MOST_BYTES`]
//! of an answer and [`MOST_ENTRIES`] of its entries are read. [`preflight`](crate::preflight) compares the facts with the lab
//! file.

pub mod counters;
mod detect;
mod facts;
mod ifconfig;
mod interface;
mod linux;
mod neighbours;
pub mod ping;
pub mod question;
mod small;
mod text;
mod way;

pub use counters::Counters;
pub use detect::{Kernel, System};
pub use facts::{Clock, Facts, Silence, Unanswered, Unreachable};
pub use interface::{Interface, Pause};
pub use neighbours::Neighbour;
pub use question::Question;
pub use small::Disk;
pub use way::Way;

/// Bytes of an answer that are looked at.
pub const MOST_BYTES: usize = 4 << 20;
/// Interfaces and neighbours that are kept of an answer.
pub const MOST_ENTRIES: usize = 20_000;

#[cfg(test)]
mod tests;
