//! Facts of a lab's hosts from their own commands: questions, and parsers of the answers.
//!
//! A [`Question`] has a command for each kernel, a vector of arguments; [`Facts::answer`] takes its output. Hosts are not
//! trusted: any bytes may come, parsers return the parts that they recognise and ignore the rest, and no more than [`MOST_BYTES`]
//! of an answer and [`MOST_ENTRIES`] of its entries are read. [`preflight`](crate::preflight) compares the facts with the lab
//! file.

mod answers;
pub(crate) mod bsd;
mod detect;
mod facts;
pub(crate) mod linux;
pub mod ping;
pub mod procnet;
pub mod question;
pub(crate) mod text;

pub use bsd::device;
pub(crate) use detect::{ALL, BSD, FREEBSD, LINUX, OPENBSD, OPNSENSE, appliance};
pub use detect::{FILES, Kernel, System, detect};
pub use facts::{
    Clock, Disk, Facts, Interface, Neighbour, Pause, Silence, Unanswered, Unreachable, Way,
};
pub use linux::Signs;
pub(crate) use question::NESTED;
pub use question::Question;
pub(crate) use text::is_name;
pub use text::shown;
pub use text::{MOST_BYTES, MOST_ENTRIES, cpu_list};

#[cfg(test)]
mod tests;
