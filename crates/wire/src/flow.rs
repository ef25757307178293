//! Flow spaces: which addresses and ports the test frames carry, by number, in constant time.

use crate::order::{DEFAULT_SEED, mixed};
use crate::{Family, WireError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The port of a range that names none: pkt-gen's default.
pub const DEFAULT_PORT: u16 = 1234;

/// The most flows that a generator takes: it keeps a table of them.
pub const MAX_FLOWS: u32 = 5_000_000;

/// The most flows that a text may describe; a generator takes fewer.
pub const MAX_PARSED_FLOWS: u64 = 1 << 32;

/// First port of the benchmark's flows, both source and destination: as in the published pkt-gen studies.
const BENCHMARK_PORT: u16 = 2001;

/// Source and destination port of a format of frames: appendix C.2.6.4 of RFC 2544 sends UDP echo requests.
pub const RFC2544_PORTS: (u16, u16) = (0xc020, 7);

/// Random source ports, and random destination ports (RFC 4814, section 4.5): the first, and how many.
const RANDOM_PORTS: [(u16, u32); 2] = [(1024, 64_512), (1, 49_151)];

/// Addresses and ports of one flow. For ICMP echo the source port is the identifier, the destination port the
/// sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl Flow {
    /// The family of the addresses (of the source, if they differ).
    pub fn family(&self) -> Family {
        family_of(self.src)
    }

    /// The flow of its answers.
    #[must_use]
    pub fn answer(self) -> Flow {
        Flow { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port }
    }
}

/// A range of addresses times a range of ports: one side of a flow space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointRange {
    family: Family,
    first: u128,
    addresses: u64,
    /// From one address to the next.
    step: u128,
    first_port: u16,
    ports: u32,
}

