//! Distinguishes test frames from all others that arrive at a receiver.

use crate::headers::{self, EtherType, protocol};
use crate::{Flow, Signature, Transport, extensions};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    /// A test frame.
    Test {
        /// Signature of the frame.
        signature: Signature,
        /// Addresses and ports; of ICMP echo, identifier and sequence number.
        flow: Flow,
        /// Protocol above IP.
        transport: Transport,
        /// The identifier of the outermost VLAN tag.
        vlan: Option<u16>,
    },
    /// Anything else.
    Foreign(ForeignKind),
}

/// The kind of a frame that is not a test frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ForeignKind {
    /// ARP.
    Arp,
    /// IPv4 without a signature, a fragment, or cut short.
    Ipv4,
    /// IPv6 other than ICMPv6, without a signature, or cut short.
    Ipv6,
    /// ICMPv6 without a signature: neighbour and router discovery, mostly.
    Icmpv6,
    /// Another Ethernet type, behind up to two VLAN tags.
    Other(u16),
    /// Too short for an Ethernet header.
    Runt,
}

/// Looks at a frame without FCS: Ethernet with up to two VLAN tags, IPv4 with or without options or IPv6
/// with few extension headers, UDP, TCP with or without options, or an echo request, and a signature at the
/// first byte of payload.
///
/// Lengths are honoured, checksums are not looked at. Never panics.
#[inline]
pub fn recognise(frame: &[u8]) -> Recognised {
    let (kind, vlan, packet) = match ethernet(frame) {
        Ok(split) => split,
        Err(kind) => return Recognised::Foreign(kind),
    };
    match kind {
        EtherType::IPV4 => match ipv4(packet) {
            Some((src, dst, test)) => test.found(src.into(), dst.into(), vlan),
            None => Recognised::Foreign(ForeignKind::Ipv4),
        },
        EtherType::IPV6 => match ipv6(packet) {
            Some((src, dst, test)) => test.found(src.into(), dst.into(), vlan),
            None => foreign_v6(packet),
        },
        EtherType::ARP => Recognised::Foreign(ForeignKind::Arp),
        other => Recognised::Foreign(ForeignKind::Other(other.0)),
    }
}

type Split<'a> = (EtherType, Option<u16>, &'a [u8]);

/// Values of a test frame's transport header and payload.
struct Test {
    signature: Signature,
    src_port: u16,
    dst_port: u16,
    transport: Transport,
}

impl Test {
    fn new(transport: Transport, [a, b, c, d]: [u8; 4], payload: &[u8]) -> Option<Test> {
        let signature = Signature::decode(payload)?;
        let (src_port, dst_port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Some(Test {
            signature,
            src_port,
            dst_port,
            transport,
        })
    }

    /// Put together last and once: copies of half-written addresses cost more than all the reading.
    #[inline]
    fn found(self, src: IpAddr, dst: IpAddr, vlan: Option<u16>) -> Recognised {
        let Test {
            signature,
            src_port,
            dst_port,
            transport,
        } = self;
        Recognised::Test {
            signature,
            flow: Flow {
                src,
                dst,
                src_port,
                dst_port,
            },
            transport,
            vlan,
        }
    }
}

#[inline]
fn ethernet(frame: &[u8]) -> Result<Split<'_>, ForeignKind> {
    let (header, mut rest) = frame.split_first_chunk::<14>().ok_or(ForeignKind::Runt)?;
    let mut kind = EtherType(u16::from_be_bytes([header[12], header[13]]));
    let mut vlan = None;
    for _ in 0..2 {
        if !kind.is_tag() {
            break;
        }
        let (tag, behind) = rest.split_first_chunk::<4>().ok_or(ForeignKind::Runt)?;
        vlan = vlan.or(Some(u16::from_be_bytes([tag[0], tag[1]]) & 0xfff));
        kind = EtherType(u16::from_be_bytes([tag[2], tag[3]]));
        rest = behind;
    }
    Ok((kind, vlan, rest))
}

#[inline]
fn ipv4(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr, Test)> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let header_len = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if header[0] >> 4 != 4 || header_len < 20 || fragment != 0 {
        return None;
    }
    let segment = packet.get(header_len..total)?;
    let test = match header[9] {
        protocol::UDP => udp(segment)?,
        protocol::TCP => tcp(segment)?,
        protocol::ICMP => echo(segment, headers::echo::REQUEST)?,
        _ => return None,
    };
    let src = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
    let dst = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    Some((src, dst, test))
}

#[inline]
fn ipv6(packet: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr, Test)> {
    let (header, rest) = packet.split_first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let segment = rest.get(..usize::from(u16::from_be_bytes([header[4], header[5]])))?;
    let test = match header[6] {
        protocol::UDP => udp(segment)?,
        protocol::TCP => tcp(segment)?,
        protocol::ICMPV6 => echo(segment, headers::echo::V6_REQUEST)?,
        extension => match extensions::skip(extension, segment)? {
            (protocol::UDP, skipped) => udp(segment.get(skipped..)?)?,
            _ => return None,
        },
    };
    let src = Ipv6Addr::from(*header[8..].first_chunk::<16>()?);
    let dst = Ipv6Addr::from(*header[24..].first_chunk::<16>()?);
    Some((src, dst, test))
}

#[cold]
fn foreign_v6(packet: &[u8]) -> Recognised {
    // Behind a hop-by-hop header (0) stand multicast listener reports (RFC 3810 section 5): ICMPv6 as well.
    let next = match packet.get(6) {
        Some(0) => packet.get(40),
        next => next,
    };
    let kind = if next == Some(&protocol::ICMPV6) {
        ForeignKind::Icmpv6
    } else {
        ForeignKind::Ipv6
    };
    Recognised::Foreign(kind)
}

#[inline]
fn udp(segment: &[u8]) -> Option<Test> {
    let (header, payload) = segment.split_first_chunk::<8>()?;
    Test::new(
        Transport::Udp,
        [header[0], header[1], header[2], header[3]],
        payload,
    )
}

#[inline]
fn tcp(segment: &[u8]) -> Option<Test> {
    let header: &[u8; 20] = segment.first_chunk()?;
    let offset = usize::from(header[12] >> 4) * 4;
    if offset < 20 {
        return None;
    }
    Test::new(
        Transport::Tcp,
        [header[0], header[1], header[2], header[3]],
        segment.get(offset..)?,
    )
}

#[inline]
fn echo(segment: &[u8], kind: u8) -> Option<Test> {
    let (header, payload) = segment.split_first_chunk::<8>()?;
    if header[0] != kind || header[1] != 0 {
        return None;
    }
    Test::new(
        Transport::IcmpEcho,
        [header[4], header[5], header[6], header[7]],
        payload,
    )
}

#[cfg(test)]
#[path = "recognise_tests.rs"]
mod tests;
