//! Ethernet addresses.

use crate::WireError;
use crate::order::{DEFAULT_SEED, mixed};
use crate::text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A 48-bit Ethernet address, in the order of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// Whether the group bit is set (IEEE 802-2014 section 8.2): multicast or broadcast.
    pub fn is_multicast(&self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl Serialize for MacAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        text::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for MacAddr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::deserialize(deserializer)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddr {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        let byte = |part: &str| {
            let digits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
            if digits {
                u8::from_str_radix(part, 16).ok()
            } else {
                None
            }
        };
        let bytes: Option<Vec<u8>> = text.split(':').take(7).map(byte).collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(MacAddr).ok_or_else(|| {
            WireError::new(format!(
                "{text:?} is not an Ethernet address; write six pairs of hexadecimal digits, as 02:00:00:00:00:01"
            ))
        })
    }
}

/// The Ethernet sources of a generator's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SourceMacs {
    /// The address of its interface.
    #[default]
    Own,
    /// A random address for each flow (RFC 4814, section 4.2): `(RR & 0xfc):PP:PP:RR:RR:RR`, with random numbers RR and the number PP
    /// of the tester's interface, from 1. The same seed gives the same addresses in each trial.
    Random {
        /// Start of the random numbers.
        seed: u64,
    },
}

impl SourceMacs {
    /// The source address of a flow at one of the tester's interfaces; `None`: the interface's own. generator.bpf.c computes the same.
    pub fn of_flow(self, flow: u64, interface: u8) -> Option<MacAddr> {
        let SourceMacs::Random { seed } = self else {
            return None;
        };
        let [first, a, b, c, ..] = mixed(seed, flow).to_le_bytes();
        Some(MacAddr([first & 0xfc, 0, interface, a, b, c]))
    }
}

impl FromStr for SourceMacs {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        let macs = match text.split_once(':') {
            None if text == "own" => Some(SourceMacs::Own),
            None if text == "random" => Some(SourceMacs::Random { seed: DEFAULT_SEED }),
            Some(("random", seed)) => seed.parse().ok().map(|seed| SourceMacs::Random { seed }),
            _ => None,
        };
        macs.ok_or_else(|| {
            WireError::new(format!(
                "{text:?} does not choose Ethernet source addresses; write own, random or random:SEED"
            ))
        })
    }
}

impl fmt::Display for SourceMacs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceMacs::Own => f.write_str("own"),
            SourceMacs::Random { seed: DEFAULT_SEED } => f.write_str("random"),
            SourceMacs::Random { seed } => write!(f, "random:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn source_addresses_are_those_of_rfc_4814_and_the_same_again() {
        let macs: SourceMacs = "random:7".parse().unwrap();
        assert_eq!(
            (macs.to_string(), macs.of_flow(0, 1)),
            ("random:7".into(), macs.of_flow(0, 1))
        );
        assert_eq!("own".parse::<SourceMacs>().unwrap().of_flow(0, 1), None);
        let all: BTreeSet<MacAddr> = (0..10_000)
            .filter_map(|flow| macs.of_flow(flow, 1))
            .collect();
        assert!(all.len() > 9_990, "{}", all.len());
        for MacAddr([first, high, low, ..]) in &all {
            assert_eq!(
                (first & 3, *high, *low),
                (0, 0, 1),
                "no group, not local, interface 1"
            );
        }
        let mut bits = [0u32; 48];
        for mac in &all {
            let number = mac
                .0
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            (0..48).for_each(|bit| bits[bit] += (number >> bit & 1) as u32);
        }
        for bit in (0..24).chain(42..48) {
            assert!(
                bits[bit].abs_diff(5_000) < 300,
                "bit {bit} is set in {} of 10,000",
                bits[bit]
            );
        }
        assert!("random:x".parse::<SourceMacs>().is_err());
    }

    #[test]
    fn reads_and_writes() {
        let mac: MacAddr = "02:00:5E:00:00:0a".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:00:00:0a");
        assert!(!mac.is_multicast());
        assert!(
            "01:00:5e:00:00:01"
                .parse::<MacAddr>()
                .unwrap()
                .is_multicast()
        );
    }

    #[test]
    fn says_what_is_wrong() {
        for bad in [
            "",
            "1:2:3:4:5:6",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "02-00-00-00-00-00",
            "0g:00:00:00:00:00",
        ] {
            let error = bad.parse::<MacAddr>().unwrap_err().to_string();
            assert!(error.contains("02:00:00:00:00:01"), "{error}");
        }
        assert!("+2:00:00:00:00:00".parse::<MacAddr>().is_err());
    }

    proptest! {
        #[test]
        fn round_trip(bytes: [u8; 6]) {
            prop_assert_eq!(MacAddr(bytes).to_string().parse::<MacAddr>().unwrap(), MacAddr(bytes));
        }

        #[test]
        fn never_panics(text in ".*") {
            let _ = text.parse::<MacAddr>();
        }
    }
}
