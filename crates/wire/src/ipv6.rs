//! IPv6 headers (RFC 8200). Extension headers are payload here.

use crate::error::{HeaderError, at_least, put_word, word};
use std::net::Ipv6Addr;

const HEADER: &str = "IPv6 header";

/// A view of an IPv6 packet; bytes behind the payload length (Ethernet padding) may follow.
#[derive(Debug, Clone, Copy)]
pub struct Ipv6Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Ipv6Packet<T> {
    /// Takes a packet whose version and payload length fit the bytes.
    ///
    /// # Errors
    /// What does not fit.
    pub fn new_checked(buffer: T) -> Result<Self, HeaderError> {
        let bytes = buffer.as_ref();
        at_least(HEADER, 40, bytes.len())?;
        let version = bytes[0] >> 4;
        if version != 6 {
            let (field, value) = ("version", version.into());
            return Err(HeaderError::Invalid { header: HEADER, field, value, why: "IPv6 has 6" });
        }
        at_least("IPv6 packet", 40 + usize::from(word(bytes, 4)), bytes.len())?;
        Ok(Ipv6Packet { buffer })
    }

    /// Traffic class.
    pub fn traffic_class(&self) -> u8 {
        (word(self.buffer.as_ref(), 0) >> 4) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        let bytes = self.buffer.as_ref();
        u32::from_be_bytes([0, bytes[1] & 15, bytes[2], bytes[3]])
    }

    /// Bytes behind the header.
    pub fn payload_len(&self) -> u16 {
        word(self.buffer.as_ref(), 4)
    }

    /// Protocol of the payload, or of its first extension header.
    pub fn next_header(&self) -> u8 {
        self.buffer.as_ref()[6]
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.buffer.as_ref()[7]
    }

    /// Source address.
    pub fn src(&self) -> Ipv6Addr {
        address_at(self.buffer.as_ref(), 8)
    }

    /// Destination address.
    pub fn dst(&self) -> Ipv6Addr {
        address_at(self.buffer.as_ref(), 24)
    }

    /// What follows the header, up to the payload length.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[40..40 + usize::from(self.payload_len())]
    }
}

fn address_at(bytes: &[u8], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    octets.into()
}

/// An IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Repr {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Protocol of the payload; see [`crate::ipv4::protocol`].
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Bytes behind the header.
    pub payload_len: u16,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label; the low 20 bits count.
    pub flow_label: u32,
}

impl Ipv6Repr {
    /// Bytes that [`emit`](Self::emit) writes.
    pub const HEADER_LEN: usize = 40;

    /// Reads a header.
    ///
    /// # Errors
    /// None today; the same shape as its siblings.
    pub fn parse<T: AsRef<[u8]>>(packet: &Ipv6Packet<T>) -> Result<Self, HeaderError> {
        Ok(Ipv6Repr {
            src: packet.src(),
            dst: packet.dst(),
            next_header: packet.next_header(),
            hop_limit: packet.hop_limit(),
            payload_len: packet.payload_len(),
            traffic_class: packet.traffic_class(),
            flow_label: packet.flow_label(),
        })
    }

    /// Writes the header at the start of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than 40.
    pub fn emit(&self, bytes: &mut [u8]) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        bytes[..4].copy_from_slice(&first.to_be_bytes());
        put_word(bytes, 4, self.payload_len);
        bytes[6] = self.next_header;
        bytes[7] = self.hop_limit;
        bytes[8..24].copy_from_slice(&self.src.octets());
        bytes[24..40].copy_from_slice(&self.dst.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(src: u128, dst: u128, next_header: u8, hop_limit: u8, payload_len in 0u16..100, traffic_class: u8, flow_label in 0u32..1 << 20) {
            let (src, dst) = (src.into(), dst.into());
            let repr = Ipv6Repr { src, dst, next_header, hop_limit, payload_len, traffic_class, flow_label };
            let mut bytes = vec![0xaa; 40 + usize::from(payload_len)];
            repr.emit(&mut bytes);
            prop_assert_eq!(Ipv6Repr::parse(&Ipv6Packet::new_checked(&bytes).unwrap()).unwrap(), repr);
        }

        #[test]
        fn never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            if let Some(first) = bytes.first_mut() {
                *first = *first & 15 | 0x60;
            }
            if let Ok(packet) = Ipv6Packet::new_checked(&bytes) {
                let _ = (Ipv6Repr::parse(&packet), packet.payload());
            }
        }
    }
}
