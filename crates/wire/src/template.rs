//! Writes test frames fast: copies a template, then writes and sums only the parts that differ between frames.

use crate::checksum::{add, finish, partial, shorten};
use crate::frame::{FCS_LEN, Family, FrameSpec, MAX_LEN_FCS, Transport};
use crate::headers::{EtherType, TCP_SYN, echo, put_word};
use crate::signature::{MAGIC, SIGNATURE_LEN, Signature};
use crate::{Flow, Result, WireError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One's complement sums, not complemented, of all that is the same in every frame of a template.
///
/// Words are big-endian; [`crate::checksum::fold`] and swap the bytes for sums of words loaded on a
/// little-endian machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseSums {
    /// The IPv4 header with zero checksum and zero addresses; 0 for IPv6. To finish: add both addresses.
    pub ip: u32,
    /// Pseudo-header, transport header and payload with zero addresses, ports, checksum, and zero stream,
    /// sequence and time in the signature (its magic is in). To finish: add both addresses
    /// ([`BaseSums::l4_covers_addresses`]), both ports, and of the signature stream, sequence and time. UDP
    /// writes 0xffff for 0.
    pub l4: u32,
    /// Whether addresses count into the transport checksum: always but for ICMP over IPv4, which has no
    /// pseudo-header.
    pub l4_covers_addresses: bool,
}

/// Frames of one kind and length, ready to be written.
#[derive(Debug, Clone)]
pub struct FrameTemplate {
    spec: FrameSpec,
    /// The frame without FCS; addresses, ports, checksums, and the signature's fields are zero.
    bytes: Vec<u8>,
    sums: BaseSums,
    offsets: Offsets,
}

/// Where fields stand in the frame.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    l3: usize,
    ports: usize,
    check: usize,
    signature: usize,
}

impl FrameTemplate {
    /// A template for frames of `len_fcs` bytes with FCS.
    ///
    /// # Errors
    /// The length is below [`FrameSpec::min_len_fcs`] or above [`MAX_LEN_FCS`], or [`FrameSpec::check`]
    /// fails.
    pub fn new(spec: &FrameSpec, len_fcs: u16) -> Result<Self> {
        spec.check()?;
        if len_fcs < spec.min_len_fcs() {
            return Err(too_short(spec, len_fcs));
        }
        if len_fcs > MAX_LEN_FCS {
            let text =
                format!("a frame of {len_fcs} bytes is too long: at most {MAX_LEN_FCS} with FCS");
            return Err(WireError::new(text));
        }
        let l4 = spec.l2_len() + spec.l3_len();
        let offsets = Offsets {
            l3: spec.l2_len(),
            ports: l4 + spec.transport.ports_offset(),
            check: l4 + spec.transport.checksum_offset(),
            signature: spec.header_len(),
        };
        let bytes = static_bytes(spec, usize::from(len_fcs) - FCS_LEN);
        let sums = base_sums(spec, &bytes);
        Ok(FrameTemplate {
            spec: *spec,
            bytes,
            sums,
            offsets,
        })
    }

    /// Bytes that [`fill`](Self::fill) writes: the frame without FCS.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The length of the frames with FCS.
    pub fn len_fcs(&self) -> u16 {
        (self.bytes.len() + FCS_LEN) as u16
    }

    /// The whole frame without FCS; addresses, ports and checksums are zero, and stream, sequence and time of the
    /// signature.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sums of all that does not change, for those who write frames themselves (the eBPF generator).
    pub fn base_sums(&self) -> BaseSums {
        self.sums
    }

