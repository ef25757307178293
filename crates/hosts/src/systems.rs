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
pub use detect::{FILES, Kernel, System, detect};
pub use facts::{
    Clock, Disk, Facts, Interface, Neighbour, Pause, Silence, Unanswered, Unreachable, Way,
};
pub use linux::Signs;
pub use question::Question;
pub use text::cpu_list;
pub(crate) use text::is_name;
pub use text::shown;

/// Every kernel that is known here, and some.
pub(crate) const ALL: &[Kernel] = &[
    Kernel::Linux,
    Kernel::FreeBsd,
    Kernel::OpenBsd,
    Kernel::NetBsd,
];
pub(crate) const LINUX: &[Kernel] = &[Kernel::Linux];
pub(crate) const FREEBSD: &[Kernel] = &[Kernel::FreeBsd];
pub(crate) const OPENBSD: &[Kernel] = &[Kernel::OpenBsd, Kernel::NetBsd];
pub(crate) const BSD: &[Kernel] = &[Kernel::FreeBsd, Kernel::OpenBsd, Kernel::NetBsd];

/// Counters of an interface: see [`Facts::counters`].
const COUNTERS: [&str; 4] = ["rx_packets", "rx_missed", "tx_packets", "tx_dropped"];

/// The name of the jail or network namespace of a nested router, which `crate::dut_changes` makes.
pub(crate) const NESTED: &str = "linerate";
/// Bytes of an answer that are looked at.
pub const MOST_BYTES: usize = 4 << 20;
/// Interfaces and neighbours that are kept of an answer.
pub const MOST_ENTRIES: usize = 20_000;

#[cfg(test)]
mod tests;
