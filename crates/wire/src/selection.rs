//! The choice of a flow's addresses or ports by its number.

use crate::order::{DEFAULT_SEED, mixed};
use crate::{Result, WireError};
use std::fmt;
use std::str::FromStr;

/// Random source ports and random destination ports (RFC 4814, section 4.5): the lowest port, and the number of ports.
const RANDOM_PORTS: [(u16, u32); 2] = [(1024, 64_512), (1, 49_151)];

/// How flows choose addresses or ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Selection {
    /// One after the other, through the ranges.
    #[default]
    Counted,
    /// Pseudorandom and uniform; the same seed gives the same choice in each trial.
    Random {
        /// Start of the random numbers.
        seed: u64,
    },
}

impl Selection {
    /// Source and destination port of flow number `i`, uniform among those of RFC 4814, section 4.5: 1024 to 65535, and 1 to 49151.
    pub(crate) fn ports(self, i: u64) -> Option<[u16; 2]> {
        let Selection::Random { seed } = self else {
            return None;
        };
        let random = mixed(seed, i);
        let draw = |half: u32, (first, count): (u16, u32)| {
            first + ((u64::from(half) * u64::from(count)) >> 32) as u16
        };
        Some([
            draw((random >> 32) as u32, RANDOM_PORTS[0]),
            draw(random as u32, RANDOM_PORTS[1]),
        ])
    }
}

impl FromStr for Selection {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self> {
        let selection = match text.split_once(':') {
            None if text == "counted" => Some(Selection::Counted),
            None if text == "random" => Some(Selection::Random { seed: DEFAULT_SEED }),
            Some(("random", seed)) => seed.parse().ok().map(|seed| Selection::Random { seed }),
            _ => None,
        };
        selection.ok_or_else(|| {
            WireError::new(format!(
                "{text:?} does not choose ports or addresses; write counted, random or random:SEED"
            ))
        })
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::Counted => f.write_str("counted"),
            Selection::Random { seed: DEFAULT_SEED } => f.write_str("random"),
            Selection::Random { seed } => write!(f, "random:{seed}"),
        }
    }
}
