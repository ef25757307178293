//! The way to an address, by route(8) of the BSDs.

use super::text::{address, is_name, pairs};
use std::net::IpAddr;

/// The way to an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Over whom; `None` where it is a neighbour.
    pub gateway: Option<IpAddr>,
    pub interface: String,
}

/// The answer of `route -n get ADDRESS`: lines `  interface: igb2`.
pub fn way(text: &str) -> Option<Way> {
    let value = |key: &str| pairs(text, ':').find(|(name, _)| *name == key).map(|(_, value)| value);
    let interface = value("interface").filter(|i| is_name(i))?.to_string();
    let flags = value("flags").unwrap_or("");
    // OpenBSD names the interface's own address as gateway of a network that is at it.
    let gateway =
        value("gateway").and_then(address).filter(|_| flags.is_empty() || flags.contains("GATEWAY"));
    Some(Way { gateway, interface })
}
