//! Tests of frame templates: against frames that smoltcp puts together, with every checksum computed in full.

use super::*;
use crate::VlanTag;
use crate::checksum::{fold, partial};
use crate::{Extensions, MacAddr, Recognised, recognise};
use proptest::prelude::*;
use smoltcp::phy::{Checksum, ChecksumCapabilities};
use smoltcp::wire::*;

/// The frame that a template writes, by smoltcp.
fn slow_frame(spec: &FrameSpec, len_fcs: u16, flow: &Flow, signature: &Signature) -> Vec<u8> {
    let mut frame = vec![0; usize::from(len_fcs) - FCS_LEN];
    let signature = if spec.signed {
        signature.encode().to_vec()
    } else {
        Vec::new()
    };
    let counted = (0..=255)
        .cycle()
        .skip(spec.l3_len() - 20)
        .take(frame.len() - spec.header_len() - signature.len());
    let payload: Vec<u8> = signature.into_iter().chain(counted).collect();

    let mut ethernet = EthernetFrame::new_unchecked(&mut frame);
    ethernet.set_dst_addr(EthernetAddress(spec.dst_mac.0));
    ethernet.set_src_addr(EthernetAddress(spec.src_mac.0));
    let ethertype: u16 = if spec.family == Family::V4 {
        0x0800
    } else {
        0x86dd
    };
    ethernet.set_ethertype(ethertype.into());
    if let Some(VlanTag { id, priority }) = spec.vlan {
        ethernet.set_ethertype(0x8100.into());
        let control = u16::from(priority) << 13 | id;
        frame[14..18].copy_from_slice(&[control.to_be_bytes(), ethertype.to_be_bytes()].concat());
    }
    let mut sums = ChecksumCapabilities::default();
    if !spec.l4_checksum {
        sums.udp = Checksum::None;
    }
    let l3 = &mut frame[spec.l2_len()..];
    let payload_len = l3.len() - spec.l3_len();
    let (v4, transport) = (spec.family == Family::V4, spec.transport);
    let next_header = match transport {
        Transport::Udp => IpProtocol::Udp,
        Transport::Tcp => IpProtocol::Tcp,
        Transport::IcmpEcho if v4 => IpProtocol::Icmp,
        Transport::IcmpEcho => IpProtocol::Icmpv6,
    };
    let (src, dst): (IpAddress, IpAddress) = (flow.src.into(), flow.dst.into());
    IpRepr::new(src, dst, next_header, payload_len, spec.ttl).emit(&mut *l3, &sums);
    let l4 = &mut l3[spec.l3_len()..];
    let Flow {
        src_port, dst_port, ..
    } = *flow;
    match (transport, flow.src, flow.dst) {
        (Transport::Udp, ..) => UdpRepr { src_port, dst_port }.emit(
            &mut UdpPacket::new_unchecked(l4),
            &src,
            &dst,
            payload.len(),
            |bytes| bytes.copy_from_slice(&payload),
            &sums,
        ),
        (Transport::Tcp, ..) => TcpRepr {
            src_port,
            dst_port,
            control: TcpControl::Syn,
            seq_number: TcpSeqNumber(0),
            ack_number: None,
            window_len: 65_535,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &payload,
        }
        .emit(&mut TcpPacket::new_unchecked(l4), &src, &dst, &sums),
        (Transport::IcmpEcho, IpAddr::V6(src), IpAddr::V6(dst)) => {
            let repr = Icmpv6Repr::EchoRequest {
                ident: src_port,
                seq_no: dst_port,
                data: &payload,
            };
            repr.emit(&src, &dst, &mut Icmpv6Packet::new_unchecked(l4), &sums);
        }
        (Transport::IcmpEcho, ..) => {
            let repr = Icmpv4Repr::EchoRequest {
                ident: src_port,
                seq_no: dst_port,
                data: &payload,
            };
            repr.emit(&mut Icmpv4Packet::new_unchecked(l4), &sums);
        }
    }
    frame
}

