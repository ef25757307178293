//! The Internet checksum (RFC 1071) in parts: partial sums that can be added, folded, finished and updated.
//!
//! A partial sum is a `u32` that stands for a one's complement sum of big-endian 16-bit words; all sums that
//! are equal modulo 65,535 stand for the same, except that 0 comes from zeros only. Sums do not depend on the
//! byte order in which they are made: the folded sum of the same bytes read as little-endian words is the
//! byte-swapped one (RFC 1071 section 2 (B)).

/// One's complement sum of big-endian 16-bit words; an odd last byte is padded with zero. Any length is
/// right: carries are brought around.
#[inline]
pub fn partial(bytes: &[u8]) -> u32 {
    let mut sum = 0u64;
    let mut chunks = bytes.chunks_exact(4);
    // A 32-bit word weighs as much as its two halves, because 2^16 = 1 (mod 65,535).
    for chunk in &mut chunks {
        sum += u64::from(u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let mut last = [0; 4];
    let rest = chunks.remainder();
    last[..rest.len()].copy_from_slice(rest);
    shorten(sum + u64::from(u32::from_be_bytes(last)))
}

/// Brings the carries of a 64-bit sum around into 32 bits.
#[inline]
pub fn shorten(sum: u64) -> u32 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    ((sum & 0xffff_ffff) + (sum >> 32)) as u32
}

/// Adds two partial sums, with the carry brought around.
#[inline]
pub fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u32::from(carry)
}

/// Folds a partial sum into 16 bits.
#[inline]
pub fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The checksum field for a partial sum over everything else: the complement of the folded sum.
#[inline]
pub fn finish(sum: u32) -> u16 {
    !fold(sum)
}

/// The checksum after one 16-bit word went from `old` to `new` (RFC 1624 section 3, equation 3).
///
/// The result is that of computing it anew, unless all the data have become zero, which no packet header is.
#[inline]
pub fn update(check: u16, old: u16, new: u16) -> u16 {
    finish(u32::from(!check) + u32::from(!old) + u32::from(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn rfc1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(partial(&bytes)), 0xddf2);
        assert_eq!(finish(partial(&bytes)), 0x220d);
    }

    #[test]
    fn rfc1624_example() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn full_of_ones_for_64_kib() {
        assert_eq!(fold(partial(&vec![0xff; 65_536])), 0xffff);
        assert_eq!(fold(partial(&[])), 0);
        assert_eq!(fold(u32::MAX), 0xffff);
        assert_eq!(add(u32::MAX, u32::MAX), u32::MAX);
        assert_eq!(shorten(u64::MAX), u32::MAX);
    }

    proptest! {
        #[test]
        fn like_the_naive_sum(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(fold(partial(&bytes)), naive(&bytes));
        }

        #[test]
        fn incremental_is_full(mut bytes in prop::collection::vec(any::<u8>(), 2..100), at in any::<prop::sample::Index>(), new: u16) {
            if bytes.len() % 2 == 1 {
                bytes.push(0);
            }
            // The last word stays as it is and is not zero, as in every header.
            bytes.extend([0x45, 0]);
            let before = finish(partial(&bytes));
            let at = at.index(bytes.len() / 2 - 1) * 2;
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update(before, old, new), finish(partial(&bytes)));
        }

        #[test]
        fn parts_add_up(a in prop::collection::vec(any::<u8>(), 0..100), b in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut a = a;
            if a.len() % 2 == 1 {
                a.push(0);
            }
            let parts = add(partial(&a), partial(&b));
            a.extend(&b);
            prop_assert_eq!(fold(parts), fold(partial(&a)));
        }
    }
}
