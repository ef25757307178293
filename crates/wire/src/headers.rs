//! The headers of test frames: Ethernet with an 802.1Q tag, IPv4, IPv6, UDP, TCP and ICMP echo, and the numbers in them.

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

/// IP protocol numbers (IANA protocol-numbers).
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

/// Types of echo messages (RFC 792, RFC 4443 section 4).
pub mod echo {
    /// ICMP echo reply.
    pub const REPLY: u8 = 0;
    /// ICMP echo request.
    pub const REQUEST: u8 = 8;
    /// ICMPv6 echo request.
    pub const V6_REQUEST: u8 = 128;
    /// ICMPv6 echo reply.
    pub const V6_REPLY: u8 = 129;
}

/// TCP control bit SYN (RFC 9293 section 3.1).
pub const TCP_SYN: u8 = 0x02;
/// TCP control bit ACK.
pub const TCP_ACK: u8 = 0x10;

/// A VLAN tag's contents (IEEE 802.1Q section 9.6); the drop-eligible bit is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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
}

/// The big-endian 16-bit word at `at`. The caller has checked the length.
pub(crate) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Writes a big-endian 16-bit word at `at`. The caller has checked the length.
pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
