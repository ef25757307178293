//! May this interface be used? Opens a namespace and an interface by name, past the guard (RFC 6815).

use anyhow::{Result, bail};
use linerate_linux::net::netlink::{LinkInfo, Route};
use linerate_linux::net::registry::Registry;
use linerate_linux::net::{Netns, guard};
use std::time::Duration;

/// An interface that may be used.
pub struct Allowed {
    /// Its namespace.
    pub namespace: Netns,
    /// The link.
    pub link: LinkInfo,
    /// Whether the namespace is one of our labs.
    pub in_lab: bool,
}

/// Opens the interface, or says why it must not be used.
///
/// # Errors
/// There is no such interface, it is down, its link does not come up within `wait`, or the guard refuses.
pub fn open(netns: Option<&str>, interface: &str, named: &[String], wait: Duration) -> Result<Allowed> {
    let namespace = netns.map_or_else(Netns::current, Netns::open)?;
    let route = Route::open(&namespace)?;
    let mut link = route.link(interface)?;
    let labs = Registry::of_this_host().inodes();
    let examination = guard::examine(&namespace, interface, &labs)?;
    for warning in guard::permit(&examination, named)? {
        eprintln!("linerate: warning: {warning}");
    }
    if !link.up {
        bail!("interface {interface} is down: ip link set {interface} up");
    }
    // Opening a card for testing can take its link down for a moment (netmap and XDP do).
    if !link.running && route.wait_running(link.index, wait).is_ok() {
        link = route.link(interface)?;
    }
    if !link.carrier {
        bail!("interface {interface} has no carrier: is the cable in, and the other end up?");
    }
    Ok(Allowed { in_lab: labs.contains(&namespace.inode()), namespace, link })
}

/// Refuses frames that the interface's MTU does not take: the kernel would drop every one of them.
///
/// # Errors
/// The MTU is too small.
pub fn check_mtu(link: &LinkInfo, longest_fcs: u16, tagged: bool) -> Result<()> {
    let overhead = if tagged { 22 } else { 18 };
    let needed = u32::from(longest_fcs).saturating_sub(overhead);
    if needed > link.mtu {
        bail!(
            "frames of {longest_fcs} bytes need an MTU of {needed}, and {} has {}: ip link set {} mtu {needed}",
            link.name,
            link.mtu,
            link.name
        );
    }
    Ok(())
}
