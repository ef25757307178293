//! Frames as a TAP hands them over: a header of virtio-net, and a frame that may stand for many segments of TCP.

use std::collections::BTreeMap;

/// `struct virtio_net_hdr`: flags, kind of segmentation, length of the headers, payload of a segment, two places of a checksum.
pub const HEADER: usize = 10;
const ETHERNET: usize = 14;
/// FCS, preamble and gap.
const OVERHEAD: u64 = 24;
/// The shortest frame without FCS.
const LEAST: u64 = 60;
const IPV4: [u8; 2] = [8, 0];
const TCP: u8 = 6;

/// A frame in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Frames on a wire: the segments that a super-frame stands for.
    pub frames: u64,
    /// Bytes of these at layer 1.
    pub wire: u64,
    /// Bytes of the IPv4 packet as the kernel counts it, once for all of its segments; 0 for anything else.
    pub packet: u64,
}

impl Shape {
    /// The shape of a frame with its header. Frames that cannot be understood count as one.
    pub fn of(frame: &[u8]) -> Shape {
        let (header, frame) = frame.split_at(frame.len().min(HEADER));
        let len = frame.len() as u64;
        let is_ip = frame.get(12..14) == Some(&IPV4);
        let packet = if is_ip {
            len.saturating_sub(ETHERNET as u64)
        } else {
            0
        };
        let each = match header {
            [_, kind, _, _, low, high, ..] if *kind != 0 => {
                u64::from(u16::from_le_bytes([*low, *high]))
            }
            _ => 0,
        };
        let payload = Tcp::of(frame).map_or(0, |tcp| tcp.payload);
        let frames = if each > 0 {
            payload.div_ceil(each).max(1)
        } else {
            1
        };
        let headers = len.saturating_sub(payload);
        let wire = if frames == 1 {
            len.max(LEAST)
        } else {
            payload + frames * headers
        };
        Shape {
            frames,
            wire: wire + frames * OVERHEAD,
            packet,
        }
    }
}

/// A segment of TCP in IPv4.
struct Tcp {
    ports: [u16; 2],
    sequence: u32,
    acknowledged: Option<u32>,
    is_first: bool,
    payload: u64,
}

impl Tcp {
    fn of(frame: &[u8]) -> Option<Tcp> {
        if frame.get(12..14)? != IPV4 || *frame.get(ETHERNET + 9)? != TCP {
            return None;
        }
        let transport = ETHERNET + 4 * usize::from(frame[ETHERNET] & 15);
        let header: &[u8; 20] = frame.get(transport..)?.first_chunk()?;
        let data = transport + 4 * usize::from(header[12] >> 4);
        let [a, b, c, d, s0, s1, s2, s3, a0, a1, a2, a3, _, flags, ..] = *header;
        Some(Tcp {
            ports: [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])],
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            acknowledged: (flags & 0x10 != 0).then(|| u32::from_be_bytes([a0, a1, a2, a3])),
            is_first: flags & 2 != 0,
            payload: frame.len().checked_sub(data)? as u64,
        })
    }
}

/// Bytes of a connection, each counted once, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Bytes of payload that the sender has sent, each counted once however often it was sent.
    pub sent: u64,
    /// Bytes of payload that it sent again.
    pub again: u64,
    /// Bytes that the other end has acknowledged.
    pub acknowledged: u64,
    next: u32,
    acknowledged_to: u32,
}

/// Connections at most: iperf3 has 128, and one for control.
const MOST: usize = 256;

/// The connections of one direction, by their ports.
#[derive(Debug, Clone, Default)]
pub struct Flows(BTreeMap<[u16; 2], Flow>);

impl Flows {
    /// A frame of this direction.
    pub fn sent(&mut self, frame: &[u8]) {
        let Some(tcp) = frame.get(HEADER..).and_then(Tcp::of) else {
            return;
        };
        if tcp.is_first && self.0.len() < MOST {
            let next = tcp.sequence.wrapping_add(1);
            let flow = Flow {
                next,
                acknowledged_to: next,
                ..Flow::default()
            };
            // One that is asked for again stays.
            self.0.entry(tcp.ports).or_insert(flow);
        }
        let Some(flow) = self.0.get_mut(&tcp.ports).filter(|_| tcp.payload > 0) else {
            return;
        };
        let end = tcp.sequence.wrapping_add(tcp.payload as u32);
        // How far it goes beyond what was sent; the numbers wrap.
        let new = u64::from(
            end.wrapping_sub(flow.next)
                .cast_signed()
                .max(0)
                .cast_unsigned(),
        );
        flow.sent += new;
        flow.again += tcp.payload.saturating_sub(new);
        if new > 0 {
            flow.next = end;
        }
    }

