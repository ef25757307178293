//! The bytes of messages: attributes, numbers, texts and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of an attribute's header, and the alignment of attributes.
const ATTRIBUTE_HEADER: usize = 4;

/// Without the flags "nested" and "network byte order".
const TYPE_MASK: u16 = 0x3fff;

/// The body of a request: a fixed header, and attributes behind it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body(pub Vec<u8>);

impl Body {
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Body {
        let length = (ATTRIBUTE_HEADER + value.len()) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(align(self.0.len()), 0);
        self
    }

    pub(crate) fn number(self, kind: u16, value: u32) -> Body {
        self.with(kind, &value.to_ne_bytes())
    }

    pub(crate) fn text(self, kind: u16, value: &str) -> Body {
        self.with(kind, &[value.as_bytes(), b"\0"].concat())
    }

    pub(crate) fn ip(self, kind: u16, value: IpAddr) -> Body {
        match value {
            IpAddr::V4(v4) => self.with(kind, &v4.octets()),
            IpAddr::V6(v6) => self.with(kind, &v6.octets()),
        }
    }

    /// An attribute that holds the attributes of another body.
    pub(crate) fn nest(self, kind: u16, inside: Body) -> Body {
        self.with(kind, &inside.0)
    }
}

/// The attributes that follow a fixed header of `header` bytes: type and value. Ends at the first that does not fit.
pub(crate) fn attributes(bytes: &[u8], header: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes.get(header..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & TYPE_MASK;
        let value = rest.get(ATTRIBUTE_HEADER..length)?;
        rest = rest.get(align(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of a kind behind a fixed header.
pub(crate) fn attribute(bytes: &[u8], header: usize, wanted: u16) -> Option<&[u8]> {
    attributes(bytes, header)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}

/// The next multiple of four.
pub(crate) fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// A number of 16 bits in host order.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

/// A number of 32 bits in host order.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

/// A number of 64 bits in host order.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(
        bytes.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

/// Text up to the first NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// An address of 4 or 16 bytes.
pub(crate) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|b| IpAddr::from(Ipv4Addr::from(b)));
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|b| IpAddr::from(Ipv6Addr::from(b))))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote() {
        let body = Body(vec![7; 4]).text(3, "g0").number(0x8004, 9);
        let read: Vec<_> = attributes(&body.0, 4).collect();
        assert_eq!(read, [(3, &b"g0\0"[..]), (4, &9u32.to_ne_bytes()[..])]);
        assert_eq!(text(read[0].1), "g0");
    }

    #[test]
    fn hostile_lengths_end_the_list() {
        for length in [0u16, 1, 3, 5, 9, 0xffff] {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend([1, 0]);
            assert_eq!(attributes(&bytes, 0).count(), 0, "{length}");
        }
        assert_eq!(attributes(&[4, 0], 0).count(), 0);
        assert_eq!(ip(&[1, 2, 3]), None);
        assert_eq!(u32_at(&[0; 4], usize::MAX), None);
    }

    #[test]
    fn the_last_attribute_may_lack_its_padding() {
        let bytes = [5u16.to_ne_bytes(), 7u16.to_ne_bytes(), [1, 0]].concat();
        assert_eq!(
            attributes(&bytes[..5], 0).collect::<Vec<_>>(),
            [(7, &[1u8][..])]
        );
    }
}
