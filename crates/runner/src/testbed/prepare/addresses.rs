//! The addresses that the flows of a lab begin at.

use anyhow::{Context, Result, bail};
use linerate_plan::campaign::{AddressRange, Origins};
use linerate_plan::lab::{HostAddress, Lab};
use linerate_plan::settings::End;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where the flows of a lab begin: as the default ones do in their networks, at .10.1 of IPv4 and 10::1 below the prefix of IPv6.
///
/// # Errors
/// A network has no room for that.
pub fn origins(lab: &Lab) -> Result<Origins> {
    let ends = lab.hosts.iter().chain(&lab.black_box).flat_map(|host| {
        host.send
            .iter()
            .chain(&host.receive)
            .chain(host.end(End::In))
            .chain(host.end(End::Out))
    });
    let links: Vec<IpAddr> = ends.flat_map(|end| &end.addresses).map(network).collect();
    let of_family = |six: bool| {
        let links: Vec<IpAddr> = links
            .iter()
            .copied()
            .filter(|link| link.is_ipv6() == six)
            .collect();
        let of = |end| {
            lab.networks(end)
                .into_iter()
                .find(|network| network.contains(':') == six)
        };
        let (Some(source), Some(destination)) = (of(End::In), of(End::Out)) else {
            return Ok(None);
        };
        let room = |network: &str| {
            let (first, length) = first_address(network)?;
            // Hosts of a link's own network are asked for by ARP, and there are none.
            let taken = links.iter().copied().filter(|link| *link > first).min();
            anyhow::Ok(AddressRange {
                first,
                length,
                taken,
            })
        };
        anyhow::Ok(Some([room(source)?, room(destination)?]))
    };
    Ok([of_family(false)?, of_family(true)?])
}

/// The first address of an interface's network.
fn network(of: &HostAddress) -> IpAddr {
    let (address, length) = of.prefix();
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX
                .checked_shl(32 - u32::from(length.min(32)))
                .unwrap_or(0);
            Ipv4Addr::from(u32::from(v4) & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(length.min(128)))
                .unwrap_or(0);
            Ipv6Addr::from(u128::from(v6) & mask).into()
        }
    }
}

fn first_address(network: &str) -> Result<(IpAddr, u8)> {
    let wrong = || format!("the network {network} of the lab file");
    let (address, length) = network.split_once('/').with_context(wrong)?;
    let length: u8 = length.parse().with_context(wrong)?;
    let (address, longest) = match address.parse::<IpAddr>().with_context(wrong)? {
        IpAddr::V4(v4) => (IpAddr::V4(Ipv4Addr::from(u32::from(v4) | 0x0a01)), 20),
        IpAddr::V6(v6) => (
            IpAddr::V6(Ipv6Addr::from(u128::from(v6) | (0x10 << 64) | 1)),
            59,
        ),
    };
    if length > longest {
        bail!(
            "the network {network} of the lab file is too small for the flows: it must be /{longest} or shorter"
        );
    }
    Ok((address, length))
}
