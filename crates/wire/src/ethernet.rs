//! Ethernet II headers with up to two VLAN tags (IEEE 802.3, 802.1Q, 802.1ad). No FCS.

use crate::MacAddr;
use crate::error::{HeaderError, at_least, put_word, word};

const HEADER: &str = "Ethernet header";

/// Ethernet types that matter here, as they stand on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP (RFC 826).
    pub const ARP: EtherType = EtherType(0x0806);
    /// A customer VLAN tag follows (IEEE 802.1Q).
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6 (RFC 2464).
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// A service VLAN tag follows (IEEE 802.1ad).
    pub const QINQ: EtherType = EtherType(0x88a8);

    /// Whether this announces a VLAN tag.
    pub fn is_tag(self) -> bool {
        self == Self::VLAN || self == Self::QINQ
    }
}

/// A VLAN tag's contents (IEEE 802.1Q section 9.6); the drop-eligible bit is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// VLAN identifier, 0 (priority only) to 4094; 4095 is reserved.
    pub id: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
}

impl VlanTag {
    /// Bytes that a tag adds to a frame.
    pub const LEN: usize = 4;

    /// The tag control information, as on the wire: priority in 3 bits, identifier in 12.
    pub fn control(&self) -> u16 {
        u16::from(self.priority & 7) << 13 | self.id & 0xfff
    }

    /// Reads tag control information.
    pub fn from_control(control: u16) -> VlanTag {
        VlanTag { id: control & 0xfff, priority: (control >> 13) as u8 }
    }
}

/// A view of an Ethernet frame without FCS.
#[derive(Debug, Clone, Copy)]
pub struct EthernetPacket<T: AsRef<[u8]>> {
    buffer: T,
    tags: usize,
}

impl<T: AsRef<[u8]>> EthernetPacket<T> {
    /// Takes a frame that is long enough for its header and the tags that it announces (the first two are
    /// read).
    ///
    /// # Errors
    /// [`HeaderError::Truncated`] if it is not.
    pub fn new_checked(buffer: T) -> Result<Self, HeaderError> {
        let bytes = buffer.as_ref();
        at_least(HEADER, 14, bytes.len())?;
        let mut tags = 0;
        while tags < 2 && EtherType(word(bytes, 12 + 4 * tags)).is_tag() {
            tags += 1;
            at_least(HEADER, 14 + 4 * tags, bytes.len())?;
        }
        Ok(EthernetPacket { buffer, tags })
    }

    /// The destination address.
    pub fn dst_mac(&self) -> MacAddr {
        mac_at(self.buffer.as_ref(), 0)
    }

    /// The source address.
    pub fn src_mac(&self) -> MacAddr {
        mac_at(self.buffer.as_ref(), 6)
    }

    /// Tag `n`, counted from the outermost, if the frame has it.
    pub fn vlan(&self, n: usize) -> Option<VlanTag> {
        (n < self.tags).then(|| VlanTag::from_control(word(self.buffer.as_ref(), 14 + 4 * n)))
    }

    /// The type of the payload, behind the tags.
    pub fn ethertype(&self) -> EtherType {
        EtherType(word(self.buffer.as_ref(), self.header_len() - 2))
    }

    /// Bytes before the payload: 14 and 4 for each tag.
    pub fn header_len(&self) -> usize {
        14 + VlanTag::LEN * self.tags
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..]
    }
}

fn mac_at(bytes: &[u8], at: usize) -> MacAddr {
    let mut mac = [0; 6];
    mac.copy_from_slice(&bytes[at..at + 6]);
    MacAddr(mac)
}

/// An Ethernet header with at most one VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetRepr {
    /// Destination address.
    pub dst_mac: MacAddr,
    /// Source address.
    pub src_mac: MacAddr,
    /// 802.1Q tag.
    pub vlan: Option<VlanTag>,
    /// Type of the payload.
    pub ethertype: EtherType,
}

impl EthernetRepr {
    /// Reads a header.
    ///
    /// # Errors
    /// [`HeaderError::Invalid`] if it has two tags.
    pub fn parse<T: AsRef<[u8]>>(packet: &EthernetPacket<T>) -> Result<Self, HeaderError> {
        if packet.tags > 1 {
            let why = "a header with two tags is not represented; read it with EthernetPacket";
            return Err(HeaderError::Invalid { header: HEADER, field: "tags", value: 2, why });
        }
        Ok(EthernetRepr {
            dst_mac: packet.dst_mac(),
            src_mac: packet.src_mac(),
            vlan: packet.vlan(0),
            ethertype: packet.ethertype(),
        })
    }

    /// Bytes that [`emit`](Self::emit) writes: 14 or 18.
    pub fn header_len(&self) -> usize {
        if self.vlan.is_some() { 18 } else { 14 }
    }

    /// Writes the header at the start of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is shorter than [`header_len`](Self::header_len).
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes[..6].copy_from_slice(&self.dst_mac.0);
        bytes[6..12].copy_from_slice(&self.src_mac.0);
        if let Some(tag) = self.vlan {
            put_word(bytes, 12, EtherType::VLAN.0);
            put_word(bytes, 14, tag.control());
        }
        put_word(bytes, self.header_len() - 2, self.ethertype.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_tags_are_read() {
        let mut bytes = [0u8; 24];
        bytes[12..22].copy_from_slice(&[0x88, 0xa8, 0x20, 7, 0x81, 0, 0, 9, 0x86, 0xdd]);
        let packet = EthernetPacket::new_checked(&bytes[..]).unwrap();
        assert_eq!(packet.vlan(0), Some(VlanTag { id: 7, priority: 1 }));
        assert_eq!(packet.vlan(1), Some(VlanTag { id: 9, priority: 0 }));
        assert_eq!(packet.vlan(2), None);
        assert_eq!(packet.ethertype(), EtherType::IPV6);
        assert_eq!(packet.payload().len(), 2);
        assert!(EthernetRepr::parse(&packet).is_err());
        assert!(EthernetPacket::new_checked(&bytes[..20]).is_err());
    }

    proptest! {
        #[test]
        fn emit_then_parse(dst: [u8; 6], src: [u8; 6], tag in prop::option::of((0u16..4095, 0u8..8)), kind: u16) {
            prop_assume!(!EtherType(kind).is_tag());
            let vlan = tag.map(|(id, priority)| VlanTag { id, priority });
            let repr = EthernetRepr { dst_mac: MacAddr(dst), src_mac: MacAddr(src), vlan, ethertype: EtherType(kind) };
            let mut bytes = [0; 18];
            repr.emit(&mut bytes);
            let packet = EthernetPacket::new_checked(&bytes[..repr.header_len()]).unwrap();
            prop_assert_eq!(EthernetRepr::parse(&packet).unwrap(), repr);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(packet) = EthernetPacket::new_checked(&bytes) {
                let _ = (EthernetRepr::parse(&packet), packet.payload());
            }
        }
    }
}
