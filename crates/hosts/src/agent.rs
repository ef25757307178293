//! The protocol between linerate and a host of a real lab that has linerate: one JSON object on each line, over any pair of
//! pipes.
//!
//! Pure: bytes and times go in, bytes and actions come out. [`server`] is the side of the host (`linerate agent`), [`client`] the
//! side that asks; [`message`] has their messages and cuts them, [`merge`] combines counts of several hosts and locates lost
//! frames between them. docs/agent.md describes it in words.

pub mod client;
pub mod connecting;
pub mod merge;
pub mod message;
pub mod server;
#[cfg(test)]
mod tests;

/// The version of the protocol that this program speaks; it counts up with every change. Both sides must speak the same.
pub const SPOKEN: u32 = 9;
/// The longest line, in bytes: counters of many ports fit, and a flood ends early.
pub const LONGEST: usize = 4 << 20;
/// Each side sends a sign of life this often, in nanoseconds…
pub const BEAT_NS: u64 = 100_000_000;
/// …and an agent with a load gives the controller up after this long without a message. The load ends then, so that, together with
/// the time of ending it, nothing is sent a second after a connection broke.
pub const SILENCE_NS: u64 = 800_000_000;
/// A controller waits this long for an agent with a load, in nanoseconds: the agent's load ends without the controller, and a busy
/// machine may give the agent no CPU for a second.
pub const LOADED_SILENCE_NS: u64 = 3_000_000_000;
/// Both wait this long while there is no load, in nanoseconds.
pub const IDLE_SILENCE_NS: u64 = 5_000_000_000;
/// How long a side may take to greet, in nanoseconds: connections are made in between, and the user may have to touch a key.
pub const GREET_NS: u64 = 30_000_000_000;

/// Between two looks at the clock no more than this counts as silence, in nanoseconds.
pub const MOST_BETWEEN_NS: u64 = 100_000_000;

/// The silence of the other side, in time in which this side ran. If a machine stood still, or had no CPU for this process, the
/// other side may have sent messages meanwhile that still wait to be read.
#[derive(Debug, Clone, Copy)]
pub struct Silence {
    looked_ns: u64,
    silent_ns: u64,
}

impl Silence {
    /// Something was heard at this time.
    pub fn since(now_ns: u64) -> Silence {
        Silence {
            looked_ns: now_ns,
            silent_ns: 0,
        }
    }

    /// How long nothing was heard, in nanoseconds. To be called every few milliseconds.
    pub fn look(&mut self, now_ns: u64) -> u64 {
        self.silent_ns += now_ns.saturating_sub(self.looked_ns).min(MOST_BETWEEN_NS);
        self.looked_ns = now_ns;
        self.silent_ns
    }
}

#[cfg(test)]
mod silence_tests {
    use super::*;
    use crate::agent::SILENCE_NS;

    #[test]
    fn a_machine_that_stood_still_is_not_the_other_side_s_silence() {
        let mut silence = Silence::since(5);
        assert_eq!(silence.look(20_000_005), 20_000_000);
        assert_eq!(silence.look(60_000_000_000), 20_000_000 + MOST_BETWEEN_NS);
        assert_eq!(
            silence.look(59_000_000_000),
            20_000_000 + MOST_BETWEEN_NS,
            "a clock that goes back"
        );
    }

    #[test]
    fn a_side_that_says_nothing_is_silent_as_long_as_it_says_nothing() {
        let mut silence = Silence::since(0);
        let looks = (1..)
            .map(|n| n * 20_000_000)
            .take_while(|now| silence.look(*now) <= SILENCE_NS);
        assert_eq!(looks.count() as u64, SILENCE_NS / 20_000_000);
    }
}
