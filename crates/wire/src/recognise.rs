//! Tells test frames from all others that arrive at a receiver.

use crate::ethernet::EtherType;
use crate::ipv4::protocol;
use crate::{Flow, Signature, Transport, icmp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    /// A test frame.
    Test {
        /// What it says about itself.
        signature: Signature,
        /// Its addresses and ports; of ICMP echo, identifier and sequence number.
        flow: Flow,
        /// What it carries above IP.
        transport: Transport,
        /// The identifier of the outermost VLAN tag.
        vlan: Option<u16>,
    },
    /// Anything else.
    Foreign(ForeignKind),
}

/// What a frame is that is not a test frame.
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

/// Looks at a frame without FCS: Ethernet with up to two VLAN tags, IPv4 with or without options or IPv6 without extension
/// headers, UDP, TCP with or without options, or an echo request, and a signature at the first byte of payload.
///
/// Lengths are honoured, checksums are not looked at. Never panics.
#[inline]
pub fn recognise(frame: &[u8]) -> Recognised {
    match ethernet(frame) {
        Ok((EtherType::IPV4, vlan, packet)) => {
            ipv4(packet, vlan).unwrap_or(Recognised::Foreign(ForeignKind::Ipv4))
        }
        Ok((EtherType::IPV6, vlan, packet)) => ipv6(packet, vlan).unwrap_or_else(|| foreign_v6(packet)),
        Ok((EtherType::ARP, ..)) => Recognised::Foreign(ForeignKind::Arp),
        Ok((other, ..)) => Recognised::Foreign(ForeignKind::Other(other.0)),
        Err(kind) => Recognised::Foreign(kind),
    }
}

type Split<'a> = (EtherType, Option<u16>, &'a [u8]);

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
fn ipv4(packet: &[u8], vlan: Option<u16>) -> Option<Recognised> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let header_len = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    if header[0] >> 4 != 4 || header_len < 20 || fragment != 0 {
        return None;
    }
    let segment = packet.get(header_len..total)?;
    let src = IpAddr::V4(Ipv4Addr::new(header[12], header[13], header[14], header[15]));
    let dst = IpAddr::V4(Ipv4Addr::new(header[16], header[17], header[18], header[19]));
    match header[9] {
        protocol::UDP => udp(segment, src, dst, vlan),
        protocol::TCP => tcp(segment, src, dst, vlan),
        protocol::ICMP => echo(segment, icmp::kind::ECHO_REQUEST, src, dst, vlan),
        _ => None,
    }
}

#[inline]
fn ipv6(packet: &[u8], vlan: Option<u16>) -> Option<Recognised> {
    let (header, rest) = packet.split_first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let segment = rest.get(..usize::from(u16::from_be_bytes([header[4], header[5]])))?;
    let src = IpAddr::V6(Ipv6Addr::from(*header[8..].first_chunk::<16>()?));
    let dst = IpAddr::V6(Ipv6Addr::from(*header[24..].first_chunk::<16>()?));
    match header[6] {
        protocol::UDP => udp(segment, src, dst, vlan),
        protocol::TCP => tcp(segment, src, dst, vlan),
        protocol::ICMPV6 => echo(segment, icmp::kind::V6_ECHO_REQUEST, src, dst, vlan),
        _ => None,
    }
}

#[cold]
fn foreign_v6(packet: &[u8]) -> Recognised {
    // Behind a hop-by-hop header (0) stand multicast listener reports (RFC 3810 section 5): ICMPv6 as well.
    let next = match packet.get(6) {
        Some(0) => packet.get(40),
        next => next,
    };
    let kind = if next == Some(&protocol::ICMPV6) { ForeignKind::Icmpv6 } else { ForeignKind::Ipv6 };
    Recognised::Foreign(kind)
}

#[inline]
fn udp(segment: &[u8], src: IpAddr, dst: IpAddr, vlan: Option<u16>) -> Option<Recognised> {
    let (header, payload) = segment.split_first_chunk::<8>()?;
    let signature = Signature::decode(payload)?;
    let flow = flow(src, dst, [header[0], header[1], header[2], header[3]]);
    Some(Recognised::Test { signature, flow, transport: Transport::Udp, vlan })
}

#[inline]
fn tcp(segment: &[u8], src: IpAddr, dst: IpAddr, vlan: Option<u16>) -> Option<Recognised> {
    let header: &[u8; 20] = segment.first_chunk()?;
    let offset = usize::from(header[12] >> 4) * 4;
    if offset < 20 {
        return None;
    }
    let signature = Signature::decode(segment.get(offset..)?)?;
    let flow = flow(src, dst, [header[0], header[1], header[2], header[3]]);
    Some(Recognised::Test { signature, flow, transport: Transport::Tcp, vlan })
}

#[inline]
fn echo(segment: &[u8], kind: u8, src: IpAddr, dst: IpAddr, vlan: Option<u16>) -> Option<Recognised> {
    let (header, payload) = segment.split_first_chunk::<8>()?;
    if header[0] != kind || header[1] != 0 {
        return None;
    }
    let signature = Signature::decode(payload)?;
    let flow = flow(src, dst, [header[4], header[5], header[6], header[7]]);
    Some(Recognised::Test { signature, flow, transport: Transport::IcmpEcho, vlan })
}

#[inline]
fn flow(src: IpAddr, dst: IpAddr, [a, b, c, d]: [u8; 4]) -> Flow {
    Flow { src, dst, src_port: u16::from_be_bytes([a, b]), dst_port: u16::from_be_bytes([c, d]) }
}

#[cfg(test)]
#[path = "recognise_tests.rs"]
mod tests;
