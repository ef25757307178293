//! Tests of recognition: hostile bytes, options, tags, padding, and all that is not a test frame.

use super::*;
use crate::{Family, FlowSpace, FrameSpec, FrameTemplate, MacAddr, VlanTag};
use proptest::prelude::*;

const SIGNATURE: Signature = Signature {
    stream: 3,
    sequence: 4,
    time_ns: 5,
};

fn frame(family: Family, transport: Transport, len_fcs: u16) -> (Vec<u8>, Flow) {
    let spec = FrameSpec::new(MacAddr([2; 6]), MacAddr([4; 6]), family, transport);
    let flow = FlowSpace::benchmark(family, 2000).unwrap().flow(1234);
    let mut bytes = vec![0; usize::from(len_fcs)];
    let len = FrameTemplate::new(&spec, len_fcs)
        .unwrap()
        .fill(&mut bytes, &flow, Some(&SIGNATURE));
    bytes.truncate(len);
    (bytes, flow)
}

fn kinds() -> impl Iterator<Item = (Family, Transport)> {
    let transports = [Transport::Udp, Transport::Tcp, Transport::IcmpEcho];
    [Family::V4, Family::V6]
        .into_iter()
        .flat_map(move |family| transports.map(|transport| (family, transport)))
}

fn is_test(bytes: &[u8]) -> bool {
    matches!(recognise(bytes), Recognised::Test { .. })
}

#[test]
fn tags_and_padding() {
    for (family, transport) in kinds() {
        let (mut bytes, flow) = frame(family, transport, 128);
        bytes.extend([0; 7]);
        assert_eq!(
            recognise(&bytes),
            Recognised::Test {
                signature: SIGNATURE,
                flow,
                transport,
                vlan: None
            }
        );
        bytes.splice(12..12, [0x81, 0, 0x20, 7]);
        assert_eq!(
            recognise(&bytes),
            Recognised::Test {
                signature: SIGNATURE,
                flow,
                transport,
                vlan: Some(7)
            }
        );
        bytes.splice(12..12, [0x88, 0xa8, 0x0f, 0xfe]);
        assert_eq!(
            recognise(&bytes),
            Recognised::Test {
                signature: SIGNATURE,
                flow,
                transport,
                vlan: Some(4094)
            }
        );
        bytes.splice(12..12, [0x81, 0, 0, 1]);
        assert_eq!(
            recognise(&bytes),
            Recognised::Foreign(ForeignKind::Other(0x8100))
        );
    }
}

#[test]
fn options_are_skipped() {
    let (mut bytes, _) = frame(Family::V4, Transport::Tcp, 128);
    bytes.splice(54..54, [1; 12]);
    bytes[46] = 8 << 4;
    bytes[17] += 12;
    assert!(is_test(&bytes));
    bytes.splice(34..34, [1; 8]);
    bytes[14] = 0x47;
    bytes[17] += 8;
    assert!(is_test(&bytes));
    bytes[14] = 0x44;
    assert_eq!(recognise(&bytes), Recognised::Foreign(ForeignKind::Ipv4));
}

#[test]
fn truncations_are_foreign() {
    for (family, transport) in kinds() {
        let (bytes, _) = frame(family, transport, 128);
        for len in 0..bytes.len() {
            let want = match (len, family, transport) {
                (0..14, ..) => ForeignKind::Runt,
                (_, Family::V4, _) => ForeignKind::Ipv4,
                (21.., Family::V6, Transport::IcmpEcho) => ForeignKind::Icmpv6,
                (_, Family::V6, _) => ForeignKind::Ipv6,
            };
            assert_eq!(
                recognise(&bytes[..len]),
                Recognised::Foreign(want),
                "{family} {transport} {len}"
            );
        }
    }
}

#[test]
fn others() {
    let with_type = |kind: u16| {
        let mut bytes = [0u8; 60];
        bytes[12..14].copy_from_slice(&kind.to_be_bytes());
        recognise(&bytes)
    };
    assert_eq!(with_type(0x0806), Recognised::Foreign(ForeignKind::Arp));
    assert_eq!(
        with_type(0x88cc),
        Recognised::Foreign(ForeignKind::Other(0x88cc))
    );
    assert_eq!(with_type(0x0800), Recognised::Foreign(ForeignKind::Ipv4));
    assert_eq!(with_type(0x86dd), Recognised::Foreign(ForeignKind::Ipv6));
    let (mut bytes, _) = frame(Family::V4, Transport::Udp, 64);
    bytes[21] = 1;
    assert_eq!(
        recognise(&bytes),
        Recognised::Foreign(ForeignKind::Ipv4),
        "a fragment"
    );
    let (mut bytes, _) = frame(Family::V4, Transport::Udp, 64);
    bytes[42] = b'X';
    assert_eq!(
        recognise(&bytes),
        Recognised::Foreign(ForeignKind::Ipv4),
        "no magic"
    );
    let (mut bytes, _) = frame(Family::V4, Transport::IcmpEcho, 64);
    bytes[34] = 0;
    assert!(!is_test(&bytes), "an echo reply");
    // A multicast listener report: hop-by-hop header first.
    let (mut bytes, _) = frame(Family::V6, Transport::IcmpEcho, 100);
    bytes[20] = 0;
    bytes[54] = 58;
    assert_eq!(recognise(&bytes), Recognised::Foreign(ForeignKind::Icmpv6));
}

#[test]
fn a_tag_is_written_and_read() {
    let tag = VlanTag {
        id: 100,
        priority: 5,
    };
    let spec = FrameSpec::new(MacAddr([2; 6]), MacAddr([4; 6]), Family::V4, Transport::Udp);
    let template = FrameTemplate::new(
        &FrameSpec {
            vlan: Some(tag),
            ..spec
        },
        68,
    )
    .unwrap();
    let mut bytes = [0; 64];
    template.fill(
        &mut bytes,
        &FlowSpace::benchmark(Family::V4, 1).unwrap().flow(0),
        None,
    );
    let Recognised::Test {
        vlan, signature, ..
    } = recognise(&bytes)
    else {
        panic!()
    };
    assert_eq!((vlan, signature), (Some(100), Signature::default()));
}

proptest! {
    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        recognise(&bytes);
    }

    #[test]
    fn never_panics_on_damage(kind in 0usize..6, len_fcs in 96u16..200, cut: prop::sample::Index, damage in prop::collection::vec((0usize..90, any::<u8>()), 0..4)) {
        let (family, transport) = kinds().nth(kind).unwrap();
        let (mut bytes, _) = frame(family, transport, len_fcs + 8);
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        recognise(&bytes[..cut.index(bytes.len() + 1)]);
    }
}
