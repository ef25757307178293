//! ICMP and ICMPv6 echo messages (RFC 792, RFC 4443 section 4).

use crate::checksum;
use crate::error::{HeaderError, at_least, put_word, word};

const HEADER: &str = "ICMP header";

/// Types of messages.
pub mod kind {
    /// ICMP echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// ICMP echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// ICMPv6 echo request.
    pub const V6_ECHO_REQUEST: u8 = 128;
    /// ICMPv6 echo reply.
    pub const V6_ECHO_REPLY: u8 = 129;
}

/// A view of an ICMP or ICMPv6 message: the same layout.
#[derive(Debug, Clone, Copy)]
pub struct IcmpPacket<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> IcmpPacket<T> {
    /// Takes a message (all bytes of it, as ICMP has no length of its own).
    ///
    /// # Errors
    /// [`HeaderError::Truncated`] below 8 bytes.
    pub fn new_checked(buffer: T) -> Result<Self, HeaderError> {
        at_least(HEADER, 8, buffer.as_ref().len())?;
        Ok(IcmpPacket { buffer })
    }

    /// Type; see [`kind`].
    pub fn kind(&self) -> u8 {
        self.buffer.as_ref()[0]
    }

    /// Code: 0 for echo messages.
    pub fn code(&self) -> u8 {
        self.buffer.as_ref()[1]
    }

    /// Identifier of an echo message.
    pub fn identifier(&self) -> u16 {
        word(self.buffer.as_ref(), 4)
    }

    /// Sequence number of an echo message.
    pub fn sequence(&self) -> u16 {
        word(self.buffer.as_ref(), 6)
    }

    /// Whether the checksum is right; `pseudo` is the pseudo-header's partial sum for ICMPv6 and 0 for ICMP.
    pub fn checksum_ok(&self, pseudo: u32) -> bool {
        checksum::fold(checksum::add(pseudo, checksum::partial(self.buffer.as_ref()))) == 0xffff
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[8..]
    }
}

/// The header of an echo message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpRepr {
    /// Type: one of [`kind`].
    pub kind: u8,
    /// Identifier.
    pub identifier: u16,
    /// Sequence number.
    pub sequence: u16,
}

impl IcmpRepr {
    /// Bytes that [`emit`](Self::emit) writes.
    pub const HEADER_LEN: usize = 8;

    /// Reads the header of an echo message. The checksum is not looked at: see [`IcmpPacket::checksum_ok`].
    ///
    /// # Errors
    /// [`HeaderError::Invalid`] if it is no echo message.
    pub fn parse<T: AsRef<[u8]>>(packet: &IcmpPacket<T>) -> Result<Self, HeaderError> {
        let invalid = |field, value| HeaderError::Invalid {
            header: HEADER,
            field,
            value,
            why: "no echo message has it",
        };
        if !matches!(packet.kind(), 0 | 8 | 128 | 129) {
            return Err(invalid("type", packet.kind().into()));
        }
        if packet.code() != 0 {
            return Err(invalid("code", packet.code().into()));
        }
        Ok(IcmpRepr { kind: packet.kind(), identifier: packet.identifier(), sequence: packet.sequence() })
    }

    /// Writes the header in front of a payload that fills the rest of `bytes`, which must be the whole
    /// message. `pseudo` is the pseudo-header's partial sum for ICMPv6 and 0 for ICMP.
    ///
    /// # Panics
    /// If `bytes` is shorter than 8.
    pub fn emit(&self, bytes: &mut [u8], pseudo: u32) {
        bytes[..4].copy_from_slice(&[self.kind, 0, 0, 0]);
        put_word(bytes, 4, self.identifier);
        put_word(bytes, 6, self.sequence);
        let check = checksum::finish(checksum::add(pseudo, checksum::partial(bytes)));
        put_word(bytes, 2, check);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_then_parse(kind in prop::sample::select(vec![0u8, 8, 128, 129]), identifier: u16, sequence: u16, payload in prop::collection::vec(any::<u8>(), 0..50), pseudo in 0u32..1 << 20) {
            let repr = IcmpRepr { kind, identifier, sequence };
            let mut bytes = [&[0; 8], &payload[..]].concat();
            repr.emit(&mut bytes, pseudo);
            let packet = IcmpPacket::new_checked(&bytes).unwrap();
            prop_assert_eq!(IcmpRepr::parse(&packet).unwrap(), repr);
            // With nothing but zeros the sum may be zero, and its complement still checks.
            prop_assert!(packet.checksum_ok(pseudo));
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(packet) = IcmpPacket::new_checked(&bytes) {
                let _ = (IcmpRepr::parse(&packet), packet.payload(), packet.checksum_ok(1));
            }
        }
    }
}
