//! IPv6 extension headers of test frames (RFC 8200, section 4; RFC 5180, section 5.3).

use crate::{Result, WireError};
use std::fmt;
use std::str::FromStr;

/// Headers between the IPv6 header and the transport header. Options are padding, so routers need not act on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Extensions {
    /// None.
    #[default]
    None,
    /// Hop-by-hop options, which every router on the way may examine.
    HopByHop,
    /// Destination options.
    DestinationOptions,
    /// A routing header of type 2 with no segment left.
    Routing,
    /// The fragment header of a whole packet.
    Fragment,
    /// Routing, destination options and fragment: the chain that RFC 5180 recommends, of 40 bytes.
    Chain,
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

/// Most headers of a test frame.
const MOST: usize = 4;

const NAMES: [(Extensions, &str, &[u8]); 6] = [
    (Extensions::None, "none", &[]),
    (Extensions::HopByHop, "hop-by-hop", &[HOP_BY_HOP]),
    (
        Extensions::DestinationOptions,
        "destination-options",
        &[DESTINATION],
    ),
    (Extensions::Routing, "routing", &[ROUTING]),
    (Extensions::Fragment, "fragment", &[FRAGMENT]),
    (
        Extensions::Chain,
        "chain",
        &[ROUTING, DESTINATION, FRAGMENT],
    ),
];

impl Extensions {
    /// Protocol numbers of the headers, in order.
    pub fn headers(self) -> &'static [u8] {
        NAMES
            .iter()
            .find(|(of, ..)| *of == self)
            .map_or(&[], |(.., headers)| headers)
    }

    /// Length of the headers in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.headers().iter().map(|header| length(*header)).sum()
    }

    /// Writes the headers into zeros in front of a transport header of `protocol`; returns the first one's number for the IPv6 header.
    pub(crate) fn write(self, mut at: &mut [u8], protocol: u8) -> u8 {
        let headers = self.headers();
        for (number, header) in headers.iter().enumerate() {
            let (own, rest) = at.split_at_mut(length(*header));
            own[0] = headers.get(number + 1).copied().unwrap_or(protocol);
            match *header {
                ROUTING => (own[1], own[2]) = (2, 2),
                FRAGMENT => {}
                // PadN, with four bytes of data.
                _ => (own[2], own[3]) = (1, 4),
            }
            at = rest;
        }
        headers.first().copied().unwrap_or(protocol)
    }
}

/// Length of a header in test frames, in bytes.
fn length(header: u8) -> usize {
    if header == ROUTING { 24 } else { 8 }
}

/// The transport protocol behind extension headers, and their bytes; `next` is the IPv6 header's number, `packet` everything behind it.
/// `None` for a fragment, or more headers than test frames have.
pub(crate) fn skip(mut next: u8, packet: &[u8]) -> Option<(u8, usize)> {
    let mut at = 0;
    for _ in 0..=MOST {
        let header = packet.get(at..at + 8);
        let units = match next {
            HOP_BY_HOP | DESTINATION | ROUTING => usize::from(header?[1]),
            FRAGMENT if header?[2..4] == [0, 0] => 0,
            FRAGMENT => return None,
            transport => return Some((transport, at)),
        };
        next = header?[0];
        at += 8 * (units + 1);
    }
    None
}

impl fmt::Display for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            NAMES
                .iter()
                .find(|(of, ..)| of == self)
                .map_or("none", |(_, name, _)| name),
        )
    }
}

impl FromStr for Extensions {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self> {
        let found = NAMES.iter().find(|(_, name, _)| *name == text);
        found.map(|(of, ..)| *of).ok_or_else(|| {
            let names = NAMES.map(|(_, name, _)| name).join(", ");
            WireError::new(format!(
                "{text:?} is not a choice of extension headers; write one of {names}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Family, FlowSpace, FrameSpec, FrameTemplate, MacAddr, Recognised, Signature, Transport,
    };
    use crate::{answer, checksum, recognise};
    use proptest::prelude::*;

    fn frame(extensions: Extensions) -> Vec<u8> {
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        let spec = FrameSpec {
            extensions,
            ..FrameSpec::new(mac, mac, Family::V6, Transport::Udp)
        };
        let flow = FlowSpace::benchmark(Family::V6, 10).unwrap().flow(3);
        let mut bytes = vec![0; 200];
        let len = FrameTemplate::new(&spec, spec.min_len_fcs()).unwrap().fill(
            &mut bytes,
            &flow,
            Some(&Signature {
                stream: 0x0703,
                sequence: 4,
                time_ns: 5,
            }),
        );
        bytes.truncate(len);
        bytes
    }

    /// By an independent reader of packets.
    #[test]
    fn frames_with_extension_headers_are_whole_and_recognised() {
        for (extensions, _, headers) in NAMES {
            let bytes = frame(extensions);
            let lengths: usize = headers
                .iter()
                .map(|header| if *header == ROUTING { 24 } else { 8 })
                .sum();
            assert_eq!(
                (bytes.len(), extensions.len()),
                (80 + lengths, lengths),
                "{extensions}"
            );
            assert_eq!(
                bytes[18..20],
                ((26 + lengths) as u16).to_be_bytes(),
                "the payload's length counts them"
            );
            let mut next = bytes[20];
            let mut at = 54;
            for header in headers {
                assert_eq!(next, *header, "{extensions}");
                next = bytes[at];
                at += if *header == FRAGMENT {
                    8
                } else {
                    8 * (usize::from(bytes[at + 1]) + 1)
                };
            }
            assert_eq!(next, 17, "{extensions}");
            let length = (bytes.len() - at) as u32;
            let sums = [
                checksum::partial(&bytes[22..54]),
                17 + length,
                checksum::partial(&bytes[at..]),
            ];
            assert_eq!(
                checksum::fold(sums.into_iter().fold(0, checksum::add)),
                0xffff,
                "{extensions}"
            );
            let Recognised::Test { signature, .. } = recognise(&bytes) else {
                panic!("{extensions}")
            };
            assert_eq!((signature.stream, signature.sequence), (0x0703, 4));
            let mut back = bytes.clone();
            assert_eq!(answer(&mut back), Some(7));
            assert_eq!(
                (&back[at..at + 2], &back[at + 2..at + 4]),
                (&bytes[at + 2..at + 4], &bytes[at..at + 2])
            );
            assert_eq!(extensions.to_string().parse(), Ok(extensions));
        }
        assert!(Extensions::Chain.len() > 32, "RFC 5180, section 5.3");
        assert!(
            "ah".parse::<Extensions>()
                .unwrap_err()
                .to_string()
                .contains("hop-by-hop")
        );
    }

    #[test]
    fn a_fragment_and_a_long_chain_are_no_test_frames() {
        let mut bytes = frame(Extensions::Fragment);
        bytes[57] = 1;
        assert!(
            !matches!(recognise(&bytes), Recognised::Test { .. }),
            "more fragments follow"
        );
        assert_eq!(skip(DESTINATION, &[DESTINATION; 8].repeat(400)), None);
        assert_eq!(
            skip(DESTINATION, &[DESTINATION; 8].map(|_| 0)),
            None,
            "cut short"
        );
    }

    proptest! {
        #[test]
        fn never_panics(next: u8, packet in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = skip(next, &packet);
        }
    }
}
