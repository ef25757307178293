//! A plan's traffic in the words of the agents' protocol and of the tools.

use crate::testbed::TrafficKind;
use anyhow::{Context, Result, bail};
use linerate_hosts::agent::spec::{self, Flows, Lengths};
use linerate_hosts::tools::{self, Endpoints};
use linerate_plan::lab::{Interface, Lab, Tool};
use linerate_plan::settings::End;
use linerate_wire::{EndpointRange, Family, FlowOrder, FlowSpace, MacAddr, Transport};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where the addresses of flows begin, by IP version, where the lab file names networks of its own.
#[derive(Debug, Default)]
pub struct Origins {
    v4: Option<(IpAddr, IpAddr)>,
    v6: Option<(IpAddr, IpAddr)>,
}

impl Origins {
    /// So many flows of this lab.
    ///
    /// # Errors
    /// They are too many.
    pub fn flows(&self, family: Family, flows: u32) -> Result<FlowSpace> {
        let origin = if family == Family::V4 { self.v4 } else { self.v6 };
        Ok(match origin {
            None => FlowSpace::benchmark(family, flows)?,
            Some((source, destination)) => FlowSpace::benchmark_from(source, destination, flows)?,
        })
    }
}

/// Where the flows of a lab begin: as the default ones do in their networks, at .10.1 of IPv4 and 10::1 below the prefix of IPv6.
///
/// # Errors
/// A network has no room for that.
pub fn origins(lab: &Lab) -> Result<Origins> {
    let mut origins = Origins::default();
    for family in [Family::V4, Family::V6] {
        let of = |end| lab.networks(end).into_iter().find(|n| n.contains(':') == (family == Family::V6));
        let (Some(source), Some(destination)) = (of(End::In), of(End::Out)) else { continue };
        let origin = Some((first_address(source)?, first_address(destination)?));
        if family == Family::V4 { origins.v4 = origin } else { origins.v6 = origin }
    }
    Ok(origins)
}

fn first_address(network: &str) -> Result<IpAddr> {
    let wrong = || format!("the network {network} of the lab file");
    let (address, length) = network.split_once('/').with_context(wrong)?;
    let length: u32 = length.parse().with_context(wrong)?;
    let (address, longest) = match address.parse::<IpAddr>().with_context(wrong)? {
        IpAddr::V4(v4) => (IpAddr::V4(Ipv4Addr::from(u32::from(v4) | 0x0a01)), 20),
        IpAddr::V6(v6) => (IpAddr::V6(Ipv6Addr::from(u128::from(v6) | (0x10 << 64) | 1)), 59),
    };
    if length > longest {
        bail!(
            "the network {network} of the lab file is too small for flows: /{longest} or shorter is wanted"
        );
    }
    Ok(address)
}

/// A kind of traffic as agents take it; where it goes to on the wire is filled in for each sender.
///
/// # Errors
/// Flows without ranges.
pub fn of_agents(kind: &TrafficKind) -> Result<spec::Traffic> {
    let (source, destination) = ranges(kind)?;
    Ok(spec::Traffic {
        family: kind.frame.family,
        transport: kind.frame.transport,
        to: MacAddr([0; 6]),
        from: None,
        vlan: None,
        checksum: kind.frame.l4_checksum,
        lengths: Lengths { name: kind.mix.name.clone(), pattern: kind.mix.pattern.clone() },
        flows: Flows::Ranges {
            source: source.to_string(),
            destination: destination.to_string(),
            most: Some(kind.flows.len()),
        },
        order: kind.order,
        campaign: 0,
        first_stream: 0,
        stamp_every: kind.stamp_every,
    })
}

/// One end of a cable, for a tool.
pub struct Side<'a> {
    /// The interface's name on its host.
    pub name: &'a str,
    /// What the lab file says of it.
    pub wanted: &'a Interface,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

impl Side<'_> {
    fn address(&self, family: Family) -> Result<IpAddr> {
        let found = self.addresses.iter().find(|a| a.is_ipv4() == (family == Family::V4));
        found.copied().with_context(|| format!("{} has no {family} address", self.name))
    }
}

/// A kind of traffic as a tool takes it that sends from one end of the lab to the other, seen by the interface `at`.
///
/// # Errors
/// What the tool cannot send.
pub fn of_tools(
    kind: &TrafficKind,
    tool: Tool,
    [sender, receiver]: [&Side<'_>; 2],
    at: &str,
    to: MacAddr,
) -> Result<tools::Traffic> {
    let transport = match kind.frame.transport {
        Transport::Udp => tools::Transport::Udp,
        Transport::Tcp if matches!(tool, Tool::Iperf3 | Tool::Netperf) => tools::Transport::Tcp,
        other => bail!("{} sends no frames of {other}", tool.key()),
    };
    let [length] = kind.mix.pattern[..] else {
        bail!(
            "{} sends frames of one length: {} takes linerate on all generators and the receiver",
            tool.key(),
            kind.mix.name
        )
    };
    if kind.order != FlowOrder::Sequential {
        bail!(
            "{} sends its flows one after the other: {} order takes linerate on all generators and the receiver",
            tool.key(),
            kind.order
        );
    }
    // These go through the hosts' own stacks: their addresses are the hosts'.
    let (source, destination) = if matches!(tool, Tool::Iperf3 | Tool::Netperf) {
        if kind.flows.len() > 1 {
            bail!("{} sends one flow, not {}", tool.key(), kind.flows.len());
        }
        let family = kind.frame.family;
        (Endpoints::one(sender.address(family)?, PORT), Endpoints::one(receiver.address(family)?, PORT))
    } else {
        let (source, destination) = ranges(kind)?;
        (endpoints(source), endpoints(destination))
    };
    Ok(tools::Traffic {
        interface: at.into(),
        transport,
        frame_len_fcs: length.into(),
        source,
        destination,
        source_mac: None,
        destination_mac: Some(to),
        pps: None,
        seconds: 1,
        threads: sender.wanted.threads.unwrap_or(1),
        link_wait_s: LINK_WAIT_S,
    })
}

/// The port that iperf3 and netperf exchange data on.
const PORT: u16 = 5201;
/// Seconds that a card may take for its link to come back after netmap has opened it.
const LINK_WAIT_S: u32 = 10;

fn endpoints(range: &EndpointRange) -> Endpoints {
    Endpoints {
        first: range.first_address(),
        last: range.last_address(),
        first_port: range.first_port(),
        last_port: range.last_port(),
    }
}

fn ranges(kind: &TrafficKind) -> Result<(&EndpointRange, &EndpointRange)> {
    kind.flows.src().zip(kind.flows.dst()).context("flows of a plan have ranges of addresses")
}