fn any_spec() -> impl Strategy<Value = FrameSpec> {
    let family = prop::sample::select(vec![Family::V4, Family::V6]);
    let transport = prop::sample::select(vec![Transport::Udp, Transport::Tcp, Transport::IcmpEcho]);
    let tag =
        prop::option::of((0u16..4095, 0u8..8).prop_map(|(id, priority)| VlanTag { id, priority }));
    let macs = any::<([u8; 6], [u8; 6])>();
    (family, transport, tag, macs, any::<(u8, bool, bool)>()).prop_map(
        |(family, transport, vlan, (dst, src), (ttl, checksum, signed))| FrameSpec {
            may_fragment: false,
            extensions: Extensions::None,
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
    let address = |bits| crate::endpoints::address_from(family, bits);
    Flow {
        src: address(src),
        dst: address(dst),
        src_port,
        dst_port,
    }
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

    /// The steps of an eBPF program: start from the base sums and add.
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
    let spec = FrameSpec::new(
        MacAddr([2, 0, 0, 0, 0, 2]),
        MacAddr([2, 0, 0, 0, 0, 1]),
        Family::V4,
        Transport::Udp,
    );
    let template = FrameTemplate::new(&spec, 64).unwrap();
    let flow = flow(Family::V4, 0xc612_0a01, 0xc613_0a01, 2001, 2001);
    let mut buf = [0; 60];
    let signature = Signature {
        stream: 1,
        sequence: 2,
        time_ns: 3,
    };
    assert_eq!(template.fill(&mut buf, &flow, Some(&signature)), 60);
    let ip = Ipv4Packet::new_checked(&buf[14..]).unwrap();
    assert!(ip.verify_checksum() && ip.dont_frag() && !ip.more_frags());
    assert_eq!((ip.ident(), ip.hop_limit(), ip.total_len()), (0, 10, 46));
    let udp = UdpPacket::new_checked(ip.payload()).unwrap();
    assert!(
        udp.checksum() != 0 && udp.verify_checksum(&ip.src_addr().into(), &ip.dst_addr().into())
    );
    assert_eq!(udp.payload(), signature.encode());
    assert_eq!(
        template.bytes()[26..38],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}

#[test]
fn udp_writes_ones_for_a_zero_checksum() {
    let spec = FrameSpec::new(
        MacAddr::default(),
        MacAddr::default(),
        Family::V4,
        Transport::Udp,
    );
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
    let spec = FrameSpec::new(
        MacAddr::default(),
        MacAddr::default(),
        Family::V6,
        Transport::Udp,
    );
    FrameTemplate::new(&spec, 84)
        .unwrap()
        .fill(&mut [0; 80], &flow(Family::V4, 1, 2, 3, 4), None);
}

#[test]
fn the_test_frame_of_rfc_2544() {
    let nowhere = MacAddr::default();
    let plain = FrameSpec::new(nowhere, nowhere, Family::V4, Transport::Udp);
    let spec = FrameSpec {
        l4_checksum: false,
        may_fragment: true,
        signed: false,
        ..plain
    };
    let (src_port, dst_port) = crate::RFC2544_PORTS;
    let flow = Flow {
        src: [198, 18, 1, 2].into(),
        dst: [198, 19, 1, 2].into(),
        src_port,
        dst_port,
    };
    let mut frame = [0; 60];
    FrameTemplate::new(&spec, 64)
        .unwrap()
        .fill(&mut frame, &flow, None);
    // Appendix C.2.6.4, without the addresses and the sum over them.
    let head = [
        0x08, 0x00, 0x45, 0x00, 0x00, 0x2e, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x11,
    ];
    assert_eq!(frame[12..24], head);
    assert_eq!(
        frame[34..42],
        [0xc0, 0x20, 0x00, 0x07, 0x00, 0x1a, 0x00, 0x00]
    );
    assert!(frame[42..60].iter().copied().eq(0..18), "counting octets");
}
