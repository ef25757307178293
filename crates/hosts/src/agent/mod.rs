//! The protocol between linerate and a host of a real lab that has linerate: one JSON object on each line, over any pair of
//! pipes.
//!
//! Pure: bytes and times go in, bytes and actions come out. [`server`] is the side of the host (`linerate agent`), [`client`] the
//! side that asks; [`message`] has their messages and cuts them, [`merge`] combines counts of several hosts and locates lost
//! frames between them. docs/agent.md describes it in words.

pub mod client;
pub mod merge;
pub mod message;
pub mod server;
mod silence;
pub mod spec;

#[cfg(test)]
mod tests;

/// The version of the protocol that this program speaks; it counts up with every change. Both sides must speak the same.
pub const SPOKEN: u32 = 2;
/// The longest line, in bytes: counters of many ports fit, and a flood ends early.
pub const LONGEST: usize = 4 << 20;
/// Each side sends a sign of life this often, in nanoseconds…
pub const BEAT_NS: u64 = 100_000_000;
/// …and is taken for gone after this long without a message. The load ends then, so that, together with the time of ending it,
/// nothing is sent a second after a connection broke.
pub const SILENCE_NS: u64 = 800_000_000;
/// How long a side may take to greet, in nanoseconds: connections are made in between, and the user may have to touch a key.
pub const GREET_NS: u64 = 30_000_000_000;
