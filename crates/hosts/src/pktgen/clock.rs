//! pkt-gen's time stamps: they are modulo 1000 s.

const WRAP_US: u64 = 1_000_000_000;

/// Unwraps the stamps of one log.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// Time of the last stamp, unwrapped, in microseconds.
    last_us: Option<u64>,
}

impl Clock {
    /// The time nearest to the last one that has this stamp: messages of several threads overtake each other by a little.
    pub fn unwrapped(&mut self, stamp: u64) -> u64 {
        let time = match self.last_us {
            None => stamp,
            Some(last) => {
                let base = last - last % WRAP_US;
                let before = last % WRAP_US;
                if stamp + WRAP_US / 2 < before {
                    base.saturating_add(WRAP_US).saturating_add(stamp)
                } else if stamp > before + WRAP_US / 2 && base >= WRAP_US {
                    base - WRAP_US + stamp
                } else {
                    base.saturating_add(stamp)
                }
            }
        };
        self.last_us = Some(time);
        time
    }
}
