//! How long the other side has been silent.

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
        Silence { looked_ns: now_ns, silent_ns: 0 }
    }

    /// How long nothing was heard, in nanoseconds. To be called every few milliseconds.
    pub fn look(&mut self, now_ns: u64) -> u64 {
        self.silent_ns += now_ns.saturating_sub(self.looked_ns).min(MOST_BETWEEN_NS);
        self.looked_ns = now_ns;
        self.silent_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::SILENCE_NS;

    #[test]
    fn a_machine_that_stood_still_is_not_the_other_side_s_silence() {
        let mut silence = Silence::since(5);
        assert_eq!(silence.look(20_000_005), 20_000_000);
        assert_eq!(silence.look(60_000_000_000), 20_000_000 + MOST_BETWEEN_NS);
        assert_eq!(silence.look(59_000_000_000), 20_000_000 + MOST_BETWEEN_NS, "a clock that goes back");
    }

    #[test]
    fn a_side_that_says_nothing_is_silent_as_long_as_it_says_nothing() {
        let mut silence = Silence::since(0);
        let looks = (1..).map(|n| n * 20_000_000).take_while(|now| silence.look(*now) <= SILENCE_NS);
        assert_eq!(looks.count() as u64, SILENCE_NS / 20_000_000);
    }
}
