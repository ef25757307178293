//! The logs of netmap's pkt-gen: its command line, a sample of each interval, its summary, and its failures.
//!
//! Both grammars of its years are read, from receivers and senders, as a file or line by line from a running one:
//!
//! - old: `S.u main_thread [line] N pps (N pkts in N usec)`,
//! - new: `S.u main_thread [line] N pps (N pkts N bps in N usec) F avg_batch N min_space`.
//!
//! Time stamps are modulo 1000 s and are unwrapped. Text between the lines (shells' traces, terminals' escapes, ssh's messages)
//! is counted, and never becomes a number.

mod command;
mod line;
mod log;
pub mod steady;

pub use command::Command;
pub use line::{Line, Sample, SummaryLine, parse};
pub use log::{Clock, Log, Reader, Summary};

#[cfg(test)]
mod tests;
