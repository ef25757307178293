//! Routing tables and single routes of the BSDs.

use super::MOST_ENTRIES;
use super::text::{address, bounded, is_name, lines, shown};
use std::net::IpAddr;

/// A route of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where to, as the system writes it: `default`, `198.19.0.0/24`.
    pub destination: String,
    /// Over whom; `None` where the network is at the interface itself.
    pub gateway: Option<IpAddr>,
    /// The interface.
    pub interface: String,
}

/// The way to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Over whom; `None` where it is a neighbour.
    pub gateway: Option<IpAddr>,
    /// The interface.
    pub interface: String,
}

/// The routes of `netstat -rn`. Which column is the interface, each section's header says.
pub fn table(output: &[u8]) -> Vec<Route> {
    let text = bounded(output);
    let mut routes = Vec::new();
    let mut column = None;
    for line in lines(&text) {
        let words: Vec<&str> = line.split_ascii_whitespace().take(12).collect();
        if words.first() == Some(&"Destination") {
            column = words.iter().position(|w| matches!(*w, "Netif" | "Iface" | "Interface"));
            continue;
        }
        let Some(interface) = column.and_then(|c| words.get(c)).filter(|w| is_name(w)) else { continue };
        if words.len() >= 4 && routes.len() < MOST_ENTRIES {
            let gateway = address(words[1]);
            routes.push(Route { destination: shown(words[0]), gateway, interface: (*interface).into() });
        }
    }
    routes
}

/// The answer of `route -n get ADDRESS`: lines `  interface: igb2`.
pub fn way(output: &[u8]) -> Option<Way> {
    let text = bounded(output);
    let value = |key: &str| {
        lines(&text).find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim())
        })
    };
    let interface = value("interface").filter(|i| is_name(i))?.to_string();
    let flags = value("flags").unwrap_or("");
    // OpenBSD names the interface's own address as gateway of a network that is at it.
    let gateway =
        value("gateway").and_then(address).filter(|_| flags.is_empty() || flags.contains("GATEWAY"));
    Some(Way { gateway, interface })
}
