//! For tests: texts in which bytes were overwritten, removed and doubled.

use proptest::prelude::*;

/// Position, kind of edit, and byte.
type Edits = Vec<(prop::sample::Index, u8, u8)>;

/// Bytes that mean something to TOML.
pub const OF_TOML: &[u8] = b"\"[]{}=.,-_#\n 0159";

/// At most this number of edits.
pub fn edits(most: usize) -> impl Strategy<Value = Edits> {
    prop::collection::vec(
        (any::<prop::sample::Index>(), 0u8..4, any::<u8>()),
        0..=most,
    )
}

/// A text after these edits. A part of them writes a byte of `meaningful`.
pub fn mutated(text: &str, edits: Edits, meaningful: &[u8]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (place, kind, byte) in edits {
        if bytes.is_empty() {
            break;
        }
        let at = place.index(bytes.len());
        match kind {
            0 => bytes[at] = byte,
            1 => bytes[at] = meaningful[usize::from(byte) % meaningful.len()],
            2 => drop(bytes.remove(at)),
            _ => {
                let copy = bytes[at..(at + usize::from(byte)).min(bytes.len())].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}
