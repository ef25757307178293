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
        if text.contains('/') { read_prefix(text) } else { read_range(text) }
    }
}

fn syntax(text: &str, why: impl std::fmt::Display) -> WireError {
    WireError::new(format!(
        "{text:?} is not a range of addresses and ports: {why}; write for example \
         198.18.10.1:2001-198.18.10.20:2010, [2001:2::1]:2001-[2001:2::14]:2010 or 198.18.65.0/24:2000-2010"
    ))
}

/// `low[-high]`, split at the first dash as pkt-gen does.
fn read_range(text: &str) -> Result<EndpointRange, WireError> {
    let (low, high) = text.split_once('-').map_or((text, None), |(low, high)| (low, Some(high)));
    let (address, port) = split_port(text, low)?;
    let first = read_address(text, address)?;
    let port = port.map(|port| read_port(text, port)).transpose()?;
    let (last, (first_port, last_port)) = match (port, high) {
        (port, None) => (first, both(port.unwrap_or(DEFAULT_PORT))),
        (Some(port), Some(high)) if is_number(high) => (first, (port, read_port(text, high)?)),
        (port, Some(high)) => {
            let (address, high_port) = split_port(text, high)?;
            (read_last(text, first, address)?, join_ports(text, port, high_port)?)
        }
    };
    EndpointRange::new(first, last, first_port, last_port)
}

fn join_ports(text: &str, low: Option<u16>, high: Option<&str>) -> Result<(u16, u16), WireError> {
    match (low, high) {
        (low, None) => Ok(both(low.unwrap_or(DEFAULT_PORT))),
        (None, Some(ports)) => read_ports(text, ports),
        (Some(_), Some(high)) if high.contains('-') => Err(syntax(text, "it has three ports")),
        (Some(low), Some(high)) => Ok((low, read_port(text, high)?)),
    }
}

fn both(port: u16) -> (u16, u16) {
    (port, port)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Splits `address[:port]`; a bare IPv6 address, with more than one colon, has no port.
fn split_port<'a>(text: &str, part: &'a str) -> Result<(&'a str, Option<&'a str>), WireError> {
    if let Some(rest) = part.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or_else(|| syntax(text, "a bracket is not closed"))?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((address, Some(port))),
            None if rest.is_empty() => Ok((address, None)),
            None => Err(syntax(text, format!("{rest:?} follows a bracket; a port is set off by a colon"))),
        };
    }
    match part.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Ok((part, None)),
        Some((address, port)) => Ok((address, Some(port))),
        None => Ok((part, None)),
    }
}

fn read_address(text: &str, address: &str) -> Result<IpAddr, WireError> {
    address.parse().map_err(|_| syntax(text, format!("{address:?} is not an IP address")))
}

/// The end of a range: an address, the last octet of one, or nothing (the same address, as in pkt-gen).
fn read_last(text: &str, first: IpAddr, last: &str) -> Result<IpAddr, WireError> {
    match first {
        _ if last.is_empty() && text.contains("-:") => Ok(first),
        IpAddr::V4(v4) if is_number(last) => {
            let [a, b, c, _] = v4.octets();
            let octet =
                last.parse().map_err(|_| syntax(text, format!("{last} is not a last octet, 0 to 255")))?;
            Ok(Ipv4Addr::new(a, b, c, octet).into())
        }
        _ => read_address(text, last),
    }
}

fn read_port(text: &str, port: &str) -> Result<u16, WireError> {
    let number = if is_number(port) { port.parse().ok() } else { None };
    number.filter(|&n| n != 0).ok_or_else(|| syntax(text, format!("{port:?} is not a port, 1 to 65535")))
}

fn read_ports(text: &str, ports: &str) -> Result<(u16, u16), WireError> {
    match ports.split_once('-') {
        Some((low, high)) => Ok((read_port(text, low)?, read_port(text, high)?)),
        None => Ok(both(read_port(text, ports)?)),
    }
}

/// `address/length[:port[-port]]`.
fn read_prefix(text: &str) -> Result<EndpointRange, WireError> {
    let (address, rest) = text.split_once('/').unwrap_or((text, ""));
    let address = address.strip_prefix('[').and_then(|a| a.strip_suffix(']')).unwrap_or(address);
    let address = read_address(text, address)?;
    let (length, (first_port, last_port)) = match rest.split_once(':') {
        Some((length, ports)) => (length, read_ports(text, ports)?),
        None => (rest, both(DEFAULT_PORT)),
    };
    let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|&n: &u32| is_number(length) && n <= bits);
    let length = length.ok_or_else(|| syntax(text, format!("the prefix length is 0 to {bits}")))?;
    let (first, last) = hosts(text, address, bits - length)?;
    EndpointRange::new(first, last, first_port, last_port)
}

/// First and last host of a network whose host part has `free` bits.
fn hosts(text: &str, address: IpAddr, free: u32) -> Result<(IpAddr, IpAddr), WireError> {
    let family = family_of(address);
    let mask = 1u128.checked_shl(free).map_or(u128::MAX, |size| size - 1);
    let bits = address_bits(address);
    if bits & mask != 0 {
        let network = address_from(family, bits & !mask);
        return Err(syntax(text, format!("bits behind the prefix are set; the network is {network}")));
    }
    // Up to /30 the first address names the network and the last is broadcast; in IPv6 the first is the
    // routers' anycast address (RFC 4291 section 2.6.1), except on the /127 of point-to-point links (RFC
    // 6164).
    let (skip_first, skip_last) = if free < 2 { (0, 0) } else { (1, u128::from(address.is_ipv4())) };
    Ok((address_from(family, bits + skip_first), address_from(family, (bits | mask) - skip_last)))
}