    /// Writes a complete frame without FCS at the start of `buf`; returns its length, [`len`](Self::len).
    ///
    /// DF is set unless fragments are allowed, and the identification 0 (IPv4), TTL is as specified, the length fields fill the frame, and all checksums are
    /// right. Behind the signature, or behind the headers without one, the payload counts 0, 1, ... 255, 0, ... (neither all
    /// zeros nor all ones, and counting as in RFC 2544 C.2.6.4). IPv6 frames begin with the number that IPv4 frames have at the same
    /// place, so that a buffer can take either. A signed template without a signature writes the default one; an
    /// unsigned template ignores it.
    ///
    /// # Panics
    /// If `buf` is shorter than the frame, or the flow's family is not the template's.
    #[inline]
    pub fn fill(&self, buf: &mut [u8], flow: &Flow, signature: Option<&Signature>) -> usize {
        let len = self.bytes.len();
        let frame = &mut buf[..len];
        frame.copy_from_slice(&self.bytes);
        let addresses = match (self.spec.family, flow.src, flow.dst) {
            (Family::V4, IpAddr::V4(src), IpAddr::V4(dst)) => self.fill_v4(frame, src, dst),
            (Family::V6, IpAddr::V6(src), IpAddr::V6(dst)) => self.fill_v6(frame, src, dst),
            _ => panic!("a flow of another family than the frame template's"),
        };
        let Offsets { ports, check, .. } = self.offsets;
        frame[ports..ports + 4].copy_from_slice(&both(flow.src_port, flow.dst_port));
        let signature = if self.spec.signed {
            self.fill_signature(frame, signature)
        } else {
            0
        };
        if self.spec.l4_checksum {
            let addresses = if self.sums.l4_covers_addresses {
                addresses
            } else {
                0
            };
            let ports = u64::from(flow.src_port) + u64::from(flow.dst_port);
            let sum = finish(shorten(
                u64::from(self.sums.l4) + addresses + ports + signature,
            ));
            let sum = if sum == 0 && self.spec.transport == Transport::Udp {
                0xffff
            } else {
                sum
            };
            frame[check..check + 2].copy_from_slice(&sum.to_be_bytes());
        }
        len
    }

    /// Writes addresses and header checksum; returns the sum of the addresses.
    #[inline]
    fn fill_v4(&self, frame: &mut [u8], src: Ipv4Addr, dst: Ipv4Addr) -> u64 {
        let sum = u64::from(u32::from(src)) + u64::from(u32::from(dst));
        let header = &mut frame[self.offsets.l3..][..20];
        header[10..12]
            .copy_from_slice(&finish(shorten(u64::from(self.sums.ip) + sum)).to_be_bytes());
        header[12..16].copy_from_slice(&src.octets());
        header[16..20].copy_from_slice(&dst.octets());
        sum
    }

    /// Writes the addresses; returns their sum.
    #[inline]
    fn fill_v6(&self, frame: &mut [u8], src: Ipv6Addr, dst: Ipv6Addr) -> u64 {
        let header = &mut frame[self.offsets.l3..][..40];
        header[8..24].copy_from_slice(&src.octets());
        header[24..40].copy_from_slice(&dst.octets());
        halves(src.into()) + halves(dst.into())
    }

    /// Writes the signature; returns the sum of stream, sequence and time.
    #[inline]
    fn fill_signature(&self, frame: &mut [u8], signature: Option<&Signature>) -> u64 {
        let signature = signature.copied().unwrap_or_default();
        let at = self.offsets.signature;
        frame[at..at + SIGNATURE_LEN].copy_from_slice(&signature.encode());
        u64::from(signature.stream) + words48(signature.sequence) + words48(signature.time_ns)
    }
}

/// The headers, and the signature if there is one, do not fit.
fn too_short(spec: &FrameSpec, len_fcs: u16) -> WireError {
    let FrameSpec {
        family,
        transport,
        signed,
        ..
    } = spec;
    let (signed, signature) = if *signed {
        ("signed ", ", signature 18")
    } else {
        ("", "")
    };
    WireError::new(format!(
        "a frame of {len_fcs} bytes is too short: {signed}{family}/{transport} needs at least {} \
         (headers {}{signature}, FCS 4; Ethernet's own minimum is 64)",
        spec.min_len_fcs(),
        spec.header_len()
    ))
}

