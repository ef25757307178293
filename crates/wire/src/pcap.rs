//! Capture files: classic pcap and pcapng are read, classic pcap with nanoseconds is written.
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Hostile input is safe: lengths are bounded
//! before memory is taken, and errors name the place.

pub(crate) mod input;

pub use input::{MAX_RECORD, Record};

use crate::pcapng::Blocks;
use crate::{Result, WireError};
use input::{ByteOrder, Input, cannot, malformed};
use std::io::{Read, Write};

/// LINKTYPE_ETHERNET: frames start with their Ethernet header.
pub const LINKTYPE_ETHERNET: u32 = 1;

/// Reads a capture, record by record. It ends after the first error.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: Input<R>,
    format: Format,
    done: bool,
}

#[derive(Debug)]
enum Format {
    Classic { ns_per_tick: u64, link_type: u32 },
    Blocks(Blocks),
}

impl<R: Read> Reader<R> {
    /// Reads the file header; the first bytes decide the format. Unbuffered: wrap files in `BufReader`.
    ///
    /// # Errors
    /// The data are no capture, or are cut short within the header.
    pub fn new(read: R) -> Result<Self> {
        let mut input = Input {
            read,
            offset: 0,
            order: ByteOrder::default(),
        };
        let magic: [u8; 4] = input.array("the file header")?;
        let (big_endian, ns_per_tick) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                let format = Format::Blocks(Blocks::new(&mut input)?);
                return Ok(Reader {
                    input,
                    format,
                    done: false,
                });
            }
            other => {
                return Err(WireError::new(format!(
                    "not a capture file: it starts with {other:02x?}; pcap and pcapng are read, uncompressed"
                )));
            }
        };
        input.order = ByteOrder { big_endian };
        let header: [u8; 20] = input.array("the file header")?;
        let version = input.order.number16(&header);
        if version != 2 {
            return Err(malformed(4, "the major version", version));
        }
        // The high bits of the link type's field show an FCS.
        let link_type = input.order.number32(&header[16..]) & 0xffff;
        Ok(Reader {
            input,
            format: Format::Classic {
                ns_per_tick,
                link_type,
            },
            done: false,
        })
    }

    fn read_record(&mut self) -> Result<Option<Record>> {
        let input = &mut self.input;
        let (ns_per_tick, link_type) = match &mut self.format {
            Format::Classic {
                ns_per_tick,
                link_type,
            } => (*ns_per_tick, *link_type),
            Format::Blocks(blocks) => return blocks.next_record(input),
        };
        let offset = input.offset;
        let mut bytes = [0; 16];
        if input.fill_or_end(&mut bytes, "a record header")? {
            return Ok(None);
        }
        let [seconds, ticks, captured, orig_len] =
            [0, 4, 8, 12].map(|at| input.order.number32(&bytes[at..]));
        if captured > MAX_RECORD {
            return Err(malformed(offset, "the captured length", captured));
        }
        let data = input.bytes(captured, "a record")?;
        let ts_ns = u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * ns_per_tick;
        Ok(Some(Record {
            ts_ns,
            orig_len,
            data,
            link_type,
        }))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let record = self.read_record().transpose();
        self.done = !matches!(record, Some(Ok(_)));
        record
    }
}

/// Writes a classic little-endian pcap with nanoseconds and Ethernet frames.
#[derive(Debug)]
pub struct Writer<W: Write> {
    write: W,
    offset: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the file header. Unbuffered: wrap files in `BufWriter`.
    ///
    /// # Errors
    /// The write fails.
    pub fn new(write: W) -> Result<Self> {
        let mut writer = Writer { write, offset: 0 };
        let mut header = Vec::with_capacity(24);
        header.extend(0xa1b2_3c4d_u32.to_le_bytes());
        header.extend(2u16.to_le_bytes());
        header.extend(4u16.to_le_bytes());
        header.extend([0; 8]);
        header.extend(MAX_RECORD.to_le_bytes());
        header.extend(LINKTYPE_ETHERNET.to_le_bytes());
        writer.put(&header)?;
        Ok(writer)
    }

    /// Writes a whole frame without FCS. Seconds beyond 32 bits (the year 2106) wrap: the format has no more.
    ///
    /// # Errors
    /// The frame is too long, or the write fails.
    pub fn write(&mut self, ts_ns: u64, frame: &[u8]) -> Result<()> {
        if frame.len() > MAX_RECORD as usize {
            let len = frame.len();
            return Err(WireError::new(format!(
                "a frame of {len} bytes does not go into a capture: at most {MAX_RECORD}"
            )));
        }
        let len = frame.len() as u32;
        let (seconds, ns) = (
            (ts_ns / 1_000_000_000) as u32,
            (ts_ns % 1_000_000_000) as u32,
        );
        let mut header = [0; 16];
        for (at, field) in [seconds, ns, len, len].into_iter().enumerate() {
            header[at * 4..at * 4 + 4].copy_from_slice(&field.to_le_bytes());
        }
        self.put(&header)?;
        self.put(frame)
    }

    /// Flushes, and returns the underlying writer.
    ///
    /// # Errors
    /// The write fails.
    pub fn finish(mut self) -> Result<W> {
        self.write.flush().map_err(|e| cannot(self.offset, &e))?;
        Ok(self.write)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write
            .write_all(bytes)
            .map_err(|e| cannot(self.offset, &e))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
#[path = "pcap_tests.rs"]
mod tests;
