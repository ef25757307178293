//! Kinds of traffic: the frames of a cell, their flows, and the room for the flows' addresses.

use crate::names::Named;
use crate::text_form;
use linerate_measure::record::{Direction, Http, HttpOf};
use linerate_wire::units::grouped;
use linerate_wire::{
    Close, ConnectionSpec, Exchange, Extensions, Family, FlowOrder, FlowSpace, FrameMix, FrameSpec,
    MILLION, MacAddr, RFC2544_PORTS, SERVERS, SHORTEST_OBJECT, Second, Selection, ServedBy,
    SourceMacs, Traffic, Transport, WireError,
};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Frames to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kind {
    /// Requests of HTTP instead of single frames.
    pub http: Option<Http>,
    /// Connections instead of single frames.
    pub connections: Option<Exchange>,
    /// Bytes that a server answers with: to each request of HTTP, or on each connection.
    pub object: u32,
    /// Connections that are kept open at the same time; `None`: each is closed as soon as it has its answer.
    pub open: Option<u32>,
    /// Who closes them; `None`: the client, and the rate is that of opening them.
    pub close: Option<Close>,
    /// Servers of the connections.
    pub servers: u32,
    /// The program that answers the connections.
    #[serde(alias = "served-by")]
    pub served_by: ServedBy,
    /// SYNs a second of a flood that comes with the connections; 0: none.
    pub flood: u32,
    /// Share of the attempts that are illegal; 0: none.
    pub illegal: f64,
    /// Lengths of the frames, with FCS.
    pub size: FrameMix,
    /// The requested length, if it is too short for the tester's signature.
    pub asked: Option<String>,
    /// IP version.
    #[serde(with = "text_form")]
    pub family: Family,
    /// Protocol above IP.
    #[serde(with = "text_form")]
    pub transport: Transport,
    /// Flows.
    pub flows: u32,
    /// The order of the flows.
    #[serde(with = "text_form")]
    pub order: FlowOrder,
    /// Addresses, ports and flags of the frames.
    pub format: Format,
    /// Number of destination networks, to which flows go in turn.
    pub networks: u32,
    /// The ports of the flows.
    #[serde(with = "text_form")]
    pub ports: Selection,
    /// Addresses of the flows.
    #[serde(with = "text_form")]
    pub addresses: Selection,
    /// Whether the UDP checksum is computed; other checksums always are.
    pub checksum: bool,
    /// One frame in this many goes to the Ethernet broadcast address; 0: no frame.
    #[serde(alias = "broadcast-every")]
    pub broadcast_every: u32,
    /// Frames of each burst; 0: evenly spaced.
    pub burst: u32,
    /// Share of IPv6 frames, mixed with frames of `family`, IPv4.
    #[serde(alias = "ipv6-share")]
    pub ipv6_share: f64,
    /// IPv6 extension headers.
    #[serde(with = "text_form", alias = "extension-headers")]
    pub extension_headers: Extensions,
    /// Ethernet sources.
    #[serde(with = "text_form", alias = "source-macs")]
    pub source_macs: SourceMacs,
    /// One frame in this many carries a time stamp.
    #[serde(alias = "stamp-every")]
    pub stamp_every: u32,
    /// Where these frames are stamped.
    pub stamps: StampedBy,
    /// Direction through the DUT. The load is that of each direction.
    pub direction: Direction,
}

impl Default for Kind {
    fn default() -> Self {
        Kind {
            http: None,
            connections: None,
            object: SHORTEST_OBJECT.into(),
            open: None,
            close: None,
            servers: SERVERS,
            served_by: ServedBy::Tester,
            flood: 0,
            illegal: 0.0,
            size: FrameMix::single(64),
            asked: None,
            family: Family::V4,
            transport: Transport::Udp,
            flows: 2000,
            order: FlowOrder::Sequential,
            format: Format::Studies,
            networks: 1,
            ports: Selection::Counted,
            addresses: Selection::Counted,
            checksum: true,
            broadcast_every: 0,
            burst: 0,
            ipv6_share: 0.0,
            extension_headers: Extensions::None,
            source_macs: SourceMacs::Own,
            stamp_every: STAMP_EVERY,
            stamps: StampedBy::Software,
            direction: Direction::Forward,
        }
    }
}

/// Room for the flows' addresses on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// The first of them.
    pub first: IpAddr,
    /// The length of their network's prefix.
    pub length: u8,
    /// The first address after them that belongs to a link.
    pub taken: Option<IpAddr>,
}

/// Room for sources and destinations in IPv4 and in IPv6, where a lab names networks of its own.
pub type Origins = [Option<[AddressRange; 2]>; 2];

/// Bits of an address that differ from host to host at most: all pairs of addresses still have numbers of 32 bits.
const HOST_BITS: u32 = 16;

impl Kind {
    /// How many servers connections have: `2 servers`.
    pub fn servers_in_words(&self) -> String {
        match self.servers {
            1 => "1 server".into(),
            n => format!("{n} servers"),
        }
    }