#[inline]
fn both(src_port: u16, dst_port: u16) -> [u8; 4] {
    (u32::from(src_port) << 16 | u32::from(dst_port)).to_be_bytes()
}

/// The sum of the 32-bit words of an address.
#[inline]
fn halves(address: u128) -> u64 {
    let (high, low) = ((address >> 64) as u64, address as u64);
    (high >> 32) + (high & 0xffff_ffff) + (low >> 32) + (low & 0xffff_ffff)
}

/// The sum of the low 48 bits, as 16-bit and 32-bit words.
#[inline]
fn words48(value: u64) -> u64 {
    ((value >> 32) & 0xffff) + (value & 0xffff_ffff)
}

/// The frame with zeros wherever frames differ.
fn static_bytes(spec: &FrameSpec, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut payload = &mut bytes[spec.header_len()..];
    if spec.signed {
        payload[..4].copy_from_slice(&MAGIC);
        payload = &mut payload[SIGNATURE_LEN..];
    }
    let first = spec.l3_len() - 20;
    for (i, byte) in (first..).zip(payload) {
        *byte = i as u8;
    }
    write_headers(spec, &mut bytes);
    bytes
}

/// Writes the headers of a frame that fills `frame`. Addresses, ports and checksums are zero, and so must the headers' bytes be before.
fn write_headers(spec: &FrameSpec, frame: &mut [u8]) {
    frame[..6].copy_from_slice(&spec.dst_mac.0);
    frame[6..12].copy_from_slice(&spec.src_mac.0);
    if let Some(tag) = spec.vlan {
        put_word(frame, 12, EtherType::VLAN.0);
        put_word(frame, 14, tag.control());
    }
    let kind = if spec.family == Family::V4 {
        EtherType::IPV4
    } else {
        EtherType::IPV6
    };
    put_word(frame, spec.l2_len() - 2, kind.0);
    let packet = &mut frame[spec.l2_len()..];
    let (len, protocol) = (packet.len() as u16, spec.transport.protocol(spec.family));
    match spec.family {
        Family::V4 => {
            packet[0] = 0x45;
            put_word(packet, 2, len);
            // Identification 0 is right for atomic packets (RFC 6864 section 4.1): those with DF.
            packet[6] = if spec.may_fragment { 0 } else { 0x40 };
            packet[8] = spec.ttl;
            packet[9] = protocol;
        }
        Family::V6 => {
            packet[0] = 0x60;
            put_word(packet, 4, len - 40);
            packet[7] = spec.ttl;
            let (header, behind) = packet.split_at_mut(40);
            header[6] = spec.extensions.write(behind, protocol);
        }
    }
    let segment = &mut packet[spec.l3_len()..];
    match (spec.transport, spec.family) {
        (Transport::Udp, _) => put_word(segment, 4, segment.len() as u16),
        (Transport::Tcp, _) => {
            segment[12] = 5 << 4;
            segment[13] = TCP_SYN;
            put_word(segment, 14, 65_535);
        }
        (Transport::IcmpEcho, Family::V4) => segment[0] = echo::REQUEST,
        (Transport::IcmpEcho, Family::V6) => segment[0] = echo::V6_REQUEST,
    }
}

fn base_sums(spec: &FrameSpec, bytes: &[u8]) -> BaseSums {
    let (l3, l4) = bytes[spec.l2_len()..].split_at(spec.l3_len());
    let protocol = spec.transport.protocol(spec.family);
    let l4_covers_addresses = spec.family == Family::V6 || spec.transport != Transport::IcmpEcho;
    // The pseudo-header without addresses (RFC 768; RFC 9293 section 3.1; RFC 8200 section 8.1).
    let pseudo = if l4_covers_addresses {
        u32::from(protocol) + l4.len() as u32
    } else {
        0
    };
    let ip = if spec.family == Family::V4 {
        partial(l3)
    } else {
        0
    };
    BaseSums {
        ip,
        l4: add(pseudo, partial(l4)),
        l4_covers_addresses,
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
