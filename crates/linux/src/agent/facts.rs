//! What this host is, in the words of the protocol.

use super::Options;
use crate::host::{self, cpu};
use crate::net::ethtool::Ethtool;
use crate::net::netlink::{LinkInfo, Route};
use crate::net::registry::Registry;
use crate::net::{Error, Netns, guard};
use crate::ports::monotonic_ns;
use linerate_hosts::agent::message::{Facts, Interface};
use linerate_wire::MacAddr;
use std::path::Path;

/// Everything about this host.
///
/// # Errors
/// The kernel does not list its links.
pub(super) fn facts(options: &Options) -> Result<Facts, Error> {
    let namespace = Netns::current()?;
    let route = Route::open(&namespace)?;
    let links = route.links()?;
    Ok(Facts {
        host: host::facts(Path::new("/")),
        cpus: cpu::online_cpus().unwrap_or_default(),
        interfaces: links
            .iter()
            .filter(|l| !l.loopback)
            .map(|link| interface(&namespace, link, options))
            .collect(),
        monotonic_ns: monotonic_ns(),
        wall_ns: wall_ns(),
        boot: std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into(),
        root: rustix::process::geteuid().is_root(),
    })
}

/// An interface, with what speaks against test traffic on it.
pub(super) fn interface(namespace: &Netns, link: &LinkInfo, options: &Options) -> Interface {
    let ethtool = Ethtool::open(namespace).ok();
    let ask = |f: &dyn Fn(&Ethtool) -> Option<String>| ethtool.as_ref().and_then(f);
    let examined = guard::examine(namespace, &link.name, &labs());
    let reasons = examined.map(|e| e.reasons).unwrap_or_default();
    let rings = ethtool.as_ref().and_then(|e| e.rings(&link.name).ok());
    Interface {
        name: link.name.clone(),
        mac: MacAddr(link.mac).to_string(),
        driver: ask(&|e| e.driver(&link.name).ok()),
        kind: link.kind.clone(),
        speed_mbps: ethtool.as_ref().and_then(|e| e.speed_mbps(&link.name).ok().flatten()),
        mtu: link.mtu,
        up: link.up,
        carrier: link.carrier,
        queues: (link.num_rx_queues, link.num_tx_queues),
        rings: rings.map(|r| (r.rx, r.tx)).filter(|rings| *rings != (0, 0)),
        against: reasons
            .iter()
            .filter(|reason| **reason != guard::Refusal::NotInLabNamespace)
            .map(ToString::to_string)
            .collect(),
        management: options
            .connection
            .as_ref()
            .is_some_and(|c| c.uses(namespace, &link.name).unwrap_or(true)),
    }
}

/// The namespaces of labs that stand on this host.
pub(super) fn labs() -> Vec<u64> {
    Registry::of_this_host().inodes()
}

/// The time of day, in nanoseconds since 1970.
pub(super) fn wall_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
