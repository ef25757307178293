//! The grammar of address and port ranges: pkt-gen's, as documented and as used, and short forms.

use crate::WireError;
use crate::flow::{DEFAULT_PORT, EndpointRange, address_bits, address_from, family_of};
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// The forms, with `A`, `B` addresses (IPv6 in brackets where a port follows) and `p`, `q` ports:
///
/// | form | addresses | ports |
/// |---|---|---|
/// | `A` | A | [`DEFAULT_PORT`] |
/// | `A:p` | A | p |
/// | `A:p-q` | A | p to q |
/// | `A-B` | A to B | [`DEFAULT_PORT`] |
/// | `A:p-B` | A to B | p |
/// | `A:p-B:q` | A to B | p to q |
/// | `A-B:p-q`, `A-B:p` | A to B | p to q, p |
/// | `198.18.10.1-20` | to 198.18.10.20; ports as above, but `A:p-20` is read as `A:p-q` | |
/// | `198.18.65.0/24`, also with `:p` or `:p-q` | hosts: no network and broadcast address up to /30, no ::0 up to /126 | as above |
///
/// Three of them follow pkt-gen's manual, and differ from its parser: for `A-B:p` the manual has the one port p, but the parser
/// counts from its default port to p; for `A-B:p-q` the parser loses q; and in `A:p-q` it takes q for an address.
impl FromStr for EndpointRange {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        let text = text.trim();
        let ends = if text.contains('/') { network(text) } else { range(text) };
        let (first, last, (first_port, last_port)) = ends.ok_or_else(|| {
            WireError::new(format!(
                "{text:?} is not a range of addresses and ports; write for example 198.18.10.1:2001-198.18.10.20:2010, \
                 [2001:2::1]:2001-[2001:2::14]:2010, or a network without bits behind its prefix: 198.18.65.0/24:2000-2010"
            ))
        })?;
        EndpointRange::new(first, last, first_port, last_port)
    }
}

/// First and last address, first and last port.
type Ends = (IpAddr, IpAddr, (u16, u16));

/// `low[-high]`, split at the first dash as pkt-gen does.
fn range(text: &str) -> Option<Ends> {
    let (low, high) = text.split_once('-').map_or((text, None), |(low, high)| (low, Some(high)));
    let (address, low_port) = split_port(low)?;
    let first = address.parse().ok()?;
    let Some(high) = high else { return Some((first, first, read_ports(low_port)?)) };
    if low_port.is_some() && is_number(high) {
        return Some((first, first, (read_port(low_port?)?, read_port(high)?)));
    }
    let (address, high_port) = split_port(high)?;
    let ports = match (low_port, high_port) {
        (Some(low), Some(high)) => (read_port(low)?, read_port(high)?),
        (low, high) => read_ports(low.or(high))?,
    };
    let last = match first {
        _ if address.is_empty() && text.contains("-:") => first,
        IpAddr::V4(v4) if is_number(address) => {
            let [a, b, c, _] = v4.octets();
            Ipv4Addr::new(a, b, c, address.parse().ok()?).into()
        }
        _ => address.parse().ok()?,
    };
    Some((first, last, ports))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Splits `address[:port]`; a bare IPv6 address, with more than one colon, has no port.
fn split_port(part: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = part.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let port = rest.strip_prefix(':');
        return (port.is_some() || rest.is_empty()).then_some((address, port));
    }
    Some(match part.split_once(':') {
        Some((address, port)) if !port.contains(':') => (address, Some(port)),
        _ => (part, None),
    })
}

fn read_port(port: &str) -> Option<u16> {
    port.parse().ok().filter(|n| *n != 0 && is_number(port))
}

/// `port[-port]`, or the default.
fn read_ports(ports: Option<&str>) -> Option<(u16, u16)> {
    let Some(ports) = ports else { return Some((DEFAULT_PORT, DEFAULT_PORT)) };
    let (low, high) = ports.split_once('-').unwrap_or((ports, ports));
    Some((read_port(low)?, read_port(high)?))
}

/// `address/length[:port[-port]]`.
fn network(text: &str) -> Option<Ends> {
    let (address, rest) = text.split_once('/')?;
    let address = address.strip_prefix('[').and_then(|a| a.strip_suffix(']')).unwrap_or(address);
    let address: IpAddr = address.parse().ok()?;
    let (length, ports) = rest.split_once(':').map_or((rest, None), |(length, ports)| (length, Some(ports)));
    let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
    let length: u32 = length.parse().ok().filter(|n| is_number(length) && *n <= bits)?;
    let (first, last) = hosts(address, bits - length)?;
    Some((first, last, read_ports(ports)?))
}

/// First and last host of a network whose host part has `free` bits.
fn hosts(address: IpAddr, free: u32) -> Option<(IpAddr, IpAddr)> {
    let family = family_of(address);
    let mask = 1u128.checked_shl(free).map_or(u128::MAX, |size| size - 1);
    let bits = address_bits(address);
    if bits & mask != 0 {
        return None;
    }
    // Up to /30 the first address names the network and the last is broadcast; in IPv6 the first is the
    // routers' anycast address (RFC 4291 section 2.6.1), except on the /127 of point-to-point links (RFC
    // 6164).
    let (skip_first, skip_last) = if free < 2 { (0, 0) } else { (1, u128::from(address.is_ipv4())) };
    Some((address_from(family, bits + skip_first), address_from(family, (bits | mask) - skip_last)))
}
