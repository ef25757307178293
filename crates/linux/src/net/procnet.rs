//! The counters of a namespace, by name; and those among them that mean "a packet was lost here".

use linerate_hosts::counters::files;
use linerate_hosts::systems::procnet::Read;
pub use linerate_hosts::systems::procnet::is_drop;
pub use linerate_measure::collector::{Counters, grown};
use std::fs;
use std::io;
use std::path::Path;

use super::Netns;
use super::ethtool::Ethtool;
use super::netlink::{LinkInfo, Route};
use crate::error::{Doing, Error};

/// Endings of drivers' counters that mean a lost packet. An XDP program that drops on purpose counts as well.
const DRIVER_DROPS: [&str; 4] = ["_drops", "_xdp_drops", "_xmit_errors", "xdp_tx_errors"];

/// All counters of snmp, snmp6, netstat and stat/nf_conntrack in the namespace. Files the kernel does not have are
/// left out.
pub fn counters(ns: &Netns) -> Result<Counters, Error> {
    ns.run(|| {
        let mut all = Counters::new();
        for (file, parse) in files(true) {
            let path = format!("/proc/thread-self/{file}");
            match fs::read_to_string(&path) {
                Ok(text) => all.append(&mut parse(&text)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                failed => {
                    drop(failed.doing(format_args!("read {path} in namespace {}", ns.label()))?)
                }
            }
        }
        Ok(all)
    })
}

/// The counters of the machine, by the files below `root`. Files that the kernel does not have are left out.
pub fn of_machine(root: &Path) -> Counters {
    let read = |(file, parse): (_, Read)| {
        Some(parse(
            &fs::read_to_string(root.join("proc").join(file)).ok()?,
        ))
    };
    files(false).filter_map(read).flatten().collect()
}

/// Every counter of the namespace that means a lost packet, to be compared with a later reading: see [`is_drop`].
pub fn drop_counters(ns: &Netns) -> Result<Counters, Error> {
    Ok(all(ns)?
        .into_iter()
        .filter(|(name, _)| is_drop(name))
        .collect())
}

/// All counters of the namespace: [`counters`], `g0.rx_packets` (links), and `g0.ethtool.rx_queue_0_drops`: those of their drivers that
/// mean a lost packet.
pub fn all(ns: &Netns) -> Result<Counters, Error> {
    let mut all = counters(ns)?;
    let ethtool = Ethtool::open(ns)?;
    for link in Route::open(ns)?.links()? {
        all.extend(of_link(&link));
        // Drivers without counters return an error; a link may have been removed by now.
        let stats = ethtool.stats(&link.name).unwrap_or_default();
        let lost = stats
            .into_iter()
            .filter(|(name, _)| DRIVER_DROPS.iter().any(|end| name.ends_with(end)));
        all.extend(lost.map(|(name, value)| (format!("{}.ethtool.{name}", link.name), value)));
    }
    Ok(all)
}

fn of_link(link: &LinkInfo) -> [(String, u64); 9] {
    let stats = &link.stats;
    [
        ("rx_packets", stats.rx_packets),
        ("tx_packets", stats.tx_packets),
        ("rx_bytes", stats.rx_bytes),
        ("tx_bytes", stats.tx_bytes),
        ("rx_dropped", stats.rx_dropped),
        ("tx_dropped", stats.tx_dropped),
        ("rx_errors", stats.rx_errors),
        ("tx_errors", stats.tx_errors),
        ("rx_missed", stats.rx_missed),
    ]
    .map(|(counter, value)| (format!("{}.{counter}", link.name), value))
}
