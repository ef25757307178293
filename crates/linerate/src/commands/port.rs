//! An interface by hand, for `send` and `receive`: past the guard (RFC 6815), with a line a second.

use crate::args::AtInterface;
use crate::prelude::*;
use linerate_linux::host::autogroup::Ahead;
use linerate_linux::net::netlink::{LinkInfo, Route};
use linerate_linux::net::registry::Registry;
use linerate_linux::net::{Netns, guard};
use linerate_linux::ports::{Port, monotonic_ns};
use linerate_runner::fault::Watcher;
use linerate_wire::units::Si;

/// An interface that may be used.
pub struct Allowed {
    /// Namespace of the interface.
    pub namespace: Netns,
    /// The link.
    pub link: LinkInfo,
    /// Whether the namespace is one of our labs.
    pub in_lab: bool,
    /// Before other programs, while it is used. Not being allowed to is no error.
    _ahead: Option<Ahead>,
    /// Puts that back, should linerate be killed.
    _watcher: Option<Watcher>,
}

/// Opens the interface, or returns the reason why it must not be used. `deed`: see [`guard::permit`].
///
/// # Errors
/// There is no such interface, it is down, its link does not come up in time, or the guard refuses.
pub fn open(at: &AtInterface, deed: &str) -> Result<Allowed> {
    let interface = at.interface.as_deref().unwrap_or_default();
    let namespace = at
        .netns
        .as_deref()
        .map_or_else(Netns::current, Netns::open)?;
    let route = Route::open(&namespace)?;
    let mut link = route.link(interface)?;
    let labs = Registry::of_this_host().inodes();
    let examination = guard::examine(&namespace, interface, &labs)?;
    for warning in guard::permit(&examination, &at.isolated_lab, deed)? {
        tell(format!("warning: {warning}"));
    }
    if !link.up {
        bail!("interface {interface} is down: ip link set {interface} up");
    }
    // Opening a card for testing can take its link down for a moment (netmap and XDP do).
    let wait = Duration::from_secs(at.wait_link);
    if !link.running && route.wait_running(link.index, wait).is_ok() {
        link = route.link(interface)?;
    }
    if !link.carrier {
        bail!("interface {interface} has no carrier: is the cable in, and the other end up?");
    }
    let ahead = Ahead::this().ok().flatten();
    Ok(Allowed {
        in_lab: labs.contains(&namespace.inode()),
        namespace,
        link,
        _watcher: Watcher::of(ahead.as_ref()),
        _ahead: ahead,
    })
}

/// Waits until a port is done or the user wants to stop, and prints a line from time to time. `verb`: `sent` or `received`;
/// `pause_ms`: between two looks; `is_over`: whether it is done, by the number of frames.
pub fn watch(
    at: &AtInterface,
    port: &dyn Port,
    verb: &str,
    pause_ms: u64,
    mut is_over: impl FnMut(u64) -> bool,
) {
    let began = monotonic_ns();
    let (mut last_ns, mut last_frames) = (began, 0);
    while !is_over(port.frames()) && !interrupted() {
        std::thread::sleep(Duration::from_millis(at.report_ms.min(pause_ms)));
        let (now, frames) = (monotonic_ns(), port.frames());
        if now - last_ns < at.report_ms * 1_000_000 {
            continue;
        }
        let (seconds, new) = (
            (now - last_ns) as f64 / 1e9,
            frames.saturating_sub(last_frames),
        );
        if at.printed.is_text() {
            let rate = new as f64 / seconds;
            let rate = if at.normalize {
                format!("{rate:.0} ")
            } else {
                Si(rate).to_string()
            };
            let elapsed = (now - began) as f64 / 1e9;
            print(&format!(
                "{elapsed:8.3} s  {rate:>9}pps  ({new} frames {verb} in {:.1} ms)\n",
                seconds * 1e3
            ));
        }
        (last_ns, last_frames) = (now, frames);
    }
}

/// The exit status after this number of frames.
pub fn status(frames: u64, interrupted: bool) -> u8 {
    match (interrupted, frames) {
        (true, _) => INTERRUPTED,
        (false, 0) => FAILED,
        _ => SUCCESS,
    }
}
