//! UDP headers (RFC 768).

use crate::checksum;
use crate::error::{HeaderError, at_least, put_word, word};

const HEADER: &str = "UDP header";

/// A view of a UDP datagram.
#[derive(Debug, Clone, Copy)]
pub struct UdpPacket<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> UdpPacket<T> {
    /// Takes a datagram whose length field fits the bytes.
    ///
    /// # Errors
    /// What does not fit.
    pub fn new_checked(buffer: T) -> Result<Self, HeaderError> {
        let bytes = buffer.as_ref();
        at_least(HEADER, 8, bytes.len())?;
        let len = word(bytes, 4);
        if len < 8 {
            let why = "it is at least 8";
            return Err(HeaderError::Invalid { header: HEADER, field: "length", value: len.into(), why });
        }
        at_least("UDP datagram", len.into(), bytes.len())?;
        Ok(UdpPacket { buffer })
    }

    /// Source port.
    pub fn src_port(&self) -> u16 {
        word(self.buffer.as_ref(), 0)
    }

    /// Destination port.
    pub fn dst_port(&self) -> u16 {
        word(self.buffer.as_ref(), 2)
    }

    /// Header and payload, in bytes.
    pub fn datagram_len(&self) -> u16 {
        word(self.buffer.as_ref(), 4)
    }

    /// The checksum field; 0 says that there is none.
    pub fn checksum(&self) -> u16 {
        word(self.buffer.as_ref(), 6)
    }

    /// Whether the checksum is right; `pseudo` is the pseudo-header's partial sum. Absent counts as right,
    /// which is true over IPv4 alone (RFC 8200 section 8.1).
    pub fn checksum_ok(&self, pseudo: u32) -> bool {
        let len = usize::from(self.datagram_len());
        let sum = checksum::add(pseudo, checksum::partial(&self.buffer.as_ref()[..len]));
        self.checksum() == 0 || checksum::fold(sum) == 0xffff
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[8..usize::from(self.datagram_len())]
    }
}

/// A UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpRepr {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Bytes behind the header, at most 65,527.
    pub payload_len: u16,
}

impl UdpRepr {
    /// Bytes that [`emit`](Self::emit) writes.
    pub const HEADER_LEN: usize = 8;

    /// Reads a header. The checksum is not looked at: see [`UdpPacket::checksum_ok`].
    ///
    /// # Errors
    /// None today; the same shape as its siblings.
    pub fn parse<T: AsRef<[u8]>>(packet: &UdpPacket<T>) -> Result<Self, HeaderError> {
        Ok(UdpRepr {
            src_port: packet.src_port(),
            dst_port: packet.dst_port(),
            payload_len: packet.payload().len() as u16,
        })
    }

    /// Writes the header in front of a payload that is already in `bytes[8..]`. `pseudo` is the
    /// pseudo-header's partial sum; `None` writes 0 for no checksum.
    ///
    /// # Panics
    /// If `bytes` is shorter than header and payload.
    pub fn emit(&self, bytes: &mut [u8], pseudo: Option<u32>) {
        let bytes = &mut bytes[..8 + usize::from(self.payload_len)];
        put_word(bytes, 0, self.src_port);
        put_word(bytes, 2, self.dst_port);
        put_word(bytes, 4, self.payload_len.saturating_add(8));
        put_word(bytes, 6, 0);
        if let Some(pseudo) = pseudo {
            let check = checksum::finish(checksum::add(pseudo, checksum::partial(bytes)));
            put_word(bytes, 6, if check == 0 { 0xffff } else { check });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(src_port: u16, dst_port: u16, payload in prop::collection::vec(any::<u8>(), 0..50), pseudo in 0u32..1 << 20) {
            let repr = UdpRepr { src_port, dst_port, payload_len: payload.len() as u16 };
            let mut bytes = [&[0; 8], &payload[..]].concat();
            repr.emit(&mut bytes, Some(pseudo));
            let packet = UdpPacket::new_checked(&bytes).unwrap();
            prop_assert_eq!(UdpRepr::parse(&packet).unwrap(), repr);
            prop_assert!(packet.checksum() != 0 && packet.checksum_ok(pseudo));
            prop_assert_eq!(packet.payload(), &payload[..]);
            repr.emit(&mut bytes, None);
            prop_assert_eq!(UdpPacket::new_checked(&bytes).unwrap().checksum(), 0);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..40), small: bool) {
            let mut bytes = bytes;
            if small && bytes.len() > 4 {
                bytes[4] = 0;
            }
            if let Ok(packet) = UdpPacket::new_checked(&bytes) {
                let _ = (UdpRepr::parse(&packet), packet.payload(), packet.checksum_ok(1));
            }
        }
    }
}
