//! The answer to a test frame, as its destination host would send it.

use crate::checksum::update;
use crate::headers::{EtherType, TCP_ACK, TCP_SYN, echo, put_word, word};
use crate::{Recognised, Transport, extensions, recognise};

/// Turns a test frame (without FCS) into its answer, in place: addresses and ports are exchanged, an echo request becomes an echo
/// reply, a SYN becomes a SYN/ACK that acknowledges its data (RFC 9293 section 3.5). Length, payload and signature stay, checksums
/// hold if they held before. Returns whose frame it was, the high byte of its stream; `None` leaves a frame that is not a test frame
/// as it is.
pub fn answer(frame: &mut [u8]) -> Option<u8> {
    let Recognised::Test {
        signature,
        transport,
        ..
    } = recognise(frame)
    else {
        return None;
    };
    let mut l3 = 14;
    while EtherType(word(frame, l3 - 2)).is_tag() {
        l3 += 4;
    }
    let v6 = frame[l3] >> 4 == 6;
    let (addresses, address_len, l4, end) = if v6 {
        let skipped =
            extensions::skip(frame[l3 + 6], &frame[l3 + 40..]).map_or(0, |(_, bytes)| bytes);
        (
            l3 + 8,
            16,
            l3 + 40 + skipped,
            l3 + 40 + usize::from(word(frame, l3 + 4)),
        )
    } else {
        (
            l3 + 12,
            4,
            l3 + usize::from(frame[l3] & 15) * 4,
            l3 + usize::from(word(frame, l3 + 2)),
        )
    };
    exchange(frame, 0, 6);
    exchange(frame, addresses, address_len);
    match transport {
        Transport::Udp => exchange(frame, l4, 2),
        Transport::Tcp => {
            exchange(frame, l4, 2);
            let payload = end - l4 - usize::from(frame[l4 + 12] >> 4) * 4;
            syn_ack(frame, l4, payload as u32);
        }
        Transport::IcmpEcho => {
            let reply = if v6 { echo::V6_REPLY } else { echo::REPLY };
            set_word(frame, l4, u16::from(reply) << 8, l4 + 2);
        }
    }
    Some((signature.stream >> 8) as u8)
}

/// Makes a SYN with `payload` bytes of data the SYN/ACK to it.
fn syn_ack(frame: &mut [u8], l4: usize, payload: u32) {
    let check = l4 + 16;
    let sequence = u32::from(word(frame, l4 + 4)) << 16 | u32::from(word(frame, l4 + 6));
    let acknowledged = sequence.wrapping_add(1).wrapping_add(payload);
    set_word(frame, l4 + 8, (acknowledged >> 16) as u16, check);
    set_word(frame, l4 + 10, acknowledged as u16, check);
    let flags = word(frame, l4 + 12) & 0xff00 | u16::from(TCP_SYN | TCP_ACK);
    set_word(frame, l4 + 12, flags, check);
}

/// Sets a word and updates the checksum at `check` that covers it.
fn set_word(frame: &mut [u8], at: usize, new: u16, check: usize) {
    let updated = update(word(frame, check), word(frame, at), new);
    put_word(frame, at, new);
    put_word(frame, check, updated);
}

