//! The error of the header parsers.

use thiserror::Error;

/// Why bytes are not the header they were taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Fewer bytes than the header, or than the header says that follow.
    #[error("{header}: {have} bytes, of at least {need}: the frame is cut short or is something else")]
    Truncated {
        /// The header's name, such as `IPv4 header`.
        header: &'static str,
        /// Bytes that must be there.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// A field has a value that the header's standard does not allow.
    #[error("{header}: {field} is {value}: {why}")]
    Invalid {
        /// The header's name.
        header: &'static str,
        /// The field's name.
        field: &'static str,
        /// The value found.
        value: u32,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Checks that `have >= need`.
pub(crate) fn at_least(header: &'static str, need: usize, have: usize) -> Result<(), HeaderError> {
    if have < need { Err(HeaderError::Truncated { header, need, have }) } else { Ok(()) }
}

/// The big-endian 16-bit word at `at`. The caller has checked the length.
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes a big-endian 16-bit word at `at`. The caller has checked the length.
pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
