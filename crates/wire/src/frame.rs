//! The form of test frames: their kind, their lengths and limits.

use crate::headers::{VlanTag, protocol};
use crate::signature::SIGNATURE_LEN;
use crate::{Extensions, MacAddr, Result, WireError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes of the Ethernet frame check sequence, which frame lengths count and buffers do not hold.
pub const FCS_LEN: usize = 4;

/// The longest frame, with FCS, in bytes: the longest that RFC 6985 section 4 names, beyond the 9,018 of
/// common jumbo frames.
pub const MAX_LEN_FCS: u16 = 16_000;

/// The shortest Ethernet frame, with FCS, in bytes (IEEE 802.3 section 4.4.2).
pub const MIN_ETHERNET_LEN_FCS: u16 = 64;

/// TTL or hop limit of RFC 2544's test frame (appendix C.2.6.3).
pub const DEFAULT_TTL: u8 = 10;

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

impl FromStr for Family {
    type Err = WireError;

    /// `ipv4`, `4`, `ipv6` or `6`, in any case.
    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "ipv4" | "4" => Ok(Family::V4),
            "ipv6" | "6" => Ok(Family::V6),
            _ => Err(WireError::new(format!(
                "{text:?} is not an IP version; write ipv4 or ipv6"
            ))),
        }
    }
}

/// The protocol of test frames above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// UDP datagrams.
    Udp,
    /// TCP SYN segments without options, with payload.
    Tcp,
    /// ICMP or ICMPv6 echo requests: the flow's source port is the identifier, its destination port the
    /// sequence number.
    IcmpEcho,
}

impl Transport {
    /// The IP protocol number.
    pub fn protocol(self, family: Family) -> u8 {
        match (self, family) {
            (Transport::Udp, _) => protocol::UDP,
            (Transport::Tcp, _) => protocol::TCP,
            (Transport::IcmpEcho, Family::V4) => protocol::ICMP,
            (Transport::IcmpEcho, Family::V6) => protocol::ICMPV6,
        }
    }

    /// Where the checksum stands, from the header's start.
    pub fn checksum_offset(self) -> usize {
        match self {
            Transport::Udp => 6,
            Transport::Tcp => 16,
            Transport::IcmpEcho => 2,
        }
    }

    /// Where the flow's source port stands, from the header's start; the destination port follows it.
    pub fn ports_offset(self) -> usize {
        if self == Transport::IcmpEcho { 4 } else { 0 }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
            Transport::IcmpEcho => "ICMP echo",
        })
    }
}

impl FromStr for Transport {
    type Err = WireError;

    /// `udp`, `tcp` or `icmp`, in any case.
    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "udp" => Ok(Transport::Udp),
            "tcp" => Ok(Transport::Tcp),
            "icmp" | "icmp echo" => Ok(Transport::IcmpEcho),
            _ => Err(WireError::new(format!(
                "{text:?} is not a transport; write udp, tcp or icmp"
            ))),
        }
    }
}

/// All about a test frame but its length, its flow and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSpec {
    /// Ethernet destination: the next hop.
    #[serde(with = "crate::text")]
    pub dst_mac: MacAddr,
    /// Ethernet source.
    #[serde(with = "crate::text")]
    pub src_mac: MacAddr,
    /// 802.1Q tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanTag>,
    /// IP version.
    #[serde(with = "crate::text")]
    pub family: Family,
    /// Protocol above IP.
    #[serde(with = "crate::text")]
    pub transport: Transport,
    /// TTL or hop limit; 1 does not survive a router.
    pub ttl: u8,
    /// Whether the transport checksum is computed; only UDP over IPv4 may do without (RFC 768; RFC 8200
    /// section 8.1).
    pub l4_checksum: bool,
    /// Whether the payload starts with a [`crate::Signature`].
    pub signed: bool,
    /// Whether IPv4 packets may be fragmented on their way, as those of RFC 2544 (appendix C.2.6.4) may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_fragment: bool,
    /// Headers between IPv6's and UDP's.
    #[serde(default, with = "crate::text", skip_serializing_if = "is_none")]
    pub extensions: Extensions,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_none(extensions: &Extensions) -> bool {
    *extensions == Extensions::None
}

impl FrameSpec {
    /// Untagged, signed frames with all checksums and [`DEFAULT_TTL`].
    pub fn new(dst_mac: MacAddr, src_mac: MacAddr, family: Family, transport: Transport) -> Self {
        let (vlan, ttl, l4_checksum, signed, may_fragment) = (None, DEFAULT_TTL, true, true, false);
        let extensions = Extensions::None;
        FrameSpec {
            dst_mac,
            src_mac,
            vlan,
            family,
            transport,
            ttl,
            l4_checksum,
            signed,
            may_fragment,
            extensions,
        }
    }

    /// Length of the Ethernet header in bytes: 14, or 18 with a tag.
    pub fn l2_len(&self) -> usize {
        if self.vlan.is_some() {
            14 + VlanTag::LEN
        } else {
            14
        }
    }

