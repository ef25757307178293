//! A plan's traffic for a lab of hosts: its addresses, and the tasks of tools.

use crate::testbed::prepare::TrafficKind;
use anyhow::{Context, Result, bail};
use linerate_hosts::tools::{self, Task};
use linerate_plan::Backend;
use linerate_plan::lab::{Interface, Lab};
use linerate_plan::settings::End;
use linerate_wire::{Family, FlowSpace, Load, MacAddr};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

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

/// One end of a cable, for a tool.
pub struct Side<'a> {
    /// The interface's name on its host.
    pub name: &'a str,
    /// Its entry in the lab file.
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

/// The task of a tool that sends from one end of the lab to the other, seen by the interface `at`.
///
/// # Errors
/// The traffic that the tool cannot send.
pub fn task(
    kind: &TrafficKind,
    tool: Backend,
    [sender, receiver]: [&Side<'_>; 2],
    at: &str,
    to: MacAddr,
) -> Result<Task> {
    tool.check(&kind.traffic)?;
    let mut traffic = kind.traffic.addressed(MacAddr::default(), to);
    // These go through the hosts' own stacks: their addresses are the hosts'.
    if tool.uses_host_stack() {
        if traffic.flows.len() > 1 {
            bail!("{tool} sends one flow, not {}", traffic.flows.len());
        }
        let family = traffic.frame.family;
        traffic.flows = tools::one_flow(sender.address(family)?, receiver.address(family)?, PORT)?;
    }
    Ok(Task {
        interface: at.into(),
        traffic,
        load: Load::lasting(Duration::from_secs(1)),
        threads: sender.wanted.threads.unwrap_or(1),
        link_wait_s: LINK_WAIT_S,
    })
}

/// The port that iperf3 and netperf exchange data on.
const PORT: u16 = 5201;
/// Seconds that a card may take for its link to come back after netmap has opened it.
const LINK_WAIT_S: u32 = 10;
