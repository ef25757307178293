//! The block format of pcapng (draft-ietf-opsawg-pcapng): sections, interfaces, packets; other blocks are
//! skipped.

use crate::pcap::input::{ByteOrder, Input, MAX_RECORD, Record, malformed};
use crate::{Result, WireError};
use std::io::Read;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The longest block taken, in bytes: a packet with generous options.
const MAX_BLOCK: u32 = MAX_RECORD + 1_048_576;

/// Most interfaces of a section; each takes memory.
const MAX_INTERFACES: usize = 65_536;

/// Options of an Interface Description: time resolution and offset.
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// The state of reading: the interfaces of the current section.
#[derive(Debug)]
pub(crate) struct Blocks {
    interfaces: Vec<Interface>,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u32,
    snap_len: u32,
    resolution: Resolution,
    offset_s: i64,
}

/// Length of a time stamp's tick: 10^-n or 2^-n seconds.
#[derive(Debug, Clone, Copy)]
enum Resolution {
    Decimal(u8),
    Binary(u8),
}

impl Resolution {
    fn ns(self, ticks: u64) -> i128 {
        let ticks = i128::from(ticks);
        match self {
            Resolution::Decimal(n @ 0..=9) => ticks * 10i128.pow(9 - u32::from(n)),
            Resolution::Decimal(n) => 10i128
                .checked_pow(u32::from(n) - 9)
                .map_or(0, |d| ticks / d),
            // 2^64 x 10^9 fits into 94 bits; the bits shifted out are below 1 ns.
            Resolution::Binary(n) => (ticks * 1_000_000_000).checked_shr(n.into()).unwrap_or(0),
        }
    }
}

/// A block's body and where the block starts.
struct Body {
    bytes: Vec<u8>,
    offset: u64,
    order: ByteOrder,
}

impl Body {
    fn malformed(&self, what: &str, value: impl Into<u64>) -> WireError {
        malformed(self.offset, what, value.into())
    }

    /// The 32-bit number at `at`, if the block is long enough.
    fn number(&self, at: usize) -> Result<u32> {
        let bytes = self.bytes.get(at..at + 4);
        let bytes =
            bytes.ok_or_else(|| self.malformed("the block length", self.bytes.len() as u64))?;
        Ok(self.order.number32(bytes))
    }

    /// Packet data of `len` bytes at `at`.
    fn data(&self, at: usize, len: u32) -> Result<Vec<u8>> {
        if len > MAX_RECORD {
            return Err(self.malformed("the captured length", len));
        }
        let data = self.bytes.get(at..at + len as usize);
        data.map(<[u8]>::to_vec)
            .ok_or_else(|| self.malformed("the captured length", len))
    }

    /// The options from `at` on, up to where they make no sense.
    fn options(&self, at: usize) -> impl Iterator<Item = (u16, &[u8])> {
        let mut rest = self.bytes.get(at..).unwrap_or_default();
        std::iter::from_fn(move || {
            let header = rest.get(..4)?;
            let (code, len) = (
                self.order.number16(header),
                self.order.number16(&header[2..]),
            );
            let value = rest.get(4..4 + usize::from(len)).filter(|_| code != 0)?;
            rest = rest
                .get(4 + usize::from(len).next_multiple_of(4)..)
                .unwrap_or_default();
            Some((code, value))
        })
    }
}

impl Blocks {
    /// Reads the first section header; its block type has been read.
    pub fn new<R: Read>(input: &mut Input<R>) -> Result<Self> {
        let mut blocks = Blocks {
            interfaces: Vec::new(),
        };
        blocks.section(input, 0)?;
        Ok(blocks)
    }

    /// The next packet; `None` at the end of the file.
    pub fn next_record<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Record>> {
        loop {
            let offset = input.offset;
            let mut kind = [0; 4];
            if input.fill_or_end(&mut kind, "a block")? {
                return Ok(None);
            }
            // The section's type reads the same in both byte orders.
            let kind = input.order.number32(&kind);
            if kind == SECTION {
                self.section(input, offset)?;
                continue;
            }
            let len: [u8; 4] = input.array("a block")?;
            let body = rest(input, offset, input.order.number32(&len), 8)?;
            match kind {
                INTERFACE => self.interface(&body)?,
                ENHANCED_PACKET => return self.enhanced(&body).map(Some),
                SIMPLE_PACKET => return self.simple(&body).map(Some),
                _ => {}
            }
        }
    }