impl EndpointRange {
    /// The range from `first` to `last`, both included, with ports `first_port` to `last_port`, both
    /// included.
    ///
    /// # Errors
    /// Mixed families, ends that run backwards (which pkt-gen swaps without a word), more than [`MAX_PARSED_FLOWS`] addresses.
    pub fn new(first: IpAddr, last: IpAddr, first_port: u16, last_port: u16) -> Result<Self, WireError> {
        let family = family_of(first);
        if family_of(last) != family {
            return Err(mismatch((first, family), (last, family_of(last))));
        }
        let (from, to) = (address_bits(first), address_bits(last));
        let more = from.abs_diff(to);
        if more >= u128::from(MAX_PARSED_FLOWS) {
            return Err(too_large(format!("{first}-{last}"), more.saturating_add(1), MAX_PARSED_FLOWS));
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

    fn address(&self, n: u64) -> IpAddr {
        address_from(self.family, self.first + self.step * u128::from(n))
    }

    /// One address in each of so many networks, from the first address on: /24, or /112 in IPv6, whose addresses differ in the
    /// 32 bits that a generator varies.
    fn over(self, networks: u32) -> Result<Self, WireError> {
        let range = EndpointRange {
            addresses: networks.into(),
            step: if self.family == Family::V4 { 1 << 8 } else { 1 << 16 },
            ..self
        };
        let last = range.first + range.step * u128::from(range.addresses - 1);
        let most = if self.family == Family::V4 { u32::MAX.into() } else { u128::MAX };
        if last > most {
            let text =
                format!("{networks} networks from {} on run past the last address", self.first_address());
            return Err(WireError::new(text));
        }
        Ok(range)
    }

    fn port(&self, n: u64) -> u16 {
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

/// The ports of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ports {
    /// Those of the ranges, one after the other.
    #[default]
    Counted,
    /// Drawn for each flow, uniform, from those of RFC 4814, section 4.5: source 1024 to 65535, destination 1 to 49151. The same
    /// seed gives the same ports in each trial.
    Random {
        /// Start of the random numbers.
        seed: u64,
    },
}

impl FromStr for Ports {
    type Err = WireError;

    fn from_str(text: &str) -> Result<Self, WireError> {
        let ports = match text.split_once(':') {
            None if text == "counted" => Some(Ports::Counted),
            None if text == "random" => Some(Ports::Random { seed: DEFAULT_SEED }),
            Some(("random", seed)) => seed.parse().ok().map(|seed| Ports::Random { seed }),
            _ => None,
        };
        let wrong =
            || WireError::new(format!("{text:?} names no ports; write counted, random or random:SEED"));
        ports.ok_or_else(wrong)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ports::Counted => f.write_str("counted"),
            Ports::Random { seed: DEFAULT_SEED } => f.write_str("random"),
            Ports::Random { seed } => write!(f, "random:{seed}"),
        }
    }
}

/// A set of flows, numbered from 0: no table, `flow(i)` takes constant time. All flows of a space are
/// distinct, but for those with the same addresses and random ports, which may be drawn twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form")]
pub struct FlowSpace {
    #[serde(with = "crate::text")]
    source: EndpointRange,
    #[serde(with = "crate::text")]
    destination: EndpointRange,
    flows: u64,
    /// Whether each flow has its source and its destination exchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    mirrored: bool,
    /// Successive flows go to successive networks; 1: the destinations are a range.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    networks: u32,
    #[serde(default, with = "crate::text", skip_serializing_if = "is_counted")]
    ports: Ports,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_one(networks: &u32) -> bool {
    *networks == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_counted(ports: &Ports) -> bool {
    *ports == Ports::Counted
}

/// A flow space in JSON.
#[derive(Deserialize)]
struct Form {
    #[serde(with = "crate::text")]
    source: EndpointRange,
    #[serde(with = "crate::text")]
    destination: EndpointRange,
    flows: u64,
    #[serde(default)]
    mirrored: bool,
    #[serde(default = "one")]
    networks: u32,
    #[serde(default, with = "crate::text")]
    ports: Ports,
}

impl TryFrom<Form> for FlowSpace {
    type Error = WireError;

    fn try_from(form: Form) -> Result<FlowSpace, WireError> {
        let space = match form.networks {
            0 | 1 => FlowSpace::new(form.source, form.destination)?,
            networks => FlowSpace::over(form.source, form.destination, networks)?,
        };
        let space = space.with_limit(form.flows).with_ports(form.ports);
        Ok(FlowSpace { mirrored: form.mirrored, ..space })
    }
}

impl FlowSpace {
    /// Every source with every destination. Flow numbers count as pkt-gen goes through them: source port
    /// fastest, then source address, destination port, destination address.
    ///
    /// # Errors
    /// Mixed families, or more than [`MAX_PARSED_FLOWS`] flows.
    pub fn new(source: EndpointRange, destination: EndpointRange) -> Result<Self, WireError> {
        if source.family != destination.family {
            return Err(mismatch((source, source.family), (destination, destination.family)));
        }
        let side = |r: &EndpointRange| u128::from(r.addresses) * u128::from(r.ports);
        let flows = side(&source) * side(&destination);
        if flows > u128::from(MAX_PARSED_FLOWS) {
            return Err(too_large(format!("{source} > {destination}"), flows, MAX_PARSED_FLOWS));
        }
        let flows = flows as u64;
        Ok(FlowSpace { source, destination, flows, mirrored: false, networks: 1, ports: Ports::Counted })
    }

    /// Every source with one address in each of so many networks: successive flows go to successive networks (RFC 2544, section 12).
    fn over(source: EndpointRange, destination: EndpointRange, networks: u32) -> Result<Self, WireError> {
        let [source, destination] =
            [source, destination.over(networks)?].map(|side| EndpointRange { ports: 1, ..side });
        Ok(FlowSpace { networks, ..Self::new(source, destination)? })
    }

    /// So many flows, from as many addresses as it takes, to one address in each of so many networks, all with the same two
    /// ports. The first address of each side is given.
    ///
    /// # Errors
    /// Mixed families, no flows or too many of them, addresses that would run past the last one.
    pub fn across(
        (source, destination): (IpAddr, IpAddr),
        ports: (u16, u16),
        networks: u32,
        flows: u32,
    ) -> Result<Self, WireError> {
        within_limit(flows)?;
        let networks = networks.max(1);
        let last = nth_after(source, flows.div_ceil(networks) - 1);
        let source = EndpointRange::new(source, last, ports.0, ports.0)?;
        let destination = EndpointRange::new(destination, destination, ports.1, ports.1)?;
        Ok(Self::over(source, destination, networks)?.with_limit(flows.into()))
    }

    /// The same flows with other ports.
    #[must_use]
    pub fn with_ports(self, ports: Ports) -> Self {
        FlowSpace { ports, ..self }
    }

    /// Whether they are those of the other end.
    pub fn is_mirrored(&self) -> bool {
        self.mirrored
    }

    /// Networks that successive flows go to; 1: the destinations are a range.
    pub fn networks(&self) -> u32 {
        self.networks
    }

    /// How its ports are chosen.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Whether the two ranges alone describe the flows, as they do for programs other than linerate.
    pub fn is_plain(&self) -> bool {
        self.networks == 1 && self.ports == Ports::Counted
    }

    /// Reads two ranges, in pkt-gen's grammar and some more; see [`EndpointRange`]'s `FromStr`.
    ///
    /// # Errors
    /// As [`new`](Self::new), and faults of the text.
    pub fn parse(src: &str, dst: &str) -> Result<Self, WireError> {
        Self::new(src.parse()?, dst.parse()?)
    }

    /// The default space of exactly `flows` flows: sources from 198.18.10.1 or 2001:2:0:10::1, destinations
    /// from 198.19.10.1 or 2001:2:0:8010::1 (the benchmark networks of RFC 2544 C.2.2 and RFC 5180 section
    /// 8), ports from 2001.
    ///
    /// 2,000 flows are the 20 sources times 100 destinations of the published pkt-gen studies; fewer have
    /// fewer destinations. More have more of all: up to 280 sources, 1,400 destinations and 13 source ports,
    /// which stays inside 198.18.10.0/23 and 198.19.8.0/21.
    ///
    /// # Errors
    /// 0 flows, or more than [`MAX_FLOWS`].
    pub fn benchmark(family: Family, flows: u32) -> Result<Self, WireError> {
        let (src, dst): (IpAddr, IpAddr) = match family {
            Family::V4 => (Ipv4Addr::new(198, 18, 10, 1).into(), Ipv4Addr::new(198, 19, 10, 1).into()),
            Family::V6 => (
                Ipv6Addr::new(0x2001, 2, 0, 0x10, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0x2001, 2, 0, 0x8010, 0, 0, 0, 1).into(),
            ),
        };
        Self::benchmark_from(src, dst, flows)
    }

    /// As [`benchmark`](Self::benchmark), with other first addresses. At most 280 sources and 1,400
    /// destinations are counted up from them.
    ///
    /// # Errors
    /// As [`benchmark`](Self::benchmark), and mixed families, and addresses that would run past the last one.
    pub fn benchmark_from(src: IpAddr, dst: IpAddr, flows: u32) -> Result<Self, WireError> {
        within_limit(flows)?;
        let (sources, ports) = benchmark_shape(flows);
        let destinations = flows.div_ceil(sources * u32::from(ports));
        let last_port = BENCHMARK_PORT + ports - 1;
        let src = EndpointRange::new(src, nth_after(src, sources - 1), BENCHMARK_PORT, last_port)?;
        let dst = EndpointRange::new(dst, nth_after(dst, destinations - 1), BENCHMARK_PORT, BENCHMARK_PORT)?;
        Ok(Self::new(src, dst)?.with_limit(flows.into()))
    }

    /// The first `flows` flows alone; at least one remains, and a larger number changes nothing.
    fn with_limit(mut self, flows: u64) -> Self {
        self.flows = self.flows.min(flows.max(1));
        self
    }

    /// The same flows from the other end, by the same numbers: what answers them carries these addresses and ports.
    #[must_use]
    pub fn mirrored(&self) -> FlowSpace {
        FlowSpace { mirrored: !self.mirrored, ..self.clone() }
    }

    /// The number of flows, if a generator can take them.
    ///
    /// # Errors
    /// More than [`MAX_FLOWS`].
    pub fn usable_len(&self) -> Result<u32, WireError> {
        let len = u32::try_from(self.flows).ok().filter(|&len| len <= MAX_FLOWS);
        len.ok_or_else(|| too_large(self, self.flows.into(), MAX_FLOWS.into()))
    }

    /// The family of the addresses.
    pub fn family(&self) -> Family {
        self.source.family
    }

    /// Number of flows, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.flows
    }

    /// Flow number `i`; numbers from [`len`](Self::len) on start over.
    #[inline]
    pub fn flow(&self, i: u64) -> Flow {
        let FlowSpace { source, destination, flows, networks, ports, .. } = self;
        let i = if i < *flows { i } else { i % flows };
        if *networks > 1 {
            let (src, dst) = (i / u64::from(*networks), i % u64::from(*networks));
            return self.flow_of(i, [source.address(src), destination.address(dst)]);
        }
        let (rest, src_port) = (i / u64::from(source.ports), i % u64::from(source.ports));
        let (rest, src) = (rest / source.addresses, rest % source.addresses);
        let (dst, dst_port) = (rest / u64::from(destination.ports), rest % u64::from(destination.ports));
        let [src, dst] = [source.address(src), destination.address(dst)];
        if *ports != Ports::Counted {
            return self.flow_of(i, [src, dst]);
        }
        self.turned(Flow { src, dst, src_port: source.port(src_port), dst_port: destination.port(dst_port) })
    }

    fn turned(&self, flow: Flow) -> Flow {
        if self.mirrored { flow.answer() } else { flow }
    }

    /// A flow whose ports do not follow from its place in the ranges.
    fn flow_of(&self, i: u64, [src, dst]: [IpAddr; 2]) -> Flow {
        let [src_port, dst_port] = match self.ports {
            Ports::Counted => [self.source.first_port, self.destination.first_port],
            Ports::Random { seed } => {
                let random = mixed(seed, i);
                let draw = |half: u32, (first, count): (u16, u32)| {
                    first + ((u64::from(half) * u64::from(count)) >> 32) as u16
                };
                [draw((random >> 32) as u32, RANDOM_PORTS[0]), draw(random as u32, RANDOM_PORTS[1])]
            }
        };
        self.turned(Flow { src, dst, src_port, dst_port })
    }

    /// All flows in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Flow> + '_ {
        // ExactSizeIterator exists for ranges of usize alone.
        (0..usize::try_from(self.flows).unwrap_or(usize::MAX)).map(|i| self.flow(i as u64))
    }

    /// The range of sources.
    pub fn source(&self) -> &EndpointRange {
        &self.source
    }

    /// The range of destinations.
    pub fn destination(&self) -> &EndpointRange {
        &self.destination
    }
}

/// `SOURCES > DESTINATIONS`, each in the grammar that [`FlowSpace::parse`] reads, and a limit if there is
/// one.
impl fmt::Display for FlowSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowSpace { source, destination, flows, mirrored, networks, ports } = self;
        let arrow = if *mirrored { '<' } else { '>' };
        write!(f, "{source} {arrow} {destination}")?;
        if *networks > 1 {
            write!(f, ", {networks} networks")?;
        }
        if *ports != Ports::Counted {
            write!(f, ", {ports} ports")?;
        }
        let sides = [source, destination].map(|side| side.addresses * u64::from(side.ports));
        if *flows < sides[0] * sides[1] { write!(f, ", the first {flows} flows") } else { Ok(()) }
    }
}

