//! Tests of frame templates: against frames put together from headers, with every checksum computed in full.

use super::*;
use crate::checksum::{fold, partial};
use crate::ethernet::{EthernetPacket, EthernetRepr, VlanTag};
use crate::{Ipv4Packet, MacAddr, Recognised, UdpPacket, recognise};
use proptest::prelude::*;

/// The straightforward way to write the frame that a template writes.
fn slow_frame(spec: &FrameSpec, len_fcs: u16, flow: &Flow, signature: &Signature) -> Vec<u8> {
    let mut frame = vec![0; usize::from(len_fcs) - FCS_LEN];
    let payload = &mut frame[spec.header_len()..];
    let mut at = 0;
    if spec.signed {
        payload[..SIGNATURE_LEN].copy_from_slice(&signature.encode());
        at = SIGNATURE_LEN;
    }
    for (i, byte) in payload[at..].iter_mut().enumerate() {
        *byte = i as u8;
    }
    spec.ethernet().emit(&mut frame);
    let l3 = &mut frame[spec.l2_len()..];
    let payload_len = (l3.len() - spec.l3_len()) as u16;
    let protocol = spec.transport.protocol(spec.family);
    let pseudo = match (flow.src, flow.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            Ipv4Repr { src, dst, protocol, ttl: spec.ttl, ident: 0, dont_fragment: true, payload_len }
                .emit(l3);
            pseudo_v4(src, dst, protocol, payload_len)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let (next_header, hop_limit) = (protocol, spec.ttl);
            let repr =
                Ipv6Repr { src, dst, next_header, hop_limit, payload_len, traffic_class: 0, flow_label: 0 };
            repr.emit(l3);
            pseudo_v6(src, dst, protocol, payload_len.into())
        }
        _ => unreachable!(),
    };
    let l4 = &mut l3[spec.l3_len()..];
    let Flow { src_port, dst_port, .. } = *flow;
    match spec.transport {
        Transport::Udp => {
            let payload_len = payload_len - 8;
            UdpRepr { src_port, dst_port, payload_len }.emit(l4, spec.l4_checksum.then_some(pseudo));
        }
        Transport::Tcp => TcpRepr { src_port, dst_port, ..SYN }.emit(l4, pseudo),
        Transport::IcmpEcho => {
            let (kind, pseudo) = if spec.family == Family::V4 { (8, 0) } else { (128, pseudo) };
            IcmpRepr { kind, identifier: src_port, sequence: dst_port }.emit(l4, pseudo);
        }
    }
    frame
}

fn any_spec() -> impl Strategy<Value = FrameSpec> {
    let family = prop::sample::select(vec![Family::V4, Family::V6]);
    let transport = prop::sample::select(vec![Transport::Udp, Transport::Tcp, Transport::IcmpEcho]);
    let tag = prop::option::of((0u16..4095, 0u8..8).prop_map(|(id, priority)| VlanTag { id, priority }));
    let macs = any::<([u8; 6], [u8; 6])>();
    (family, transport, tag, macs, any::<(u8, bool, bool)>()).prop_map(
        |(family, transport, vlan, (dst, src), (ttl, checksum, signed))| FrameSpec {
            dst_mac: MacAddr(dst),
            src_mac: MacAddr(src),
            vlan,
            family,
            transport,
            ttl,
            l4_checksum: checksum || family == Family::V6 || transport != Transport::Udp,
            signed,
        },
    )
}

fn flow(family: Family, src: u128, dst: u128, src_port: u16, dst_port: u16) -> Flow {
    let address = |bits| crate::flow::address_from(family, bits);
    Flow { src: address(src), dst: address(dst), src_port, dst_port }
}

fn any_signature() -> impl Strategy<Value = Signature> {
    let max = crate::signature::MAX_48;
    (any::<u16>(), 0..=max, 0..=max).prop_map(|(stream, sequence, time_ns)| Signature {
        stream,
        sequence,
        time_ns,
    })
}