    /// A frame of the other direction.
    pub fn answered(&mut self, frame: &[u8]) {
        let Some(tcp) = frame.get(HEADER..).and_then(Tcp::of) else {
            return;
        };
        let [from, to] = tcp.ports;
        let (Some(flow), Some(number)) = (self.0.get_mut(&[to, from]), tcp.acknowledged) else {
            return;
        };
        let new = number.wrapping_sub(flow.acknowledged_to).cast_signed();
        if new > 0 {
            // A FIN counts as a byte of sequence numbers, and is none.
            flow.acknowledged = (flow.acknowledged + u64::from(new.cast_unsigned())).min(flow.sent);
            flow.acknowledged_to = number;
        }
    }

    /// The sum of the connections to this port that carried most, so many.
    pub fn largest(&self, port: u16, count: usize) -> Flow {
        let mut to: Vec<&Flow> = self
            .0
            .iter()
            .filter(|(ports, _)| ports[1] == port)
            .map(|(_, flow)| flow)
            .collect();
        to.sort_by_key(|flow| std::cmp::Reverse(flow.sent));
        to.into_iter()
            .take(count)
            .fold(Flow::default(), |sum, flow| Flow {
                sent: sum.sent + flow.sent,
                again: sum.again + flow.again,
                acknowledged: sum.acknowledged + flow.acknowledged,
                ..sum
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A segment with 12 bytes of options; `each`: the payload of each segment that it stands for.
    fn segment(
        ports: [u16; 2],
        numbers: [u32; 2],
        flags: u8,
        payload: usize,
        each: u16,
    ) -> Vec<u8> {
        let mut frame = vec![0; HEADER + ETHERNET + 20 + 32 + payload];
        frame[1] = u8::from(each > 0);
        frame[4..6].copy_from_slice(&each.to_le_bytes());
        let ethernet = &mut frame[HEADER..];
        ethernet[12..14].copy_from_slice(&IPV4);
        (ethernet[14], ethernet[23]) = (0x45, TCP);
        let tcp = &mut ethernet[34..];
        tcp[0..2].copy_from_slice(&ports[0].to_be_bytes());
        tcp[2..4].copy_from_slice(&ports[1].to_be_bytes());
        tcp[4..8].copy_from_slice(&numbers[0].to_be_bytes());
        tcp[8..12].copy_from_slice(&numbers[1].to_be_bytes());
        (tcp[12], tcp[13]) = (0x80, flags);
        frame
    }

    #[test]
    fn a_super_frame_is_all_of_its_segments() {
        let one = Shape::of(&segment([1, 2], [0, 0], 0x10, 1448, 0));
        assert_eq!(
            one,
            Shape {
                frames: 1,
                wire: 1538,
                packet: 1500
            }
        );
        let many = Shape::of(&segment([1, 2], [0, 0], 0x10, 10 * 1448, 1448));
        assert_eq!(
            many,
            Shape {
                frames: 10,
                wire: 15_380,
                packet: 52 + 14_480
            }
        );
        let odd = Shape::of(&segment([1, 2], [0, 0], 0x10, 1448 + 1, 1448));
        assert_eq!((odd.frames, odd.wire), (2, 1449 + 2 * 90));
        assert_eq!(
            Shape::of(&segment([1, 2], [0, 0], 0x10, 0, 0)).wire,
            66 + 24
        );
        assert_eq!(
            Shape::of(&[0; 20]),
            Shape {
                frames: 1,
                wire: 84,
                packet: 0
            }
        );
    }

    #[test]
    fn bytes_are_counted_once_though_they_are_sent_twice_and_numbers_wrap() {
        let start = u32::MAX - 1500;
        let mut flows = Flows::default();
        flows.sent(&segment([7, 9], [start, 0], 2, 0, 0));
        let first = start.wrapping_add(1);
        flows.sent(&segment([7, 9], [first, 0], 0x10, 1448, 0));
        flows.sent(&segment(
            [7, 9],
            [first.wrapping_add(1448), 0],
            0x10,
            1448,
            0,
        ));
        flows.sent(&segment([7, 9], [first, 0], 0x10, 1448, 0));
        flows.answered(&segment([9, 7], [0, first.wrapping_add(1448)], 0x10, 0, 0));
        let flow = flows.largest(9, 1);
        assert_eq!(
            (flow.sent, flow.again, flow.acknowledged),
            (2896, 1448, 1448)
        );
        // The flow's FIN is acknowledged as well.
        flows.answered(&segment([9, 7], [0, first.wrapping_add(2897)], 0x10, 0, 0));
        assert_eq!(flows.largest(9, 5).acknowledged, 2896);
        assert_eq!((flows.largest(9, 0).sent, flows.largest(8, 1).sent), (0, 0));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_no_panic(frame in any::<Vec<u8>>()) {
            let mut flows = Flows::default();
            flows.sent(&frame);
            flows.answered(&frame);
            prop_assert!(Shape::of(&frame).frames >= 1);
        }
    }
}
