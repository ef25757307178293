//! The protocol between linerate and a host of a real lab that has linerate: one JSON object on each line, over any pair of pipes.
//!
//! Pure: bytes and times go in, bytes and things to do come out. [`server`] is the side of the host (`linerate agent`), [`client`]
//! the side that asks; [`message`] is what they say, [`lines`] how it is cut, [`clock`] how two clocks are compared, [`merge`] how
//! counts of several hosts are put together, [`ledger`] where frames were lost between them.
//! docs/agent.md has it in words.

pub mod client;
pub mod clock;
pub mod ledger;
pub mod lines;
pub mod merge;
pub mod message;
pub mod server;
mod silence;
pub mod spec;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// The protocol that this program speaks: the lowest and the highest version.
pub const SPOKEN: Versions = Versions { lowest: 1, highest: 1 };
/// What this agent can do beyond its version of the protocol. Names are only ever added.
pub const FEATURES: [&str; 2] = ["ports", ANSWERS];
/// Receivers answer test frames where a load wants it, and generators count the answers.
pub const ANSWERS: &str = "answers";
/// The longest line, in bytes: what many ports have counted fits, and a flood ends early.
pub const LONGEST: usize = 4 << 20;
/// Each side says that it is there this often, in nanoseconds…
pub const BEAT_NS: u64 = 100_000_000;
/// …and is taken for gone when nothing was heard of it for this long. The load ends then, so that together with what ending takes,
/// nothing is sent a second after a connection broke.
pub const SILENCE_NS: u64 = 800_000_000;
/// How long a side may take to greet, in nanoseconds: connections are made in between, and the user may have to touch a key.
pub const GREET_NS: u64 = 30_000_000_000;

/// A range of versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The lowest that is understood.
    pub lowest: u32,
    /// The highest.
    pub highest: u32,
}

impl Versions {
    /// The highest version that both sides understand.
    pub fn common(self, other: Versions) -> Option<u32> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}