proptest! {
    #[test]
    fn fill_is_the_slow_frame(spec in any_spec(), extra in 0u16..300, addresses: (u128, u128), ports: (u16, u16), signature in any_signature()) {
        let flow = flow(spec.family, addresses.0, addresses.1, ports.0, ports.1);
        let len_fcs = spec.min_len_fcs() + extra;
        let template = FrameTemplate::new(&spec, len_fcs).unwrap();
        let mut frame = vec![0xa5; 600];
        let len = template.fill(&mut frame, &flow, Some(&signature));
        prop_assert_eq!(len, usize::from(len_fcs) - 4);
        prop_assert_eq!(template.len_fcs(), len_fcs);
        prop_assert_eq!(&frame[..len], &slow_frame(&spec, len_fcs, &flow, &signature)[..]);
        prop_assert!(frame[len..].iter().all(|&b| b == 0xa5));
        let vlan = spec.vlan.map(|tag| tag.id);
        let want = Recognised::Test { signature, flow, transport: spec.transport, vlan };
        prop_assert_eq!(recognise(&frame[..len]) == want, spec.signed);
    }

    /// What an eBPF program does: start from the base sums and add.
    #[test]
    fn base_sums_complete_a_frame(spec in any_spec(), extra in 0u16..90, addresses: (u128, u128), ports: (u16, u16), signature in any_signature()) {
        let spec = FrameSpec { l4_checksum: true, ..spec };
        let flow = flow(spec.family, addresses.0, addresses.1, ports.0, ports.1);
        let len_fcs = spec.min_len_fcs() + extra;
        let template = FrameTemplate::new(&spec, len_fcs).unwrap();
        let want = slow_frame(&spec, len_fcs, &flow, &signature);
        let sums = template.base_sums();
        let bytes = match (flow.src, flow.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => [&src.octets()[..], &dst.octets()].concat(),
            (IpAddr::V6(src), IpAddr::V6(dst)) => [&src.octets()[..], &dst.octets()].concat(),
            _ => unreachable!(),
        };
        let mut l4 = add(sums.l4, u32::from(flow.src_port) + u32::from(flow.dst_port));
        if sums.l4_covers_addresses {
            l4 = add(l4, partial(&bytes));
        }
        if spec.signed {
            l4 = add(l4, partial(&signature.encode()[4..]));
        }
        let l4_check = spec.l2_len() + spec.l3_len() + spec.transport.checksum_offset();
        let got = finish(l4);
        let got = if got == 0 && spec.transport == Transport::Udp { 0xffff } else { got };
        prop_assert_eq!(got.to_be_bytes(), [want[l4_check], want[l4_check + 1]]);
        if spec.family == Family::V4 {
            let at = spec.l2_len() + 10;
            prop_assert_eq!(finish(add(sums.ip, partial(&bytes))).to_be_bytes(), [want[at], want[at + 1]]);
        } else {
            prop_assert_eq!(sums.ip, 0);
        }
    }

    /// Base sums hold for little-endian words as well, byte-swapped.
    #[test]
    fn sums_swap(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let swapped: Vec<u8> = bytes.chunks(2).flat_map(|pair| [*pair.get(1).unwrap_or(&0), pair[0]]).collect();
        prop_assert_eq!(fold(partial(&swapped)), fold(partial(&bytes)).swap_bytes());
    }
}

#[test]
fn a_frame_of_64_bytes() {
    let spec =
        FrameSpec::new(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]), Family::V4, Transport::Udp);
    let template = FrameTemplate::new(&spec, 64).unwrap();
    let flow = flow(Family::V4, 0xc612_0a01, 0xc613_0a01, 2001, 2001);
    let mut buf = [0; 60];
    let signature = Signature { stream: 1, sequence: 2, time_ns: 3 };
    assert_eq!(template.fill(&mut buf, &flow, Some(&signature)), 60);
    let ethernet = EthernetPacket::new_checked(&buf[..]).unwrap();
    assert_eq!(EthernetRepr::parse(&ethernet).unwrap(), spec.ethernet());
    let ip = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
    assert!(
        ip.checksum_ok() && ip.dont_fragment() && ip.ident() == 0 && ip.ttl() == 10 && ip.total_len() == 46
    );
    let udp = UdpPacket::new_checked(ip.payload()).unwrap();
    assert!(udp.checksum() != 0 && udp.checksum_ok(pseudo_v4(ip.src(), ip.dst(), 17, 26)));
    assert_eq!(udp.payload(), signature.encode());
    assert_eq!(template.header_bytes().len(), 42);
    assert_eq!(template.header_bytes()[30..34], [0; 4]);
}

#[test]
fn udp_writes_ones_for_a_zero_checksum() {
    let spec = FrameSpec::new(MacAddr::default(), MacAddr::default(), Family::V4, Transport::Udp);
    let template = FrameTemplate::new(&spec, 64).unwrap();
    let mut buf = [0; 60];
    let seen = (0..=u16::MAX).find(|&src_port| {
        template.fill(&mut buf, &flow(Family::V4, 1, 2, src_port, 9), None);
        assert_ne!(buf[40..42], [0, 0]);
        buf[40..42] == [0xff, 0xff]
    });
    assert!(seen.is_some());
}

#[test]
#[should_panic(expected = "another family")]
fn a_foreign_flow_is_refused() {
    let spec = FrameSpec::new(MacAddr::default(), MacAddr::default(), Family::V6, Transport::Udp);
    FrameTemplate::new(&spec, 84).unwrap().fill(&mut [0; 80], &flow(Family::V4, 1, 2, 3, 4), None);
}