/// How many sources and source ports carry `flows` flows.
fn benchmark_shape(flows: u32) -> (u32, u16) {
    if flows <= 2000 {
        return (flows.min(20), 1);
    }
    // The growth over 20 x 100 is shared out evenly: source ports, sources and destinations.
    let growth = f64::from(flows) / 2000.0;
    let ports = growth.cbrt().floor().max(1.0);
    let sources = 20.0 * (growth / ports).sqrt().ceil();
    (sources as u32, ports as u16)
}

/// Sources and destinations, or the two ends of a range, of different families.
fn mismatch<T: fmt::Display>((first, family): (T, Family), (second, other): (T, Family)) -> WireError {
    WireError::new(format!("{first} is {family}, {second} is {other}: both must be of one family"))
}

fn within_limit(flows: u32) -> Result<(), WireError> {
    match flows {
        0 => Err(WireError::new(format!("a flow space needs at least one flow; ask for 1 to {MAX_FLOWS}"))),
        1..=MAX_FLOWS => Ok(()),
        _ => Err(too_large("the flow space", flows.into(), MAX_FLOWS.into())),
    }
}

fn too_large(what: impl fmt::Display, flows: u128, limit: u64) -> WireError {
    WireError::new(format!(
        "{what} has {flows} flows or addresses, more than the limit of {limit}; narrow the ranges or limit the flows"
    ))
}

fn nth_after(address: IpAddr, n: u32) -> IpAddr {
    // A wrap makes the range run backwards, which is refused.
    address_from(family_of(address), address_bits(address).wrapping_add(n.into()))
}

fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}

fn address_bits(address: IpAddr) -> u128 {
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

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