/// Exchanges two neighbours of `len` bytes: sums over both stay the same.
fn exchange(frame: &mut [u8], at: usize, len: usize) {
    let (first, second) = frame[at..at + 2 * len].split_at_mut(len);
    first.swap_with_slice(second);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Family, FrameSpec, FrameTemplate, VlanTag};
    use crate::{FlowSpace, MacAddr, Signature, checksum};

    fn frame(family: Family, transport: Transport, vlan: Option<VlanTag>) -> Vec<u8> {
        let (dst, src) = (MacAddr([2; 6]), MacAddr([4; 6]));
        let spec = FrameSpec {
            vlan,
            ..FrameSpec::new(dst, src, family, transport)
        };
        let flow = FlowSpace::benchmark(family, 2000).unwrap().flow(1234);
        let signature = Signature {
            stream: 0x0703,
            sequence: 4,
            time_ns: 5,
        };
        let mut bytes = vec![0; 200];
        let len = FrameTemplate::new(&spec, 128)
            .unwrap()
            .fill(&mut bytes, &flow, Some(&signature));
        bytes.truncate(len);
        bytes
    }

    /// Whether the transport's checksum, computed in full, holds.
    fn checksum_holds(frame: &[u8], l3: usize, transport: Transport) -> bool {
        let v6 = frame[l3] >> 4 == 6;
        let (addresses, l4) = if v6 {
            (l3 + 8..l3 + 40, l3 + 40)
        } else {
            (l3 + 12..l3 + 20, l3 + 20)
        };
        let family = if v6 { Family::V6 } else { Family::V4 };
        let pseudo = match (v6, transport) {
            (false, Transport::IcmpEcho) => 0,
            _ => {
                let length = (frame.len() - l4) as u32 + u32::from(transport.protocol(family));
                checksum::add(checksum::partial(&frame[addresses]), length)
            }
        };
        checksum::fold(checksum::add(pseudo, checksum::partial(&frame[l4..]))) == 0xffff
    }

    #[test]
    fn an_answer_goes_back_with_checksums_that_hold() {
        for family in [Family::V4, Family::V6] {
            for transport in [Transport::Udp, Transport::Tcp, Transport::IcmpEcho] {
                for vlan in [None, Some(VlanTag { id: 7, priority: 0 })] {
                    let asked = frame(family, transport, vlan);
                    let mut answered = asked.clone();
                    assert_eq!(answer(&mut answered), Some(7), "{family} {transport}");
                    let l3 = if vlan.is_some() { 18 } else { 14 };
                    let addresses = if family == Family::V4 {
                        (l3 + 12, 4)
                    } else {
                        (l3 + 8, 16)
                    };
                    let (at, len) = addresses;
                    assert_eq!(
                        (&answered[..6], &answered[6..12]),
                        (&asked[6..12], &asked[..6])
                    );
                    assert_eq!(answered[at..at + len], asked[at + len..at + 2 * len]);
                    assert!(
                        checksum_holds(&asked, l3, transport)
                            && checksum_holds(&answered, l3, transport)
                    );
                    let ports = at + 2 * len;
                    if transport == Transport::IcmpEcho {
                        assert_eq!(
                            (answered[ports], &answered[ports + 4..]),
                            (
                                if family == Family::V4 {
                                    echo::REPLY
                                } else {
                                    echo::V6_REPLY
                                },
                                &asked[ports + 4..],
                            )
                        );
                    } else {
                        assert_eq!(answered[ports..ports + 2], asked[ports + 2..ports + 4]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_syn_is_acknowledged_with_its_data() {
        let mut bytes = frame(Family::V4, Transport::Tcp, None);
        bytes[38..42].copy_from_slice(&0xffff_fff0u32.to_be_bytes());
        answer(&mut bytes).unwrap();
        let segment = smoltcp::wire::TcpPacket::new_checked(&bytes[34..]).unwrap();
        assert!(segment.syn() && segment.ack() && !segment.rst() && !segment.fin());
        // 128 bytes less FCS and headers of 14, 20 and 20.
        assert_eq!(
            segment.ack_number().0 as u32,
            0xffff_fff0u32.wrapping_add(1 + 70)
        );
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        let mut bytes = frame(Family::V4, Transport::Udp, None);
        bytes[42] ^= 1;
        let before = bytes.clone();
        assert_eq!((answer(&mut bytes), &bytes), (None, &before));
        for len in 0..60 {
            let mut short = frame(Family::V6, Transport::Tcp, None)[..len].to_vec();
            assert_eq!(answer(&mut short), None);
        }
    }
}
