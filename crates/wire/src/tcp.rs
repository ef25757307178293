//! TCP headers (RFC 9293). Options are skipped when reading and never written.

use crate::checksum;
use crate::error::{HeaderError, at_least, put_word, word};

const HEADER: &str = "TCP header";

/// Control bits (RFC 9293 section 3.1).
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment field counts.
    pub const ACK: u8 = 0x10;
}

/// A view of a TCP segment.
#[derive(Debug, Clone, Copy)]
pub struct TcpPacket<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> TcpPacket<T> {
    /// Takes a segment (all bytes of it, as TCP has no length of its own) whose data offset fits the bytes.
    ///
    /// # Errors
    /// What does not fit.
    pub fn new_checked(buffer: T) -> Result<Self, HeaderError> {
        let bytes = buffer.as_ref();
        at_least(HEADER, 20, bytes.len())?;
        let offset = usize::from(bytes[12] >> 4) * 4;
        if offset < 20 {
            let (field, value) = ("data offset", offset as u32);
            return Err(HeaderError::Invalid {
                header: HEADER,
                field,
                value,
                why: "it is at least 20 bytes",
            });
        }
        at_least(HEADER, offset, bytes.len())?;
        Ok(TcpPacket { buffer })
    }

    /// Source port.
    pub fn src_port(&self) -> u16 {
        word(self.buffer.as_ref(), 0)
    }

    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        word(self.buffer.as_ref(), 2)
    }

    /// Sequence number.
    pub fn sequence(&self) -> u32 {
        u32::from(word(self.buffer.as_ref(), 4)) << 16 | u32::from(word(self.buffer.as_ref(), 6))
    }

    /// Acknowledgment number.
    pub fn acknowledgment(&self) -> u32 {
        u32::from(word(self.buffer.as_ref(), 8)) << 16 | u32::from(word(self.buffer.as_ref(), 10))
    }

    /// Header length in bytes, options included.
    pub fn header_len(&self) -> usize {
        usize::from(self.buffer.as_ref()[12] >> 4) * 4
    }

    /// Control bits; see [`flags`].
    pub fn flags(&self) -> u8 {
        self.buffer.as_ref()[13]
    }

    /// Window.
    pub fn window(&self) -> u16 {
        word(self.buffer.as_ref(), 14)
    }

    /// Whether the checksum is right; `pseudo` is the pseudo-header's partial sum.
    pub fn checksum_ok(&self, pseudo: u32) -> bool {
        checksum::fold(checksum::add(pseudo, checksum::partial(self.buffer.as_ref()))) == 0xffff
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..]
    }
}

/// A TCP header without options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpRepr {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Control bits; see [`flags`].
    pub flags: u8,
    /// Window.
    pub window: u16,
}

impl TcpRepr {
    /// Bytes that [`emit`](Self::emit) writes.
    pub const HEADER_LEN: usize = 20;

    /// Reads a header; options and the urgent pointer are dropped. The checksum is not looked at: see
    /// [`TcpPacket::checksum_ok`].
    ///
    /// # Errors
    /// None today; the same shape as its siblings.
    pub fn parse<T: AsRef<[u8]>>(packet: &TcpPacket<T>) -> Result<Self, HeaderError> {
        Ok(TcpRepr {
            src_port: packet.src_port(),
            dst_port: packet.dst_port(),
            sequence: packet.sequence(),
            acknowledgment: packet.acknowledgment(),
            flags: packet.flags(),
            window: packet.window(),
        })
    }

    /// Writes the header in front of a payload that fills the rest of `bytes`, which must be the whole
    /// segment. `pseudo` is the pseudo-header's partial sum.
    ///
    /// # Panics
    /// If `bytes` is shorter than 20.
    pub fn emit(&self, bytes: &mut [u8], pseudo: u32) {
        bytes[..20].fill(0);
        put_word(bytes, 0, self.src_port);
        put_word(bytes, 2, self.dst_port);
        bytes[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.acknowledgment.to_be_bytes());
        bytes[12] = 5 << 4;
        bytes[13] = self.flags;
        put_word(bytes, 14, self.window);
        let check = checksum::finish(checksum::add(pseudo, checksum::partial(bytes)));
        put_word(bytes, 16, check);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(src_port: u16, dst_port: u16, sequence: u32, acknowledgment: u32, flags: u8, window: u16, payload in prop::collection::vec(any::<u8>(), 0..50), pseudo in 0u32..1 << 20) {
            let repr = TcpRepr { src_port, dst_port, sequence, acknowledgment, flags, window };
            let mut bytes = [&[0; 20], &payload[..]].concat();
            repr.emit(&mut bytes, pseudo);
            let packet = TcpPacket::new_checked(&bytes).unwrap();
            prop_assert_eq!(TcpRepr::parse(&packet).unwrap(), repr);
            prop_assert!(packet.checksum_ok(pseudo));
            prop_assert_eq!(packet.payload(), &payload[..]);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(packet) = TcpPacket::new_checked(&bytes) {
                let _ = (TcpRepr::parse(&packet), packet.payload(), packet.checksum_ok(1));
            }
        }
    }
}
