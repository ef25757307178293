//! The bytes of a capture file, counted, and the records in them.

use crate::{Result, WireError};
use std::fmt::Display;
use std::io::{self, Read};

/// The longest record taken, in bytes, as in libpcap (MAXIMUM_SNAPLEN); longer ones mean a broken file.
pub const MAX_RECORD: u32 = 262_144;

pub(super) fn cannot(offset: u64, error: &io::Error) -> WireError {
    WireError::new(format!(
        "cannot read or write the capture at byte {offset}: {error}"
    ))
}

/// The file ends in the middle of something.
fn truncated(offset: u64, what: &str) -> WireError {
    WireError::new(format!(
        "the capture is cut short: byte {offset} is the end, within {what}; all records before it are good"
    ))
}

/// A field that cannot be, of the record or block that starts at `offset`.
pub(crate) fn malformed(offset: u64, what: &str, value: impl Display) -> WireError {
    WireError::new(format!(
        "the capture is damaged at byte {offset}: {what} is {value}; it cannot be read beyond"
    ))
}

/// One captured frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since 1970-01-01 UTC; 0 where the file has no time (pcapng Simple Packet).
    pub ts_ns: u64,
    /// Length of the frame on the wire in bytes; `data` may be less.
    pub orig_len: u32,
    /// The captured part of the frame, without FCS as a rule.
    pub data: Vec<u8>,
    /// Type of the first header in `data`, as a LINKTYPE number; [`LINKTYPE_ETHERNET`](super::LINKTYPE_ETHERNET) mostly.
    pub link_type: u32,
}

/// Reads and counts.
#[derive(Debug)]
pub(crate) struct Input<R: Read> {
    pub read: R,
    pub offset: u64,
    pub order: ByteOrder,
}

impl<R: Read> Input<R> {
    /// Fills `bytes`; true if the file ends before the first.
    pub fn fill_or_end(&mut self, bytes: &mut [u8], what: &'static str) -> Result<bool> {
        let mut have = 0;
        while have < bytes.len() {
            match self.read.read(&mut bytes[have..]) {
                Ok(0) if have == 0 => return Ok(true),
                Ok(0) => return Err(truncated(self.offset, what)),
                Ok(n) => {
                    have += n;
                    self.offset += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cannot(self.offset, &error)),
            }
        }
        Ok(false)
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        if self.fill_or_end(&mut bytes, what)? {
            return Err(truncated(self.offset, what));
        }
        Ok(bytes)
    }

    /// `len` bytes; memory grows with the bytes that really exist.
    pub fn bytes(&mut self, len: u32, what: &'static str) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        let result = self.read.by_ref().take(len.into()).read_to_end(&mut data);
        self.offset += data.len() as u64;
        match result {
            Err(error) => Err(cannot(self.offset, &error)),
            Ok(have) if have < len as usize => Err(truncated(self.offset, what)),
            Ok(_) => Ok(data),
        }
    }
}

/// The byte order of a file or section. Callers know that the bytes are long enough for the number at their start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ByteOrder {
    pub big_endian: bool,
}

impl ByteOrder {
    pub fn number16(self, bytes: &[u8]) -> u16 {
        let bytes = [bytes[0], bytes[1]];
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    pub fn number32(self, bytes: &[u8]) -> u32 {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self.big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }
}
