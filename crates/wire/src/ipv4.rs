//! IPv4 headers (RFC 791). Options are skipped when reading and never written.

use crate::checksum;
use crate::error::{HeaderError, at_least, put_word, word};
use std::net::Ipv4Addr;

const HEADER: &str = "IPv4 header";

/// IP protocol numbers in use here (IANA protocol-numbers).
pub mod protocol {
    /// ICMP (RFC 792).
    pub const ICMP: u8 = 1;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
}

/// A view of an IPv4 packet; bytes behind the total length (Ethernet padding) may follow.
#[derive(Debug, Clone, Copy)]
pub struct Ipv4Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Ipv4Packet<T> {
    /// Takes a packet whose version, header length and total length fit the bytes. The checksum is not looked
    /// at: see [`checksum_ok`](Self::checksum_ok).
    ///
    /// # Errors
    /// What does not fit.
    pub fn new_checked(buffer: T) -> Result<Self, HeaderError> {
        let bytes = buffer.as_ref();
        at_least(HEADER, 20, bytes.len())?;
        let invalid = |field, value, why| HeaderError::Invalid { header: HEADER, field, value, why };
        let (version, header_len) = (bytes[0] >> 4, usize::from(bytes[0] & 15) * 4);
        if version != 4 {
            return Err(invalid("version", version.into(), "IPv4 has 4"));
        }
        if header_len < 20 {
            return Err(invalid("header length", header_len as u32, "it is at least 20 bytes"));
        }
        let total = usize::from(word(bytes, 2));
        if total < header_len {
            return Err(invalid("total length", total as u32, "it is less than the header length"));
        }
        at_least("IPv4 packet", total, bytes.len())?;
        Ok(Ipv4Packet { buffer })
    }

    /// Header length in bytes, options included.
    pub fn header_len(&self) -> usize {
        usize::from(self.buffer.as_ref()[0] & 15) * 4
    }

    /// Header and payload, in bytes.
    pub fn total_len(&self) -> u16 {
        word(self.buffer.as_ref(), 2)
    }

    /// Identification.
    pub fn ident(&self) -> u16 {
        word(self.buffer.as_ref(), 4)
    }

    /// Whether the packet must not be fragmented.
    pub fn dont_fragment(&self) -> bool {
        self.buffer.as_ref()[6] & 0x40 != 0
    }

    /// Whether this is a fragment: more fragments follow, or it does not start at 0.
    pub fn is_fragment(&self) -> bool {
        word(self.buffer.as_ref(), 6) & 0x3fff != 0
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.buffer.as_ref()[8]
    }

    /// Protocol of the payload; see [`protocol`].
    pub fn protocol(&self) -> u8 {
        self.buffer.as_ref()[9]
    }

    /// Source address.
    pub fn src(&self) -> Ipv4Addr {
        address_at(self.buffer.as_ref(), 12)
    }

    /// Destination address.
    pub fn dst(&self) -> Ipv4Addr {
        address_at(self.buffer.as_ref(), 16)
    }

    /// Whether the header checksum is right.
    pub fn checksum_ok(&self) -> bool {
        checksum::fold(checksum::partial(&self.buffer.as_ref()[..self.header_len()])) == 0xffff
    }

    /// What follows the header, up to the total length.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..usize::from(self.total_len())]
    }
}

fn address_at(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// An IPv4 header without options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Repr {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Protocol of the payload; see [`protocol`].
    pub protocol: u8,
    /// Time to live.
    pub ttl: u8,
    /// Identification; 0 is right for atomic packets (RFC 6864 section 4.1).
    pub ident: u16,
    /// Whether the packet must not be fragmented.
    pub dont_fragment: bool,
    /// Bytes behind the header, at most 65,515.
    pub payload_len: u16,
}

impl Ipv4Repr {
    /// Bytes that [`emit`](Self::emit) writes.
    pub const HEADER_LEN: usize = 20;

    /// Reads a header; options are skipped.
    ///
    /// # Errors
    /// [`HeaderError::Invalid`] for a fragment or a wrong checksum.
    pub fn parse<T: AsRef<[u8]>>(packet: &Ipv4Packet<T>) -> Result<Self, HeaderError> {
        let invalid = |field, value, why| HeaderError::Invalid { header: HEADER, field, value, why };
        let bytes = packet.buffer.as_ref();
        if packet.is_fragment() {
            return Err(invalid("fragment field", word(bytes, 6).into(), "fragments are not represented"));
        }
        if !packet.checksum_ok() {
            return Err(invalid("checksum", word(bytes, 10).into(), "it is wrong"));
        }
        Ok(Ipv4Repr {
            src: packet.src(),
            dst: packet.dst(),
            protocol: packet.protocol(),
            ttl: packet.ttl(),
            ident: packet.ident(),
            dont_fragment: packet.dont_fragment(),
            payload_len: packet.payload().len() as u16,
        })
    }

    /// Writes the header with its checksum at the start of `bytes`. A total length above 65,535 is cut to
    /// that.
    ///
    /// # Panics
    /// If `bytes` is shorter than 20.
    pub fn emit(&self, bytes: &mut [u8]) {
        let bytes = &mut bytes[..Self::HEADER_LEN];
        bytes.fill(0);
        bytes[0] = 0x45;
        put_word(bytes, 2, self.payload_len.saturating_add(20));
        put_word(bytes, 4, self.ident);
        bytes[6] = if self.dont_fragment { 0x40 } else { 0 };
        bytes[8] = self.ttl;
        bytes[9] = self.protocol;
        bytes[12..16].copy_from_slice(&self.src.octets());
        bytes[16..20].copy_from_slice(&self.dst.octets());
        let check = checksum::finish(checksum::partial(bytes));
        put_word(bytes, 10, check);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_and_padding_are_skipped() {
        let mut bytes = [0u8; 46];
        bytes[0] = 0x46;
        bytes[3] = 30;
        bytes[24] = 7;
        let packet = Ipv4Packet::new_checked(&bytes[..]).unwrap();
        assert_eq!(packet.payload(), [7, 0, 0, 0, 0, 0]);
        assert!(Ipv4Repr::parse(&packet).is_err(), "wrong checksum");
    }

    proptest! {
        #[test]
        fn emit_then_parse(src: u32, dst: u32, protocol: u8, ttl: u8, ident: u16, dont_fragment: bool, payload_len in 0u16..100) {
            let (src, dst) = (src.into(), dst.into());
            let repr = Ipv4Repr { src, dst, protocol, ttl, ident, dont_fragment, payload_len };
            let mut bytes = vec![0xaa; 20 + usize::from(payload_len)];
            repr.emit(&mut bytes);
            let packet = Ipv4Packet::new_checked(&bytes).unwrap();
            prop_assert!(packet.checksum_ok());
            prop_assert_eq!(Ipv4Repr::parse(&packet).unwrap(), repr);
        }

        #[test]
        fn never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..90), version: bool) {
            if let (true, Some(first)) = (version, bytes.first_mut()) {
                *first = *first & 15 | 0x40;
            }
            if let Ok(packet) = Ipv4Packet::new_checked(&bytes) {
                let _ = (Ipv4Repr::parse(&packet), packet.payload());
            }
        }
    }
}
