//! Ranges of addresses and ports, and the texts that people write for them.

use crate::{Family, Result, WireError};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The port of a range that names none: pkt-gen's default.
pub const DEFAULT_PORT: u16 = 1234;

/// The most flows that a text may describe; a generator takes fewer.
pub const MAX_PARSED_FLOWS: u64 = 1 << 32;

/// A range of addresses times a range of ports: one side of a flow space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointRange {
    pub(crate) family: Family,
    pub(crate) first: u128,
    pub(crate) addresses: u64,
    /// From one address to the next.
    pub(crate) step: u128,
    pub(crate) first_port: u16,
    pub(crate) ports: u32,
}

impl EndpointRange {
    /// The range from `first` to `last`, both included, with ports `first_port` to `last_port`, both
    /// included.
    ///
    /// # Errors
    /// Mixed families, ends that run backwards (which pkt-gen swaps without a word), more than [`MAX_PARSED_FLOWS`] addresses.
    pub fn new(first: IpAddr, last: IpAddr, first_port: u16, last_port: u16) -> Result<Self> {
        let family = family_of(first);
        if family_of(last) != family {
            return Err(mismatch((first, family), (last, family_of(last))));
        }
        let (from, to) = (address_bits(first), address_bits(last));
        let more = from.abs_diff(to);
        if more >= u128::from(MAX_PARSED_FLOWS) {
            return Err(too_large(
                format!("{first}-{last}"),
                more.saturating_add(1),
                MAX_PARSED_FLOWS,
            ));
        }
        let ports = u32::from(first_port.abs_diff(last_port)) + 1;
        let port = first_port.min(last_port);
        let forwards = EndpointRange {
            family,
            first: from.min(to),
            addresses: more as u64 + 1,
            step: 1,
            first_port: port,
            ports,
        };
        let what = match (from <= to, first_port <= last_port) {
            (true, true) => return Ok(forwards),
            (true, false) => "ports",
            (false, _) => "addresses",
        };
        Err(WireError::new(format!(
            "from {first}, port {first_port}, to {last}, port {last_port}: the {what} run backwards; write {forwards}"
        )))
    }

    /// Number of addresses.
    pub fn addresses(&self) -> u64 {
        self.addresses
    }

    /// Number of ports.
    pub fn ports(&self) -> u32 {
        self.ports
    }

    /// The lowest address.
    pub fn first_address(&self) -> IpAddr {
        self.address(0)
    }

    /// The highest address.
    pub fn last_address(&self) -> IpAddr {
        self.address(self.addresses - 1)
    }

    /// The lowest port.
    pub fn first_port(&self) -> u16 {
        self.first_port
    }

    /// The highest port.
    pub fn last_port(&self) -> u16 {
        self.port(u64::from(self.ports) - 1)
    }

    pub(crate) fn address(&self, n: u64) -> IpAddr {
        address_from(self.family, self.first + self.step * u128::from(n))
    }

    /// `hosts` addresses in each of `networks` networks, from the first address on: /24, or /112 in IPv6, whose addresses differ in the
    /// 32 bits that a generator varies. The range has the first address of each network.
    pub(crate) fn over(self, networks: u32, hosts: u32) -> Result<Self> {
        let range = EndpointRange {
            addresses: networks.into(),
            step: if self.family == Family::V4 {
                1 << 8
            } else {
                1 << 16
            },
            ports: 1,
            ..self
        };
        let last = range.first + range.step * u128::from(range.addresses - 1) + u128::from(hosts);
        let most = if self.family == Family::V4 {
            u32::MAX.into()
        } else {
            u128::MAX
        };
        if last > most || u128::from(hosts) > range.step {
            let first = self.first_address();
            return Err(WireError::new(format!(
                "{networks} networks of {hosts} addresses from {first} on run past the last address"
            )));
        }
        Ok(range)
    }

    /// The `n`-th address of a network.
    pub(crate) fn host(&self, network: u64, n: u64) -> IpAddr {
        address_from(
            self.family,
            self.first + self.step * u128::from(network) + u128::from(n),
        )
    }

    pub(crate) fn port(&self, n: u64) -> u16 {
        self.first_port + n as u16
    }
}

/// The form that pkt-gen reads: `198.18.10.1:2001-198.18.10.20:2010`; a single port or endpoint is not
/// repeated.
impl fmt::Display for EndpointRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |address: IpAddr| match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        };
        write!(f, "{}:{}", show(self.first_address()), self.first_port)?;
        if self.addresses > 1 || self.ports > 1 {
            write!(f, "-{}", show(self.last_address()))?;
        }
        if self.ports > 1 {
            write!(f, ":{}", self.last_port())?;
        }
        Ok(())
    }
}

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

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let ends = if text.contains('/') {
            network(text)
        } else {
            range(text)
        };
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
    let (low, high) = text
        .split_once('-')
        .map_or((text, None), |(low, high)| (low, Some(high)));
    let (address, low_port) = split_port(low)?;
    let first = address.parse().ok()?;
    let Some(high) = high else {
        return Some((first, first, read_ports(low_port)?));
    };
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
    let Some(ports) = ports else {
        return Some((DEFAULT_PORT, DEFAULT_PORT));
    };
    let (low, high) = ports.split_once('-').unwrap_or((ports, ports));
    Some((read_port(low)?, read_port(high)?))
}

/// `address/length[:port[-port]]`.
fn network(text: &str) -> Option<Ends> {
    let (address, rest) = text.split_once('/')?;
    let address = address
        .strip_prefix('[')
        .and_then(|a| a.strip_suffix(']'))
        .unwrap_or(address);
    let address: IpAddr = address.parse().ok()?;
    let (length, ports) = rest
        .split_once(':')
        .map_or((rest, None), |(length, ports)| (length, Some(ports)));
    let bits: u32 = if address.is_ipv4() { 32 } else { 128 };
    let length: u32 = length
        .parse()
        .ok()
        .filter(|n| is_number(length) && *n <= bits)?;
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
    let (skip_first, skip_last) = if free < 2 {
        (0, 0)
    } else {
        (1, u128::from(address.is_ipv4()))
    };
    Some((
        address_from(family, bits + skip_first),
        address_from(family, (bits | mask) - skip_last),
    ))
}

/// Sources and destinations, or the two ends of a range, of different families.
pub(crate) fn mismatch<T: fmt::Display>(
    (first, family): (T, Family),
    (second, other): (T, Family),
) -> WireError {
    WireError::new(format!(
        "{first} is {family}, {second} is {other}: both must be of one family"
    ))
}

pub(crate) fn too_large(what: impl fmt::Display, flows: u128, limit: u64) -> WireError {
    WireError::new(format!(
        "{what} has {flows} flows or addresses, more than the limit of {limit}; narrow the ranges or limit the flows"
    ))
}

pub(crate) fn nth_after(address: IpAddr, n: u32) -> IpAddr {
    // A wrap makes the range run backwards, which is refused.
    address_from(
        family_of(address),
        address_bits(address).wrapping_add(n.into()),
    )
}

pub(crate) fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() {
        Family::V4
    } else {
        Family::V6
    }
}

pub(crate) fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

pub(crate) fn address_from(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from(bits as u32).into(),
        Family::V6 => Ipv6Addr::from(bits).into(),
    }
}