    /// Whether nginx answers.
    pub fn needs_nginx(&self) -> bool {
        self.http.is_some() || self.served_by.is_nginx()
    }

    /// The requests of HTTP, if they are wanted.
    pub fn requests(&self) -> Option<HttpOf> {
        Some(HttpOf {
            http: self.http?,
            object: self.object,
            connections: self.flows,
        })
    }

    /// Requests of HTTP or connections, as cells are called: `HTTP close 1,024 B over 64`, `IPv4 request to 1 server`.
    pub fn exchanged(&self) -> Option<String> {
        if let Some(of) = self.requests() {
            let (http, object) = (of.http.name(), grouped(of.object));
            return Some(format!(
                "HTTP {http} {object} B over {}",
                grouped(of.connections)
            ));
        }
        let of = self.connections_in_words(self.connections?);
        Some(format!("{} {of}", self.family))
    }

    /// The connections: `request closed by server to 1 server 100 B flood 20k/s`.
    fn connections_in_words(&self, exchange: Exchange) -> String {
        let Kind {
            object,
            open,
            close,
            servers,
            served_by,
            flood,
            illegal,
            ..
        } = *self;
        let object = if object == u32::from(SHORTEST_OBJECT) {
            String::new()
        } else {
            format!(" {object} B")
        };
        let close = match close {
            None => "",
            Some(Close::Client) => " closed by client",
            Some(Close::Server) => " closed by server",
            Some(Close::Reset) => " reset",
        };
        let what = match open {
            Some(open) => format!("{} open", grouped(open)),
            None => exchange.name().into(),
        };
        let servers = match served_by {
            ServedBy::Nginx => " to nginx".into(),
            ServedBy::Tester if servers == SERVERS => String::new(),
            ServedBy::Tester => format!(" to {}", self.servers_in_words()),
        };
        let flood = match flood {
            0 => String::new(),
            syns if syns % 1000 == 0 => format!(" flood {}k/s", grouped(syns / 1000)),
            syns => format!(" flood {}/s", grouped(syns)),
        };
        let illegal = if illegal > 0.0 {
            format!(" illegal {} %", (illegal * 1e6).round() / 1e4)
        } else {
            String::new()
        };
        format!("{what}{close}{servers}{object}{flood}{illegal}")
    }

    /// Says so where the frames are longer than was asked for.
    pub fn lengthened(&self) -> Option<String> {
        let Kind {
            size,
            asked,
            family,
            transport,
            ..
        } = self;
        let family = if self.ipv6_share > 0.0 {
            "IPv4 and IPv6".to_string()
        } else {
            family.to_string()
        };
        let with = if self.extension_headers == Extensions::None {
            ""
        } else {
            " with extension headers"
        };
        let least = size.min_len_fcs();
        asked.as_ref().map(|asked| {
            format!(
                "size {asked}: {family} {transport} frames{with} need {least} bytes to carry linerate's sequence numbers, so shorter ones are lengthened to {least}"
            )
        })
    }

    /// The frames; Ethernet addresses are still missing. `origins`: where the lab's own flows begin, where it names networks.
    ///
    /// # Errors
    /// More flows than a generator takes, or than the networks have room for.
    pub fn traffic(&self, origins: &Origins) -> Result<Traffic, WireError> {
        let nowhere = MacAddr::default();
        let mut frame = FrameSpec::new(nowhere, nowhere, self.family, self.transport);
        frame.l4_checksum = self.checksum;
        frame.may_fragment = self.format == Format::Rfc2544;
        frame.extensions = self.extension_headers;
        let traffic = Traffic::new(
            frame,
            self.size.clone(),
            self.flow_space(self.family, origins)?,
        );
        let second = || {
            let millionths = (self.ipv6_share * f64::from(MILLION)).round() as u32;
            Ok(Second {
                millionths,
                flows: self.flow_space(Family::V6, origins)?,
            })
        };
        let ipv6 = (self.ipv6_share > 0.0).then(second).transpose()?;
        let Kind {
            order,
            stamp_every,
            broadcast_every,
            burst,
            source_macs,
            ..
        } = *self;
        let connections = self.connections.map(|exchange| {
            let spec = ConnectionSpec {
                open: self.open,
                close: self.close,
                servers: self.servers,
                flood: self.flood,
                illegal: (self.illegal * f64::from(MILLION)).round() as u32,
                // The checks refuse longer ones.
                ..ConnectionSpec::new(exchange, self.object.try_into().unwrap_or(u16::MAX))
            };
            match self.served_by {
                ServedBy::Tester => spec,
                ServedBy::Nginx => spec.by_nginx(),
            }
        });
        Ok(Traffic {
            order,
            stamp_every,
            broadcast_every,
            burst,
            source_macs,
            ipv6,
            connections,
            ..traffic
        })
    }