    /// A section header: sets the byte order and forgets the interfaces.
    fn section<R: Read>(&mut self, input: &mut Input<R>, offset: u64) -> Result<()> {
        let start: [u8; 8] = input.array("a section header")?;
        let magic = ByteOrder { big_endian: true }.number32(&start[4..]);
        input.order.big_endian = match magic {
            0x1a2b_3c4d => true,
            0x4d3c_2b1a => false,
            _ => return Err(malformed(offset, "the byte-order magic", magic)),
        };
        self.interfaces.clear();
        // Type, length and byte-order magic are read.
        let body = rest(input, offset, input.order.number32(&start), 12)?;
        let major = body.bytes.get(..2).map(|bytes| body.order.number16(bytes));
        if major != Some(1) {
            return Err(body.malformed("the major version", major.unwrap_or(0)));
        }
        Ok(())
    }

    fn interface(&mut self, body: &Body) -> Result<()> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(
                body.malformed("the number of interfaces", self.interfaces.len() as u64 + 1)
            );
        }
        let snap_len = body.number(4)?;
        let link_type = body.order.number16(&body.bytes).into();
        let mut interface = Interface {
            link_type,
            snap_len,
            resolution: Resolution::Decimal(6),
            offset_s: 0,
        };
        for (code, value) in body.options(8) {
            match (code, value) {
                (IF_TSRESOL, &[n]) if n & 0x80 != 0 => {
                    interface.resolution = Resolution::Binary(n & 0x7f)
                }
                (IF_TSRESOL, &[n]) => interface.resolution = Resolution::Decimal(n),
                (IF_TSOFFSET, value) => {
                    if let Ok(bytes) = <[u8; 8]>::try_from(value) {
                        let big = body.order.big_endian;
                        interface.offset_s = if big {
                            i64::from_be_bytes(bytes)
                        } else {
                            i64::from_le_bytes(bytes)
                        };
                    }
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn enhanced(&self, body: &Body) -> Result<Record> {
        let number = body.number(0)?;
        let interface = self.interfaces.get(number as usize);
        let interface = interface.ok_or_else(|| body.malformed("the interface number", number))?;
        let ticks = u64::from(body.number(4)?) << 32 | u64::from(body.number(8)?);
        let data = body.data(20, body.number(12)?)?;
        let ns = interface.resolution.ns(ticks) + i128::from(interface.offset_s) * 1_000_000_000;
        let ts_ns = u64::try_from(ns).unwrap_or(if ns < 0 { 0 } else { u64::MAX });
        Ok(Record {
            ts_ns,
            orig_len: body.number(16)?,
            data,
            link_type: interface.link_type,
        })
    }

    fn simple(&self, body: &Body) -> Result<Record> {
        let interface = self
            .interfaces
            .first()
            .ok_or_else(|| body.malformed("the number of interfaces", 0u32))?;
        let orig_len = body.number(0)?;
        let snap_len = if interface.snap_len == 0 {
            u32::MAX
        } else {
            interface.snap_len
        };
        let data = body.data(4, orig_len.min(snap_len))?;
        Ok(Record {
            ts_ns: 0,
            orig_len,
            data,
            link_type: interface.link_type,
        })
    }
}

/// The rest of a block of `len` bytes behind its first `read` bytes, up to and with the repeated length at its end.
fn rest<R: Read>(input: &mut Input<R>, offset: u64, len: u32, read: u32) -> Result<Body> {
    if !len.is_multiple_of(4) || len < read + 4 || len > MAX_BLOCK {
        return Err(malformed(offset, "the block length", len));
    }
    let bytes = input.bytes(len - read - 4, "a block")?;
    let body = Body {
        bytes,
        offset,
        order: input.order,
    };
    let again: [u8; 4] = input.array("a block")?;
    let again = input.order.number32(&again);
    if again == len {
        Ok(body)
    } else {
        Err(body.malformed("the repeated block length", again))
    }
}
