//! Flow spaces: which addresses and ports the test frames carry, by number, in constant time.

use crate::endpoints::{
    EndpointRange, MAX_PARSED_FLOWS, family_of, mismatch, nth_after, too_large,
};
use crate::order::{mixed, permuted};
use crate::{Family, Result, Selection, WireError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most flows that a generator takes: it keeps a table of them.
pub const MAX_FLOWS: u32 = 5_000_000;

/// First port of the benchmark's flows, both source and destination: as in the published pkt-gen studies.
const BENCHMARK_PORT: u16 = 2001;

/// Source and destination port of a format of frames: appendix C.2.6.4 of RFC 2544 sends UDP echo requests.
pub const RFC2544_PORTS: (u16, u16) = (0xc020, 7);

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
        Flow {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
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
    /// Number of networks, to which flows go in turn; 1: the destinations are a range.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    networks: u32,
    /// Destinations in each of several networks.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    hosts: u32,
    /// Random: the pairs of endpoints are in a random order (RFC 4814, section 4.4).
    #[serde(default, with = "crate::text", skip_serializing_if = "is_counted")]
    addresses: Selection,
    #[serde(default, with = "crate::text", skip_serializing_if = "is_counted")]
    ports: Selection,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_one(number: &u32) -> bool {
    *number == 1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_counted(selection: &Selection) -> bool {
    *selection == Selection::Counted
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
    #[serde(default = "one")]
    hosts: u32,
    #[serde(default, with = "crate::text")]
    addresses: Selection,
    #[serde(default, with = "crate::text")]
    ports: Selection,
}

impl TryFrom<Form> for FlowSpace {
    type Error = WireError;

    fn try_from(form: Form) -> Result<FlowSpace> {
        let Form {
            source,
            destination,
            flows,
            mirrored,
            networks,
            hosts,
            addresses,
            ports,
        } = form;
        let space = match networks {
            0 | 1 => FlowSpace::new(source, destination)?,
            networks => FlowSpace::over(source, destination, networks, hosts)?,
        };
        Ok(FlowSpace {
            mirrored,
            addresses,
            ports,
            ..space.with_limit(flows)
        })
    }
}

impl FlowSpace {
    /// Every source with every destination. Flow numbers count as pkt-gen goes through them: source port
    /// fastest, then source address, destination port, destination address.
    ///
    /// # Errors
    /// Mixed families, or more than [`MAX_PARSED_FLOWS`] flows.
    pub fn new(source: EndpointRange, destination: EndpointRange) -> Result<Self> {
        Self::of(source, destination, 1, 1)
    }

    /// Every source with `hosts` addresses in each of `networks` networks. Flows go to the networks in turn (RFC 2544, section 12).
    fn over(source: EndpointRange, to: EndpointRange, networks: u32, hosts: u32) -> Result<Self> {
        let source = EndpointRange { ports: 1, ..source };
        Self::of(
            source,
            to.over(networks, hosts.max(1))?,
            networks,
            hosts.max(1),
        )
    }

    fn of(
        source: EndpointRange,
        destination: EndpointRange,
        networks: u32,
        hosts: u32,
    ) -> Result<Self> {
        if source.family != destination.family {
            return Err(mismatch(
                (source, source.family),
                (destination, destination.family),
            ));
        }
        let side = |r: &EndpointRange| u128::from(r.addresses) * u128::from(r.ports);
        let flows = side(&source) * side(&destination) * u128::from(hosts);
        if flows > u128::from(MAX_PARSED_FLOWS) {
            return Err(too_large(
                format!("{source} > {destination}"),
                flows,
                MAX_PARSED_FLOWS,
            ));
        }
        let (flows, [addresses, ports]) = (flows as u64, [Selection::Counted; 2]);
        Ok(FlowSpace {
            source,
            destination,
            flows,
            mirrored: false,
            networks,
            hosts,
            addresses,
            ports,
        })
    }

    /// `flows` flows, from as many addresses as necessary, to one address in each of `networks` networks, all with the same two
    /// ports. The first argument has the first address of each side.
    ///
    /// # Errors
    /// Mixed families, no flows or too many of them, addresses that would run past the last one.
    pub fn across(
        (source, destination): (IpAddr, IpAddr),
        ports: (u16, u16),
        networks: u32,
        flows: u32,
    ) -> Result<Self> {
        within_limit(flows)?;
        let networks = networks.max(1);
        let last = nth_after(source, flows.div_ceil(networks) - 1);
        let source = EndpointRange::new(source, last, ports.0, ports.0)?;
        let destination = EndpointRange::new(destination, destination, ports.1, ports.1)?;
        Ok(Self::over(source, destination, networks, 1)?.with_limit(flows.into()))
    }

    /// The flows with other ports.
    #[must_use]
    pub fn with_ports(self, ports: Selection) -> Self {
        FlowSpace { ports, ..self }
    }

    /// As many flows with random pairs of addresses, each pair once (RFC 4814, section 4.4). `hosts`: number of addresses, from
    /// the first on, among which a source is chosen, and a destination in each network.
    ///
    /// # Errors
    /// More flows than pairs, or addresses past the last one.
    pub fn with_random_addresses(self, seed: u64, hosts: [u32; 2]) -> Result<Self> {
        let wide = |side: &EndpointRange, hosts: u32| {
            let first = side.first_address();
            EndpointRange::new(
                first,
                nth_after(first, hosts.max(1) - 1),
                side.first_port,
                side.first_port,
            )
        };
        let source = wide(&self.source, hosts[0])?;
        let pairs = match self.networks {
            1 => Self::new(source, wide(&self.destination, hosts[1])?)?,
            networks => Self::over(source, self.destination, networks, hosts[1])?,
        };
        if pairs.flows < self.flows {
            return Err(WireError::new(format!(
                "{} flows are more than the {} pairs of addresses of {pairs}; ask for fewer",
                self.flows, pairs.flows
            )));
        }
        let FlowSpace {
            flows,
            mirrored,
            ports,
            ..
        } = self;
        Ok(FlowSpace {
            flows,
            mirrored,
            ports,
            addresses: Selection::Random { seed },
            ..pairs
        })
    }

    /// The tester's interface that sends them: 1, or 2 at the other end.
    pub fn interface(&self) -> u8 {
        if self.mirrored { 2 } else { 1 }
    }

    /// Number of networks, to which flows go in turn; 1: the destinations are a range.
    pub fn networks(&self) -> u32 {
        self.networks
    }

    /// The choice of its ports.
    pub fn ports(&self) -> Selection {
        self.ports
    }

    /// The choice of its addresses.
    pub fn addresses(&self) -> Selection {
        self.addresses
    }

    /// Whether the two ranges alone describe the flows, as they do for programs other than linerate.
    pub fn is_plain(&self) -> bool {
        self.networks == 1 && [self.addresses, self.ports] == [Selection::Counted; 2]
    }

    /// Reads two ranges, in pkt-gen's grammar and some more; see [`EndpointRange`]'s `FromStr`.
    ///
    /// # Errors
    /// As [`new`](Self::new), and faults of the text.
    pub fn parse(src: &str, dst: &str) -> Result<Self> {
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
    pub fn benchmark(family: Family, flows: u32) -> Result<Self> {
        let (src, dst): (IpAddr, IpAddr) = match family {
            Family::V4 => (
                Ipv4Addr::new(198, 18, 10, 1).into(),
                Ipv4Addr::new(198, 19, 10, 1).into(),
            ),
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
    pub fn benchmark_from(src: IpAddr, dst: IpAddr, flows: u32) -> Result<Self> {
        within_limit(flows)?;
        let (sources, ports) = benchmark_shape(flows);
        let destinations = flows.div_ceil(sources * u32::from(ports));
        let last_port = BENCHMARK_PORT + ports - 1;
        let src = EndpointRange::new(src, nth_after(src, sources - 1), BENCHMARK_PORT, last_port)?;
        let dst = EndpointRange::new(
            dst,
            nth_after(dst, destinations - 1),
            BENCHMARK_PORT,
            BENCHMARK_PORT,
        )?;
        Ok(Self::new(src, dst)?.with_limit(flows.into()))
    }

    /// The first `flows` flows alone; at least one remains, and a larger number changes nothing.
    fn with_limit(mut self, flows: u64) -> Self {
        self.flows = self.flows.min(flows.max(1));
        self
    }

    /// The flows from the other end, by the same numbers: answers have these addresses and ports.
    #[must_use]
    pub fn mirrored(&self) -> FlowSpace {
        FlowSpace {
            mirrored: !self.mirrored,
            ..self.clone()
        }
    }

    /// The number of flows, if a generator can take them.
    ///
    /// # Errors
    /// More than [`MAX_FLOWS`].
    pub fn usable_len(&self) -> Result<u32> {
        let len = u32::try_from(self.flows)
            .ok()
            .filter(|&len| len <= MAX_FLOWS);
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
        let FlowSpace {
            source,
            destination,
            flows,
            networks,
            ports,
            ..
        } = self;
        let i = if i < *flows { i } else { i % flows };
        if *networks > 1 {
            let (nth, network) = (i / u64::from(*networks), i % u64::from(*networks));
            let nth = self.place(network, nth, source.addresses * u64::from(self.hosts));
            let (host, src) = (nth / source.addresses, nth % source.addresses);
            return self.flow_of(i, [source.address(src), destination.host(network, host)]);
        }
        let sides = [source, destination].map(|side| side.addresses * u64::from(side.ports));
        let place = self.place(0, i, sides[0] * sides[1]);
        let (rest, src_port) = (
            place / u64::from(source.ports),
            place % u64::from(source.ports),
        );
        let (rest, src) = (rest / source.addresses, rest % source.addresses);
        let (dst, dst_port) = (
            rest / u64::from(destination.ports),
            rest % u64::from(destination.ports),
        );
        let [src, dst] = [source.address(src), destination.address(dst)];
        if *ports != Selection::Counted {
            return self.flow_of(i, [src, dst]);
        }
        self.turned(Flow {
            src,
            dst,
            src_port: source.port(src_port),
            dst_port: destination.port(dst_port),
        })
    }

    /// The place of a network's flow number `i` among its `n` pairs of endpoints.
    #[inline]
    fn place(&self, network: u64, i: u64, n: u64) -> u64 {
        match self.addresses {
            Selection::Counted => i,
            Selection::Random { seed } => permuted(mixed(seed, network), i, n),
        }
    }

    fn turned(&self, flow: Flow) -> Flow {
        if self.mirrored { flow.answer() } else { flow }
    }

    /// A flow whose ports do not follow from its place in the ranges.
    fn flow_of(&self, i: u64, [src, dst]: [IpAddr; 2]) -> Flow {
        let first = [self.source.first_port, self.destination.first_port];
        let [src_port, dst_port] = self.ports.ports(i).unwrap_or(first);
        self.turned(Flow {
            src,
            dst,
            src_port,
            dst_port,
        })
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
        let FlowSpace {
            source,
            destination,
            flows,
            mirrored,
            networks,
            hosts,
            addresses,
            ports,
        } = self;
        let arrow = if *mirrored { '<' } else { '>' };
        write!(f, "{source} {arrow} {destination}")?;
        if *networks > 1 {
            write!(f, ", {networks} networks")?;
        }
        if *hosts > 1 {
            write!(f, " of {hosts} addresses")?;
        }
        for (selection, of) in [(addresses, "addresses"), (ports, "ports")] {
            if *selection != Selection::Counted {
                write!(f, ", {selection} {of}")?;
            }
        }
        let sides = [source, destination].map(|side| side.addresses * u64::from(side.ports));
        if *flows < sides[0] * sides[1] * u64::from(*hosts) {
            write!(f, ", the first {flows} flows")
        } else {
            Ok(())
        }
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

fn within_limit(flows: u32) -> Result<()> {
    match flows {
        0 => Err(WireError::new(format!(
            "a flow space needs at least one flow; ask for 1 to {MAX_FLOWS}"
        ))),
        1..=MAX_FLOWS => Ok(()),
        _ => Err(too_large("the flow space", flows.into(), MAX_FLOWS.into())),
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