    /// The flows of an IP version.
    fn flow_space(&self, family: Family, origins: &Origins) -> Result<FlowSpace, WireError> {
        let [source, destination] = self.ends(family, origins);
        let flows = match (self.format, self.networks) {
            (Format::Studies, 1) => {
                FlowSpace::benchmark_from(source.first, destination.first, self.flows)?
            }
            (format, networks) => {
                let ports = if format == Format::Rfc2544 {
                    RFC2544_PORTS
                } else {
                    (2001, 2001)
                };
                FlowSpace::across(
                    (source.first, destination.first),
                    ports,
                    networks,
                    self.flows,
                )?
            }
        }
        .with_ports(self.ports);
        match self.addresses {
            Selection::Counted => Ok(flows),
            Selection::Random { seed } => {
                flows.with_random_addresses(seed, [source, destination].map(AddressRange::hosts))
            }
        }
    }

    /// The IP versions of its frames.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        [
            Some(self.family),
            (self.ipv6_share > 0.0).then_some(Family::V6),
        ]
        .into_iter()
        .flatten()
    }

    /// Room for sources and destinations. In RFC 2544's format, counted addresses begin with node 2 of the first network of each side
    /// (appendix C.2.2.2), in the embedded lab the tester itself. Destinations in several networks begin with node 66, clear of the links'
    /// own addresses. All other addresses are those of the published studies.
    fn ends(&self, family: Family, origins: &Origins) -> [AddressRange; 2] {
        let several = self.networks > 1;
        let near =
            self.addresses == Selection::Counted && (several || self.format == Format::Rfc2544);
        let six = |near: bool, network| {
            let (network, node) = if near {
                (network, 2)
            } else {
                (network + 0x10, 1)
            };
            (
                Ipv6Addr::new(0x2001, 2, 0, network, 0, 0, 0, node).into(),
                64,
            )
        };
        let usual = match family {
            Family::V4 => [18, 19].map(|half| (Ipv4Addr::new(198, half, 10, 1).into(), 16)),
            Family::V6 => [six(near, 0), six(near && !several, 0x8000)],
        };
        let usual = usual.map(|(first, length)| AddressRange {
            first,
            length,
            taken: None,
        });
        let [source, destination] = origins[usize::from(family == Family::V6)].unwrap_or(usual);
        let from = |room: AddressRange, node: Option<u32>| match (room.first, node) {
            (IpAddr::V4(v4), Some(node)) => {
                let network = u32::from(v4) & !room.host_mask();
                AddressRange {
                    first: Ipv4Addr::from(network | node).into(),
                    ..room
                }
            }
            _ => room,
        };
        let second = near.then_some(0x0102);
        let to = from(destination, if several { Some(0x42) } else { second });
        // Each of several networks has 8 bits for its hosts.
        let length = if to.first.is_ipv4() { 24 } else { 120 };
        [
            from(source, second),
            if several {
                AddressRange {
                    length,
                    taken: None,
                    ..to
                }
            } else {
                to
            },
        ]
    }

    /// The networks of its destinations in the embedded lab, where there are several.
    pub fn destination_networks(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        let several = if self.networks > 1 { self.networks } else { 0 };
        let firsts: Vec<IpAddr> = self
            .families()
            .map(|family| self.ends(family, &Origins::default())[1].first)
            .collect();
        let network = |first: IpAddr, n: u32| match first {
            IpAddr::V4(v4) => (
                Ipv4Addr::from((u32::from(v4) & !0xff) + (n << 8)).into(),
                24,
            ),
            IpAddr::V6(v6) => {
                let network = (u128::from(v6) & !0xffff) + (u128::from(n) << 16);
                (Ipv6Addr::from(network).into(), 112)
            }
        };
        firsts
            .into_iter()
            .flat_map(move |first| (0..several).map(move |n| network(first, n)))
    }
}

impl AddressRange {
    /// The bits of an address that differ from host to host.
    fn host_mask(&self) -> u32 {
        let all = if self.first.is_ipv4() { 32 } else { 128 };
        (1 << (all - u32::from(self.length).min(all)).min(HOST_BITS)) - 1
    }

    /// How many hosts there are. The last address of a network is broadcast.
    fn hosts(self) -> u32 {
        let bits = |address| match address {
            IpAddr::V4(v4) => u32::from(v4).into(),
            IpAddr::V6(v6) => u128::from(v6),
        };
        let rest = self.host_mask() - (bits(self.first) as u32 & self.host_mask());
        let free = self
            .taken
            .and_then(|taken| bits(taken).checked_sub(bits(self.first)));
        free.map_or(rest, |free| rest.min(free.try_into().unwrap_or(rest)))
            .max(1)
    }
}

/// Addresses, ports and flags of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Format of the published pkt-gen studies.
    #[default]
    Studies,
    /// Format of RFC 2544, appendix C.
    Rfc2544,
}

/// The place where frames are stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StampedBy {
    /// The generator's program and the receiver's kernel.
    #[default]
    Software,
    /// The cards, where they can.
    Hardware,
}

/// Default of `stamp_every`: one frame in this many carries a time stamp.
pub const STAMP_EVERY: u32 = 64;