    /// Length of the IP header in bytes: 20, or 40 and that of the extension headers.
    pub fn l3_len(&self) -> usize {
        match self.family {
            Family::V4 => 20,
            Family::V6 => 40 + self.extensions.len(),
        }
    }

    /// Length of the transport header in bytes: 8, or 20 for TCP.
    pub fn l4_len(&self) -> usize {
        if self.transport == Transport::Tcp {
            20
        } else {
            8
        }
    }

    /// Length of all headers in bytes: the signature stands behind them.
    pub fn header_len(&self) -> usize {
        self.l2_len() + self.l3_len() + self.l4_len()
    }

    /// The shortest such frame, with FCS: 64 for signed IPv4/UDP, 84 for signed IPv6/UDP, 66 for unsigned
    /// IPv6/UDP (62 without FCS, as pkt-gen counts). Never below 64.
    pub fn min_len_fcs(&self) -> u16 {
        let signature = if self.signed { SIGNATURE_LEN } else { 0 };
        ((self.header_len() + signature + FCS_LEN) as u16).max(MIN_ETHERNET_LEN_FCS)
    }

    /// Checks everything but the length.
    ///
    /// # Errors
    /// A VLAN tag out of range, or a missing checksum that must be there.
    pub fn check(&self) -> Result<()> {
        let FrameSpec {
            family, transport, ..
        } = self;
        let optional = *family == Family::V4 && *transport == Transport::Udp;
        let wrong = match self.vlan {
            Some(VlanTag { id, .. }) if id > 4094 => {
                format!("{id} is not a VLAN identifier: choose 0 to 4094")
            }
            Some(VlanTag { priority, .. }) if priority > 7 => {
                format!("{priority} is not a VLAN priority: choose 0 to 7")
            }
            _ if self.extensions != Extensions::None
                && (*family, *transport) != (Family::V6, Transport::Udp) =>
            {
                "extension headers are possible only in IPv6 UDP frames".into()
            }
            _ if !self.l4_checksum && !optional => {
                format!(
                    "{family}/{transport} must have its checksum; only UDP over IPv4 can do without"
                )
            }
            _ => return Ok(()),
        };
        Err(WireError::new(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameTemplate;

    fn spec(family: Family, transport: Transport, signed: bool, tagged: bool) -> FrameSpec {
        let vlan = tagged.then_some(VlanTag { id: 7, priority: 0 });
        FrameSpec {
            vlan,
            signed,
            ..FrameSpec::new(MacAddr::default(), MacAddr::default(), family, transport)
        }
    }

    #[test]
    fn shortest_frames() {
        use Family::{V4, V6};
        use Transport::{IcmpEcho, Tcp, Udp};
        let min = |family, transport, signed, tagged| {
            spec(family, transport, signed, tagged).min_len_fcs()
        };
        assert_eq!(min(V4, Udp, true, false), 64);
        assert_eq!(min(V4, Udp, true, true), 68);
        assert_eq!(min(V4, Udp, false, true), 64);
        assert_eq!(min(V4, IcmpEcho, true, false), 64);
        assert_eq!(min(V4, Tcp, true, false), 76);
        assert_eq!(min(V6, Udp, true, false), 84);
        assert_eq!(min(V6, Udp, false, false), 66);
        assert_eq!(min(V6, Tcp, true, true), 100);
    }

    #[test]
    fn refusals_name_the_reason() {
        let error =
            FrameTemplate::new(&spec(Family::V6, Transport::Udp, true, false), 64).unwrap_err();
        let text = "a frame of 64 bytes is too short: signed IPv6/UDP needs at least 84 (headers 62, signature 18, FCS 4; \
                    Ethernet's own minimum is 64)";
        assert_eq!(error.to_string(), text);
        let good = spec(Family::V4, Transport::Tcp, true, false);
        let says = |spec: &FrameSpec, len, part: &str| {
            let error = FrameTemplate::new(spec, len).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        says(&good, 16_001, "16001 bytes is too long: at most 16000");
        let bad = FrameSpec {
            l4_checksum: false,
            ..good
        };
        says(&bad, 128, "IPv4/TCP must have its checksum");
        let bad = FrameSpec {
            vlan: Some(VlanTag {
                id: 4095,
                priority: 0,
            }),
            ..good
        };
        says(&bad, 128, "4095 is not a VLAN identifier");
        let bad = FrameSpec {
            vlan: Some(VlanTag { id: 1, priority: 8 }),
            ..good
        };
        says(&bad, 128, "8 is not a VLAN priority");
    }

    #[test]
    fn words() {
        assert_eq!("ipv6".parse(), Ok(Family::V6));
        assert_eq!("TCP".parse(), Ok(Transport::Tcp));
        assert!("sctp".parse::<Transport>().is_err());
        assert!("ipx".parse::<Family>().is_err());
    }
}
