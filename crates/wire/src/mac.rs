//! Ethernet addresses.

use crate::WireError;
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
            if digits { u8::from_str_radix(part, 16).ok() } else { None }
        };
        let bytes: Option<Vec<u8>> = text.split(':').take(7).map(byte).collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(MacAddr).ok_or_else(|| {
            WireError::new(format!(
                "{text:?} is not an Ethernet address; write six pairs of hexadecimal digits, as 02:00:00:00:00:01"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_and_writes() {
        let mac: MacAddr = "02:00:5E:00:00:0a".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:00:00:0a");
        assert!(!mac.is_multicast());
        assert!("01:00:5e:00:00:01".parse::<MacAddr>().unwrap().is_multicast());
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
