//! The 18 bytes that mark and identify a test frame.
//!
//! The signature stands at the first byte of the UDP, TCP or ICMP payload, all fields big-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | magic, `LNR1` |
//! | 4-5 | stream |
//! | 6-11 | sequence number in the stream |
//! | 12-17 | time of sending |
//!
//! Why 18: an IPv4/UDP frame of 64 bytes with FCS, the smallest possible, has 64 - 14 - 20 - 8 - 4 = 18 bytes of payload. Headers
//! have even lengths, so the 16-bit words of the fields are words of the transport checksum as well.

/// Length of a signature in bytes.
pub const SIGNATURE_LEN: usize = 18;

/// The first four bytes of every signature.
pub const MAGIC: [u8; 4] = *b"LNR1";

/// The largest value of the 48-bit fields.
pub const MAX_48: u64 = (1 << 48) - 1;

/// The signature in the payload of a test frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signature {
    /// Who sent it: sequence numbers count within a stream.
    pub stream: u16,
    /// Position in the stream, from 0; the low 48 bits are sent (at 148.8 Mpps they last for 21 days).
    pub sequence: u64,
    /// The low 48 bits of CLOCK_MONOTONIC in nanoseconds when it was sent (they wrap after 3.26 days); 0: not
    /// stamped.
    pub time_ns: u64,
}

impl Signature {
    /// The bytes on the wire. Higher bits than the low 48 of `sequence` and `time_ns` are dropped.
    #[inline]
    pub fn encode(&self) -> [u8; SIGNATURE_LEN] {
        let mut bytes = [0; SIGNATURE_LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.stream.to_be_bytes());
        bytes[6..12].copy_from_slice(&self.sequence.to_be_bytes()[2..]);
        bytes[12..].copy_from_slice(&self.time_ns.to_be_bytes()[2..]);
        bytes
    }

    /// Reads a signature at the start of `bytes`; `None` if there are fewer than 18 or the magic is not
    /// there.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Signature> {
        let bytes: &[u8; SIGNATURE_LEN] = bytes.first_chunk()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        let [_, _, _, _, s0, s1, a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        Some(Signature {
            stream: u16::from_be_bytes([s0, s1]),
            sequence: u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
            time_ns: u64::from_be_bytes([0, 0, g, h, i, j, k, l]),
        })
    }

    /// Nanoseconds from the stamp to `now_ns` (CLOCK_MONOTONIC of the machine that stamps), right across a wrap of the 48 bits; 0 for
    /// a stamp that is later; `None` if the frame is not stamped.
    pub fn age_ns(&self, now_ns: u64) -> Option<u64> {
        let age = now_ns.wrapping_sub(self.time_ns) & MAX_48;
        (self.time_ns != 0).then_some(if age > MAX_48 / 2 { 0 } else { age })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layout() {
        let bytes = Signature {
            stream: 0x0102,
            sequence: 0x0304_0506_0708,
            time_ns: 0x1112_1314_1516,
        }
        .encode();
        assert_eq!(
            bytes,
            *b"LNR1\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14\x15\x16"
        );
    }

    #[test]
    fn age_across_a_wrap() {
        let signature = Signature {
            time_ns: MAX_48,
            ..Default::default()
        };
        assert_eq!(signature.age_ns(1 << 48 | 9), Some(10));
        assert_eq!(
            Signature {
                time_ns: 5,
                ..signature
            }
            .age_ns(3),
            Some(0),
            "later"
        );
        assert_eq!(Signature::default().age_ns(5), None);
    }

    proptest! {
        #[test]
        fn round_trip(stream: u16, sequence in 0..=MAX_48, time_ns in 0..=MAX_48) {
            let signature = Signature { stream, sequence, time_ns };
            prop_assert_eq!(Signature::decode(&signature.encode()), Some(signature));
            prop_assert_eq!(Signature::decode(&signature.encode()[..17]), None);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Signature::decode(&bytes);
        }
    }
}
